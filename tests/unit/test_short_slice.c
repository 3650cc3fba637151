/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "short_slice.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* The slice of this thread by /proc/self/sched (a debug option of the kernel); 0: not shown. */
static long slice_shown(void)
{
	FILE *file = fopen("/proc/thread-self/sched", "r");
	char line[256];
	long slice = 0;

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "se.slice", 8) == 0 && strchr(line, ':'))
			slice = atol(strchr(line, ':') + 1);
	if (file)
		fclose(file);
	return slice;
}

static int in_child(int policy, int nice_value)
{
	const struct sched_param none = { 0 };
	int status;
	const pid_t child = fork();

	if (child == 0) {
		const long before = slice_shown();
		struct utsname name;
		int major, minor;
		bool short_now;

		/* By the system call, because musl has none of these functions. */
		if (setpriority(PRIO_PROCESS, 0, nice_value) != 0 ||
		    (policy != SCHED_OTHER && syscall(SYS_sched_setscheduler, 0, policy, &none) != 0))
			_exit(1);
		short_slice();
		if (getpriority(PRIO_PROCESS, 0) != nice_value)
			_exit(2);
		short_now = slice_shown() == 100000;
		if (policy != SCHED_OTHER)
			_exit(short_now ? 3 : 0);
		if (uname(&name) != 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2)
			_exit(4);
		if (before && (major > 6 || (major == 6 && minor >= 12)) && !short_now)
			_exit(5);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(short_slice_keeps_nice)
{
	assert_int_equal(in_child(SCHED_OTHER, getpriority(PRIO_PROCESS, 0)), 0);
	assert_int_equal(in_child(SCHED_OTHER, 19), 0);
}

TEST(short_slice_leaves_other_policies)
{
	assert_int_equal(in_child(SCHED_BATCH, 19), 0);
}
