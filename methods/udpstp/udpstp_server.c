/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_server.h"

#include "clock.h"
#include "error.h"
#include "message.h"
#include "name.h"
#include "server_socket.h"
#include "udpstp_rates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { SECRET_MAX = 1024, DATAGRAMS = 64, RATE = 20, BURST = 100, TRIAL_MIN_MS = 4, TRIAL_MAX_MS = 250 };

#define WAIT_NS (5 * (uint64_t)KTRXER_NS_PER_S) /* for the activation of an accepted test */

/* A test from its setup on. */
struct place {
	struct loop_source source; /* first; fd -1 once the test has the socket */
	struct udpstp_server *server;
	bool used;
	bool v6, mtu_1500, ended;
	uint16_t max_mbit_s;
	struct loop_timer timer;
	struct udpstp_keys keys;
	uint8_t digest[SHA256_LENGTH]; /* of its request: a copy of the request gets the same answer */
	uint16_t port;
	struct ktrxer_addr from; /* of the setup request */
	struct udpstp_test *test;
	bool sends;
};

struct listener {
	struct loop_source source; /* first */
	struct udpstp_server *server;
	uint8_t family;
};

struct udpstp_server {
	struct loop *loop;
	struct udpstp_server_options o;
	uint8_t secret[SECRET_MAX];
	struct limiter *limiter;
	struct listener listeners[UDPSTP_SERVER_LISTENERS];
	int listener_count;
	struct place places[UDPSTP_SERVER_TESTS];
	struct {
		uint8_t digest[SHA256_LENGTH];
		uint32_t unix_s;
	} seen[UDPSTP_SERVER_SEEN];
	uint32_t seen_at;
	struct udpstp_server_counts counts;
};

struct request {
	const uint8_t *data;
	size_t length;
	struct ktrxer_addr from, local;
	uint16_t from_port;
	uint32_t ifindex;
	struct listener *listener;
};

static const uint8_t *digest_of(const uint8_t *data, size_t length)
{
	return data + length - UDPSTP_AUTH_BYTES + 5;
}

/* ----------------------------------------------------------------------------------------------------------- places */

static void place_free(struct place *p)
{
	if (!p->used)
		return;
	if (p->test) {
		struct udpstp_test_counts counts;

		udpstp_test_counts(p->test, &counts);
		p->server->counts.bytes[p->sends] += counts.bytes;
		p->server->counts.socket_drops += counts.socket_drops;
		udpstp_test_free(p->test);
	}
	if (p->source.fd >= 0) {
		loop_unwatch(p->server->loop, &p->source);
		close(p->source.fd);
	}
	loop_timer_remove(p->server->loop, &p->timer);
	secret_forget(&p->keys, sizeof p->keys);
	p->used = false;
	p->test = NULL;
	p->server->counts.running--;
}

/* A test that has ended is freed here, outside of its own call; one that was not activated in time, too. */
static void place_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	place_free((struct place *)((char *)timer - offsetof(struct place, timer)));
}

static void place_test_ended(void *context, enum udpstp_end end)
{
	struct place *p = context;

	(void)end;
	p->timer.at_ns = ktrxer_now_ns();
}

/* ------------------------------------------------------------------------------------------------------- activation */

/* A limit below 1 Mbit/s permits no test: requests and rates are whole numbers of Mbit/s. */
static uint64_t rate_limit_mbit(const struct udpstp_server *s)
{
	return s->o.max_bps / 1000000;
}

static bool activation_fits(const struct place *p, struct udpstp_activation *a)
{
	const struct udpstp_server_options *o = &p->server->o;
	const uint64_t most_s = o->max_ns / (uint64_t)KTRXER_NS_PER_S;

	if (!a->test_s || !a->interval_ms || a->trial_ms < TRIAL_MIN_MS || a->trial_ms > TRIAL_MAX_MS ||
	    a->interval_ms < 2u * a->trial_ms || a->test_s * 1000u < a->interval_ms || a->low_ms > a->upper_ms ||
	    a->algorithm > UDPSTP_ALGORITHM_C || !(o->dscp_granted >> (a->tos >> 2) & 1) || !a->high_speed_delta)
		return false;
	if (a->test_s > most_s)
		a->test_s = (uint16_t)most_s;
	return a->test_s != 0;
}

