/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base_limits.h"
#include "stamp_run.h"

#include "error.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { TURN = 256 };
/* Beyond the measured probes, to learn in which direction the last of them were lost. */
enum { CLOSING_MAX = 10 };
#define CLOSING_GAP_NS (20 * (uint64_t)KTRXER_NS_PER_MS)

/* `at_ns` 0: at once. False: not now. */
static bool commit_one(struct stamp *stamp, uint32_t which, bool last, uint64_t at_ns)
{
	struct stamp_session *session = stamp->classes[which].session;
	const uint64_t number = stamp->p.result.committed + stamp->result.closing;
	struct ktx_probe probe = { .id = number * stamp->spec.class_count + which,
				   .length = stamp->classes[which].frame.length,
				   .at_ns = at_ns,
				   .flags = last ? 0 : KTX_TRAIN_GOES_ON };
	struct ktrxer_error err;
	struct ktx_slot slot;

	if (ktx_reserve(stamp->p.tx, &slot) < 0)
		return false;
	if (stamp_session_commit(session, number,
				 stamp_fill(stamp, which, slot.frame, number, at_ns ? at_ns : ktrxer_now_ns())) < 0)
		return false;
	if (ktx_commit(stamp->p.tx, &probe, &err) < 0) {
		const struct ktx_report refused = { .id = number, .status = KTX_CANCELLED };

		stamp_session_report(session, &refused);
		prober_fail(&stamp->p, err.code, err.text);
		return false;
	}
	return true;
}

/*
 * One of each class, as a train: one system call, one walk to the device. Each time another one is the first: on an
 * idle path it is slower by some microseconds than those behind it, for which the caches of hosts and routers are warm.
 */
static bool commit(void *client, uint64_t at_ns)
{
	struct stamp *stamp = client;
	const uint32_t n = stamp->spec.class_count,
		       first = (uint32_t)((stamp->p.result.committed + stamp->result.closing) % n);

	for (; stamp->p.part < n; stamp->p.part++)
		if (!commit_one(stamp, (first + stamp->p.part) % n, stamp->p.part + 1 == n, at_ns))
			return false;
	stamp->p.part = 0;
	return true;
}

static void take_reports(struct stamp *stamp)
{
	struct ktx_report reports[32];
	int n;

	do {
		n = ktx_reports(stamp->p.tx, reports, 32);
		for (int i = 0; i < n; i++) {
			struct stamp_session *session = stamp->classes[reports[i].id % stamp->spec.class_count].session;

			reports[i].id /= stamp->spec.class_count;
			stamp_session_report(session, &reports[i]);
		}
	} while (prober_more(&stamp->p, n, 32));
}

/* The session of the class that an answer belongs to; NULL: the answer does not contain it, and the run has failed. */
static struct stamp_session *session_of(struct stamp *stamp, const uint8_t *packet, size_t length)
{
	struct stamp_reply reply;
	uint32_t which;

	/* Each class counts as foreign a packet that is too short for an answer, or of no class. */
	if (stamp->spec.class_count == 1 || !stamp_reply_read(&reply, packet, length, stamp->auth))
		return stamp->classes[0].session;
	if (!reply.ssid) {
		prober_fail(&stamp->p, -EPROTO,
			    "this reflector does not support session identifiers (RFC 8972), and cannot count several "
			    "classes "
			    "apart: measure one DSCP at a time");
		return NULL;
	}
	which = (uint32_t)reply.ssid - stamp->result.ssid;
	return stamp->classes[which < stamp->spec.class_count ? which : 0].session;
}

