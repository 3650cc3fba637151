/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_watch.h"

#include "host.h"

#include "thread.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
	PERIOD_NS = 5 * 1000 *
		1000, /* a stall shorter than this may pass unseen; a shorter period would be in the probes' way */
	STALL_NS = 1000 * 1000,
	STEAL_TICKS = 2, /* one tick may be a rounding */
	PRIORITY = 70,   /* above the senders': it must see the processor's absence, not theirs */
	PROCESSORS = 64, /* more are not watched */
};

struct watcher {
	struct bench_watch *watch;
	pthread_t thread;
	int cpu;
};

struct bench_watch {
	struct watcher watchers[PROCESSORS];
	int count;
	atomic_bool stop;
	atomic_int realtime;       /* watchers that have their priority */
	_Atomic uint32_t worst_us; /* not 64 bits: 32-bit MIPS has no such atomic without libatomic */
	uint64_t steal_ticks;
	int stat_fd;
};

static uint64_t steal_ticks(const struct bench_watch *w)
{
	struct host_cpu cpu;
	char text[512];
	ssize_t n = w->stat_fd < 0 ? -1 : pread(w->stat_fd, text, sizeof text, 0);

	return n > 0 && host_cpu_parse(&cpu, text, (size_t)n) == 0 ? cpu.steal : 0;
}

static void *watch_one(void *argument)
{
	struct watcher *me = argument;
	struct bench_watch *w = me->watch;
	struct sched_param param = { .sched_priority = PRIORITY };
	uint64_t due = ktrxer_now_ns();
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(me->cpu, &one);
	if (sched_setaffinity(0, sizeof one, &one) || pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return NULL;
	atomic_fetch_add(&w->realtime, 1);
	while (!atomic_load(&w->stop)) {
		struct timespec t;
		uint64_t now, late_us;
		uint32_t worst;

		due += PERIOD_NS;
		t = (struct timespec){ .tv_sec = (time_t)(due / 1000000000), .tv_nsec = (long)(due % 1000000000) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
		now = ktrxer_now_ns();
		if (now < due)
			continue;
		late_us = (now - due) / 1000;
		if (late_us > UINT32_MAX)
			late_us = UINT32_MAX;
		worst = atomic_load(&w->worst_us);
		while (late_us > worst && !atomic_compare_exchange_weak(&w->worst_us, &worst, (uint32_t)late_us))
			;
		if (now - due > PERIOD_NS)
			due = now;
	}
	return NULL;
}

struct bench_watch *bench_watch_open(void)
{
	struct bench_watch *w = calloc(1, sizeof *w);
	struct timespec settle = { .tv_nsec = 2000000 };
	cpu_set_t ours;

	if (!w)
		return NULL;
	w->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	CPU_ZERO(&ours);
	if (sched_getaffinity(0, sizeof ours, &ours) == 0)
		for (int cpu = 0; cpu < CPU_SETSIZE && w->count < PROCESSORS; cpu++) {
			struct watcher *one = &w->watchers[w->count];

			if (!CPU_ISSET(cpu, &ours))
				continue;
			*one = (struct watcher){ .watch = w, .cpu = cpu };
			if (cli_thread_start(&one->thread, "bench-watch", watch_one, one) < 0)
				break;
			w->count++;
		}
	nanosleep(&settle, NULL);
	return w;
}

void bench_watch_close(struct bench_watch *w)
{
	if (!w)
		return;
	atomic_store(&w->stop, true);
	for (int i = 0; i < w->count; i++)
		pthread_join(w->watchers[i].thread, NULL);
	if (w->stat_fd >= 0)
		close(w->stat_fd);
	free(w);
}

bool bench_watch_sees_stalls(const struct bench_watch *w)
{
	return w->count && atomic_load(&w->realtime) == w->count;
}

void bench_watch_begin(struct bench_watch *w)
{
	w->steal_ticks = steal_ticks(w);
	atomic_store(&w->worst_us, 0);
}

struct bench_quiet bench_watch_end(struct bench_watch *w)
{
	uint64_t ticks = steal_ticks(w) - w->steal_ticks, worst = (uint64_t)atomic_load(&w->worst_us) * 1000;
	long hz = sysconf(_SC_CLK_TCK);

	return (struct bench_quiet){
		.stall_ns = worst > STALL_NS ? worst : 0,
		.steal_ns = hz > 0 ? ticks * (1000000000u / (uint64_t)hz) : 0,
		.stalled = worst > STALL_NS || ticks >= STEAL_TICKS,
	};
}

void bench_quiet_join(struct bench_quiet *into, const struct bench_quiet *more)
{
	into->stall_ns = more->stall_ns > into->stall_ns ? more->stall_ns : into->stall_ns;
	into->steal_ns += more->steal_ns;
	into->stalled |= more->stalled;
}
