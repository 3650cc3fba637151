/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_server.h"

#include "bytes.h"
#include "clock.h"
#include "error.h"
#include "limiter.h"
#include "name.h"
#include "owamp_message.h"
#include "owamp_session.h"
#include "server_socket.h"
#include "stamp_packet.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	BACKLOG = 64,
	ACCEPTS = 8,
	RATE = 20, /* connections, sessions and fetches a second of each /24 and /56 */
	BURST = 100,
	IN_BYTES = OWAMP_STOP_BYTES + OWAMP_HMAC_BYTES +
		OWAMP_SERVER_SESSIONS * (OWAMP_STOPPED_BYTES + OWAMP_SKIP_BYTES * OWAMP_SKIPS_MOST + OWAMP_BLOCK),
	PIECE = 16384, /* of an answer with records */
};
_Static_assert((int)PIECE >= (int)OWAMP_FETCHED_HEAD, "the head of an answer is one piece");
#define PATIENCE_NS (60 * (uint64_t)KTRXER_NS_PER_S) /* for a message, or for the rest of a test */
#define REVIEW_NS ((uint64_t)KTRXER_NS_PER_S)

enum state { SETUP, REQUESTS, TESTING };

struct client {
	struct loop_source source; /* first; fd -1: the place is free */
	struct owamp_server *server;
	struct owamp_ends ends;
	enum state state;
	bool leaves; /* when its output has been sent */
	uint64_t since_ns, until_ns;
	uint8_t *in, *out;
	size_t have, out_length, out_at;
	uint64_t ignored;               /* further bytes of a request that has been refused */
	struct owamp_fetched_rest rest; /* of an answer, behind `out` */
	struct owamp_session sessions[OWAMP_SERVER_SESSIONS];
	uint32_t session_count;
};

struct listener {
	struct loop_source source; /* first */
	struct owamp_server *server;
};

struct owamp_server {
	struct loop *loop;
	struct owamp_server_options o;
	struct limiter *limiter;
	struct loop_timer review;
	uint64_t began; /* as OWAMP has times */
	struct listener listeners[OWAMP_SERVER_LISTENERS];
	int listener_count;
	struct owamp_server_counts counts;
	struct client clients[OWAMP_SERVER_CLIENTS];
};

static void sessions_close(struct client *c)
{
	for (uint32_t i = 0; i < c->session_count; i++) {
		struct owamp_session *s = &c->sessions[i];
		struct ktx_accounts sent;

		if (s->sends)
			owamp_sender_accounts(s->sender, &sent);
		c->server->counts.packets[s->sends] += s->sends ? sent.sent : s->receiver.count + s->receiver.dropped;
		c->server->counts.socket_drops += s->sends ? 0 : s->receiver.socket_drops;
		owamp_session_close(s);
	}
	c->session_count = 0;
}

static void client_close(struct client *c)
{
	owamp_fetched_end(&c->rest);
	sessions_close(c);
	loop_unwatch(c->server->loop, &c->source);
	close(c->source.fd);
	c->source.fd = -1;
	free(c->in);
	free(c->out);
	c->in = c->out = NULL;
	c->server->counts.clients--;
}

/* ----------------------------------------------------------------------------------------------------------- output */

