/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { EVENTS = 64 };

struct serve {
	int epoll;
	bool stopped;
	struct serve_timer *timers, *walk; /* `walk`: the one that is looked at next */
	struct serve_source alarm; /* a timerfd: epoll_wait() itself knows milliseconds alone */
	uint64_t armed_ns;
	struct epoll_event events[EVENTS];
	int count; /* of events that are being worked through */
};

static void alarm_ready(struct serve_source *source, uint32_t events)
{
	struct serve *serve = (struct serve *)((char *)source - offsetof(struct serve, alarm));
	uint64_t count;

	(void)events;
	serve->armed_ns = KTRXER_NEVER;
	(void)!read(source->fd, &count, sizeof count);
}

int serve_new(struct serve **out)
{
	struct serve *serve = calloc(1, sizeof *serve);
	int rc;

	*out = NULL;
	if (!serve)
		return -ENOMEM;
	serve->armed_ns = KTRXER_NEVER;
	serve->alarm.ready = alarm_ready;
	serve->epoll = epoll_create1(EPOLL_CLOEXEC);
	serve->alarm.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	rc = serve->epoll < 0 || serve->alarm.fd < 0 ? -errno : serve_watch(serve, &serve->alarm, EPOLLIN);
	if (rc < 0) {
		serve_free(serve);
		return rc;
	}
	*out = serve;
	return 0;
}

void serve_free(struct serve *serve)
{
	if (!serve)
		return;
	if (serve->alarm.fd >= 0)
		close(serve->alarm.fd);
	if (serve->epoll >= 0)
		close(serve->epoll);
	free(serve);
}

int serve_watch(struct serve *serve, struct serve_source *source, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	if (epoll_ctl(serve->epoll, EPOLL_CTL_ADD, source->fd, &event) == 0 ||
	    (errno == EEXIST && epoll_ctl(serve->epoll, EPOLL_CTL_MOD, source->fd, &event) == 0))
		return 0;
	return -errno;
}

void serve_unwatch(struct serve *serve, struct serve_source *source)
{
	epoll_ctl(serve->epoll, EPOLL_CTL_DEL, source->fd, NULL);
	for (int i = 0; i < serve->count; i++)
		if (serve->events[i].data.ptr == source)
			serve->events[i].data.ptr = NULL;
}

void serve_timer_add(struct serve *serve, struct serve_timer *timer)
{
	timer->next = serve->timers;
	serve->timers = timer;
}

void serve_timer_remove(struct serve *serve, struct serve_timer *timer)
{
	if (serve->walk == timer)
		serve->walk = timer->next;
	for (struct serve_timer **t = &serve->timers; *t; t = &(*t)->next)
		if (*t == timer) {
			*t = timer->next;
			return;
		}
}

/* What is due is called, which may add and remove timers. Returns when the next one is. */
static uint64_t timers_run(struct serve *serve, uint64_t now)
{
	uint64_t first = KTRXER_NEVER;

	for (struct serve_timer *t = serve->timers; t; t = serve->walk) {
		serve->walk = t->next;
		if (t->at_ns <= now) {
			t->at_ns = KTRXER_NEVER;
			t->due(t, now);
		}
	}
	for (struct serve_timer *t = serve->timers; t; t = t->next)
		if (t->at_ns < first)
			first = t->at_ns;
	return first;
}

/* How long epoll_wait() may take: not at all, or until the alarm. */
static int alarm_set(struct serve *serve, uint64_t first)
{
	const struct itimerspec at = { .it_value = { .tv_sec = (time_t)(first / KTRXER_NS_PER_S), .tv_nsec = (long)(first % KTRXER_NS_PER_S) } };

	if (first == KTRXER_NEVER || first == serve->armed_ns)
		return -1;
	if (first <= ktrxer_now_ns())
		return 0;
	if (timerfd_settime(serve->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL) != 0)
		return 1;
	serve->armed_ns = first;
	return -1;
}

static void stop_ready(struct serve_source *source, uint32_t events)
{
	(void)source;
	(void)events;
}

int serve_run(struct serve *serve, int stop_fd)
{
	struct serve_source stop = { .fd = stop_fd, .ready = stop_ready };
	int rc = stop_fd >= 0 ? serve_watch(serve, &stop, EPOLLIN) : 0;

	serve->stopped = false;
	while (rc == 0 && !serve->stopped) {
		uint64_t first = timers_run(serve, ktrxer_now_ns());

		if (serve->stopped)
			break;
		serve->count = epoll_wait(serve->epoll, serve->events, EVENTS, alarm_set(serve, first));
		if (serve->count < 0 && errno != EINTR)
			rc = -errno;
		for (int i = 0; i < serve->count; i++) {
			struct serve_source *source = serve->events[i].data.ptr;

			if (source == &stop)
				serve->stopped = true;
			else if (source)
				source->ready(source, serve->events[i].events);
			/* Sixty-four sources that have much to do are milliseconds; what has a time does not wait for them. */
			if (serve->count > 1 && ktrxer_now_ns() >= first)
				first = timers_run(serve, ktrxer_now_ns());
		}
		serve->count = 0;
	}
	if (stop_fd >= 0)
		serve_unwatch(serve, &stop);
	return rc;
}

void serve_stop(struct serve *serve)
{
	serve->stopped = true;
}
