/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_client.h"

#include "clock.h"
#include "error.h"
#include "name.h"
#include "udpstp_rates.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <unistd.h>

enum { TRIES = 7 /* ARP gives up after three seconds */, INTERVALS_MAX = 1 << 16 };

#define TRY_NS (500 * (uint64_t)KTRXER_NS_PER_MS)

struct client {
	struct loop_source source; /* first: until there is a test */
	const struct udpstp_client_options *o;
	struct udpstp_client_result *result;
	struct loop *loop;
	struct loop_timer timer;
	struct udpstp_keys keys;
	struct udpstp_test *test;
	struct udpstp_activation requested;
	uint8_t pdu[UDPSTP_ACTIVATION_BYTES]; /* the request that has no answer yet */
	size_t pdu_length;
	uint16_t ident;
	uint8_t modifiers;
	int tries;
	bool activating, over;
	int error; /* the kernel's last one for a request */
	uint64_t seed;
	struct ktrxer_error failure;
};

static const char *const answers[UDPSTP_ANSWERS] = {
	[UDPSTP_BAD_VERSION] = "the server has another version of the protocol",
	[UDPSTP_BAD_JUMBO] = "the server requires the other setting of jumbo frames",
	[UDPSTP_AUTH_NOT_CONFIGURED] = "the server has no authentication: leave the token out",
	[UDPSTP_AUTH_REQUIRED] = "the server requires authentication: give its token",
	[UDPSTP_AUTH_INVALID] = "the server does not have this mode of authentication",
	[UDPSTP_AUTH_FAILED] = "the server has another token",
	[UDPSTP_AUTH_TIME] = "the clocks of the hosts differ by more than 150 s: set them",
	[UDPSTP_BANDWIDTH_REQUIRED] = "the server requires the highest rate of the test to be stated",
	[UDPSTP_CAPACITY_EXCEEDED] = "the server has no capacity left for this rate: ask for less, or later",
	[UDPSTP_BAD_MTU] = "the server requires the other setting of packets of 1500 bytes",
	[UDPSTP_BAD_CONNECTIONS] = "the server does not accept the parameters of the connection",
	[UDPSTP_NO_CONNECTION] = "the server has no connection left: try later",
};

static void finish(struct client *c)
{
	c->over = true;
	c->timer.at_ns = KTRXER_NEVER;
	loop_stop(c->loop);
}

static void fail(struct client *c, int rc, const char *text)
{
	ktrxer_fail(&c->failure, rc, "%s", text);
	finish(c);
}

/* --------------------------------------------------------------------------------------------------------- requests */

static void request_send(struct client *c)
{
	union ktrxer_name name;
	const socklen_t length = ktrxer_name_make(&name, &c->o->to, c->activating ? c->result->test_port : c->o->port);

	/* A request that the kernel does not take now is repeated by the timer. */
	c->timer.at_ns = ktrxer_now_ns() + TRY_NS;
	if (sendto(c->source.fd, c->pdu, c->pdu_length, MSG_DONTWAIT, &name.sa, length) < 0)
		c->error = errno;
}

static void setup_request(struct client *c)
{
	const struct udpstp_setup s = { .version = UDPSTP_VERSION,
					.count = 1,
					.ident = c->ident,
					.request = UDPSTP_SETUP_REQUEST,
					.max_mbit_s =
						(uint16_t)(c->o->max_mbit_s |
							   (c->o->max_mbit_s && !c->o->down ? UDPSTP_BANDWIDTH_UP : 0)),
					.modifiers = c->modifiers };
	const uint32_t now_s = udpstp_unix_now();

	udpstp_setup_write(c->pdu, &s);
	c->pdu_length = UDPSTP_SETUP_BYTES;
	if (c->o->secret) {
		udpstp_keys_derive(&c->keys, c->o->secret, c->o->secret_length, now_s);
		udpstp_sign(c->pdu, c->pdu_length, &c->keys.client, c->o->key_id, now_s);
	}
	c->tries = 0;
	request_send(c);
}

static void activation_request(struct client *c)
{
	c->requested = c->o->activation;
	c->requested.version = UDPSTP_VERSION;
	c->requested.request = c->o->down ? UDPSTP_DOWN : UDPSTP_UP;
	udpstp_activation_write(c->pdu, &c->requested);
	c->pdu_length = UDPSTP_ACTIVATION_BYTES;
	if (c->o->secret)
		udpstp_sign(c->pdu, c->pdu_length, &c->keys.client, c->o->key_id, udpstp_unix_now());
	c->activating = true;
	c->tries = 0;
	request_send(c);
}

static void try_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct client *c = (struct client *)((char *)timer - offsetof(struct client, timer));

	(void)now_ns;
	if (++c->tries >= TRIES)
		fail(c, -ETIMEDOUT,
		     c->error        ? strerror(c->error)
		     : c->activating ? "the server does not answer the activation of the test on its test port: a "
				       "firewall drops UDP to it"
				     : "the server does not answer: no program serves UDPSTP on this port, or a "
				       "firewall drops UDP");
	else
		request_send(c);
}

