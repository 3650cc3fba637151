/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * No request of any valid encoding takes more than a millisecond of the server's loop at once: random requests of
 * token holders and random STAMP packets, over loopback, from a child process. The cost of a call of the loop is the
 * processor time of its thread. With a second clock, by which each step uses up the share of its call, the steps are
 * counted and a request must still end as it does otherwise.
 */
#include "cm.h"
#include "control.h"
#include "flow_spec.h"
#include "loop_share_here.h"
#include "reflector.h"
#include "serve_control.h"
#include "serve_session.h"
#include "serve_udp.h"
#include "stamp_packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS (uint64_t)KTRXER_NS_PER_MS

enum { TRIES = 100, CONNECTED_MAX = 1500, PINGS = 600, STAMPS = 128, SEEDS = 24 };

static const char token_text[] = "a token of a test, long enough";

/* One request, from a seed. */
struct request {
	uint64_t random;
	bool connects; /* else: flows are described only, up to the most that the encoding has */
	bool stamps;   /* STAMP packets instead */
	bool steps;    /* by the clock of steps */
	uint32_t flows;
};

static uint64_t draw(struct request *r, uint64_t below)
{
	r->random = r->random * 6364136223846793005ull + 1442695040888963407ull;
	return (r->random >> 16) % below;
}

/* Each power of two equally likely, so that small and extreme values are tried as often. */
static uint64_t draw_log(struct request *r, unsigned int bits)
{
	const unsigned int shift = (unsigned int)draw(r, bits);

	return (1ull << shift) | (shift ? draw(r, 1ull << (shift < 46 ? shift : 46)) : 0);
}

/* the client */

struct client {
	struct request request;
	uint16_t port;
	int fd;
	struct control_keys keys;
	uint32_t session, ports;
	struct control_port port_of[KTRXER_FLOW_UDP_MAX];
	struct flow_spec *specs;
	int *sockets;
	uint8_t in[4 * CONTROL_BODY_MAX];
	uint32_t have;
	uint8_t out[CONTROL_BODY_MAX + 64];
};

static struct sockaddr_in here(uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_port = htons(port),
				     .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
}

