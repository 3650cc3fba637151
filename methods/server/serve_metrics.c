/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_metrics.h"

#include "error.h"
#include "server_socket.h"

#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KTRXER_METRICS_CONNECTIONS = 4,
	KTRXER_METRICS_PATIENCE_S = 5,
};

enum { BACKLOG = 16, REQUEST = 2048, HEAD = 192, BODY = 16384, DRAINS = 8, REST_MS = 100 };

/* One connection. */
struct scrape {
	struct loop_source source; /* first; fd -1: the place is free */
	struct serve_metrics *metrics;
	uint64_t since_ns;
	uint32_t have;    /* of the request */
	uint32_t at, end; /* of the answer: the part to be sent; end 0: there is none yet */
	char request[REQUEST];
	char answer[HEAD + BODY];
};

struct serve_metrics {
	struct loop_source source; /* first; the listening socket */
	struct loop *loop;
	struct serve_metrics_options options;
	struct loop_timer timer; /* slow connections, the end of a rest */
	bool resting;
	struct scrape scrapes[KTRXER_METRICS_CONNECTIONS];
};

static void __attribute__((format(printf, 2, 3))) put(struct metrics_text *t, const char *format, ...)
{
	va_list arguments;
	int length;

	va_start(arguments, format);
	length = vsnprintf(t->text + t->used, t->size - t->used, format, arguments);
	va_end(arguments);
	if (length < 0 || (size_t)length >= t->size - t->used)
		t->full = true;
	else
		t->used += (size_t)length;
}

void metrics_family(struct metrics_text *t, const char *name, enum metrics_type type, const char *help)
{
	put(t, "# TYPE %s %s\n# HELP %s %s\n", name, type == METRICS_COUNTER ? "counter" : "gauge", name, help);
}

void metrics_value(struct metrics_text *t, const char *name, enum metrics_type type, const char *label,
		   const char *label_value, uint64_t value)
{
	put(t, "%s%s", name, type == METRICS_COUNTER ? "_total" : "");
	if (label)
		put(t, "{%s=\"%s\"}", label, label_value);
	put(t, " %" PRIu64 "\n", value);
}

void metrics_seconds(struct metrics_text *t, const char *name, uint64_t ns)
{
	put(t, "%s %" PRIu64 ".%09" PRIu64 "\n", name, ns / (uint64_t)KTRXER_NS_PER_S, ns % (uint64_t)KTRXER_NS_PER_S);
}

static void scrape_end(struct scrape *s)
{
	loop_unwatch(s->metrics->loop, &s->source);
	close(s->source.fd);
	s->source.fd = -1;
}

/* A socket that is closed with data unread sends a reset, which can overtake the answer. */
static void scrape_finish(struct scrape *s)
{
	for (int i = 0; i < DRAINS && recv(s->source.fd, s->request, REQUEST, MSG_DONTWAIT) > 0; i++)
		;
	scrape_end(s);
}

static void answer_send(struct scrape *s)
{
	ssize_t n = send(s->source.fd, s->answer + s->at, s->end - s->at, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (loop_watch(s->metrics->loop, &s->source, EPOLLOUT) < 0)
			scrape_end(s);
		return;
	}
	if (n > 0)
		s->at += (uint32_t)n;
	if (n <= 0 || s->at == s->end)
		scrape_finish(s);
	else if (loop_watch(s->metrics->loop, &s->source, EPOLLOUT) < 0)
		scrape_end(s);
}

/* The head stands directly in front of the body, whose length it contains. */
static void answer(struct scrape *s, const char *status, const char *type, size_t body)
{
	char head[HEAD];
	const int length = snprintf(head, sizeof head,
				    "HTTP/1.0 %s\r\nContent-Type: %s; charset=utf-8\r\nContent-Length: %zu\r\n"
				    "Connection: close\r\n\r\n",
				    status, type, body);

	s->at = HEAD - (uint32_t)length;
	s->end = HEAD + (uint32_t)body;
	memcpy(s->answer + s->at, head, (size_t)length);
	answer_send(s);
}

static void answer_error(struct scrape *s, const char *status)
{
	const int length = snprintf(s->answer + HEAD, BODY, "%s\n", status);

	answer(s, status, "text/plain", (size_t)length);
}

static void answer_metrics(struct scrape *s)
{
	struct metrics_text text = { .text = s->answer + HEAD, .size = BODY };

	s->metrics->options.fill(s->metrics->options.context, &text);
	put(&text, "# EOF\n");
	if (text.full)
		answer_error(s, "500 Internal Server Error");
	else
		answer(s, "200 OK", "application/openmetrics-text; version=1.0.0", text.used);
}

static bool line_begins(const struct scrape *s, const char *text)
{
	const size_t length = strlen(text);

	return s->have >= length && memcmp(s->request, text, length) == 0;
}

