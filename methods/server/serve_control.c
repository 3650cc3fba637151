/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_control.h"

#include "base_limits.h"
#include "error.h"
#include "flow_udp.h"
#include "limiter.h"
#include "name.h"
#include "serve_session.h"
#include "server_socket.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KTRXER_CONTROL_PENDING = 256, /* connections that have not stated their purpose yet */
	KTRXER_CONTROL_GROUPS = 256,  /* prefixes, by hash, whose waiting connections are counted; a power of two */
	KTRXER_CONTROL_NEW = 32,      /* control connections that have not shown the token */
	KTRXER_CONTROL_RATE = 20,     /* control connections a second from each /24 and /56: guesses at the token */
	KTRXER_CONTROL_BURST = 100,
};

enum { BACKLOG = 1024, ACCEPTS = 32, REST_MS = 100 };

struct listener {
	struct loop_source source; /* first */
	struct serve_control *control;
};

/* A connection that has not stated its purpose yet. */
struct pending {
	struct loop_source source; /* first; fd -1: the place is free */
	struct serve_control *control;
	struct ktrxer_addr from;
	uint64_t since_ns;
	uint16_t group; /* of its prefix, in `counts` of the control */
	uint32_t have;
	uint8_t preface[CONTROL_PREFACE];
};

struct serve_control {
	struct serve_registry registry;
	struct hmac_key token;
	struct limiter *limiter;
	struct loop_timer timer; /* of slow pending connections, and of listeners that rest */
	bool resting;
	struct listener listeners[KTRXER_SERVE_ADDRESSES];
	int listener_count;
	uint16_t counts[KTRXER_CONTROL_GROUPS]; /* waiting connections of each group of prefixes */
	struct pending pending[KTRXER_CONTROL_PENDING];
};

const char *const control_refusal_names[CONTROL_REFUSALS] = {
	[CONTROL_OK] = "none",
	[CONTROL_NO_TOKEN] = "wrong_token",
	[CONTROL_NO_VERSION] = "wrong_version",
	[CONTROL_MALFORMED] = "malformed",
	[CONTROL_CLIENTS] = "too_many_clients",
	[CONTROL_TOO_MANY] = "too_many_flows",
	[CONTROL_TOO_LONG] = "too_long",
	[CONTROL_TOO_FAST] = "too_fast",
	[CONTROL_TOO_FINE] = "samples_too_fine",
	[CONTROL_NO_MEMORY] = "no_memory",
	[CONTROL_NO_CC] = "unknown_congestion_control",
	[CONTROL_CC_LOCKED] = "congestion_control_not_allowed",
	[CONTROL_NO_DSCP] = "dscp_not_granted",
	[CONTROL_SILENT] = "silent",
	[CONTROL_NO_FAMILY] = "no_socket",
	[CONTROL_STOPPING] = "stopping",
	[CONTROL_OTHER_ADDRESS] = "other_address",
};

struct serve_registry *serve_control_registry(struct serve_control *control)
{
	return &control->registry;
}

void serve_control_counts(const struct serve_control *control, struct serve_control_counts *counts)
{
	*counts = control->registry.counts;
}

uint32_t serve_control_pending(const struct serve_control *control)
{
	uint32_t pending = 0;

	for (int i = 0; i < KTRXER_CONTROL_GROUPS; i++)
		pending += control->counts[i];
	return pending;
}

static void pending_leave(struct pending *s, bool closes)
{
	loop_unwatch(s->control->registry.loop, &s->source);
	if (closes)
		close(s->source.fd);
	s->source.fd = -1;
	s->control->counts[s->group]--;
}

/*
 * The place of a new connection. When none is free, the oldest of the prefix with most connections is closed: a greedy
 * prefix displaces its own connections.
 */
static struct pending *pending_place(struct serve_control *control)
{
	struct pending *place = &control->pending[0];