static int dial(uint16_t port)
{
	const struct sockaddr_in to = here(port);
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static bool put(int fd, const uint8_t *data, size_t length)
{
	while (length) {
		const ssize_t n = send(fd, data, length, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		data += n;
		length -= (size_t)n;
	}
	return true;
}

/* The next frame of this type. False: the server refused, or has gone. */
static bool await(struct client *c, uint8_t type, int wait_ms)
{
	const uint64_t until_ns = ktrxer_now_ns() + (uint64_t)wait_ms * MS;

	while (ktrxer_now_ns() < until_ns) {
		struct control_frame frame;
		struct pollfd p = { .fd = c->fd, .events = POLLIN };
		uint32_t taken = 0;
		ssize_t n;

		while (control_open(&c->keys, c->in, c->have, CONTROL_BODY_MAX, &frame, &taken) == 1) {
			const bool found = frame.type == type, refused = frame.type == CONTROL_REFUSE;
			struct control_grant grant;

			if (frame.type == CONTROL_GRANT && control_grant_read(&grant, &frame) == 0)
				c->session = grant.session;
			if (frame.type == CONTROL_PLANNED)
				c->ports = (uint32_t)control_ports_read(c->port_of, KTRXER_FLOW_UDP_MAX, &frame);
			c->have -= taken;
			memmove(c->in, c->in + taken, c->have);
			if (found || refused)
				return found;
		}
		if (poll(&p, 1, wait_ms) <= 0)
			return false;
		n = recv(c->fd, c->in + c->have, sizeof c->in - c->have, 0);
		if (n <= 0)
			return false;
		c->have += (uint32_t)n;
	}
	return false;
}

static bool say(struct client *c, uint8_t type, uint32_t length)
{
	return put(c->fd, c->out, control_seal(&c->keys, c->out, type, length));
}

static bool greet(struct client *c)
{
	struct control_preface mine = { .kind = CONTROL_CLIENT, .version = CONTROL_VERSION };
	uint8_t ours[CONTROL_PREFACE], theirs[CONTROL_PREFACE];
	struct hmac_key token;

	mine.nonce[0] = (uint8_t)draw(&c->request, 256);
	control_preface_write(ours, &mine);
	hmac_key_set(&token, token_text, strlen(token_text));
	c->fd = dial(c->port);
	if (c->fd < 0 || !put(c->fd, ours, sizeof ours))
		return false;
	if (recv(c->fd, theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)
		return false;
	control_keys_derive(&c->keys, &token, ours, theirs, false);
	return true;
}

static void spec_draw(struct client *c, struct flow_spec *s, uint32_t index)
{
	struct request *r = &c->request;
	const bool udp = index < 64 && draw(r, 2);

	*s = (struct flow_spec){ .down = draw(r, 2), .udp = udp, .tos = (uint8_t)(draw(r, 2) ? 0 : 4 * draw(r, 64)) };
	s->model = (uint8_t)draw(r, FLOW_MODELS);
	s->rate_bps = draw_log(r, 62 - 6); /* the sum of 64 flows fits into 63 bits */
	s->start_ns = draw_log(r, 26);
	s->payload_min = (uint16_t)(FLOW_PACKET_HEAD + draw(r, draw(r, 2) ? 8 : 1400));
	s->payload_max = (uint16_t)(s->payload_min + draw(r, 100));
	if (udp && s->model == FLOW_VOIP && s->rate_bps < 8u * s->payload_max)
		s->rate_bps = 8u * s->payload_max;
	if (s->model == FLOW_TRAIN) {
		s->train = (uint16_t)(2 + draw(r, KTRXER_TRAIN_PACKETS_MAX - 1));
		s->train_gap_ns = draw(r, 2) ? draw_log(r, 20) : 0;
		if (!flow_train_fits(s))
			s->model = FLOW_CONSTANT;
	}
	if (!udp && s->model != FLOW_TRAIN && draw(r, 2))
		s->rate_bps = 0;
}

static bool ask(struct client *c)
{
	struct request *r = &c->request;
	struct control_request q = { .flows = r->flows, .sample_ns = draw_log(r, 30) };
	const uint64_t finest = r->flows * (uint64_t)KTRXER_NS_PER_S / KTRXER_FLOW_SAMPLES_S;

	q.for_ns = draw(r, 4) ? draw_log(r, 28) : 0;
	q.bytes = draw(r, 3) ? 0 : draw_log(r, 30);
	q.cc_count = (uint8_t)draw(r, CONTROL_CCS + 1);
	/* The user mode of qemu does not pass the name of a congestion control to the kernel. */
	if (is_emulated())
		q.cc_count = 0;
	if (q.sample_ns < KTRXER_FLOW_SAMPLE_MIN_NS || q.sample_ns < finest)
		q.sample_ns = finest + KTRXER_FLOW_SAMPLE_MIN_NS;
	if (!q.for_ns && !q.bytes)
		q.for_ns = 20 * MS;
	for (int i = 0; i < q.cc_count; i++)
		strcpy(q.ccs[i], "reno"); /* the only one that each kernel permits to an ordinary user */
	if (!say(c, CONTROL_REQUEST, control_request_write(c->out + CONTROL_HEAD, &q)))
		return false;
	if (!await(c, CONTROL_GRANT, 5000))
		return false;
	for (uint32_t i = 0; i < r->flows; i++)
		spec_draw(c, &c->specs[i], i);
	for (uint32_t first = 0; first < r->flows; first += CONTROL_RECORDS) {
		const uint32_t some = r->flows - first < CONTROL_RECORDS ? r->flows - first : CONTROL_RECORDS;

		if (!say(c, CONTROL_FLOWS, control_flows_write(c->out + CONTROL_HEAD, first, some, c->specs + first)))
			return false;
	}
	return await(c, CONTROL_PLANNED, 5000);
}

static void attach_all(struct client *c)
{
	for (uint32_t i = 0; i < c->request.flows; i++) {
		struct control_preface p = { .version = CONTROL_VERSION, .session = c->session, .flow = i };
		const struct sockaddr_in to = here(c->port);
		uint8_t bytes[CONTROL_PREFACE];

		p.kind = c->specs[i].udp ? CONTROL_DATAGRAM : CONTROL_DATA;
		control_cookie(&c->keys, c->session, i, p.cookie);
		control_preface_write(bytes, &p);
		if (c->specs[i].udp) {
			c->sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
			(void)!sendto(c->sockets[i], bytes, sizeof bytes, 0, (const struct sockaddr *)&to, sizeof to);
		} else {
			c->sockets[i] = dial(c->port);
			if (c->sockets[i] >= 0)
				put(c->sockets[i], bytes, sizeof bytes);
		}
	}
}

/* Ends of flows, stops, and nothing at all: whatever is allowed at any time. */
static void chatter(struct client *c)
{
	struct request *r = &c->request;
	const struct flow_end end = { .reason = (uint8_t)(1 + draw(r, FLOW_REASONS - 1)), .packets = draw_log(r, 60) };

	for (uint32_t i = 0; i < PINGS; i++)
		if (!say(c, CONTROL_PING, control_time_write(c->out + CONTROL_HEAD, i)))
			return;
	for (uint32_t i = 0; i < r->flows; i++) {
		const uint32_t length = control_flow_end_write(c->out + CONTROL_HEAD, i, &end);

		if (draw(r, 4) == 0 && !say(c, CONTROL_FLOW_END, length))
			return;
	}
}

static void play_flows(struct client *c)
{
	struct request *r = &c->request;
	uint32_t length;

	if (!greet(c) || !ask(c))
		return;
	if (r->connects) {
		attach_all(c);
		if (!await(c, CONTROL_READY, 5000))
			return;
		length = control_time_write(c->out + CONTROL_HEAD, ktrxer_now_ns() + draw_log(r, 23));
		if (!say(c, CONTROL_START, length))
			return;
	}
	chatter(c);
	/* Half of them until their end, a quarter stops them, a quarter goes without a word. */
	if (r->connects)
		await(c, CONTROL_BYE, 30 + (int)draw(r, 60));
	if (draw(r, 2) && say(c, CONTROL_STOP, 0))
		await(c, CONTROL_BYE, 20);
	if (draw(r, 2))
		say(c, CONTROL_BYE, 0);
}

/* Valid packets with TLVs of all types, as long as they may be, signed where one of them is a HMAC. */
static uint32_t stamp_draw(struct request *r, uint8_t *packet, const struct hmac_key *key)
{
	const uint64_t most = draw(r, 2) ? 200 : KTRXER_REFLECTOR_PACKET_MAX - 44 - 20;
	const uint32_t length = 44 + (uint32_t)draw(r, most);
	uint32_t at = 44;

	memset(packet, 0, length);
	store_be32(packet, (uint32_t)r->random);
	while (at + 4 <= length) {
		uint32_t value = (uint32_t)draw(r, draw(r, 2) ? 24 : 2000);

		if (at + 4 + value > length)
			value = length - at - 4;
		packet[at + 1] = (uint8_t)(1 + draw(r, 12));
		if (packet[at + 1] == STAMP_TLV_HMAC)
			packet[at + 1] = STAMP_TLV_PADDING;
		store_be16(packet + at + 2, (uint16_t)value);
		at += 4 + value;
	}
	if (draw(r, 4) == 0)
		return length;
	packet[at] = 0;
	packet[at + 1] = STAMP_TLV_HMAC;
	store_be16(packet + at + 2, 16);
	stamp_tlv_mac(packet, false, at, key, packet + at + STAMP_TLV_HEAD);
	return at + 20;
}

static void play_stamps(struct client *c)
{
	const struct sockaddr_in to = here(c->port);
	const int fd = socket(AF_INET, SOCK_DGRAM, 0);
	static uint8_t packet[KTRXER_REFLECTOR_PACKET_MAX + 64];
	struct hmac_key key;
	struct pollfd p = { .fd = fd, .events = POLLIN };

	hmac_key_set(&key, token_text, strlen(token_text));
	for (int i = 0; i < STAMPS; i++) {
		const uint32_t length = stamp_draw(&c->request, packet, &key);

		(void)!sendto(fd, packet, length, 0, (const struct sockaddr *)&to, sizeof to);
	}
	while (poll(&p, 1, 30) > 0)
		(void)!recv(fd, packet, sizeof packet, 0);
	close(fd);
}

static void play(const struct request *request, uint16_t port)
{
	struct client *c = calloc(1, sizeof *c);

	c->request = *request;
	c->port = port;
	c->specs = calloc(request->flows + 1, sizeof *c->specs);
	c->sockets = calloc(request->flows + 1, sizeof *c->sockets);
	if (request->stamps)
		play_stamps(c);
	else
		play_flows(c);
	_exit(0);
}

/* the server */

struct server {
	struct loop *loop;
	struct serve_control *control;
	struct serve_udp *udp;
	struct reflector *reflector;
	uint16_t port;
	struct loop_timer poll;
	int life; /* becomes readable when the child has gone */
	bool gone;
	uint64_t give_up_ns;
	struct loop_figures figures;
	struct serve_control_counts counts;
};

/* Ends the loop when the client has gone, and the server has closed what was the client's. */
static void watch(struct loop_timer *timer, uint64_t now_ns)
{
	struct server *s = (struct server *)((char *)timer - offsetof(struct server, poll));
	struct pollfd p = { .fd = s->life, .events = POLLIN };

	timer->at_ns = now_ns + MS;
	if (poll(&p, 1, 0) > 0)
		s->gone = true;
	if ((s->gone && !serve_control_registry(s->control)->sessions) || now_ns > s->give_up_ns)
		loop_stop(s->loop);
}

static void server_open(struct server *s)
{
	struct reflector_options r = { .dscp_granted = REFLECTOR_DSCP_TRUSTED, .secret = 1 };
	struct serve_control_options o = { .max_clients = 8,
					   .max_flows = KTRXER_FLOW_FLOWS_MAX,
					   .secret = 2,
					   .max_ns = 3600 * 1000 * MS,
					   .dscp_granted = UINT64_MAX };
	struct ktrxer_addr local = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } };
	struct serve_udp_options u = { .bind = local, .claim = serve_control_claim };
	struct hmac_key token;
	struct ktrxer_error err;
	int rc = -EADDRINUSE;

	*s = (struct server){ .poll = { .due = watch } };
	hmac_key_set(&token, token_text, strlen(token_text));
	r.tlv_key = &token;
	o.token = &token;
	assert_int_equal(loop_new(&s->loop), 0);
	assert_int_equal(reflector_new(&s->reflector, &r), 0);
	assert_int_equal(serve_control_new(&s->control, s->loop, &o, &err), 0);
	u.reflector = s->reflector;
	u.context = s->control;
	for (int i = 0; i < 50 && rc == -EADDRINUSE; i++) {
		s->port = u.port = (uint16_t)(20000 + ((unsigned int)getpid() * 31 + (unsigned int)i * 977) % 10000);
		rc = serve_control_listen(s->control, &local, s->port, 0, &err);
	}
	assert_int_equal(rc, 0);
	assert_int_equal(serve_udp_open(&s->udp, s->loop, &u, &err), 0);
	loop_timer_add(s->loop, &s->poll);
}

static void server_close(struct server *s)
{
	loop_timer_remove(s->loop, &s->poll);
	serve_udp_close(s->udp);
	serve_control_free(s->control);
	reflector_free(s->reflector);
	loop_free(s->loop);
}

/* The figures of the loop while this request is served. */
static void serve_one(struct server *s, const struct request *request)
{
	int life[2], child;

	server_open(s);
	loop_clock(s->loop, request->steps ? step_clock : processor_ns);
	assert_int_equal(pipe(life), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		close(life[0]);
		play(request, s->port);
	}
	close(life[1]);
	s->life = life[0];
	s->give_up_ns = ktrxer_now_ns() + 30000 * MS;
	assert_int_equal(loop_run(s->loop, -1), 0);
	close(life[0]);
	if (!s->gone)
		kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_true(s->gone);
	assert_null(serve_control_registry(s->control)->sessions);
	loop_figures(s->loop, &s->figures);
	serve_control_counts(s->control, &s->counts);
	server_close(s);
}

static struct request request_of(uint64_t seed)
{
	struct request r = { .random = seed * 0x9e3779b97f4a7c15ull };

	r.stamps = seed % 6 == 5;
	r.connects = seed % 3;
	r.flows = (uint32_t)draw_log(&r, r.connects ? 11 : 14);
	if (r.connects && r.flows > CONNECTED_MAX)
		r.flows = CONNECTED_MAX;
	return r;
}

/*
 * A 32-bit program in the user mode of qemu: the address in an ICMP error (MSG_ERRQUEUE) is written to an address of
 * the host that is cut to 32 bits, into any memory of the program.
 */
static void need_error_queue(void)
{
	if (is_emulated() && sizeof(void *) == 4)
		cm_skip("the user mode of qemu writes ICMP errors to wrong addresses of 32-bit programs");
}

/* A processor that is shared can be taken away, and its caches with it: a request that is too long is so each time. */
static void judge(const struct request *r, uint64_t seed)
{
	uint64_t least = UINT64_MAX;
	struct server s;

	for (int i = 0; i < TRIES && least > limit_ns(); i++) {
		serve_one(&s, r);
		if (s.figures.longest_ns < least)
			least = s.figures.longest_ns;
	}
	print_message("request %llu, %s: %u flows: at most %llu us of the loop at once\n", (unsigned long long)seed,
		      r->stamps     ? "STAMP"
		      : r->connects ? "connected"
				    : "described",
		      r->flows, (unsigned long long)least / 1000);
	if (least > limit_ns())
		fail_msg("request %llu takes more than %llu us, each of %d times", (unsigned long long)seed,
			 (unsigned long long)limit_ns() / 1000, TRIES);
}

TEST(no_request_holds_the_loop)
{
	need_error_queue();
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		const struct request r = request_of(seed);

		judge(&r, seed);
	}
}

