/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "busy.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Averages of minutes say what was; so the number of this moment, several times. */
#define LOOKS 6
#define PAUSE_NS 3000000

/*
 * How many tasks run or wait to run, the asking one included: "0.20 0.18 0.12 1/80 11206" of /proc/loadavg. -1: it is
 * something else.
 */
static int running_parse(const char *text, size_t length)
{
	const char *slash = memchr(text, '/', length), *at;
	long value = 0;

	if (!slash)
		return -1;
	for (at = slash; at > text && at[-1] >= '0' && at[-1] <= '9';)
		at--;
	if (at == slash || slash - at > 7)
		return -1;
	for (; at < slash; at++)
		value = value * 10 + (*at - '0');
	return (int)value;
}

static int running_now(void)
{
	char text[128];
	int fd = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, text, sizeof text);
	close(fd);
	return n > 0 ? running_parse(text, (size_t)n) : -1;
}

bool ktrxer_processor_free(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	int sum = 0, processors = (int)sysconf(_SC_NPROCESSORS_ONLN);
	cpu_set_t set;

	CPU_ZERO(&set);
	if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < processors)
		processors = CPU_COUNT(&set);
	for (int i = 0; i < LOOKS; i++) {
		int running;

		if (i)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		running = running_now();
		if (running < 1)
			return true;
		sum += running - 1; /* less the one that asks */
	}
	/* One processor, on the average, must have nothing to do. */
	return sum <= LOOKS * (processors - 1);
}
