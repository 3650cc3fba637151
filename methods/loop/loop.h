/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The event loop of clients and server: descriptors that are ready, times that have come, one thread. Each service is a
 * module with sources and timers in it, which may not block. Times are absolute, on CLOCK_MONOTONIC, and kept to a
 * few microseconds.
 */
#ifndef KTRXER_METHODS_LOOP_H
#define KTRXER_METHODS_LOOP_H

#include <ktrxer.h>

struct loop;

/* Embedded in its owner; stays where it is while watched. */
struct loop_source {
	int fd;
	void (*ready)(struct loop_source *source, uint32_t events); /* EPOLLIN... */
};

struct loop_timer {
	uint64_t at_ns;                                         /* KTRXER_NEVER: off. May be changed at any time */
	void (*due)(struct loop_timer *timer, uint64_t now_ns); /* sets at_ns anew, or it is off */
	struct loop_timer *next;                                /* of loop.c */
};

int loop_new(struct loop **loop);
void loop_free(struct loop *loop);

/* `events`: EPOLLIN, EPOLLOUT; again with others to change them. Errors are always reported. 0 or a negative errno. */
int loop_watch(struct loop *loop, struct loop_source *source, uint32_t events);
/*
 * Call it before the descriptor is closed, also from within a call of the source. No call follows, not even for an
 * event that is queued already.
 */
void loop_unwatch(struct loop *loop, struct loop_source *source);
void loop_timer_add(struct loop *loop, struct loop_timer *timer);
void loop_timer_remove(struct loop *loop, struct loop_timer *timer);
/*
 * The next wait ends at a timer or by stop_fd, not by sources: to take their events later and many at once saves
 * wake-ups.
 */
void loop_wait_blind(struct loop *loop);
/* The next wait is a plain sleep, from which a thread wakes sooner: it ends at a timer alone, so it must be short. */
void loop_sleep(struct loop *loop);

/*
 * Runs until `stop_fd` is readable (it is never read; -1: none) or loop_stop() was called. 0 or a negative errno of the
 * loop itself.
 */
int loop_run(struct loop *loop, int stop_fd);
void loop_stop(struct loop *loop);

/*
 * True: the call of a source or timer that runs now has used its share of the loop, LOOP_SHARE_NS. A call whose work
 * depends on a peer asks after each step, returns, and goes on in its next turn; a step takes less than a millisecond.
 */
#define LOOP_SHARE_NS 100000
bool loop_share_used(const struct loop *loop);

struct loop_figures {
	uint64_t calls;      /* of sources and timers */
	uint64_t longest_ns; /* of one call, by the clock below */
	uint32_t ready;      /* sources that were ready in the last turn */
};
void loop_figures(const struct loop *loop, struct loop_figures *figures);
/* The clock of shares and figures. By default ktrxer_now_ns(); a test measures processor time. */
void loop_clock(struct loop *loop, uint64_t (*clock)(void));

#endif