/* ---------------------------------------------------------------------------------------------------------- answers */

static void on_interval(void *context, const struct ip_capacity_interval *interval)
{
	struct client *c = context;
	struct udpstp_client_result *r = c->result;

	if (r->count == r->wanted)
		return;
	if (c->o->interval)
		c->o->interval(c->o->context, r->count, interval);
	r->intervals[r->count++] = *interval;
}

static void on_trial(void *context, uint64_t lasts_ns, uint64_t ip_bytes)
{
	struct client *c = context;

	rate_trials_add(c->result->trials, lasts_ns, ip_bytes);
}

static void on_ended(void *context, enum udpstp_end end)
{
	struct client *c = context;

	c->result->end = end;
	finish(c);
}

static bool signed_by_server(const struct client *c, const uint8_t *data, size_t length)
{
	return !c->o->secret || udpstp_signed_by(data, length, &c->keys.server);
}

static void test_begin(struct client *c, const struct udpstp_activation *agreed)
{
	struct udpstp_client_result *r = c->result;
	const struct udpstp_test_options t = { .loop = c->loop,
					       .fd = c->source.fd,
					       .v6 = c->o->to.family == AF_INET6,
					       .sender = !c->o->down,
					       .activation = *agreed,
					       .mtu_1500 = c->o->mtu_1500,
					       .seed = c->seed,
					       .interval = on_interval,
					       .trial = on_trial,
					       .ended = on_ended,
					       .context = c };
	int rc;

	r->agreed = *agreed;
	r->wanted = agreed->interval_ms ? agreed->test_s * 1000u / agreed->interval_ms : 0;
	if (!r->wanted || r->wanted > INTERVALS_MAX || !agreed->trial_ms || agreed->trial_ms > agreed->interval_ms ||
	    (!c->o->down && !udpstp_rate_fits(&agreed->rate))) {
		fail(c, -EPROTO, "the server accepted the test with times or rates that are impossible");
		return;
	}
	r->intervals = calloc(r->wanted, sizeof *r->intervals);
	r->trials = calloc(1, sizeof *r->trials);
	if (!r->intervals || !r->trials) {
		fail(c, -ENOMEM, "no memory for the sub-intervals");
		return;
	}
	c->timer.at_ns = KTRXER_NEVER;
	loop_unwatch(c->loop, &c->source);
	rc = udpstp_test_new(&c->test, &t, &c->failure);
	if (rc < 0)
		finish(c);
	else
		c->source.fd = -1; /* the test's */
}

static void setup_answered(struct client *c, const uint8_t *data, size_t length)
{
	struct udpstp_setup s;
	union ktrxer_name name;
	socklen_t name_length;

	if (udpstp_setup_read(&s, data, length) < 0 || s.request != UDPSTP_SETUP_RESPONSE || s.ident != c->ident)
		return;
	if (s.answer == UDPSTP_BAD_JUMBO && !(c->modifiers & UDPSTP_JUMBO)) {
		c->modifiers |= UDPSTP_JUMBO; /* both ends must have the same setting, and this client supports both */
		c->ident++;
		setup_request(c);
		return;
	}
	if (s.answer != UDPSTP_ACCEPTED) {
		const char *text = s.answer < UDPSTP_ANSWERS ? answers[s.answer] : NULL;

		fail(c, s.answer == UDPSTP_AUTH_FAILED || s.answer == UDPSTP_AUTH_REQUIRED ? -EACCES : -ECONNREFUSED,
		     text ? text : "the server refuses the test with a code that RFC 9946 does not define");
		return;
	}
	if (!signed_by_server(c, data, length)) {
		fail(c, -EACCES,
		     "the answer is not signed with the token: another host answers, or the server has "
		     "another token");
		return;
	}
	if (!s.port) {
		fail(c, -EPROTO, "the server accepted the test without a port for it");
		return;
	}
	c->result->test_port = s.port;
	name_length = ktrxer_name_make(&name, &c->o->to, s.port);
	udpstp_errors_of_socket(c->source.fd, c->o->to.family == AF_INET6, false);
	if (connect(c->source.fd, &name.sa, name_length) != 0)
		fail(c, -errno, "the test port of the server cannot be reached");
	else
		activation_request(c);
}

static void activation_answered(struct client *c, const uint8_t *data, size_t length)
{
	struct udpstp_activation a;

	if (udpstp_activation_read(&a, data, length) < 0 || a.request != c->requested.request || !a.response)
		return;
	if (!signed_by_server(c, data, length))
		fail(c, -EACCES, "the answer from the server's test port is not signed with the token");
	else if (a.response != UDPSTP_ACTIVATION_ACCEPTED)
		fail(c, -EINVAL,
		     "the server does not accept the parameters of the test: it may limit their duration, "
		     "DSCP or rates");
	else
		test_begin(c, &a);
}