static void take_answer(struct stamp *stamp, struct reply *in)
{
	struct stamp_arrival arrival = { .received_ns = in->received_ns,
					 .bound_ns = in->bound_ns,
					 .source = in->source,
					 .ttl = in->ttl,
					 .tos = in->tos,
					 .real_near_ns = (int64_t)in->received_ns + stamp->real_minus_mono };
	struct stamp_session *session;
	enum stamp_event event;

	if (stamp->spec.clock)
		clock_adjust_read(&arrival.adjusted, CLOCK_MONOTONIC);
	/* A packet does not contain the scope of a link-local address. */
	in->from.scope_id = stamp->p.path.to.scope_id;
	if (!ktrxer_addr_equal(&in->from, &stamp->p.path.to)) {
		stamp->result.elsewhere++;
		return;
	}
	session = session_of(stamp, in->data, in->length);
	event = session ? stamp_session_reply(session, in->data, in->length, &arrival) : STAMP_NOTHING;
	if (event == STAMP_ANSWER)
		path_witness_arrived(&stamp->p.result.path, in->device);
	if (event != STAMP_NOTHING && event != STAMP_ANSWER && event != STAMP_FOREIGN)
		stamp->events.answer(stamp->events.probe.context, event);
}

static void take_answers(struct stamp *stamp)
{
	struct reply in;
	int rc = 0;

	for (int i = 0; i < TURN && ((rc = reply_receiver_next(&stamp->p.receiver, &in)) > 0 || rc == -EAGAIN); i++)
		if (rc > 0)
			take_answer(stamp, &in);
	if (rc < 0 && rc != -EAGAIN)
		prober_fail(&stamp->p, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

#ifndef KTRXER_SMALL
static void take_ttl(struct stamp_ttl *seen, uint8_t ttl)
{
	if (!ttl)
		return;
	seen->changes += seen->last && ttl != seen->last;
	seen->last = ttl;
	seen->low = seen->low && seen->low < ttl ? seen->low : ttl;
	seen->high = seen->high > ttl ? seen->high : ttl;
}

static void take_marks(struct stamp_class_result *class, const struct stamp_sample *s)
{
	if (s->tos_up == STAMP_TOS_UNKNOWN || s->too_late)
		return;
	marks_count(&class->marks_up, s->tos_up);
	if (s->tos_back == (class->tos & 0xfc))
		marks_count(&class->marks_down, s->tos_down);
}
#endif

static void take_sample(struct stamp *stamp, uint32_t which, struct stamp_sample *s)
{
	int rc;

#ifndef KTRXER_SMALL
	take_marks(&stamp->result.classes[which], s);
#endif
	if (s->impossible) {
		stamp->p.result.impossible++;
		stamp->result.classes[which].untimed++;
		return;
	}
	one_way_clocks(stamp->one_way, s);
#ifndef KTRXER_SMALL
	take_ttl(&stamp->result.classes[which].ttl_up, s->ttl_up);
	take_ttl(&stamp->result.classes[which].ttl_down, s->ttl_down);
#endif
	/* A result of its own: the statistics are of the answers within the time-out (RFC 2681). */
	if (s->too_late) {
		stamp->events.sample(stamp->events.probe.context, which, s);
		return;
	}
#ifndef KTRXER_SMALL
	if (s->uncorrected) {
		stamp->result.uncorrected++;
		stamp->result.classes[which].untimed++;
		return;
	}
#endif
	if (!prober_record(&stamp->p, s->rtt_ns, s->own_queue_ns, s->sent_source, s->source)) {
		stamp->result.classes[which].untimed++;
		return;
	}
	ktrxer_hist_record(stamp->classes[which].rtt, s->rtt_ns);
	if (s->dwell_ns > stamp->result.dwell_max_ns)
		stamp->result.dwell_max_ns = s->dwell_ns;
	stamp->result.held += s->dwell_ns > stamp_held_ns(&stamp->p);
	if (s->far_queue_ns >= 0)
		ktrxer_hist_record(stamp->far_queue, s->far_queue_ns);
	if (s->follows) {
		ktrxer_hist_record(stamp->ipdv, s->ipdv_ns);
		ktrxer_hist_record(stamp->ipdv_up, s->ipdv_up_ns);
		ktrxer_hist_record(stamp->ipdv_down, s->ipdv_down_ns);
	}
	rc = one_way_add(stamp->one_way, s);
	if (rc < 0)
		prober_fail(&stamp->p, rc, "out of memory");
	else if (rc)
		stamp->events.clock_step(stamp->events.probe.context);
	stamp->events.sample(stamp->events.probe.context, which, s);
}

static void take_samples(struct stamp *stamp, bool flush)
{
	struct stamp_sample sample;

	for (uint32_t i = 0; i < stamp->spec.class_count; i++)
		while (stamp_session_sample(stamp->classes[i].session, ktrxer_now_ns(), flush, &sample))
			take_sample(stamp, i, &sample);
}

static void take(void *client)
{
	struct stamp *stamp = client;
	uint64_t number;

	take_reports(stamp);
	take_answers(stamp);
	for (uint32_t i = 0; i < stamp->spec.class_count; i++)
		while (stamp_session_lost(stamp->classes[i].session, ktrxer_now_ns(), &number))
			stamp->events.probe.lost(stamp->events.probe.context, number, i);
	take_samples(stamp, false);
}

/* Numbers first, what is known of them last. */
#define COUNTS (offsetof(struct stamp_session_counts, direction_known) / sizeof(uint64_t))

/* A probe that the server refused or dropped looks like a loss up. */
static void class_counts(const struct stamp *stamp, uint32_t class, struct stamp_session_counts *c)
{
	uint64_t own;

	stamp_session_counts(stamp->classes[class].session, c);
	own = c->server_refused + c->server_dropped;
	own = c->lost_up < own ? c->lost_up : own;
	c->lost_up -= own;
	c->lost_unknown += own;
}

static void sum_counts(const struct stamp *stamp, struct stamp_session_counts *sum)
{
	uint64_t refused = 0, dropped = 0, rate = 0;

	memset(sum, 0, sizeof *sum);
	sum->direction_known = true;
	for (uint32_t i = 0; i < stamp->spec.class_count; i++) {
		struct stamp_session_counts c;

		class_counts(stamp, i, &c);
		for (size_t k = 0; k < COUNTS; k++)
			((uint64_t *)sum)[k] += ((const uint64_t *)&c)[k];
		/* Counts of the whole server: each class has received the same. */
		refused = c.server_refused > refused ? c.server_refused : refused;
		dropped = c.server_dropped > dropped ? c.server_dropped : dropped;
		rate = c.server_rate > rate ? c.server_rate : rate;
		sum->direction_known &= c.direction_known;
		sum->stateful |= c.stateful;
		sum->follow_up_seen |= c.follow_up_seen;
		sum->marks_known |= c.marks_known;
	}
	sum->server_refused = refused;
	sum->server_dropped = dropped;
	sum->server_rate = rate;
}

static bool ended(void *client)
{
	const struct stamp *stamp = client;
	struct stamp_session_counts c;

	/* Count the reports that were read. The accounts also count probes whose reports are still unread. */
	sum_counts(stamp, &c);
	return c.sent + c.unsent == stamp->p.result.committed * stamp->spec.class_count + stamp->p.part && !c.waiting;
}

static uint64_t next_loss(void *client)
{
	const struct stamp *stamp = client;
	uint64_t first = KTRXER_NEVER;

	for (uint32_t i = 0; i < stamp->spec.class_count; i++) {
		const uint64_t next = stamp_session_next(stamp->classes[i].session);

		first = next < first ? next : first;
	}
	return first;
}

static bool unsettled(const struct stamp *stamp)
{
	for (uint32_t i = 0; i < stamp->spec.class_count; i++)
		if (stamp_session_unsettled(stamp->classes[i].session))
			return true;
	return false;
}

/* A few probes more, until one is answered: its answer contains the reflector's count. */
static uint64_t settle_step(struct prober *p)
{
	struct stamp *stamp = p->client;
	uint64_t again, wake;

	if (p->result.failure.code || !unsettled(stamp) || ktrxer_now_ns() >= stamp->give_up_ns)
		return 0;
	if (stamp->result.closing < CLOSING_MAX && ktrxer_now_ns() >= stamp->closing_ns && commit(stamp, 0)) {
		stamp->result.closing++;
		stamp->closing_ns = ktrxer_now_ns() + CLOSING_GAP_NS;
	}
	again = prober_take(p);
	wake = stamp->result.closing < CLOSING_MAX ? stamp->closing_ns : stamp->give_up_ns;
	return again < wake ? again : wake;
}

static void settle(struct stamp *stamp, int stop_fd)
{
	const uint64_t timeout_ns = stamp->spec.probe.timeout_ns;

	stamp->p.unhurried = false;
	for (uint32_t i = 0; i < stamp->spec.class_count; i++)
		stamp_session_close(stamp->classes[i].session, stamp->p.result.committed);
	stamp->give_up_ns = ktrxer_now_ns() + CLOSING_MAX * CLOSING_GAP_NS;
	stamp->give_up_ns += timeout_ns < (uint64_t)KTRXER_NS_PER_S ? timeout_ns : (uint64_t)KTRXER_NS_PER_S;
	prober_loop(&stamp->p, stop_fd, settle_step);
	take_samples(stamp, true);
}

#ifndef KTRXER_SMALL
void stamp_join(struct stamp *stamp, struct ping *ping, const struct ping_events *events)
{
	ping_join(ping, &stamp->p, events);
}
#endif

void stamp_run(struct stamp *stamp, uint64_t start_ns, int stop_fd, const struct stamp_events *events)
{
	struct stamp_result *r = &stamp->result;
	struct clock_sync own;

	stamp->events = *events;
	prober_run(&stamp->p, start_ns, stop_fd, &events->probe);
	settle(stamp, stop_fd);
	sum_counts(stamp, &r->counts);
	for (uint32_t i = 0; i < stamp->spec.class_count; i++)
		class_counts(stamp, i, &r->classes[i].counts);
	clock_sync_read(&own);
	one_way_own_clock(stamp->one_way, &own);
	if (one_way_result(stamp->one_way, &r->one_way) < 0)
		prober_fail(&stamp->p, -ENOMEM, "out of memory");
}

static void read_clock(struct stamp *stamp, struct clock_sync *own)
{
	struct ktrxer_clock_pair pair;
	struct stamp_error error;

	clock_sync_read(own);
	error = (struct stamp_error){ .ptp = stamp->spec.ptp,
				      .synchronised = own->synchronised,
				      .bound_ns = own->bound_ns };
	stamp->error = stamp_error_write(&error);
	ktrxer_clock_pair_read(&pair);
	stamp->real_minus_mono = pair.real_ns - (int64_t)pair.mono_ns;
}

static int open_tables(struct stamp *stamp, struct ktrxer_error *err)
{
	const struct probe_spec *spec = &stamp->spec.probe;
	struct stamp_session_options s = { .window = 64,
					   .timeout_ns = spec->timeout_ns,
					   .overtaken_ns = spec->overtaken_ns,
					   .follow_up = stamp->spec.follow_up,
					   .host_delay = stamp->spec.host_delay,
					   .auth_key = stamp->auth ? &stamp->key : NULL,
					   .tlv_key = stamp->auth ? NULL : stamp->tlv_mac_key };
	const uint64_t waiting =
		(spec->timeout_ns * 3 + stamp->p.ahead_ns + KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S) /
			spec->interval_ns +
		16;
	struct stamp_result *r = &stamp->result;
	struct clock_sync own;

	while (s.window < waiting && s.window < 65536)
		s.window <<= 1;
	r->far_queue = stamp->far_queue = ktrxer_hist_new();
	r->ipdv = stamp->ipdv = ktrxer_hist_new();
	r->ipdv_up = stamp->ipdv_up = ktrxer_hist_new();
	r->ipdv_down = stamp->ipdv_down = ktrxer_hist_new();
	read_clock(stamp, &own);
	stamp->one_way = one_way_new(stamp->real_minus_mono);
	if (!r->far_queue || !r->ipdv || !r->ipdv_up || !r->ipdv_down || !stamp->one_way)
		goto no_memory;
	one_way_own_clock(stamp->one_way, &own);
	r->class_count = stamp->spec.class_count;
	for (uint32_t i = 0; i < r->class_count; i++) {
		struct stamp_class *class = &stamp->classes[i];

		s.ssid = (uint16_t)(r->ssid + i);
		s.tos = stamp->spec.tos[i];
		class->rtt = ktrxer_hist_new();
		if (!class->rtt || stamp_session_new(&class->session, &s) < 0)
			goto no_memory;
		r->classes[i] =
			(struct stamp_class_result){ .tos = stamp->spec.tos[i], .ssid = s.ssid, .rtt = class->rtt };
	}
	return 0;
no_memory:
	return ktrxer_fail(err, -ENOMEM, "no memory for the probes that wait");
}

/* The port is found: each class has its frame. */
static int make_frames(struct stamp *stamp, struct ktrxer_error *err)
{
	int rc = 0;

	for (uint32_t i = 0; i < stamp->spec.class_count && rc == 0; i++) {
		template_free(&stamp->p.frame);
		stamp->making = stamp->spec.tos[i];
		rc = stamp_make_frame(stamp, err);
		stamp->classes[i].frame = stamp->p.frame;
		stamp->p.frame = (struct template){ 0 };
	}
	return rc;
}

static void copy_keys(struct stamp *stamp, const struct stamp_spec *spec)
{
	stamp->auth = spec->auth_key != NULL;
	if (spec->auth_key)
		stamp->key = *spec->auth_key;
	else if (spec->tlv_key)
		stamp->tlv_key = *spec->tlv_key;
	stamp->tlv_mac_key = spec->auth_key ? &stamp->key : spec->tlv_key ? &stamp->tlv_key : NULL;
	stamp->spec.auth_key = stamp->spec.tlv_key = NULL;
}

int stamp_new(struct stamp **out, const struct stamp_spec *spec, struct ktrxer_error *err)
{
	static const struct prober_client client = {
		.commit = commit, .take = take, .ended = ended, .next_loss = next_loss
	};
	const uint16_t last =
		(uint16_t)(UINT16_MAX - (spec->class_count - 1)); /* the last SSID that leaves room for all classes */
	struct stamp *stamp = calloc(1, sizeof *stamp);
	uint16_t *ssid;
	int rc;

	*out = stamp;
	if (!stamp)
		return ktrxer_fail(err, -ENOMEM, "no memory for a client");
	if (!spec->class_count || spec->class_count > STAMP_CLASSES || spec->tlv_count > STAMP_TLVS)
		return ktrxer_fail(err, -EINVAL, "1 to %d classes and at most %d extensions can be measured",
				   STAMP_CLASSES, STAMP_TLVS);
	stamp->spec = *spec;
	stamp->p.work = &client;
	stamp->p.client = stamp;
	ssid = &stamp->result.ssid;
	if (getrandom(ssid, sizeof *ssid, 0) != sizeof *ssid)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	/* 0 is no SSID. */
	*ssid = spec->ssid ? spec->ssid : (uint16_t)(*ssid | 1);
	*ssid = *ssid > last ? last : *ssid;
	copy_keys(stamp, spec);
	stamp->making = spec->tos[0];
	if ((rc = prober_begin(&stamp->p, &spec->probe, spec->class_count, err)) < 0 ||
	    (rc = open_tables(stamp, err)) < 0 ||
	    (rc = prober_open(&stamp->p, 64, 14 + 40 + 8 + stamp_payload_length(stamp, spec->probe.payload) + 64,
			      err)) < 0 ||
	    (rc = prober_identify(&stamp->p, stamp_make_frame, err)) < 0 || (rc = make_frames(stamp, err)) < 0)
		return rc;
	return prober_listen(&stamp->p, KTRXER_UDP, stamp->result.payload + 1, err);
}

const struct stamp_result *stamp_result(const struct stamp *stamp)
{
	return &stamp->result;
}

const struct prober *stamp_prober(const struct stamp *stamp)
{
	return &stamp->p;
}

void stamp_free(struct stamp *stamp)
{
	if (!stamp)
		return;
	prober_close(&stamp->p);
	for (uint32_t i = 0; i < STAMP_CLASSES; i++) {
		template_free(&stamp->classes[i].frame);
		stamp_session_free(stamp->classes[i].session);
		ktrxer_hist_free(stamp->classes[i].rtt);
	}
	one_way_free(stamp->one_way);
	ktrxer_hist_free(stamp->far_queue);
	ktrxer_hist_free(stamp->ipdv);
	ktrxer_hist_free(stamp->ipdv_up);
	ktrxer_hist_free(stamp->ipdv_down);
	secret_forget(&stamp->key, sizeof stamp->key);
	secret_forget(&stamp->tlv_key, sizeof stamp->tlv_key);
	free(stamp);
}