static uint32_t last_row(const struct place *p)
{
	const uint64_t limit = rate_limit_mbit(p->server), requested = p->max_mbit_s & ~UDPSTP_BANDWIDTH_UP;
	uint64_t mbit_s = limit;

	if (requested && (!limit || requested < limit))
		mbit_s = requested;
	return mbit_s ? udpstp_row_of(mbit_s, p->mtu_1500) : UDPSTP_ROW_LAST;
}

static void test_begin(struct place *p, const struct udpstp_activation *a, const uint8_t *answer, uint32_t last)
{
	struct udpstp_server *s = p->server;
	struct ktrxer_error err;
	struct udpstp_test_options t = { .loop = s->loop,
					 .fd = p->source.fd,
					 .v6 = p->v6,
					 .server = true,
					 .sender = a->request == UDPSTP_DOWN,
					 .activation = *a,
					 .mtu_1500 = p->mtu_1500,
					 .last_row = last,
					 .seed = limiter_mix(s->o.random ^ s->counts.tests),
					 .ended = place_test_ended,
					 .context = p };

	memcpy(t.answer, answer, sizeof t.answer);
	loop_unwatch(s->loop, &p->source);
	p->sends = t.sender;
	p->timer.at_ns = KTRXER_NEVER;
	if (udpstp_test_new(&p->test, &t, &err) < 0) {
		p->timer.at_ns = ktrxer_now_ns();
		close(p->source.fd);
	} else {
		s->counts.tests++;
	}
	p->source.fd = -1; /* the test's, or closed */
}

static void place_activate(struct place *p, struct udpstp_activation *a)
{
	struct udpstp_server *s = p->server;
	const uint32_t last = last_row(p);
	uint8_t data[UDPSTP_ACTIVATION_BYTES];
	const bool fits = activation_fits(p, a);
	const int tos = a->tos;

	a->version = UDPSTP_VERSION;
	a->response = fits ? UDPSTP_ACTIVATION_ACCEPTED : UDPSTP_ACTIVATION_BAD;
	if (a->row != UDPSTP_SEARCH && a->row > last)
		a->row = (uint16_t)last;
	if (fits && a->request == UDPSTP_UP)
		udpstp_rate_row(&a->rate, a->row == UDPSTP_SEARCH ? 0 : a->row, p->mtu_1500);
	udpstp_activation_write(data, a);
	udpstp_sign(data, sizeof data, &p->keys.server, 0, udpstp_unix_now());
	(void)!send(p->source.fd, data, sizeof data, MSG_DONTWAIT);
	if (!fits) {
		s->counts.refused++;
		p->timer.at_ns = ktrxer_now_ns();
		return;
	}
	(void)!setsockopt(p->source.fd, p->v6 ? SOL_IPV6 : SOL_IP, p->v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof tos);
	test_begin(p, a, data, last);
}

/*
 * A NAT may give the activation another port than the setup request, because it is sent to another port. The activation
 * has the address of the request; the socket has one peer from then on.
 */
static void place_ready(struct loop_source *source, uint32_t events)
{
	struct place *p = (struct place *)source;
	struct udpstp_activation a;
	uint8_t data[256];

	(void)events;
	for (int i = 0; i < DATAGRAMS && p->source.fd >= 0; i++) {
		union ktrxer_name name;
		socklen_t length = sizeof name;
		struct ktrxer_addr from;
		const ssize_t n = recvfrom(source->fd, data, sizeof data, MSG_DONTWAIT, &name.sa, &length);

		if (n < 0)
			return;
		ktrxer_name_read(&name, &from);
		if (ktrxer_addr_equal(&from, &p->from) && udpstp_activation_read(&a, data, (size_t)n) == 0 &&
		    !a.response && udpstp_signed_by(data, (size_t)n, &p->keys.client) &&
		    connect(source->fd, &name.sa, length) == 0)
			place_activate(p, &a);
	}
}

/* ------------------------------------------------------------------------------------------------------------ setup */

