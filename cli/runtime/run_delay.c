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

/* Calls `take` for each thread but `except`. False: no run delay is known. */
static bool each_thread(pid_t except, void (*take)(void *context, pid_t thread, uint64_t waited_ns), void *context)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *entry;
	bool known = false;
	uint64_t waited;

	if (!tasks)
		return false;
	while ((entry = readdir(tasks))) {
		const pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

		if (thread <= 0 || thread == except || !of_thread(dirfd(tasks), thread, &waited))
			continue;
		known = true;
		take(context, thread, waited);
	}
	closedir(tasks);
	return known;
}

static void take_largest(void *context, pid_t thread, uint64_t waited_ns)
{
	uint64_t *largest = context;

	(void)thread;
	if (waited_ns > *largest)
		*largest = waited_ns;
}

static bool longest(pid_t except, uint64_t *waited_ns)
{
	*waited_ns = 0;
	return each_thread(except, take_largest, waited_ns);
}

/* A thread that is new since the last look has waited since its start. */
static void take_growth(void *context, pid_t thread, uint64_t waited_ns)
{
	struct run_delay *delay = context;
	struct run_delay_thread *t = delay->threads;
	uint64_t grown;

	while (t < delay->threads + RUN_DELAY_THREADS - 1 && t->thread && t->thread != thread)
		t++;
	grown = t->thread == thread && waited_ns > t->waited_ns ? waited_ns - t->waited_ns
		: t->thread == thread                           ? 0
								: waited_ns;
	*t = (struct run_delay_thread){ thread, waited_ns };
	if (grown > delay->longest_ns)
		delay->longest_ns = grown;
}

void run_delay_look(struct run_delay *delay)
{
	pthread_mutex_lock(&delay->lock);
	delay->known = each_thread(delay->watcher, take_growth, delay);
	pthread_mutex_unlock(&delay->lock);
}

bool run_delay_longest(struct run_delay *delay, uint64_t *waited_ns)
{
	run_delay_look(delay);
	*waited_ns = delay->longest_ns;
	return delay->known;
}

void run_delay_begin(struct run_delay *delay)
{
	pthread_mutex_init(&delay->lock, NULL);
	longest(0, &delay->begun_ns);
	run_delay_look(delay);
	delay->longest_ns = 0;
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