TEST(the_largest_requests_do_not)
{
	const struct request described = { .random = 1, .flows = KTRXER_FLOW_FLOWS_MAX };
	const struct request connected = { .random = 2, .flows = CONNECTED_MAX, .connects = true };
	const struct request udp = { .random = 3, .flows = KTRXER_FLOW_UDP_MAX, .connects = true };

	need_error_queue();
	judge(&described, 1001);
	judge(&connected, 1002);
	judge(&udp, 1003);
}

TEST(each_call_ends_with_its_share)
{
	need_error_queue();
	for (uint64_t seed = 1; seed < 12; seed++) {
		struct request r = request_of(seed);
		struct server s;

		r.steps = true;
		if (r.flows > 300)
			r.flows = 300;
		serve_one(&s, &r);
		/* The looks at the clock of one call: at its begin, after its first step, at its end. */
		assert_in_range(s.figures.longest_ns / (LOOP_SHARE_NS + 1), 1, 3);
		assert_in_range(s.figures.calls, 1, 200000);
		assert_int_equal(s.counts.sessions, r.stamps ? 0 : 1);
		assert_int_equal(s.counts.flows, r.connects && !r.stamps ? r.flows : 0);
	}
}

static int more_descriptors(void **state)
{
	struct rlimit limit;

	(void)state;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max < 8192 ? limit.rlim_max : 8192;
		(void)!setrlimit(RLIMIT_NOFILE, &limit);
	}
	return 0;
}

struct cm_hooks cm_hooks = { .before_all = more_descriptors };
