/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Time for which a thread of this process was ready to run and had no processor (Linux: "run delay"). */
#ifndef KTRXER_CLI_RUN_DELAY_H
#define KTRXER_CLI_RUN_DELAY_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum { RUN_DELAY_THREADS = 16 };

struct run_delay {
	uint64_t begun_ns;     /* the run delay at the beginning */
	_Atomic pid_t watcher; /* the thread that watches the host: its waits delay no probe */
	pthread_mutex_t lock;  /* of the rest */
	struct run_delay_thread {
		pid_t thread;       /* 0: none */
		uint64_t waited_ns; /* by the last look */
	} threads[RUN_DELAY_THREADS];
	uint64_t longest_ns; /* the longest wait of one thread between two looks */
	bool known;
};

#ifdef KTRXER_SMALL
enum { RUN_DELAY = 0 };
static inline void run_delay_begin(struct run_delay *delay)
{
	(void)delay;
}

static inline bool run_delay_since(const struct run_delay *delay, uint64_t *waited_ns)
{
	*waited_ns = 0;
	(void)delay;
	return false;
}

static inline void run_delay_look(struct run_delay *delay)
{
	(void)delay;
}

static inline bool run_delay_longest(struct run_delay *delay, uint64_t *waited_ns)
{
	return run_delay_since(delay, waited_ns);
}
#else
enum { RUN_DELAY = 1 }; /* the small program is without it */
void run_delay_begin(struct run_delay *delay);
/*
 * Since run_delay_begin(), of the thread that waited longest. False: not known, because this kernel has no schedstat or
 * /proc is not mounted.
 */
bool run_delay_since(const struct run_delay *delay, uint64_t *waited_ns);
/* The watcher calls it from time to time. */
void run_delay_look(struct run_delay *delay);
/* No single wait of a thread was longer. False: as above. */
bool run_delay_longest(struct run_delay *delay, uint64_t *waited_ns);
#endif

#endif
