/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "run_delay.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The second number of schedstat (Documentation/scheduler/sched-stats.rst). */
static bool of_thread(int tasks, pid_t thread, uint64_t *waited_ns)
{
	char name[32], text[64] = "", *second = NULL;
	int fd;

	snprintf(name, sizeof name, "%d/schedstat", (int)thread);
	fd = openat(tasks, name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (read(fd, text, sizeof text - 1) > 0)
		second = strchr(text, ' ');
	close(fd);
	if (second)
		*waited_ns = strtoull(second, NULL, 10);
	return second;
}

static bool longest(pid_t except, uint64_t *waited_ns)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool known = false;
	uint64_t waited;

	*waited_ns = 0;
	if (!tasks)
		return false;
	while ((entry = readdir(tasks))) {
		const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread <= 0 || thread == except || !of_thread(dirfd(tasks), thread, &waited))
			continue;
		known = true;
		if (waited > *waited_ns)
			*waited_ns = waited;
	}
	closedir(tasks);
	return known;
}

void run_delay_begin(struct run_delay *delay)
{
	longest(0, &delay->begun_ns);
}

bool run_delay_since(const struct run_delay *delay, uint64_t *waited_ns)
{
	uint64_t now;

	*waited_ns = 0;
	if (!longest(delay->watcher, &now))
		return false;
	if (now > delay->begun_ns)
		*waited_ns = now - delay->begun_ns;
	return true;
}
