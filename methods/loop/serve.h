/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The one event loop of `ktrxer serve`: descriptors that are ready, times that have come, one thread. Each service is a module
 * with sources and timers in it (serve_udp.h and serve_control.h are); none of them may block. Times are kept by a timerfd, absolute.
 */
#ifndef KTRXER_METHODS_SERVE_H
#define KTRXER_METHODS_SERVE_H

#include <ktrxer.h>

struct serve;

/* Embedded in its owner; stays where it is while watched. */
struct serve_source {
	int fd;
	void (*ready)(struct serve_source *source, uint32_t events); /* EPOLLIN... */
};

struct serve_timer {
	uint64_t at_ns; /* KTRXER_NEVER: off. May be changed at any time */
	void (*due)(struct serve_timer *timer, uint64_t now_ns); /* sets at_ns anew, or it is off */
	struct serve_timer *next; /* serve.c's */
};

int serve_new(struct serve **serve);
void serve_free(struct serve *serve);

/* `events`: EPOLLIN, EPOLLOUT; again with others to change them. Errors are always told. 0 or a negative errno. */
int serve_watch(struct serve *serve, struct serve_source *source, uint32_t events);
/* Before its descriptor is closed; also from within a call of its own. Nothing is called for it any more, not even what waits. */
void serve_unwatch(struct serve *serve, struct serve_source *source);
void serve_timer_add(struct serve *serve, struct serve_timer *timer);
void serve_timer_remove(struct serve *serve, struct serve_timer *timer);

/* Until `stop_fd` is readable or serve_stop() was called. 0 or a negative errno of the loop itself. */
int serve_run(struct serve *serve, int stop_fd);
void serve_stop(struct serve *serve);

#endif
