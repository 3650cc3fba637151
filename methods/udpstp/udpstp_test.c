/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_test.h"

#include "clock.h"
#include "error.h"
#include "message.h"
#include "txstamp.h"
#include "udpstp_receiver.h"
#include "udpstp_sender.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { BATCH = 64, BATCHES = 16 /* in a row, before other sources get their turn */, SOCKET_BYTES = 8 << 20 };

#define NS_PER_MS ((uint64_t)KTRXER_NS_PER_MS)
#define NS_PER_S ((uint64_t)KTRXER_NS_PER_S)
#define FEEDBACK_NS (90 * NS_PER_MS) /* beside two trials: RFC 9097, 8.1 */
#define STOPPED_NS NS_PER_S      /* after so long without a PDU: reported to the peer, row 0 is sent */
#define SILENT_NS (5 * NS_PER_S) /* the watchdog of the protocol */
#define WATCH_NS (100 * NS_PER_MS)
#define CONFIRM_NS NS_PER_S      /* for the peer to confirm the end */
#define AFTER_NS (500 * NS_PER_MS) /* the server sends so long after the time, so that the last sub-interval is whole */

struct udpstp_test {
	struct loop_source source; /* first */
	struct udpstp_test_options o;
	struct loop_timer status_timer, watch_timer;
	struct udpstp_sender *sender;
	struct udpstp_receiver receiver;
	struct rate_search search;
	uint8_t action;
	bool ended;
	uint64_t status_ns;                              /* of the next status PDU */
	uint64_t begin_ns, heard_ns, stop_ns, wanted_ns; /* stop_ns: the server began to end it; 0: not yet */
	uint64_t ran_ns;                                 /* of the last watch */
	bool load_seen, stopped;
	uint32_t status_number;   /* of the last status PDU that came */
	uint32_t interval_number; /* of the last sub-interval that came */
	uint32_t missing;         /* steps down since then, because no status PDU came */
	uint32_t drops_seen, row_max;
	struct udpstp_test_counts counts;
	struct mmsghdr messages[BATCH];
	struct iovec parts[BATCH];
	_Alignas(struct cmsghdr) char control[BATCH][KTRXER_MESSAGE_CONTROL];
	uint8_t data[BATCH][UDPSTP_STATUS_BYTES];
};

static uint32_t headers(const struct udpstp_test *t)
{
	return t->o.v6 ? UDPSTP_HEADERS_V6 : UDPSTP_HEADERS_V4;
}

static void note_run(struct udpstp_test *t, uint64_t now_ns)
{
	if (now_ns - t->ran_ns > t->counts.held_ns)
		t->counts.held_ns = now_ns - t->ran_ns;
	t->ran_ns = now_ns;
}

static void end(struct udpstp_test *t, enum udpstp_end how)
{
	if (t->ended)
		return;
	t->ended = true;
	note_run(t, ktrxer_now_ns()); /* a PDU that waited may end it before the next watch */
	t->status_timer.at_ns = t->watch_timer.at_ns = KTRXER_NEVER;
	if (t->sender)
		udpstp_sender_end(t->sender);
	ktrxer_socket_drops(t->o.fd, &t->drops_seen, &t->counts.socket_drops);
	loop_unwatch(t->o.loop, &t->source);
	t->o.ended(t->o.context, how);
}

/* ----------------------------------------------------------------------------------------------------------- search */

static void search_step(struct udpstp_test *t, const struct rate_search_feedback *f)
{
	const struct udpstp_activation *a = &t->o.activation;

	if (a->row == UDPSTP_SEARCH || a->modifiers & UDPSTP_START_INDEX)
		rate_search_step(&t->search, f);
	if (t->search.index > t->row_max)
		t->row_max = t->search.index;
}

static void search_begin(struct udpstp_test *t)
{
	const struct udpstp_activation *a = &t->o.activation;
	const struct rate_search_options o = { .algorithm = a->algorithm == UDPSTP_ALGORITHM_C ? RATE_SEARCH_C
											       : RATE_SEARCH_B,
					       .high_speed = UDPSTP_ROW_1G,
					       .last = t->o.last_row,
					       .low_ms = a->low_ms,
					       .upper_ms = a->upper_ms,
					       .delta = a->high_speed_delta,
					       .slow_after = a->slow_adjust,
					       .sequence_errors = a->sequence_errors,
					       .ignore_reordering = a->ignore_reordering != 0 };

	rate_search_begin(&t->search, &o, a->row == UDPSTP_SEARCH ? 0 : a->row);
	t->row_max = t->search.index;
}

