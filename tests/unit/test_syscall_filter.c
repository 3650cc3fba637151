/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls that a filtered process may make, one by one, in a child process. */
#include "cm.h"
#include "syscall_filter.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_FILTER = 1, PAGE = 4096 };

static bool refused(long result)
{
	return result == -1 && errno == EPERM;
}

/* The number of the first line that is wrong; 0: none. */
#define EXPECT(what)                    \
	do {                            \
		if (!(what))            \
			return __LINE__; \
	} while (0)

static int what_is_refused(void)
{
	static char *const none[] = { NULL };
	void *page;

	EXPECT(refused(open("/dev/null", O_WRONLY)));
	EXPECT(refused(open("/tmp", O_RDWR | O_TMPFILE, 0600)));
	EXPECT(refused(open("/tmp/ktrxer-filter-test", O_RDONLY | O_CREAT, 0600)));
	EXPECT(refused(unlink("/tmp/ktrxer-filter-test")));
	EXPECT(refused(chmod("/tmp", 0777)));
	EXPECT(refused(socket(AF_PACKET, SOCK_RAW, 0)));
	EXPECT(refused(socket(AF_UNIX, SOCK_STREAM, 0)));
	EXPECT(refused(execve("/bin/true", none, none)));
	EXPECT(refused(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)));
	EXPECT(refused(ptrace(PTRACE_TRACEME, 0, NULL, NULL)));
	EXPECT(refused(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)));
	EXPECT(refused(kill(getpid(), 0)));
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(page == MAP_FAILED && errno == EPERM);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(page != MAP_FAILED);
	EXPECT(refused(mprotect(page, PAGE, PROT_READ | PROT_EXEC)));
	return 0;
}

static int what_is_allowed(void)
{
	char byte;
	int fd = open("/dev/zero", O_RDONLY);

	EXPECT(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
	for (int family = 0; family < 3; family++) {
		static const int families[] = { AF_INET, AF_INET6, AF_NETLINK };

		fd = socket(families[family], SOCK_DGRAM | SOCK_CLOEXEC, 0);
		EXPECT(fd >= 0 || errno == EAFNOSUPPORT);
		EXPECT(fd < 0 || close(fd) == 0);
	}
	EXPECT(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0) == 0);
	free(malloc(1 << 20));
	return 0;
}

static void *other_thread(void *wake)
{
	char byte;

	/* It was there before the filter. */
	if (read(*(int *)wake, &byte, 1) != 1)
		return (void *)1;
	return refused(open("/dev/null", O_WRONLY)) ? NULL : (void *)1;
}

static int in_filter(void)
{
	pthread_t thread;
	int wake[2], line;
	void *wrong;

	if (pipe(wake) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return __LINE__;
	if (pthread_create(&thread, NULL, other_thread, &wake[0]) != 0)
		return __LINE__;
	if (syscall_filter_install() < 0)
		return NO_FILTER;
	line = what_is_refused();
	if (!line)
		line = what_is_allowed();
	if (write(wake[1], "", 1) != 1 || pthread_join(thread, &wrong) != 0 || wrong)
		return __LINE__;
	return line;
}

TEST(the_filter_refuses)
{
	int report[2], line = -1;
	pid_t child;

	assert_int_equal(pipe(report), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		line = in_filter();
		(void)!write(report[1], &line, sizeof line);
		_exit(0);
	}
	close(report[1]);
	assert_int_equal(read(report[0], &line, sizeof line), sizeof line);
	close(report[0]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (line == NO_FILTER)
		cm_skip("no filter of system calls: a small build, the kernel, an emulator or a sanitizer");
	if (line)
		fail_msg("line %d of this file", line);
}