	for (int i = 0; i < KTRXER_CONTROL_PENDING; i++) {
		struct pending *s = &control->pending[i];

		if (s->source.fd < 0)
			return s;
		if (control->counts[s->group] > control->counts[place->group] ||
		    (control->counts[s->group] == control->counts[place->group] && s->since_ns < place->since_ns))
			place = s;
	}
	control->registry.counts.displaced++;
	pending_leave(place, true);
	return place;
}

static bool claim_cookie(struct serve_control *control, const struct serve_datagram *d)
{
	struct control_preface preface;
	struct session *session;

	if (d->whole != CONTROL_PREFACE || control_preface_read(&preface, d->data, d->length) < 0 ||
	    preface.kind != CONTROL_DATAGRAM)
		return false;
	session = registry_session(&control->registry, preface.session);
	if (!session ||
	    session_register(session, preface.flow, preface.cookie, &d->arrival.from, d->arrival.from_port) < 0)
		control->registry.counts.protocol_errors++;
	return true;
}

static bool counted(const struct peer *p, const struct serve_datagram *d)
{
	struct flow *flow = flow_set_flow(p->session->flows, p->flow);

	if (!flow_udp_packet(flow, d->data, d->whole, d->arrival.tos, d->arrival.now_ns, d->arrival.received_real_ns))
		return false;
	flow_udp_shared(flow, d->fd, d->arrival.overflows);
	return true;
}

/*
 * A NAT on the path may give a flow another address or port while the flow runs: the tag of its packets names it. Only
 * the two ends and the path know the tag; nothing is sent to the new address.
 */
static bool claim_moved(struct serve_control *control, const struct serve_datagram *d)
{
	const uint64_t tag = flow_udp_tag(d->data, d->length);

	for (struct peer *p = tag ? registry_tagged(&control->registry, tag) : NULL; p; p = p->next_tag)
		if (p->tag == tag && p->session->flows &&
		    flow_udp_moves(flow_set_flow(p->session->flows, p->flow), d->data, d->length)) {
			registry_peer_move(&control->registry, p, &d->arrival.from, d->arrival.from_port);
			return counted(p, d);
		}
	return false;
}

bool serve_control_claim(void *context, const struct serve_datagram *d)
{
	struct serve_control *control = context;
	const struct peer *p;

	if (!control->registry.sessions)
		return false;
	p = registry_peers(&control->registry, &d->arrival.from, d->arrival.from_port);
	for (; p; p = p->next)
		if (p->port == d->arrival.from_port && ktrxer_addr_equal(&p->addr, &d->arrival.from) &&
		    p->session->flows && counted(p, d))
			return true;
	return claim_moved(control, d) || claim_cookie(control, d);
}

bool serve_control_trusted(void *context, const struct ktrxer_addr *from, uint64_t now_ns)
{
	return registry_trusted(&((struct serve_control *)context)->registry, from, now_ns);
}

void serve_control_set_token(struct serve_control *control, const struct hmac_key *token)
{
	control->token = *token;
}

static bool is_unproven(const struct session *s)
{
	return s->state == SESSION_NEW || s->state == SESSION_LEAVING;
}

static int unproven_of(const struct serve_control *control, uint64_t prefix)
{
	int count = 0;

	for (const struct session *s = control->registry.sessions; s; s = s->next)
		count += is_unproven(s) && (!prefix || limiter_prefix(&s->client.from) == prefix);
	return count;
}

/*
 * Sessions that have not proven the token have places of their own. When all are taken, the oldest of the prefix with
 * most is closed.
 */
static void new_sessions_thin(struct serve_control *control)
{
	struct session *place = NULL;
	int most = 0;

	if (unproven_of(control, 0) < KTRXER_CONTROL_NEW)
		return;
	for (struct session *s = control->registry.sessions; s; s = s->next) {
		const int count = is_unproven(s) ? unproven_of(control, limiter_prefix(&s->client.from)) : 0;

		if (count && count >= most) { /* new sessions stand in front: the last of equals is the oldest */
			most = count;
			place = s;
		}
	}
	control->registry.counts.displaced++;
	session_forget(place);
}