static void rate_of_search(struct udpstp_test *t, struct udpstp_rate *rate)
{
	udpstp_rate_row(rate, t->search.index, t->o.mtu_1500);
}

/* -------------------------------------------------------------------------------------------------- status, as sent */

/* Checked with each status PDU, so a sub-interval ends up to half a trial before or after its time. */
static bool interval_over(struct udpstp_test *t, uint64_t now_ns)
{
	const struct udpstp_activation *a = &t->o.activation;
	struct ip_capacity_interval i;

	if (!t->load_seen ||
	    !udpstp_receiver_roll(&t->receiver, now_ns, a->interval_ms * NS_PER_MS - a->trial_ms * NS_PER_MS / 2))
		return false;
	const struct udpstp_counts *c = &t->receiver.saved;

	i = (struct ip_capacity_interval){ .datagrams = c->datagrams,
					   .ip_bytes = c->bytes + c->datagrams * headers(t),
					   .lasts_ns = t->receiver.saved_lasts_ns,
					   .lost = c->lost,
					   .reordered = c->reordered,
					   .duplicates = c->duplicates,
					   .variation_min_ns = c->variation_min_ns,
					   .variation_max_ns = c->variation_count ? c->variation_max_ns : UINT64_MAX,
					   .rtt_min_ns = c->rtt_min_ns,
					   .rtt_max_ns = c->rtt_min_ns == UINT64_MAX ? UINT64_MAX : c->rtt_max_ns };
	if (t->o.interval)
		t->o.interval(t->o.context, &i);
	return true;
}

static void status_send(struct udpstp_test *t, uint64_t now_ns)
{
	uint8_t data[UDPSTP_STATUS_BYTES];
	struct udpstp_status s;

	udpstp_receiver_status(&t->receiver, &s, now_ns, ktrxer_real_now_ns());
	s.action = t->action;
	s.stopped = t->stopped;
	if (t->o.server)
		rate_of_search(t, &s.rate);
	udpstp_status_write(data, &s);
	/* A status PDU that the kernel does not take is one that was lost: the sender of load counts it. */
	(void)!send(t->o.fd, data, sizeof data, MSG_DONTWAIT);
}

static void status_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct udpstp_test *t = (struct udpstp_test *)((char *)timer - offsetof(struct udpstp_test, status_timer));
	const struct udpstp_activation *a = &t->o.activation;
	const uint32_t intervals = a->interval_ms ? a->test_s * 1000u / a->interval_ms : 1;

	if (t->o.server && !t->stop_ns &&
	    (t->receiver.intervals >= intervals || now_ns - t->begin_ns >= t->wanted_ns + STOPPED_NS)) {
		t->stop_ns = now_ns;
		t->action = UDPSTP_STOP;
	}
	if (t->load_seen && t->o.server && t->action == UDPSTP_GOES_ON) {
		const struct rate_search_feedback f = udpstp_receiver_feedback(&t->receiver, a->one_way != 0);

		search_step(t, &f);
	}
	if (t->load_seen && t->o.trial && t->action == UDPSTP_GOES_ON)
		t->o.trial(t->o.context, now_ns - t->receiver.trial_ns,
			   t->receiver.trial.bytes + t->receiver.trial.datagrams * headers(t));
	/* The saved sub-interval is in the status PDU of the same trial. */
	if (t->action == UDPSTP_GOES_ON)
		(void)interval_over(t, now_ns);
	status_send(t, now_ns);
	t->status_ns += a->trial_ms * NS_PER_MS;
	if (t->status_ns < now_ns)
		t->status_ns = now_ns + a->trial_ms * NS_PER_MS;
	timer->at_ns = t->status_ns;
	if (!t->o.server && t->action == UDPSTP_STOP)
		end(t, UDPSTP_FINISHED);
}

/* --------------------------------------------------------------------------------------------------------- watchdog */

/*
 * The server's load falls by the rule of the search while no status PDU comes: after two trials and 90 ms, and after
 * each further trial. Not before the first one, which takes a round trip. Returns the time of the next look.
 */
