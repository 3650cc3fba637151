/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Keeps the live program running while there is work. A call of it takes one processor, can be repeated some four
 * billion times (150 s to a few minutes), and takes tens of milliseconds to begin and to end; so it begins well before
 * the first deadline, a second call takes over when half of the first is used up, and it ends when nothing has been due
 * for a while. Each worker has one thread, made with the runner; all functions are called by one thread, the pump's.
 */
#ifndef KTRXER_LIB_LIVE_RUNNER_H
#define KTRXER_LIB_LIVE_RUNNER_H

#include "live_program.h"

#include <pthread.h>
#include <stdatomic.h>

struct live_runner;

struct live_worker_thread {
	struct live_runner *runner;
	int number;
	pthread_t thread;
	bool has_thread;
	enum worker_phase {
		WORKER_RESTS,
		WORKER_RUNS,
		WORKER_QUITS
	} phase; /* under lock; WORKER_RUNS is taken back by the
									thread */
	int result;
	bool ending;  /* the runner's: it is being told to end */
	bool resting; /* not real-time for now */
	bool out;     /* the runner's: a call was asked for and its end not seen */
	uint32_t frame_size;
};

struct live_runner {
	const struct live_program *program;
	pthread_mutex_t lock;
	pthread_cond_t turn;
	struct live_worker_thread workers[LIVE_WORKERS];
	int current; /* -1: no call */
	uint32_t repeat, batch;
	int signal, cpu;
	bool realtime; /* SCHED_FIFO is asked for */
	int broken;    /* negative errno: the kernel does not run it any more */
	uint64_t idle_since_ns;
	uint64_t rest_ends_ns;                       /* 0: no rest */
	bool on_break;                               /* it rests whatever comes */
	uint64_t rest_began_ns, rested_ns, since_ns; /* of short rests */
	uint64_t calls, handovers;
};

struct live_need {
	uint64_t now_ns;
	uint64_t due_ns;     /* of the next probe; KTRXER_NEVER: none */
	uint32_t frame_size; /* of the next probe */
	bool trains;
};

/*
 * Runs of the program in one call, of the runners that are opened from now on. Tests lower it, so that calls end and
 * follow one another often.
 */
extern uint32_t ktrxer_live_runner_repeat;

int ktrxer_live_runner_open(struct live_runner *runner, const struct live_program *program,
			    const struct ktx_options *options, struct ktrxer_error *err);
void ktrxer_live_runner_close(struct live_runner *runner);
/* Starts, submits, ends; says when to come back. A negative errno: it cannot run any more. */
int ktrxer_live_runner_update(struct live_runner *runner, const struct live_need *need, uint64_t *next_ns);
/* Ends what runs; ktrxer_live_runner_rests() tells when it has. */
void ktrxer_live_runner_stop(struct live_runner *runner, uint64_t now_ns, uint64_t *next_ns);
/* No worker uses the ring, and none will before the next update. */
bool ktrxer_live_runner_rests(const struct live_runner *runner);

#endif