/* The answer leaves from the address that the request was sent to. */
static void answer_send(const struct request *r, uint8_t *data, size_t length)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec part = { data, length };
	union ktrxer_name name;
	struct msghdr message = { .msg_name = &name, .msg_iov = &part, .msg_iovlen = 1, .msg_control = control };

	message.msg_namelen = ktrxer_name_make(&name, &r->from, r->from_port);
	ktrxer_message_add_source(&message, &r->local, r->ifindex);
	(void)!sendmsg(r->listener->source.fd, &message, MSG_DONTWAIT);
}

static void setup_answer(struct udpstp_server *s, const struct request *r, const struct udpstp_setup *setup,
			 enum udpstp_answer answer, const struct place *place)
{
	struct udpstp_setup a = *setup;
	uint8_t data[UDPSTP_SETUP_BYTES];

	s->counts.refused += answer != UDPSTP_ACCEPTED;
	a.version = UDPSTP_VERSION;
	a.request = UDPSTP_SETUP_RESPONSE;
	a.answer = (uint8_t)answer;
	a.port = place ? place->port : 0;
	udpstp_setup_write(data, &a);
	if (place)
		udpstp_sign(data, sizeof data, &place->keys.server, 0, udpstp_unix_now());
	answer_send(r, data, sizeof data);
}