static uint64_t feedback_missing(struct udpstp_test *t, uint64_t now_ns, bool held)
{
	const uint64_t trial_ns = t->o.activation.trial_ms * NS_PER_MS;
	uint64_t due_ns = t->heard_ns + FEEDBACK_NS + (2 + t->missing) * trial_ns;

	if (!t->sender || !t->o.server || !t->status_number || t->stop_ns || !trial_ns)
		return KTRXER_NEVER;
	for (; due_ns <= now_ns; due_ns += trial_ns) {
		const struct rate_search_feedback f = { .lost = t->search.options.sequence_errors + 1ULL };
		struct udpstp_rate rate;

		t->missing++;
		if (held) /* status PDUs may wait in the socket */
			continue;
		search_step(t, &f);
		rate_of_search(t, &rate);
		udpstp_sender_rate(t->sender, &rate);
	}
	return due_ns;
}

static void watch_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct udpstp_test *t = (struct udpstp_test *)((char *)timer - offsetof(struct udpstp_test, watch_timer));
	const uint64_t silent_ns = now_ns - t->heard_ns;
	uint64_t feedback_ns;

	feedback_ns = feedback_missing(t, now_ns, now_ns - t->ran_ns > 2 * WATCH_NS);
	note_run(t, now_ns);
	timer->at_ns = feedback_ns < now_ns + WATCH_NS ? feedback_ns : now_ns + WATCH_NS;
	t->stopped = silent_ns >= STOPPED_NS;
	if (t->sender) {
		t->sender->head.stopped = t->stopped;
		t->sender->slow = t->stopped;
		if (t->o.server && !t->stop_ns && now_ns - t->begin_ns >= t->wanted_ns + AFTER_NS) {
			t->stop_ns = now_ns;
			t->action = t->sender->head.action = UDPSTP_STOP;
		}
	}
	if (t->stop_ns && now_ns - t->stop_ns >= CONFIRM_NS)
		end(t, UDPSTP_TIME_OUT);
	else if (silent_ns >= SILENT_NS)
		end(t, UDPSTP_SILENT);
}

/* --------------------------------------------------------------------------------------------------------- arrivals */

static void heard(struct udpstp_test *t, uint8_t action)
{
	t->heard_ns = ktrxer_now_ns();
	t->missing = 0;
	if (t->sender && t->sender->slow)
		t->sender->slow = false;
	if (action == UDPSTP_GOES_ON)
		return;
	if (t->o.server) {
		end(t, UDPSTP_FINISHED); /* the client confirms the end, or requests it */
	} else if (t->action == UDPSTP_GOES_ON) {
		t->action = UDPSTP_STOP;
		if (!t->sender) {
			t->status_timer.at_ns = ktrxer_now_ns(); /* the confirmation is in the next status PDU */
			return;
		}
		t->sender->head.action = UDPSTP_STOP;
		udpstp_sender_one(t->sender);
		end(t, UDPSTP_FINISHED);
	}
}

static void load_arrived(struct udpstp_test *t, const uint8_t *data, size_t length, size_t whole, int64_t real_ns)
{
	struct udpstp_load l;

	if (udpstp_load_read(&l, data, length, whole) < 0) {
		t->counts.ignored++;
		return;
	}
	if (!t->load_seen) {
		const uint32_t number = t->receiver.status_number;

		t->load_seen = true;
		t->begin_ns = ktrxer_now_ns(); /* the load comes a round trip after the answer */
		udpstp_receiver_begin(&t->receiver, t->begin_ns);
		t->receiver.status_number = number;
	}
	t->counts.datagrams++;
	t->counts.bytes += l.payload;
	udpstp_receiver_load(&t->receiver, &l, real_ns);
	heard(t, l.action);
}

static uint64_t ns_of_ms(uint32_t ms)
{
	return ms == UDPSTP_UNKNOWN ? UINT64_MAX : ms * NS_PER_MS;
}

static void interval_arrived(struct udpstp_test *t, const struct udpstp_status *s)
{
	const struct udpstp_interval *i = &s->interval;
	const struct ip_capacity_interval one = {
		.datagrams = i->datagrams,
		.ip_bytes = i->bytes + (uint64_t)i->datagrams * headers(t),
		.lasts_ns = (uint64_t)i->lasts_us * 1000,
		.lost = i->lost,
		.reordered = i->reordered,
		.duplicates = i->duplicates,
		.variation_min_ns = ns_of_ms(i->variation_min),
		.variation_max_ns = i->variation_count ? ns_of_ms(i->variation_max) : UINT64_MAX,
		.rtt_min_ns = ns_of_ms(i->rtt_min),
		.rtt_max_ns = i->rtt_min == UDPSTP_UNKNOWN ? UINT64_MAX : ns_of_ms(i->rtt_max),
	};

	t->interval_number = s->interval_number;
	if (t->o.interval && !t->o.server)
		t->o.interval(t->o.context, &one);
}

