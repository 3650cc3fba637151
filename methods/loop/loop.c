/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "loop.h"

#include "clock.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { EVENTS = 64 };
/* Timers that are due take turns with the sources. */
#define TIMERS_SHARE_NS KTRXER_NS_PER_MS

struct loop {
	int epoll;
	bool stopped, blind, sleep;
	struct loop_timer *timers, *walk; /* `walk`: the one that is looked at next */
	struct epoll_event events[EVENTS];
	int count; /* of events that are being worked through */
	uint64_t (*clock)(void);
	uint64_t began_ns; /* the call that runs now */
	struct loop_figures figures;
};

bool loop_share_used(const struct loop *loop)
{
	return loop->clock() - loop->began_ns > LOOP_SHARE_NS;
}

void loop_figures(const struct loop *loop, struct loop_figures *figures)
{
	*figures = loop->figures;
}

void loop_clock(struct loop *loop, uint64_t (*clock)(void))
{
	loop->clock = clock;
	loop->figures = (struct loop_figures){ 0 };
}

static void call_begins(struct loop *loop)
{
	loop->began_ns = loop->clock();
}

static void call_ends(struct loop *loop)
{
	const uint64_t span_ns = loop->clock() - loop->began_ns;

	loop->figures.calls++;
	if (span_ns > loop->figures.longest_ns)
		loop->figures.longest_ns = span_ns;
}

int loop_new(struct loop **out)
{
	struct loop *loop = calloc(1, sizeof *loop);
	int rc;

	*out = NULL;
	if (!loop)
		return -ENOMEM;
	loop->clock = ktrxer_now_ns;
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll < 0) {
		rc = -errno;
		free(loop);
		return rc;
	}
	*out = loop;
	return 0;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	close(loop->epoll);
	free(loop);
}

int loop_watch(struct loop *loop, struct loop_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0 ||
	    (errno == EEXIST && epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event) == 0))
		return 0;
	return -errno;
}

void loop_unwatch(struct loop *loop, struct loop_source *source)
{
	epoll_ctl(loop->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = 0; i < loop->count; i++)
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
}

void loop_timer_add(struct loop *loop, struct loop_timer *timer)
{
	timer->next = loop->timers;
	loop->timers = timer;
}

void loop_timer_remove(struct loop *loop, struct loop_timer *timer)
{
	if (loop->walk == timer)
		loop->walk = timer->next;
	for (struct loop_timer **t = &loop->timers; *t; t = &(*t)->next)
		if (*t == timer) {
			*t = timer->next;
			return;
		}
}

/*
 * Calls the due timers, which may add and remove timers. Returns the time of the next one. Timers that use up
 * TIMERS_SHARE_NS leave the rest for the next run, which begins behind them.
 */
static uint64_t timers_run(struct loop *loop, uint64_t now)
{
	uint64_t first = KTRXER_NEVER;
	struct loop_timer *t;

	if (!loop->walk)
		loop->walk = loop->timers;
	while ((t = loop->walk)) {
		loop->walk = t->next;
		if (t->at_ns <= now) {
			t->at_ns = KTRXER_NEVER;
			call_begins(loop);
			t->due(t, now);
			call_ends(loop);
			if (loop->walk && ktrxer_now_ns() - now > TIMERS_SHARE_NS)
				return 0;
		}
	}
	for (t = loop->timers; t; t = t->next)
		if (t->at_ns < first)
			first = t->at_ns;
	return first;
}

void loop_wait_blind(struct loop *loop)
{
	loop->blind = true;
}

void loop_sleep(struct loop *loop)
{
	loop->sleep = true;
}

/*
 * ppoll() keeps nanoseconds on every kernel, epoll_wait() milliseconds alone; the epoll descriptor itself can be
 * polled.
 */
static int wait_until(struct loop *loop, int stop_fd, uint64_t until_ns)
{
	struct pollfd fds[2] = { { .fd = stop_fd, .events = POLLIN },
				 { .fd = loop->blind ? -1 : loop->epoll, .events = POLLIN } };
	const uint64_t now = ktrxer_now_ns();
	const struct timespec span = ktrxer_span(until_ns > now ? until_ns - now : 0);

#ifndef KTRXER_SMALL
	if (loop->sleep) {
		loop->sleep = loop->blind = false;
		clock_nanosleep(CLOCK_MONOTONIC, 0, &span, NULL);
		return 0;
	}
#endif
	loop->blind = false;
	if (ppoll(fds, 2, until_ns == KTRXER_NEVER ? NULL : &span, NULL) < 0)
		return errno == EINTR ? 0 : -errno;
	if (fds[0].revents)
		loop->stopped = true;
	if (!fds[1].revents)
		return 0;
	loop->count = epoll_wait(loop->epoll, loop->events, EVENTS, 0);
	loop->figures.ready = loop->count > 0 ? (uint32_t)loop->count : 0;
	return loop->count < 0 && errno != EINTR ? -errno : 0;
}

int loop_run(struct loop *loop, int stop_fd)
{
	struct pollfd stop = { .fd = stop_fd, .events = POLLIN };
	int rc = 0;

	/* The kernel wakes a process up to 50 us late by default. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
	loop->stopped = poll(&stop, 1, 0) > 0;
	while (rc == 0 && !loop->stopped) {
		uint64_t first = timers_run(loop, ktrxer_now_ns());

		if (loop->stopped)
			break;
		rc = wait_until(loop, stop_fd, first);
		for (int i = 0; i < loop->count; i++) {
			struct loop_source *source = loop->events[i].data.ptr;

			if (source) {
				call_begins(loop);
				source->ready(source, loop->events[i].events);
				call_ends(loop);
			}
			/* Sixty-four busy sources take milliseconds, so timers run between them. */
			if (loop->count > 1 && ktrxer_now_ns() >= first)
				first = timers_run(loop, ktrxer_now_ns());
		}
		loop->count = 0;
	}
	return rc;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}