static void pending_answer(struct pending *s, const struct control_preface *preface)
{
	struct serve_control *control = s->control;
	const int fd = s->source.fd;
	struct session *session;

	(void)preface;
	if (!limiter_take(control->limiter, &s->from, 1, ktrxer_now_ns())) {
		control->registry.counts.refused[CONTROL_CLIENTS]++;
		pending_leave(s, true);
		return;
	}
	pending_leave(s, false);
	new_sessions_thin(control);
	if (session_new(&session, &control->registry, fd, &s->from, s->preface, &control->token) < 0)
		return;
	registry_add(&control->registry, session);
	session_greet(session, preface->version);
}

static void pending_read(struct pending *s)
{
	struct serve_control *control = s->control;
	struct control_preface preface;
	struct session *session;
	int fd = s->source.fd;

	if (control_preface_read(&preface, s->preface, s->have) < 0)
		preface.kind = 0;
	if (preface.kind == CONTROL_CLIENT) {
		pending_answer(s, &preface);
		return;
	}
	session = preface.kind == CONTROL_DATA ? registry_session(&control->registry, preface.session) : NULL;
	pending_leave(s, false);
	if (!session || session_attach(session, preface.flow, preface.cookie, fd) < 0) {
		control->registry.counts.protocol_errors++;
		close(fd);
	}
}

static void pending_ready(struct loop_source *source, uint32_t events)
{
	struct pending *s = (struct pending *)source;
	/* Read no further: later bytes belong to the flow or session that the preface names. */
	ssize_t n = recv(source->fd, s->preface + s->have, CONTROL_PREFACE - s->have, MSG_DONTWAIT);
	static const uint8_t word[6] = { 'k', 't', 'r', 'x', 'e', 'r' };

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		pending_leave(s, true);
		return;
	}
	s->have += (uint32_t)n;
	if (memcmp(s->preface, word, s->have < sizeof word ? s->have : sizeof word) != 0) {
		s->control->registry.counts.protocol_errors++;
		pending_leave(s, true);
		return;
	}
	if (s->have == CONTROL_PREFACE)
		pending_read(s);
}

static void pending_add(struct serve_control *control, int fd, const union ktrxer_name *from)
{
	const uint64_t now_ns = ktrxer_now_ns();
	struct pending *place = pending_place(control);

	*place = (struct pending){ .source = { .fd = fd, .ready = pending_ready },
				   .control = control,
				   .since_ns = now_ns };
	ktrxer_name_read(from, &place->from);
	place->from.scope_id = 0; /* the same host by whichever device it comes */
	if (loop_watch(control->registry.loop, &place->source, EPOLLIN) < 0) {
		close(fd);
		place->source.fd = -1;
		return;
	}
	place->group =
		limiter_mix(limiter_prefix(&place->from) ^ control->registry.options.secret) % KTRXER_CONTROL_GROUPS;
	control->counts[place->group]++;
	if (control->timer.at_ns == KTRXER_NEVER)
		control->timer.at_ns = now_ns + KTRXER_CONTROL_HELLO_S * (uint64_t)KTRXER_NS_PER_S;
	/* Mostly it has spoken already. */
	pending_ready(&place->source, EPOLLIN);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct serve_control *control = ((struct listener *)source)->control;

	(void)events;
	for (int i = 0; i < ACCEPTS; i++) {
		union ktrxer_name from = { 0 };
		socklen_t length = sizeof from;
		int fd = accept4(source->fd, &from.sa, &length, SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd >= 0) {
			control->registry.counts.connections++;
			pending_add(control, fd, &from);
			if (loop_share_used(control->registry.loop))
				return;
		} else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			/*
			 * It stays ready, and nothing can be done about it now: look away for a while instead of
			 * spinning.
			 */
			for (int l = 0; l < control->listener_count; l++)
				loop_unwatch(control->registry.loop, &control->listeners[l].source);
			control->resting = true;
			control->timer.at_ns = ktrxer_now_ns() + REST_MS * (uint64_t)KTRXER_NS_PER_MS;
			return;
		} else {
			return;
		}
	}
}