static void trial_arrived(struct udpstp_test *t, const struct udpstp_status *s)
{
	const uint64_t missing = s->sequence - t->status_number - 1;

	if (!t->o.trial || s->action != UDPSTP_GOES_ON)
		return;
	if (missing)
		t->o.trial(t->o.context, missing * t->o.activation.trial_ms * NS_PER_MS, UINT64_MAX);
	t->o.trial(t->o.context, s->trial_us * (uint64_t)1000,
		   s->trial_bytes + (uint64_t)s->trial_datagrams * headers(t));
}

static void status_arrived(struct udpstp_test *t, const uint8_t *data, size_t length, int64_t real_ns)
{
	struct udpstp_status s;

	if (udpstp_status_read(&s, data, length) < 0 || s.sequence <= t->status_number) {
		t->counts.ignored++;
		return;
	}
	t->sender->head.status_errors = (uint16_t)(s.sequence - t->status_number - 1);
	t->counts.status_lost += s.sequence - t->status_number - 1;
	trial_arrived(t, &s);
	t->status_number = s.sequence;
	t->sender->head.status_s = s.sent_s;
	t->sender->head.status_ns = s.sent_ns;
	t->sender->status_arrived_real_ns = real_ns;
	if (s.interval_number > t->interval_number)
		interval_arrived(t, &s);
	if (t->o.server) {
		const struct rate_search_feedback f = udpstp_status_feedback(&s, t->o.activation.one_way != 0);
		struct udpstp_rate rate;

		search_step(t, &f);
		rate_of_search(t, &rate);
		udpstp_sender_rate(t->sender, &rate);
	} else if (udpstp_rate_fits(&s.rate)) {
		udpstp_sender_rate(t->sender, &s.rate);
	} else {
		t->counts.ignored++;
	}
	heard(t, s.action);
}

static void arrived(struct udpstp_test *t, int i)
{
	struct ktrxer_message m;
	const size_t whole = t->messages[i].msg_len, length = whole < sizeof t->data[i] ? whole : sizeof t->data[i];

	ktrxer_message_read(&m, &t->messages[i].msg_hdr);
	ktrxer_message_drops(&m, &t->drops_seen, &t->counts.socket_drops);
	if (!m.real_ns) {
		m.real_ns = ktrxer_real_now_ns();
		t->counts.user_stamped++;
	}
	if (t->o.server && whole == UDPSTP_ACTIVATION_BYTES && udpstp_is(t->data[i], length, UDPSTP_ACTIVATION))
		(void)!send(t->o.fd, t->o.answer, sizeof t->o.answer, MSG_DONTWAIT);
	else if (t->sender)
		status_arrived(t, t->data[i], length, m.real_ns);
	else
		load_arrived(t, t->data[i], length, whole, m.real_ns);
}

static void test_ready(struct loop_source *source, uint32_t events)
{
	struct udpstp_test *t = (struct udpstp_test *)source;
	socklen_t length = sizeof(int);
	int error;

	if (events & EPOLLERR) {
		ktrxer_txstamp_reap(t->o.fd, &(struct ktx_completions){ 0 });
		(void)!getsockopt(t->o.fd, SOL_SOCKET, SO_ERROR, &error, &length);
	}
	for (int b = 0; b < BATCHES && !t->ended; b++) {
		int n;

		for (int i = 0; i < BATCH; i++)
			t->messages[i].msg_hdr.msg_controllen = sizeof t->control[i];
		n = recvmmsg(t->o.fd, t->messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		for (int i = 0; i < n && !t->ended; i++)
			arrived(t, i);
		if (n < BATCH || loop_share_used(t->o.loop))
			return;
	}
}

/* --------------------------------------------------------------------------------------------------- begin and end */

void udpstp_socket_prepare(int fd, uint8_t family)
{
	const int bytes = SOCKET_BYTES;

	ktrxer_message_enable(fd, family);
	ktrxer_rxstamp_enable(fd);
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes) < 0)
		(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
}