/* A socket of its own, on a port that the kernel chooses. */
static int place_socket(const struct request *r, uint16_t *port)
{
	union ktrxer_name name;
	struct ktrxer_addr local = r->local;
	socklen_t length = ktrxer_name_make(&name, &local, 0);
	int fd = socket(local.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return -errno;
	if (local.family == AF_INET6)
		name.v6.sin6_scope_id = r->from.scope_id;
	udpstp_socket_prepare(fd, local.family);
	rc = bind(fd, &name.sa, length) ? -errno : 0;
	length = sizeof name;
	if (rc == 0 && getsockname(fd, &name.sa, &length))
		rc = -errno;
	if (rc < 0) {
		close(fd);
		return rc;
	}
	*port = ktrxer_name_read(&name, &local);
	return fd;
}

static struct place *place_new(struct udpstp_server *s, const struct request *r, const struct udpstp_setup *setup)
{
	struct place *p = NULL;

	for (uint32_t i = 0; i < UDPSTP_SERVER_TESTS && i < s->o.max_clients; i++)
		if (!s->places[i].used) {
			p = &s->places[i];
			break;
		}
	if (!p)
		return NULL;
	*p = (struct place){ .server = s,
			     .from = r->from,
			     .v6 = r->from.family == AF_INET6,
			     .mtu_1500 = setup->modifiers & UDPSTP_MTU_1500,
			     .max_mbit_s = setup->max_mbit_s,
			     .source = { .ready = place_ready },
			     .timer = { .at_ns = ktrxer_now_ns() + WAIT_NS, .due = place_due } };
	p->source.fd = place_socket(r, &p->port);
	if (p->source.fd < 0)
		return NULL;
	if (loop_watch(s->loop, &p->source, EPOLLIN) < 0) {
		close(p->source.fd);
		return NULL;
	}
	p->used = true;
	s->counts.running++;
	memcpy(p->digest, digest_of(r->data, r->length), sizeof p->digest);
	loop_timer_add(s->loop, &p->timer);
	return p;
}

/* True: this request was accepted before, and is still valid. Else it is remembered. */
static bool seen_before(struct udpstp_server *s, const uint8_t *digest, uint32_t unix_s, bool *full)
{
	const uint32_t now_s = udpstp_unix_now();

	for (uint32_t i = 0; i < UDPSTP_SERVER_SEEN; i++)
		if (s->seen[i].unix_s && secret_equal(s->seen[i].digest, digest, SHA256_LENGTH))
			return true;
	/* The oldest place is taken only when its request is too old to be valid. */
	*full = s->seen[s->seen_at].unix_s && s->seen[s->seen_at].unix_s + 2 * UDPSTP_AUTH_WINDOW_S >= now_s;
	if (!*full) {
		memcpy(s->seen[s->seen_at].digest, digest, SHA256_LENGTH);
		s->seen[s->seen_at].unix_s = unix_s > now_s ? unix_s : now_s;
		s->seen_at = (s->seen_at + 1) % UDPSTP_SERVER_SEEN;
	}
	return false;
}

static enum udpstp_answer setup_check(const struct udpstp_server *s, const struct request *r,
				      const struct udpstp_setup *setup, struct udpstp_keys *keys)
{
	const uint32_t unix_s = udpstp_auth_time(r->data, r->length), now_s = udpstp_unix_now();
	const uint64_t limit = rate_limit_mbit(s), requested = setup->max_mbit_s & ~UDPSTP_BANDWIDTH_UP;

	if (setup->version != UDPSTP_VERSION)
		return UDPSTP_BAD_VERSION;
	if (udpstp_auth_mode(r->data, r->length) == UDPSTP_OPEN)
		return UDPSTP_AUTH_REQUIRED;
	if (udpstp_auth_mode(r->data, r->length) != UDPSTP_AUTHENTICATED)
		return UDPSTP_AUTH_INVALID;
	udpstp_keys_derive(keys, s->secret, s->o.secret_length, unix_s);
	if (!udpstp_signed_by(r->data, r->length, &keys->client))
		return UDPSTP_AUTH_FAILED;
	if (unix_s + UDPSTP_AUTH_WINDOW_S < now_s || unix_s > now_s + UDPSTP_AUTH_WINDOW_S)
		return UDPSTP_AUTH_TIME;
	if (!setup->count || setup->index >= setup->count)
		return UDPSTP_BAD_CONNECTIONS;
	if (s->o.max_bps && !requested)
		return UDPSTP_BANDWIDTH_REQUIRED;
	if (s->o.max_bps && requested > limit)
		return UDPSTP_CAPACITY_EXCEEDED;
	return UDPSTP_ACCEPTED;
}

static const struct place *place_of(const struct udpstp_server *s, const uint8_t *digest)
{
	for (int i = 0; i < UDPSTP_SERVER_TESTS; i++)
		if (s->places[i].used && !s->places[i].test && secret_equal(s->places[i].digest, digest, SHA256_LENGTH))
			return &s->places[i];
	return NULL;
}

static void setup_arrived(struct udpstp_server *s, const struct request *r)
{
	uint8_t null[UDPSTP_NULL_BYTES];
	union ktrxer_name name;
	socklen_t length;
	struct udpstp_setup setup;
	struct udpstp_keys keys;
	const uint8_t *digest;
	enum udpstp_answer answer;
	struct place *p;
	bool full = false;

	if (udpstp_setup_read(&setup, r->data, r->length) < 0 || setup.request != UDPSTP_SETUP_REQUEST ||
	    !limiter_take(s->limiter, &r->from, 1, ktrxer_now_ns()))
		return;
	s->counts.requests++;
	answer = setup_check(s, r, &setup, &keys);
	if (answer != UDPSTP_ACCEPTED) {
		setup_answer(s, r, &setup, answer, NULL);
		return;
	}
	digest = digest_of(r->data, r->length);
	if (seen_before(s, digest, udpstp_auth_time(r->data, r->length), &full)) {
		const struct place *same = place_of(s, digest);

		if (same)
			setup_answer(s, r, &setup, UDPSTP_ACCEPTED, same);
		return;
	}
	p = full ? NULL : place_new(s, r, &setup);
	if (!p) {
		setup_answer(s, r, &setup, UDPSTP_NO_CONNECTION, NULL);
		return;
	}
	p->keys = keys;
	/* This PDU leaves from the new port, and opens a firewall of this host for the client. */
	udpstp_null_write(null);
	udpstp_sign(null, sizeof null, &keys.server, 0, udpstp_unix_now());
	length = ktrxer_name_make(&name, &r->from, r->from_port);
	(void)!sendto(p->source.fd, null, sizeof null, MSG_DONTWAIT, &name.sa, length);
	setup_answer(s, r, &setup, UDPSTP_ACCEPTED, p);
}

static void listener_ready(struct loop_source *source, uint32_t events)
{
	struct listener *l = (struct listener *)source;
	_Alignas(struct cmsghdr) char control[KTRXER_MESSAGE_CONTROL];
	uint8_t data[256];

	(void)events;
	for (int i = 0; i < DATAGRAMS; i++) {
		union ktrxer_name name;
		struct iovec part = { data, sizeof data };
		struct msghdr header = { .msg_name = &name,
					 .msg_namelen = sizeof name,
					 .msg_iov = &part,
					 .msg_iovlen = 1,
					 .msg_control = control,
					 .msg_controllen = sizeof control };
		struct request r = { .data = data, .listener = l };
		struct ktrxer_message m;
		const ssize_t n = recvmsg(source->fd, &header, MSG_DONTWAIT);

		if (n < 0)
			return;
		ktrxer_message_read(&m, &header);
		r.length = (size_t)n;
		r.from_port = ktrxer_name_read(&name, &r.from);
		r.local = m.local;
		r.ifindex = m.ifindex;
		if (m.local.family && ktrxer_addr_equal(&m.to, &m.local)) /* no group */
			setup_arrived(l->server, &r);
	}
}

/* ------------------------------------------------------------------------------------------------------- the server */

int udpstp_server_listen(struct udpstp_server *s, const struct ktrxer_addr *bind_to, uint16_t port,
			 struct ktrxer_error *err)
{
	struct listener *l = &s->listeners[s->listener_count];
	const bool v6 = bind_to->family == AF_INET6;
	const int one = 1;
	int fd, rc;

	if (s->listener_count == UDPSTP_SERVER_LISTENERS)
		return ktrxer_fail(err, -ENOSPC, "more addresses than %d", UDPSTP_SERVER_LISTENERS);
	fd = socket(bind_to->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return ktrxer_fail(err, -errno, "UDP socket for UDPSTP: %m");
	rc = setsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVPKTINFO : IP_PKTINFO, &one, sizeof one) ? -errno : 0;
	if (rc < 0)
		ktrxer_fail(err, rc, "UDP socket for UDPSTP (IP_PKTINFO): %m");
	else
		rc = server_socket_bind(fd, bind_to, port, err);
	*l = (struct listener){ .source = { .fd = fd, .ready = listener_ready },
				.server = s,
				.family = bind_to->family };
	if (rc == 0 && (rc = loop_watch(s->loop, &l->source, EPOLLIN)) < 0)
		ktrxer_fail(err, rc, "UDP port %u for UDPSTP: the event loop takes no more sockets", port);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	s->listener_count++;
	return 0;
}

void udpstp_server_set_secret(struct udpstp_server *s, const uint8_t *secret, size_t length)
{
	s->o.secret_length = length < SECRET_MAX ? length : SECRET_MAX;
	memcpy(s->secret, secret, s->o.secret_length);
}

int udpstp_server_new(struct udpstp_server **out, struct loop *loop, const struct udpstp_server_options *options,
		      struct ktrxer_error *err)
{
	struct udpstp_server *s = calloc(1, sizeof *s);

	*out = NULL;
	if (!s || limiter_new(&s->limiter, RATE, BURST, options->random) < 0) {
		free(s);
		return ktrxer_fail(err, -ENOMEM, "no memory for the server of UDPSTP");
	}
	s->loop = loop;
	s->o = *options;
	udpstp_server_set_secret(s, options->secret, options->secret_length);
	*out = s;
	return 0;
}

void udpstp_server_counts(const struct udpstp_server *s, struct udpstp_server_counts *counts)
{
	*counts = s->counts;
}

void udpstp_server_free(struct udpstp_server *s)
{
	if (!s)
		return;
	for (int i = 0; i < UDPSTP_SERVER_TESTS; i++) {
		if (s->places[i].test)
			udpstp_test_stop(s->places[i].test);
		place_free(&s->places[i]);
	}
	for (int i = 0; i < s->listener_count; i++) {
		loop_unwatch(s->loop, &s->listeners[i].source);
		close(s->listeners[i].source.fd);
	}
	limiter_free(s->limiter);
	secret_forget(s->secret, sizeof s->secret);
	free(s);
}