static void control_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct serve_control *control = (struct serve_control *)((char *)timer - offsetof(struct serve_control, timer));
	const uint64_t patience = KTRXER_CONTROL_HELLO_S * (uint64_t)KTRXER_NS_PER_S;
	uint64_t first = KTRXER_NEVER;

	if (control->resting)
		for (int i = 0; i < control->listener_count; i++)
			loop_watch(control->registry.loop, &control->listeners[i].source, EPOLLIN);
	control->resting = false;
	for (int i = 0; i < KTRXER_CONTROL_PENDING; i++) {
		struct pending *s = &control->pending[i];

		if (s->source.fd < 0)
			continue;
		if (now_ns - s->since_ns >= patience) {
			control->registry.counts.slow++;
			pending_leave(s, true);
		} else if (s->since_ns + patience < first) {
			first = s->since_ns + patience;
		}
	}
	timer->at_ns = first;
}

int serve_control_listen(struct serve_control *control, const struct ktrxer_addr *to, uint16_t port, int passed_fd,
			 struct ktrxer_error *err)
{
	struct listener *l = &control->listeners[control->listener_count];
	int fd, rc;

	if (control->listener_count == KTRXER_SERVE_ADDRESSES)
		return ktrxer_fail(err, -ENOSPC, "more addresses than %d", KTRXER_SERVE_ADDRESSES);
	fd = server_socket_listen(KTRXER_SERVER_EXTRAS ? passed_fd : 0, to, port, BACKLOG, err);
	if (fd < 0)
		return fd;
	*l = (struct listener){ .source = { .fd = fd, .ready = listener_ready }, .control = control };
	rc = loop_watch(control->registry.loop, &l->source, EPOLLIN);
	if (rc < 0) {
		close(fd);
		return ktrxer_fail(err, rc, "TCP port %u: the event loop takes no more sockets", port);
	}
	control->listener_count++;
	return 0;
}

int serve_control_new(struct serve_control **out, struct loop *loop, const struct serve_control_options *options,
		      struct ktrxer_error *err)
{
	struct serve_control *control = calloc(1, sizeof *control);

	*out = NULL;
	if (!control ||
	    limiter_new(&control->limiter, KTRXER_CONTROL_RATE, KTRXER_CONTROL_BURST, options->secret) < 0) {
		free(control);
		return ktrxer_fail(err, -ENOMEM, "no memory for the server");
	}
	control->registry.loop = loop;
	control->registry.options = *options;
	control->token = *options->token;
	control->registry.next_id = (uint32_t)(options->secret >> 32);
	control->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = control_due };
	for (int i = 0; i < KTRXER_CONTROL_PENDING; i++)
		control->pending[i].source.fd = -1;
	loop_timer_add(loop, &control->timer);
	*out = control;
	return 0;
}

void serve_control_end(struct serve_control *control)
{
	while (control->registry.sessions) {
		session_refuse(control->registry.sessions, CONTROL_STOPPING, 0);
		session_free(control->registry.sessions);
	}
}

void serve_control_free(struct serve_control *control)
{
	if (!control)
		return;
	serve_control_end(control);
	for (int i = 0; i < KTRXER_CONTROL_PENDING; i++)
		if (control->pending[i].source.fd >= 0)
			pending_leave(&control->pending[i], true);
	for (int i = 0; i < control->listener_count; i++) {
		loop_unwatch(control->registry.loop, &control->listeners[i].source);
		close(control->listeners[i].source.fd);
	}
	loop_timer_remove(control->registry.loop, &control->timer);
	limiter_free(control->limiter);
	secret_forget(&control->token, sizeof control->token);
	free(control);
}