static void client_ready(struct loop_source *source, uint32_t events)
{
	struct client *c = (struct client *)source;
	uint8_t data[256];

	(void)events;
	while (!c->over && c->source.fd >= 0) {
		union ktrxer_name name;
		socklen_t length = sizeof name;
		struct ktrxer_addr from;
		const ssize_t n = recvfrom(source->fd, data, sizeof data, MSG_DONTWAIT, &name.sa, &length);

		if (n < 0 && errno == ECONNREFUSED) {
			fail(c, -ECONNREFUSED,
			     c->activating ? "the server has ended the test before its activation, or a firewall "
					     "rejects its test port"
					   : "no program serves UDPSTP on this port; start `ktrxer serve` "
					     "there with a port of UDPSTP, or name its port");
			return;
		}
		if (n < 0) {
			c->error = errno == EAGAIN ? c->error : errno;
			return;
		}
		if (c->activating)
			activation_answered(c, data, (size_t)n);
		else if (ktrxer_name_read(&name, &from) == c->o->port && ktrxer_addr_equal(&from, &c->o->to))
			setup_answered(c, data, (size_t)n);
	}
}

/* ---------------------------------------------------------------------------------------------------------- the run */

static int socket_open(struct client *c, struct ktrxer_error *err)
{
	const struct udpstp_client_options *o = c->o;
	const int tos = o->activation.tos;
	const bool v6 = o->to.family == AF_INET6;
	union ktrxer_name name;
	socklen_t length;
	int fd = socket(o->to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), rc;

	if (fd < 0)
		return ktrxer_fail(err, -errno, "UDP socket: %m");
	c->source = (struct loop_source){ .fd = fd, .ready = client_ready };
	udpstp_socket_prepare(fd, o->to.family);
	(void)!setsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof tos);
	if (o->from.family) {
		length = ktrxer_name_make(&name, &o->from, 0);
		if (bind(fd, &name.sa, length) != 0) {
			rc = -errno;
			return ktrxer_fail(err, rc, "the source address is no address of this host: %m");
		}
	}
	/* The socket is connected after the answer to the setup: the server's Null PDU comes from another port. */
	udpstp_errors_of_socket(c->source.fd, v6, true);
	rc = loop_watch(c->loop, &c->source, EPOLLIN);
	return rc < 0 ? ktrxer_fail(err, rc, "the event loop does not take a socket") : 0;
}

int udpstp_client_run(struct udpstp_client_result *result, const struct udpstp_client_options *o,
		      struct ktrxer_error *err)
{
	struct client c = { .o = o, .result = result, .source = { .fd = -1 } };
	struct pollfd stop = { .fd = o->stop_fd, .events = POLLIN };
	const uint64_t begin_ns = ktrxer_now_ns();
	int rc = loop_new(&c.loop);

	*result = (struct udpstp_client_result){ 0 };
	if (rc < 0)
		return ktrxer_fail(err, rc, "no event loop");
	c.modifiers = o->mtu_1500 ? UDPSTP_MTU_1500 : 0;
	c.timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = try_due };
	loop_timer_add(c.loop, &c.timer);
	if (getrandom(&c.seed, sizeof c.seed, 0) != sizeof c.seed)
		rc = ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	c.ident = (uint16_t)(c.seed | 1);
	if (rc == 0)
		rc = socket_open(&c, err);
	if (rc < 0)
		goto out;
	setup_request(&c);
	rc = loop_run(c.loop, o->stop_fd);
	if (rc < 0)
		ktrxer_fail(err, rc, "the event loop failed");
	/* A Ctrl-C that a terminal sends to both ends: the server's last message may be read first. */
	result->stopped = rc == 0 && (!c.over || poll(&stop, 1, 0) > 0);
	if (c.test && result->stopped)
		udpstp_test_stop(c.test);
	if (c.test) {
		udpstp_test_counts(c.test, &result->counts);
		result->lateness = udpstp_test_lateness(c.test);
	}
	if (rc == 0 && c.failure.code) {
		*err = c.failure;
		rc = err->code;
	}
out:
	result->lasted_ns = ktrxer_now_ns() - begin_ns;
	udpstp_test_free(c.test);
	if (c.source.fd >= 0) {
		loop_unwatch(c.loop, &c.source);
		close(c.source.fd);
	}
	loop_timer_remove(c.loop, &c.timer);
	loop_free(c.loop);
	secret_forget(&c.keys, sizeof c.keys);
	return rc;
}

void udpstp_client_free(struct udpstp_client_result *result)
{
	free(result->intervals);
	free(result->trials);
	ktrxer_hist_free(result->lateness);
	*result = (struct udpstp_client_result){ 0 };
}