static bool request_is_whole(const struct scrape *s)
{
	return memmem(s->request, s->have, "\r\n\r\n", 4) || memmem(s->request, s->have, "\n\n", 2);
}

static void scrape_ready(struct loop_source *source, uint32_t events)
{
	struct scrape *s = (struct scrape *)source;
	ssize_t n;

	(void)events;
	if (s->end) {
		answer_send(s);
		return;
	}
	n = recv(source->fd, s->request + s->have, REQUEST - s->have, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		scrape_end(s);
		return;
	}
	s->have += (uint32_t)n;
	if (!request_is_whole(s)) {
		if (s->have == REQUEST)
			answer_error(s, "431 Request Header Fields Too Large");
	} else if (!line_begins(s, "GET ")) {
		answer_error(s, "405 Method Not Allowed");
	} else if (!line_begins(s, "GET /metrics ") && !line_begins(s, "GET /metrics?")) {
		answer_error(s, "404 Not Found");
	} else {
		answer_metrics(s);
	}
}

/* The oldest connection is closed when all places are taken. */
static struct scrape *scrape_place(struct serve_metrics *m)
{
	struct scrape *place = &m->scrapes[0];

	for (int i = 0; i < KTRXER_METRICS_CONNECTIONS; i++) {
		if (m->scrapes[i].source.fd < 0)
			return &m->scrapes[i];
		if (m->scrapes[i].since_ns < place->since_ns)
			place = &m->scrapes[i];
	}
	scrape_end(place);
	return place;
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct serve_metrics *m = (struct serve_metrics *)source;
	const uint64_t now_ns = ktrxer_now_ns();
	struct scrape *place;
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	if (fd < 0) {
		/* The connection stays ready if there is no descriptor for it: the loop would turn for nothing. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			loop_unwatch(m->loop, source);
			m->resting = true;
			m->timer.at_ns = now_ns + REST_MS * (uint64_t)KTRXER_NS_PER_MS;
		}
		return;
	}
	place = scrape_place(m);
	place->source = (struct loop_source){ .fd = fd, .ready = scrape_ready };
	place->metrics = m;
	place->since_ns = now_ns;
	place->have = place->at = place->end = 0;
	if (loop_watch(m->loop, &place->source, EPOLLIN) < 0) {
		close(fd);
		place->source.fd = -1;
		return;
	}
	if (m->timer.at_ns == KTRXER_NEVER)
		m->timer.at_ns = now_ns + KTRXER_METRICS_PATIENCE_S * (uint64_t)KTRXER_NS_PER_S;
}

static void metrics_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct serve_metrics *m = (struct serve_metrics *)((char *)timer - offsetof(struct serve_metrics, timer));
	const uint64_t patience = KTRXER_METRICS_PATIENCE_S * (uint64_t)KTRXER_NS_PER_S;
	uint64_t first = KTRXER_NEVER;

	if (m->resting)
		loop_watch(m->loop, &m->source, EPOLLIN);
	m->resting = false;
	for (int i = 0; i < KTRXER_METRICS_CONNECTIONS; i++) {
		struct scrape *s = &m->scrapes[i];

		if (s->source.fd < 0)
			continue;
		if (now_ns - s->since_ns >= patience)
			scrape_end(s);
		else if (s->since_ns + patience < first)
			first = s->since_ns + patience;
	}
	timer->at_ns = first;
}

int serve_metrics_open(struct serve_metrics **out, struct loop *loop, const struct serve_metrics_options *options,
		       struct ktrxer_error *err)
{
	struct serve_metrics *m = calloc(1, sizeof *m);
	int rc;

	*out = NULL;
	if (!m)
		return ktrxer_fail(err, -ENOMEM, "no memory for the metrics");
	m->loop = loop;
	m->options = *options;
	m->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = metrics_due };
	for (int i = 0; i < KTRXER_METRICS_CONNECTIONS; i++)
		m->scrapes[i].source.fd = -1;
	m->source = (struct loop_source){ .ready = listener_ready };
	rc = server_socket_listen(0, &options->bind, options->port, BACKLOG, err);
	if (rc < 0)
		goto failed;
	m->source.fd = rc;
	rc = loop_watch(loop, &m->source, EPOLLIN);
	if (rc < 0) {
		close(m->source.fd);
		ktrxer_fail(err, rc, "metrics: the event loop takes no more sockets");
		goto failed;
	}
	loop_timer_add(loop, &m->timer);
	*out = m;
	return 0;
failed:
	free(m);
	return rc;
}

void serve_metrics_close(struct serve_metrics *m)
{
	if (!m)
		return;
	for (int i = 0; i < KTRXER_METRICS_CONNECTIONS; i++)
		if (m->scrapes[i].source.fd >= 0)
			scrape_end(&m->scrapes[i]);
	loop_unwatch(m->loop, &m->source);
	close(m->source.fd);
	loop_timer_remove(m->loop, &m->timer);
	free(m);
}