/* False: the connection is closed. */
static bool out_flush(struct client *c)
{
	for (bool first = true; c->out_at < c->out_length || c->rest.session; first = false) {
		ssize_t n;

		if (c->out_at == c->out_length) {
			if (!first && loop_share_used(c->server->loop))
				return loop_watch(c->server->loop, &c->source, EPOLLOUT) == 0;
			c->out_at = 0;
			c->out_length = owamp_fetched_next(&c->rest, c->out, PIECE);
			continue;
		}
		n = send(c->source.fd, c->out + c->out_at, c->out_length - c->out_at, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return loop_watch(c->server->loop, &c->source, EPOLLOUT) == 0;
		if (n <= 0) {
			client_close(c);
			return false;
		}
		c->out_at += (size_t)n;
	}
	free(c->out);
	c->out = NULL;
	c->out_at = c->out_length = 0;
	if (c->leaves) {
		client_close(c);
		return false;
	}
	return loop_watch(c->server->loop, &c->source, EPOLLIN) == 0;
}

/* Room for an answer: one message is answered before the next one is read. NULL: no memory. */
static uint8_t *answer(struct client *c, size_t length)
{
	c->out = calloc(1, length);
	c->out_length = c->out ? length : 0;
	c->out_at = 0;
	return c->out;
}

/* --------------------------------------------------------------------------------------------------------- messages */

static bool setup_taken(struct client *c)
{
	struct owamp_start start = { .accept = OWAMP_NOT_SUPPORTED };
	uint32_t mode;
	uint8_t *out = answer(c, OWAMP_START_BYTES);

	if (!out || owamp_setup_read(&mode, c->in) < 0)
		return false;
	if (mode == OWAMP_OPEN)
		start = (struct owamp_start){ OWAMP_OK, c->server->began };
	c->leaves = mode != OWAMP_OPEN;
	c->state = REQUESTS;
	owamp_start_write(out, &start);
	return true;
}

static bool is_admitted(struct owamp_server *s, const struct ktrxer_addr *from)
{
	return limiter_take(s->limiter, from, 1, ktrxer_now_ns());
}

/*
 * All sessions together send no faster than the limit, and several of one network no faster than a quarter of it.
 */
static bool rate_fits(const struct client *c, const struct owamp_session *new)
{
	const struct owamp_server *s = c->server;
	const uint64_t prefix = limiter_prefix(&c->ends.client);
	uint64_t all = owamp_session_bps(new), of_network = all;

	if (!new->sends || !s->o.max_all_bps)
		return true;
	for (int i = 0; i < OWAMP_SERVER_CLIENTS; i++)
		for (uint32_t n = 0; s->clients[i].source.fd >= 0 && n < s->clients[i].session_count; n++) {
			const struct owamp_session *one = &s->clients[i].sessions[n];
			const uint64_t bps = one->sends && !one->stopped ? owamp_session_bps(one) : 0;

			all += bps;
			of_network += limiter_prefix(&s->clients[i].ends.client) == prefix ? bps : 0;
		}
	return all <= s->o.max_all_bps && (of_network == owamp_session_bps(new) || of_network <= s->o.max_all_bps / 4);
}

static bool request_taken(struct client *c)
{
	struct owamp_accepted accepted = { .accept = OWAMP_BUSY };
	struct owamp_slot slots[OWAMP_SLOTS_MOST];
	struct owamp_request request;
	uint8_t *out = answer(c, OWAMP_ACCEPT_BYTES);
	struct owamp_session *s;

	if (!out || owamp_request_read(&request, c->in) < 0)
		return false;
	/* With more slots than the server takes, the answer comes before they are read. */
	if (request.slots > OWAMP_SLOTS_MOST)
		c->ignored = (uint64_t)request.slots * OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES;
	for (uint32_t i = 0; i < request.slots && !c->ignored; i++)
		(void)owamp_slot_read(&slots[i], c->in + OWAMP_REQUEST_BYTES + (size_t)i * OWAMP_SLOT_BYTES);
	/* The records of a test before are no longer wanted. */
	if (c->session_count && c->sessions[0].stopped)
		sessions_close(c);
	s = &c->sessions[c->session_count];
	if (c->session_count < OWAMP_SERVER_SESSIONS && is_admitted(c->server, &c->ends.client))
		accepted.accept = owamp_session_open(s, c->server->loop, &request, slots, &c->ends, &c->server->o);
	if (accepted.accept == OWAMP_OK && !rate_fits(c, s)) {
		owamp_session_close(s);
		accepted.accept = OWAMP_BUSY;
	}
	if (accepted.accept == OWAMP_OK) {
		c->session_count++;
		accepted.port = s->sends ? s->request.sender_port : s->request.receiver_port;
		memcpy(accepted.sid, s->request.sid, OWAMP_SID);
	} else {
		c->server->counts.refused++;
	}
	owamp_accepted_write(out, &accepted);
	return true;
}

static bool start_taken(struct client *c)
{
	uint8_t *out = answer(c, OWAMP_COMMAND_BYTES), accept = OWAMP_OK;
	uint64_t lasts_ns = 0;

	if (!out)
		return false;
	if (!c->session_count || c->sessions[0].stopped)
		accept = OWAMP_FAILURE;
	for (uint32_t i = 0; i < c->session_count && accept == OWAMP_OK; i++) {
		const uint64_t ns =
			owamp_session_lasts_ns(&c->sessions[i]) + owamp_time_to_ns(c->sessions[i].request.timeout);

		lasts_ns = ns > lasts_ns ? ns : lasts_ns;
		if (owamp_session_start(&c->sessions[i]) < 0)
			accept = OWAMP_INTERNAL;
	}
	owamp_command_write(out, accept);
	if (accept != OWAMP_OK) {
		sessions_close(c);
		return true;
	}
	c->state = TESTING;
	c->server->counts.sessions += c->session_count;
	/* Exponential gaps add up to more than their mean. */
	c->until_ns = ktrxer_now_ns() + 2 * lasts_ns + OWAMP_SERVER_AHEAD_S * (uint64_t)KTRXER_NS_PER_S + PATIENCE_NS;
	return true;
}

static struct owamp_session *session_of(struct client *c, const uint8_t sid[OWAMP_SID])
{
	for (uint32_t i = 0; i < c->session_count; i++)
		if (memcmp(c->sessions[i].request.sid, sid, OWAMP_SID) == 0)
			return &c->sessions[i];
	return NULL;
}

/* The sessions of which the client is the sender: each once. */
static bool stopped_taken(struct client *c, struct bytes *b)
{
	const uint8_t *head = bytes_take(b, OWAMP_STOPPED_BYTES);
	struct owamp_stopped stopped;
	struct owamp_session *s;

	if (!head)
		return false;
	(void)owamp_stopped_read(&stopped, head);
	s = session_of(c, stopped.sid);
	if (!s || s->sends || s->stopped || stopped.next > s->request.packets)
		return false;
	s->skip = calloc(stopped.skips ? stopped.skips : 1, sizeof *s->skip);
	if (!s->skip)
		return false;
	for (uint32_t i = 0; i < stopped.skips; i++) {
		const uint8_t *range = bytes_take(b, OWAMP_SKIP_BYTES);

		if (!range || owamp_skip_read(&s->skip[i], range) < 0 || s->skip[i].last >= stopped.next ||
		    (i && s->skip[i].first <= s->skip[i - 1].last))
			return false;
	}
	bytes_skip(b, owamp_padded(OWAMP_STOPPED_BYTES + (size_t)stopped.skips * OWAMP_SKIP_BYTES) -
			      OWAMP_STOPPED_BYTES - (size_t)stopped.skips * OWAMP_SKIP_BYTES);
	s->next = stopped.next;
	s->skips = stopped.skips;
	owamp_session_stop(s);
	return true;
}

static size_t stop_write(const struct client *c, uint8_t *to)
{
	size_t at = OWAMP_STOP_BYTES;
	uint32_t senders = 0;

	for (uint32_t i = 0; i < c->session_count; i++) {
		const struct owamp_session *s = &c->sessions[i];
		struct owamp_stopped stopped = { .next = s->next, .skips = s->skips };

		if (!s->sends)
			continue;
		senders++;
		if (to) {
			memcpy(stopped.sid, s->request.sid, OWAMP_SID);
			owamp_stopped_write(to + at, &stopped);
			for (uint32_t n = 0; n < s->skips; n++)
				owamp_skip_write(to + at + OWAMP_STOPPED_BYTES + (size_t)n * OWAMP_SKIP_BYTES,
						 &s->sender->skip[n]);
		}
		at += owamp_padded(OWAMP_STOPPED_BYTES + (size_t)s->skips * OWAMP_SKIP_BYTES);
	}
	if (to)
		owamp_stop_write(to, OWAMP_OK, senders);
	return at + OWAMP_HMAC_BYTES;
}

static bool stop_taken(struct client *c, size_t length)
{
	struct bytes b = bytes_of(c->in, length);
	uint32_t sessions = 0, receivers = 0;
	uint8_t accept, *out;

	if (owamp_stop_read(&accept, &sessions, bytes_take(&b, OWAMP_STOP_BYTES)) < 0)
		return false;
	for (uint32_t i = 0; i < sessions; i++)
		if (!stopped_taken(c, &b))
			return false;
	for (uint32_t i = 0; i < c->session_count; i++) {
		receivers += !c->sessions[i].sends;
		if (c->sessions[i].sends)
			owamp_session_stop(&c->sessions[i]);
	}
	if (receivers != sessions)
		return false;
	c->state = REQUESTS;
	out = answer(c, stop_write(c, NULL));
	if (out)
		(void)stop_write(c, out);
	/* The other end has failed: there are no results (RFC 4656, 3.8). */
	if (accept != OWAMP_OK)
		sessions_close(c);
	return out != NULL;
}

static bool fetch_taken(struct client *c)
{
	struct owamp_fetched refused = { .accept = OWAMP_FAILURE };
	struct owamp_session *s;
	struct owamp_fetch fetch;
	uint8_t *out;

	if (owamp_fetch_read(&fetch, c->in) < 0)
		return false;
	s = session_of(c, fetch.sid);
	if (s && owamp_session_has_records(s) && is_admitted(c->server, &c->ends.client)) {
		out = answer(c, PIECE);
		c->out_length = 0;
		return out && owamp_session_fetch(s, fetch.begin, fetch.end, &c->rest) == 0;
	}
	if (s && owamp_session_has_records(s)) {
		refused.accept = OWAMP_BUSY;
		c->server->counts.refused++;
	}
	out = answer(c, OWAMP_COMMAND_BYTES);
	if (out)
		owamp_fetched_write(out, &refused);
	return out != NULL;
}

static bool message_taken(struct client *c, size_t length)
{
	if (c->state == SETUP)
		return setup_taken(c);
	switch (c->in[0]) {
	case OWAMP_REQUEST_SESSION:
		return request_taken(c);
	case OWAMP_START_SESSIONS:
		return start_taken(c);
	case OWAMP_STOP_SESSIONS:
		return stop_taken(c, length);
	default:
		return fetch_taken(c);
	}
}

/* One message, if all of it has arrived. False: the connection is closed, or waits for input or output. */
static bool message_next(struct client *c)
{
	const size_t ignored = c->ignored < c->have ? (size_t)c->ignored : c->have;
	ssize_t length;

	c->ignored -= ignored;
	c->have -= ignored;
	memmove(c->in, c->in + ignored, c->have);
	length = c->ignored          ? 0
		 : c->state == SETUP ? OWAMP_SETUP_BYTES
				     : owamp_message_length(c->in, c->have, c->state == TESTING);
	if (length == 0 || (length > 0 && c->have < (size_t)length))
		return false;
	if (length < 0 || !message_taken(c, (size_t)length)) {
		c->server->counts.protocol_errors++;
		client_close(c);
		return false;
	}
	memmove(c->in, c->in + length, c->have - (size_t)length);
	c->have -= (size_t)length;
	if (c->state != TESTING)
		c->until_ns = ktrxer_now_ns() + PATIENCE_NS;
	return out_flush(c) && !c->out;
}

static void client_ready(struct loop_source *source, uint32_t events)
{
	struct client *c = (struct client *)source;
	ssize_t n = 0;

	if (c->out && (!out_flush(c) || c->out))
		return;
	if (events & EPOLLOUT)
		(void)loop_watch(c->server->loop, source, EPOLLIN);
	if (c->have < IN_BYTES) {
		n = recv(source->fd, c->in + c->have, IN_BYTES - c->have, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			n = 0; /* the bytes before may contain a message */
		else if (n <= 0) {
			client_close(c);
			return;
		}
	}
	c->have += (size_t)n;
	while (message_next(c))
		if (loop_share_used(c->server->loop)) {
			/* A socket that takes output is ready at once: the next turn of the loop goes on. */
			(void)loop_watch(c->server->loop, &c->source, EPOLLIN | EPOLLOUT);
			return;
		}
}

/* ------------------------------------------------------------------------------------------------------ connections */

static uint32_t clients_of(const struct owamp_server *s, uint64_t prefix)
{
	uint32_t count = 0;

	for (int i = 0; i < OWAMP_SERVER_CLIENTS; i++)
		count += s->clients[i].source.fd >= 0 && limiter_prefix(&s->clients[i].ends.client) == prefix;
	return count;
}

/*
 * When no place is free, the network with most connections loses one: its oldest connection without a running test. One
 * with a test does so for a network with two connections less. NULL: no place.
 */
static struct client *place_of(struct owamp_server *s, const struct ktrxer_addr *from)
{
	struct client *place = NULL;
	uint32_t most = 0;

	for (uint32_t i = 0; i < OWAMP_SERVER_CLIENTS && i < s->o.max_clients; i++) {
		struct client *c = &s->clients[i];
		uint32_t count;

		if (c->source.fd < 0)
			return c;
		count = clients_of(s, limiter_prefix(&c->ends.client));
		if (count < most)
			continue;
		if (count > most || (c->state == TESTING) < (place->state == TESTING) ||
		    ((c->state == TESTING) == (place->state == TESTING) && c->since_ns < place->since_ns))
			place = c;
		most = count;
	}
	if (!place || (place->state == TESTING && most < clients_of(s, limiter_prefix(from)) + 2))
		return NULL;
	s->counts.refused++;
	client_close(place);
	return place;
}

static bool local_of(int fd, struct ktrxer_addr *addr)
{
	union ktrxer_name name = { 0 };
	socklen_t length = sizeof name;

	if (getsockname(fd, &name.sa, &length) != 0)
		return false;
	(void)ktrxer_name_read(&name, addr);
	return true;
}

static void connection_new(struct owamp_server *s, int fd, const struct ktrxer_addr *from)
{
	struct client *c = is_admitted(s, from) ? place_of(s, from) : NULL;
	struct owamp_greeting greeting = { .modes = OWAMP_OPEN, .count = OWAMP_COUNT_LEAST };
	uint8_t *out;

	s->counts.connections++;
	if (!c) {
		s->counts.refused++;
		close(fd);
		return;
	}
	*c = (struct client){ .source = { .fd = fd, .ready = client_ready },
			      .server = s,
			      .ends = { .client = *from },
			      .since_ns = ktrxer_now_ns(),
			      .until_ns = ktrxer_now_ns() + PATIENCE_NS,
			      .in = malloc(IN_BYTES) };
	out = answer(c, OWAMP_GREETING_BYTES);
	if (!c->in || !out || !local_of(fd, &c->ends.server) || loop_watch(s->loop, &c->source, EPOLLIN) < 0) {
		free(c->in);
		free(c->out);
		close(fd);
		c->source.fd = -1;
		return;
	}
	s->counts.clients++;
	owamp_greeting_write(out, &greeting);
	/* Challenge and Salt, of modes that this server does not have (RFC 4656, 3.1). */
	(void)!getrandom(out + 16, 32, GRND_NONBLOCK);
	(void)out_flush(c);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct owamp_server *s = ((struct listener *)source)->server;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		union ktrxer_name name = { 0 };
		socklen_t length = sizeof name;
		struct ktrxer_addr from;
		const int fd = accept4(source->fd, &name.sa, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0) {
			/* A connection without a descriptor stays ready, and the loop would turn for nothing. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
				loop_unwatch(s->loop, source);
			return;
		}
		(void)ktrxer_name_read(&name, &from);
		connection_new(s, fd, &from);
	}
}

static void review_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct owamp_server *s = (struct owamp_server *)((char *)timer - offsetof(struct owamp_server, review));

	timer->at_ns = now_ns + REVIEW_NS;
	for (int i = 0; i < OWAMP_SERVER_CLIENTS; i++)
		if (s->clients[i].source.fd >= 0 && s->clients[i].until_ns < now_ns)
			client_close(&s->clients[i]);
	for (int i = 0; i < s->listener_count; i++) /* those that rest */
		(void)loop_watch(s->loop, &s->listeners[i].source, EPOLLIN);
}

/* ------------------------------------------------------------------------------------------------------- the server */

int owamp_server_listen(struct owamp_server *s, const struct ktrxer_addr *bind_to, uint16_t port,
			struct ktrxer_error *err)
{
	struct listener *l = &s->listeners[s->listener_count];
	int fd, rc;

	if (s->listener_count == OWAMP_SERVER_LISTENERS)
		return ktrxer_fail(err, -ENOSPC, "more addresses than %d", OWAMP_SERVER_LISTENERS);
	fd = server_socket_listen(0, bind_to, port, BACKLOG, err);
	if (fd < 0)
		return fd;
	*l = (struct listener){ .source = { .fd = fd, .ready = listener_ready }, .server = s };
	rc = loop_watch(s->loop, &l->source, EPOLLIN);
	if (rc < 0) {
		close(fd);
		return ktrxer_fail(err, rc, "TCP port %u for OWAMP: the event loop takes no more sockets", port);
	}
	s->listener_count++;
	return 0;
}

int owamp_server_new(struct owamp_server **out, struct loop *loop, const struct owamp_server_options *options,
		     struct ktrxer_error *err)
{
	struct owamp_server *s = calloc(1, sizeof *s);

	*out = NULL;
	if (!s || limiter_new(&s->limiter, RATE, BURST, options->random) < 0) {
		free(s);
		return ktrxer_fail(err, -ENOMEM, "no memory for the server of OWAMP");
	}
	s->loop = loop;
	s->o = *options;
	for (int i = 0; i < OWAMP_SERVER_CLIENTS; i++)
		s->clients[i].source.fd = -1;
	s->began = stamp_time_of_ns(ktrxer_real_now_ns(), false);
	s->review = (struct loop_timer){ .at_ns = ktrxer_now_ns() + REVIEW_NS, .due = review_due };
	loop_timer_add(loop, &s->review);
	*out = s;
	return 0;
}

void owamp_server_counts(const struct owamp_server *s, struct owamp_server_counts *counts)
{
	*counts = s->counts;
}

void owamp_server_free(struct owamp_server *s)
{
	if (!s)
		return;
	for (int i = 0; i < OWAMP_SERVER_CLIENTS; i++)
		if (s->clients[i].source.fd >= 0)
			client_close(&s->clients[i]);
	for (int i = 0; i < s->listener_count; i++) {
		loop_unwatch(s->loop, &s->listeners[i].source);
		close(s->listeners[i].source.fd);
	}
	loop_timer_remove(s->loop, &s->review);
	limiter_free(s->limiter);
	free(s);
}