void udpstp_errors_of_socket(int fd, bool v6, bool on)
{
	const int value = on;

	(void)!setsockopt(fd, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_RECVERR : IP_RECVERR, &value, sizeof value);
}

int udpstp_test_new(struct udpstp_test **out, const struct udpstp_test_options *options, struct ktrxer_error *err)
{
	struct udpstp_test *t = calloc(1, sizeof *t);
	const uint64_t now_ns = ktrxer_now_ns();
	const struct udpstp_activation *a = &options->activation;
	int rc;

	*out = NULL;
	if (t && options->sender)
		t->sender = malloc(sizeof *t->sender);
	if (!t || (options->sender && !t->sender)) {
		free(t);
		return ktrxer_fail(err, -ENOMEM, "no memory for a test of IP-layer capacity");
	}
	t->o = *options;
	t->source = (struct loop_source){ .fd = options->fd, .ready = test_ready };
	t->begin_ns = t->heard_ns = t->ran_ns = now_ns;
	t->wanted_ns = a->test_s * NS_PER_S;
	t->status_timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = status_due };
	t->watch_timer = (struct loop_timer){ .at_ns = now_ns + WATCH_NS, .due = watch_due };
	for (int i = 0; i < BATCH; i++) {
		t->parts[i] = (struct iovec){ t->data[i], sizeof t->data[i] };
		t->messages[i].msg_hdr =
			(struct msghdr){ .msg_iov = &t->parts[i], .msg_iovlen = 1, .msg_control = t->control[i] };
	}
	rc = loop_watch(options->loop, &t->source, EPOLLIN);
	if (rc < 0) {
		free(t->sender);
		free(t);
		return ktrxer_fail(err, rc, "the event loop does not take the socket of a test");
	}
	udpstp_receiver_begin(&t->receiver, now_ns);
	search_begin(t);
	loop_timer_add(options->loop, &t->watch_timer);
	loop_timer_add(options->loop, &t->status_timer);
	if (t->sender) {
		struct udpstp_rate rate = a->rate;

		if (options->server)
			rate_of_search(t, &rate);
		udpstp_errors_of_socket(options->fd, options->v6, true);
		udpstp_sender_begin(t->sender, options->loop, options->fd, options->v6,
				    a->modifiers & UDPSTP_RANDOM_PAYLOAD, options->seed);
		udpstp_sender_rate(t->sender, &rate);
	} else {
		t->status_ns = t->status_timer.at_ns = now_ns + a->trial_ms * NS_PER_MS;
	}
	*out = t;
	return 0;
}

void udpstp_test_stop(struct udpstp_test *t)
{
	if (t->ended)
		return;
	t->action = UDPSTP_STOP;
	if (t->sender) {
		t->sender->head.action = UDPSTP_STOP;
		udpstp_sender_one(t->sender);
	} else {
		status_send(t, ktrxer_now_ns());
	}
	end(t, UDPSTP_FINISHED);
}

void udpstp_test_counts(const struct udpstp_test *t, struct udpstp_test_counts *counts)
{
	*counts = t->counts;
	counts->row = t->search.index;
	counts->row_max = t->row_max;
	counts->impairments = t->search.impairments;
	counts->paused_ns = t->receiver.paused_ns;
	counts->pause_most_ns = t->receiver.pause_most_ns;
	if (!t->sender)
		return;
	udpstp_sender_accounts(t->sender, &counts->accounts);
	counts->datagrams = counts->accounts.sent;
	counts->bytes = t->sender->bytes;
	counts->refused = t->sender->refused;
}

struct ktrxer_hist *udpstp_test_lateness(struct udpstp_test *t)
{
	struct ktrxer_hist *lateness = t->sender ? t->sender->lateness : NULL;

	if (t->sender)
		t->sender->lateness = NULL;
	return lateness;
}

void udpstp_test_free(struct udpstp_test *t)
{
	if (!t)
		return;
	if (!t->ended)
		loop_unwatch(t->o.loop, &t->source);
	if (t->sender)
		udpstp_sender_end(t->sender);
	ktrxer_hist_free(udpstp_test_lateness(t));
	loop_timer_remove(t->o.loop, &t->status_timer);
	loop_timer_remove(t->o.loop, &t->watch_timer);
	close(t->o.fd);
	free(t->sender);
	free(t);
}
