/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { EVENTS = 64 };

struct serve {
	int epoll;
	bool stopped;
	struct serve_timer *timers;
	struct epoll_event events[EVENTS];
	int count; /* of events that are being worked through */
};

int serve_new(struct serve **out)
{
	struct serve *serve = calloc(1, sizeof *serve);
	int rc;

	*out = NULL;
	if (!serve)
		return -ENOMEM;
	serve->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (serve->epoll < 0) {
		rc = -errno;
		free(serve);
		return rc;
	}
	*out = serve;
	return 0;
}

void serve_free(struct serve *serve)
{
	if (!serve)
		return;
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
	for (struct serve_timer **t = &serve->timers; *t; t = &(*t)->next)
		if (*t == timer) {
			*t = timer->next;
			return;
		}
}

/* What is due is called; how long until the next, in ms for epoll_wait(), rounded up. */
static int timers_run(struct serve *serve)
{
	uint64_t now = ktrxer_now_ns(), first = KTRXER_NEVER;

	for (struct serve_timer *t = serve->timers, *next; t; t = next) {
		next = t->next;
		if (t->at_ns <= now) {
			t->at_ns = KTRXER_NEVER;
			t->due(t, now);
		}
	}
	for (struct serve_timer *t = serve->timers; t; t = t->next)
		if (t->at_ns < first)
			first = t->at_ns;
	if (first == KTRXER_NEVER)
		return -1;
	if (first <= now)
		return 0;
	first = (first - now + KTRXER_NS_PER_MS - 1) / KTRXER_NS_PER_MS;
	return first > 60000 ? 60000 : (int)first;
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

	while (rc == 0 && !serve->stopped) {
		serve->count = epoll_wait(serve->epoll, serve->events, EVENTS, timers_run(serve));
		if (serve->count < 0 && errno != EINTR)
			rc = -errno;
		for (int i = 0; i < serve->count; i++) {
			struct serve_source *source = serve->events[i].data.ptr;

			if (source == &stop)
				serve->stopped = true;
			else if (source)
				source->ready(source, serve->events[i].events);
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
