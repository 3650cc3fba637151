/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_session.h"

#include "stamp_losses.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>

enum state { FREE, COMMITTED, WAITING, DONE, LOST, UNSENT };

struct entry {
	uint64_t number, time; /* time: as the packet said */
	uint8_t state;
	bool has_reply, held; /* held: both stamps are here, T3 may still get better */
	bool unplaced;        /* if it is lost, the reflector's counts do not cover it */
	uint64_t released_ns; /* when it is no longer held */
	struct stamp_place reflector;
	struct stamp_sample sample;
};

struct stamp_session {
	struct stamp_session_options options;
	struct hmac_key auth_key, tlv_key;
	struct entry *entries;
	uint32_t mask;
	uint64_t begin, end;     /* numbers that may still wait */
	uint64_t held_begin;     /* the oldest that may be held */
	uint64_t answered_t1_ns; /* the latest send time of a probe that has its answer */
	/* the highest number answered + 1: hundreds behind it may be committed ahead of their time */
	uint64_t replied_end;
	uint64_t close_from;
	struct stamp_losses losses;
	uint64_t answered_end; /* highest measured number answered + 1 */
	uint64_t closing_answered;
	bool last_valid, limits_seen;
	struct stamp_limits limits; /* the last that the reflector reported */
	struct stamp_sample last;
	struct stamp_session_counts counts;
};

int stamp_session_new(struct stamp_session **out, const struct stamp_session_options *options)
{
	struct stamp_session *s;

	*out = NULL;
	if (options->window < 2 || options->window > 65536 || (options->window & (options->window - 1)))
		return -EINVAL;
	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->entries = calloc(options->window, sizeof *s->entries);
	if (!s->entries || stamp_losses_new(&s->losses, options->window) < 0) {
		free(s->entries);
		free(s);
		return -ENOMEM;
	}
	s->options = *options;
	if (options->auth_key) {
		s->auth_key = *options->auth_key;
		s->options.auth_key = &s->auth_key;
	}
	if (options->tlv_key) {
		s->tlv_key = *options->tlv_key;
		s->options.tlv_key = &s->tlv_key;
	}
	s->mask = options->window - 1;
	s->close_from = UINT64_MAX;
	*out = s;
	return 0;
}

void stamp_session_free(struct stamp_session *s)
{
	if (!s)
		return;
	secret_forget(&s->auth_key, sizeof s->auth_key);
	secret_forget(&s->tlv_key, sizeof s->tlv_key);
	free(s->entries);
	stamp_losses_free(&s->losses);
	free(s);
}

static struct entry *entry_of(const struct stamp_session *s, uint64_t number)
{
	struct entry *e = &s->entries[number & s->mask];

	return e->state != FREE && e->number == number ? e : NULL;
}

static bool is_open(const struct entry *e)
{
	return e->state == COMMITTED || e->state == WAITING || e->held;
}

static bool is_measured(const struct stamp_session *s, uint64_t number)
{
	return number < s->close_from;
}

int stamp_session_commit(struct stamp_session *s, uint64_t number, uint64_t time)
{
	struct entry *e = &s->entries[number & s->mask];

	if (is_open(e))
		return -EAGAIN;
	memset(e, 0, sizeof *e);
	e->number = number;
	e->time = time;
	e->state = COMMITTED;
	e->sample.number = number;
	if (s->begin == s->end)
		s->begin = number;
	if (s->held_begin == s->end)
		s->held_begin = number;
	s->end = number + 1;
	return 0;
}

static void begin_advance(struct stamp_session *s)
{
	while (s->begin != s->end) {
		const struct entry *e = entry_of(s, s->begin);

		if (e && (e->state == COMMITTED || e->state == WAITING))
			return;
		s->begin++;
	}
}

/* A router that marks congestion (CE) does what it should. */
static bool mark_changed(uint8_t sent, uint8_t came)
{
	return sent >> 2 != came >> 2 || ((sent & 3) && !(came & 3));
}

/* Both ways in are through: the stamp of leaving and the answer. */
static void complete(struct stamp_session *s, struct entry *e)
{
	e->state = DONE;
	e->held = true;
	if (e->sample.t1_ns > s->answered_t1_ns)
		s->answered_t1_ns = e->sample.t1_ns;
	/* The next answer, which has the time, passes the same far queue first. */
	e->released_ns =
		s->options.follow_up && e->sample.far_queue_ns < 0 ? e->sample.t4_ns + 2 * s->options.timeout_ns : 0;
	if (is_measured(s, e->number)) {
		s->counts.received++;
		s->counts.waiting--;
		s->counts.reordered_up += e->sample.reordered_up;
		s->counts.reordered_down += e->sample.reordered_down;
		if (e->sample.tos_up != 0xff) {
			s->counts.marks_known = true;
			s->counts.mark_changed_up += mark_changed(s->options.tos, e->sample.tos_up);
			s->counts.mark_changed_down += mark_changed(e->sample.tos_back, e->sample.tos_down);
		}
	}
	begin_advance(s);
}

void stamp_session_report(struct stamp_session *s, const struct ktx_report *report)
{
	struct entry *e = entry_of(s, report->id);

	if (!e || e->state != COMMITTED)
		return;
	if (report->status != KTX_SENT) {
		e->state = UNSENT;
		s->counts.failed += is_measured(s, e->number);
		begin_advance(s);
		return;
	}
	e->state = WAITING;
	e->sample.at_ns = report->at_ns;
	e->sample.t1_ns = report->sent_ns;
	e->sample.own_queue_ns = report->own_queue_ns;
	e->sample.sent_source = report->sent_source;
	e->sample.bound_ns += report->bound_ns;
	if (is_measured(s, e->number)) {
		s->counts.sent++;
		s->counts.waiting++;
	}
	if (e->has_reply)
		complete(s, e);
}

/* ---------------------------------------------------------------------------------------------- loss by direction */

static uint64_t unsent_between(const struct stamp_session *s, uint64_t from, uint64_t to)
{
	uint64_t unsent = 0;

	for (uint64_t n = from; n < to && n - from <= s->mask; n++) {
		const struct entry *e = entry_of(s, n);

		unsent += e && e->state == UNSENT;
	}
	return unsent;
}

/*
 * The counts of the reflector do not cover the probes before this one that have no answer, from `from` on; where probes
 * overtook others, those before, too.
 */
static void unplace(struct stamp_session *s, uint64_t from, uint64_t number)
{
	const uint64_t first = number > s->mask ? number - s->mask : 0;
	const bool in_order = !s->counts.reordered_up && !s->counts.reordered_down;

	if (first > from)
		s->losses.unplaced += first - from;
	for (uint64_t n = first; n < number; n++) {
		struct entry *e = entry_of(s, n);

		if (!e || e->has_reply || !is_measured(s, n))
			continue;
		if (e->state == LOST && n >= from)
			s->losses.unplaced++;
		e->unplaced = (e->state == COMMITTED || e->state == WAITING) && (n >= from || !in_order);
	}
}

static void count_answer(struct stamp_session *s, struct entry *e, uint32_t seq)
{
	const struct stamp_counted answer = { .number = e->number,
					      .seq = seq,
					      .received_real_ns = e->sample.t2_real_ns };
	const uint64_t highest_probe = s->losses.epoch.highest_probe;
	const enum stamp_counted_as as = stamp_losses_first(&s->losses, &answer, &e->reflector);

	if (e->reflector.unplaced)
		unplace(s, highest_probe, e->number);
	if (e->state == LOST && e->unplaced)
		s->losses.unplaced--;
	e->unplaced = false;
	s->counts.stateful |= s->losses.stateful;
	if (!is_measured(s, e->number)) {
		s->closing_answered++;
		return;
	}
	s->counts.restarts += as == STAMP_COUNTED_ANEW;
	e->sample.reordered_up = as == STAMP_COUNTED_UP;
	e->sample.reordered_down = as == STAMP_COUNTED_DOWN;
	if (e->number >= s->answered_end)
		s->answered_end = e->number + 1;
}

/* ------------------------------------------------------------------------------------------------------ the answers */

/* A far queue longer than this is taken for a wrong stamp. */
#define FAR_QUEUE_MAX_NS (60 * (int64_t)KTRXER_NS_PER_S)

/* The number near `near` whose low 32 bits these are. */
static int64_t unfold(uint32_t low, int64_t near)
{
	return near + (int32_t)(low - (uint32_t)near);
}

/*
 * The driver's stamp of an earlier answer. It is no older than T3. Stamps come in the order of the answers: those
 * before it have none to come.
 */
static void follow_up(struct stamp_session *s, const struct stamp_follow_up *follow, bool ptp,
		      const struct stamp_arrival *a, int64_t newest)
{
	const int64_t count = unfold(follow->seq, newest);
	int64_t left;

	if (!follow->time || !follow->method || !stamp_time_to_ns(&left, follow->time, ptp, a->real_near_ns))
		return;
	s->counts.follow_up_seen = true;
	s->counts.stateful = true;
	for (uint64_t n = s->held_begin; n < s->replied_end; n++) {
		struct entry *e = entry_of(s, n);

		if (!e || !e->has_reply)
			continue;
		if (e->reflector.epoch != s->losses.epoch.number || e->reflector.count < count)
			e->released_ns = 0;
		if (e->reflector.epoch != s->losses.epoch.number || e->reflector.count != count)
			continue;
		if (left >= e->sample.t3_real_ns && left - e->sample.t3_real_ns < FAR_QUEUE_MAX_NS)
			e->sample.far_queue_ns = left - e->sample.t3_real_ns;
		e->released_ns = 0;
		return;
	}
}

/* The reflector does not tell: nothing is to be waited for. */
static void release_before(struct stamp_session *s, const struct entry *newest)
{
	for (uint64_t n = s->held_begin; n < s->replied_end; n++) {
		struct entry *e = entry_of(s, n);

		if (e && e != newest && e->has_reply &&
		    (e->reflector.epoch != newest->reflector.epoch || e->reflector.count < newest->reflector.count))
			e->released_ns = 0;
	}
}

/* HMAC first; then what the TLVs say. False: not to be believed. */
static bool tlvs_hold(struct stamp_session *s, const uint8_t *packet, size_t length)
{
	const bool auth = s->options.auth_key != NULL;
	const struct hmac_key *key = auth ? s->options.auth_key : s->options.tlv_key;
	uint32_t at = (uint32_t)stamp_base_length(auth);
	uint8_t mac[STAMP_MAC_LENGTH];
	struct stamp_tlv tlv;

	for (int i = 0; i < 64 && stamp_tlv_next(&tlv, packet, length, &at) == STAMP_TLV_OK; i++) {
		if (tlv.flags & STAMP_TLV_INTEGRITY)
			return false;
		if (tlv.type != STAMP_TLV_HMAC || tlv.length != STAMP_MAC_LENGTH)
			continue;
		if (!key)
			return true;
		stamp_tlv_mac(packet, auth, tlv.at, key, mac);
		return secret_equal(mac, tlv.value, sizeof mac);
	}
	return !key;
}

/* Answers may come out of order: the counts only grow. */
static void limits_take(struct stamp_session *s, struct stamp_limits limits)
{
	if (!s->limits_seen)
		s->limits = limits;
	s->limits_seen = true;
	s->counts.server_rate = limits.rate;
	if ((int32_t)(limits.refused - s->limits.refused) > 0)
		s->counts.server_refused += limits.refused - s->limits.refused;
	if ((int32_t)(limits.dropped - s->limits.dropped) > 0)
		s->counts.server_dropped += limits.dropped - s->limits.dropped;
	if ((int32_t)(limits.refused - s->limits.refused) >= 0 && (int32_t)(limits.dropped - s->limits.dropped) >= 0)
		s->limits = limits;
}

/* Returns whether the reflector understands follow-up telemetry. */
static bool tlvs_read(struct stamp_session *s, const uint8_t *packet, size_t length, struct entry *e,
		      const struct stamp_place *place, bool ptp, const struct stamp_arrival *a)
{
	uint32_t at = (uint32_t)stamp_base_length(s->options.auth_key != NULL);
	struct stamp_tlv tlv;
	bool reported = false;

	if (length <= at)
		return false;
	if (!tlvs_hold(s, packet, length)) {
		s->counts.tlvs_refused++;
		return false;
	}
	for (int i = 0;
	     i < 64 && stamp_tlv_next(&tlv, packet, length, &at) == STAMP_TLV_OK && !(tlv.flags & STAMP_TLV_MALFORMED);
	     i++) {
		if (tlv.flags & STAMP_TLV_UNKNOWN || !stamp_tlv_length_ok(tlv.type, tlv.length))
			continue;
		if (tlv.type == STAMP_TLV_FOLLOW_UP) {
			const struct stamp_follow_up follow = stamp_follow_up_read(tlv.value);

			reported = true;
			follow_up(s, &follow, ptp, a, place->count);
		} else if (tlv.type == STAMP_TLV_LIMITS) {
			const struct stamp_limits limits = stamp_limits_read(tlv.value);

			limits_take(s, limits);
			if (limits.copies & STAMP_COPIES_COUNTED)
				stamp_losses_copies(&s->losses, place, limits.copies & ~STAMP_COPIES_COUNTED);
		} else if (tlv.type == STAMP_TLV_CLOCK) {
			const struct stamp_clock clock = stamp_clock_read(tlv.value);

			e->sample.far_adjusted =
				(struct clock_adjust){ .ns = clock.adjusted_ns, .bound_ns = clock.bound_ns };
			e->sample.far_origin = clock.origin;
			e->sample.own_adjusted = a->adjusted;
			e->sample.clocks_known = true;
		} else if (tlv.type == STAMP_TLV_COS) {
			const struct stamp_cos cos = stamp_cos_read(tlv.value);

			e->sample.tos_up = (uint8_t)(cos.dscp2 << 2 | cos.ecn);
			/* With RP the DSCP of the answer is the reflector's choice: no change is claimed. */
			e->sample.tos_back = cos.reverse ? a->tos : (uint8_t)(cos.dscp1 << 2);
		}
	}
	return reported;
}

static struct entry *probe_of(struct stamp_session *s, const struct stamp_reply *reply)
{
	int64_t number;
	struct entry *e;

	if (!s->end)
		return NULL;
	number = unfold(reply->sender_seq, (int64_t)(s->end - 1));
	if (number < 0 || (uint64_t)number >= s->end)
		return NULL;
	e = entry_of(s, (uint64_t)number);
	/* An answer holds the time of its probe, so that only a host that has seen the probe can forge it. */
	if (!e || e->state == UNSENT || e->time != reply->sender_time ||
	    (reply->ssid && reply->ssid != s->options.ssid))
		return NULL;
	return e;
}

static bool stamps_read(struct entry *e, const struct stamp_reply *reply, const struct stamp_arrival *a, bool *ptp)
{
	const struct stamp_error error = stamp_error_read(reply->error);
	struct stamp_sample *p = &e->sample;

	*ptp = error.ptp;
	if (!stamp_time_to_ns(&p->t2_real_ns, reply->received, error.ptp, a->real_near_ns) ||
	    !stamp_time_to_ns(&p->t3_real_ns, reply->time, error.ptp, a->real_near_ns))
		return false;
	p->peer_synchronised = error.synchronised;
	p->peer_error_ns = error.bound_ns;
	p->t4_ns = a->received_ns;
	p->bound_ns += a->bound_ns;
	p->source = a->source;
	p->ttl_up = reply->sender_ttl;
	p->ttl_down = a->ttl;
	p->tos_down = a->tos;
	p->tos_up = 0xff;
	p->reflector_seq = reply->seq;
	p->far_queue_ns = -1;
	return true;
}

/* A further answer: of a copy of the request, which the reflector has counted, or a copy of an answer. */
static enum stamp_event again(struct stamp_session *s, const uint8_t *packet, size_t length, struct entry *e,
			      const struct stamp_reply *reply, const struct stamp_arrival *a)
{
	const bool ptp = stamp_error_read(reply->error).ptp;
	struct stamp_counted answer = { .number = e->number, .seq = reply->seq };
	struct stamp_place place = e->reflector;
	bool up;

	if (!stamp_time_to_ns(&answer.received_real_ns, reply->received, ptp, a->real_near_ns))
		return STAMP_DUPLICATE;
	up = stamp_losses_again(&s->losses, &answer, &place);
	s->counts.stateful |= s->losses.stateful;
	if (up)
		tlvs_read(s, packet, length, e, &place, ptp, a);
	if (is_measured(s, e->number)) {
		s->counts.duplicates_up += up;
		s->counts.duplicates_down += !up;
	}
	return STAMP_DUPLICATE;
}

enum stamp_event stamp_session_reply(struct stamp_session *s, const uint8_t *packet, size_t length,
				     const struct stamp_arrival *a)
{
	const bool auth = s->options.auth_key != NULL;
	struct stamp_reply reply;
	struct entry *e;
	bool ptp;

	if (!stamp_reply_read(&reply, packet, length, auth) || !(e = probe_of(s, &reply))) {
		s->counts.foreign++;
		return STAMP_FOREIGN;
	}
	if (auth && !stamp_is_signed(packet, s->options.auth_key)) {
		s->counts.wrong_hmac++;
		return STAMP_WRONG_HMAC;
	}
	if (e->has_reply)
		return again(s, packet, length, e, &reply, a);
	if (!stamps_read(e, &reply, a, &ptp)) {
		s->counts.foreign++;
		return STAMP_FOREIGN;
	}
	e->has_reply = true;
	if (e->number >= s->replied_end)
		s->replied_end = e->number + 1;
	count_answer(s, e, reply.seq);
	if (!tlvs_read(s, packet, length, e, &e->reflector, ptp, a))
		release_before(s, e);
	if (e->state == LOST) {
		s->counts.too_late += is_measured(s, e->number);
		e->sample.too_late = true;
		e->held = true;
		if (e->number < s->held_begin)
			s->held_begin = e->number;
		return STAMP_TOO_LATE;
	}
	if (e->state == WAITING)
		complete(s, e);
	return STAMP_ANSWER;
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static uint64_t lost_at(const struct stamp_session *s, const struct entry *e)
{
	const uint64_t overtaken_ns = e->sample.t1_ns + STAMP_OVERTAKEN_NS,
		       timeout_ns = e->sample.t1_ns + s->options.timeout_ns;

	return overtaken_ns < timeout_ns && s->answered_t1_ns >= overtaken_ns ? overtaken_ns : timeout_ns;
}

bool stamp_session_lost(struct stamp_session *s, uint64_t now_ns, uint64_t *number)
{
	struct entry *e;

	for (;;) {
		begin_advance(s);
		if (s->begin == s->end)
			return false;
		e = entry_of(s, s->begin);
		if (e->state != WAITING || now_ns < lost_at(s, e))
			return false;
		e->state = LOST;
		*number = s->begin;
		begin_advance(s);
		if (!is_measured(s, *number))
			continue;
		s->losses.unplaced += e->unplaced;
		s->counts.lost++;
		s->counts.waiting--;
		return true;
	}
}

#ifndef KTRXER_SMALL
/* From T1 and T3 to the stamps of the drivers: the packet schedulers, and the work of the stacks behind T1 and T3. */
static void subtract_host_delay(struct stamp_sample *p)
{
	const bool by_driver = p->sent_source == KTX_SENT_DRIVER || p->sent_source == KTX_SENT_NIC;
	const int64_t own_ns = by_driver ? 0 : p->own_queue_ns;

	p->uncorrected = own_ns < 0 || p->far_queue_ns < 0;
	if (p->uncorrected)
		return;
	p->up_ns -= own_ns;
	p->down_ns -= p->far_queue_ns;
	p->rtt_ns -= own_ns + p->far_queue_ns;
}
#endif

static void finish(struct stamp_session *s, struct stamp_sample *p)
{
	p->dwell_ns = p->t3_real_ns - p->t2_real_ns;
	p->rtt_ns = (int64_t)(p->t4_ns - p->t1_ns) - p->dwell_ns;
	p->up_ns = (int64_t)((uint64_t)p->t2_real_ns - p->t1_ns);
	p->down_ns = (int64_t)(p->t4_ns - (uint64_t)p->t3_real_ns);
	if (p->too_late)
		return;
#ifndef KTRXER_SMALL
	if (s->options.host_delay)
		subtract_host_delay(p);
	if (p->uncorrected) {
		s->last_valid = false;
		return;
	}
#endif
	p->follows = s->last_valid && p->number == s->last.number + 1;
	if (p->follows) {
		p->ipdv_ns = p->rtt_ns - s->last.rtt_ns;
		p->ipdv_up_ns = p->up_ns - s->last.up_ns;
		p->ipdv_down_ns = p->down_ns - s->last.down_ns;
	}
	s->last = *p;
	s->last_valid = p->rtt_ns >= 0; /* else one of its stamps is wrong */
}

bool stamp_session_sample(struct stamp_session *s, uint64_t now_ns, bool flush, struct stamp_sample *sample)
{
	bool only_done = true;

	for (uint64_t n = s->held_begin; n < s->replied_end; n++) {
		struct entry *e = entry_of(s, n);

		if (e && e->held && (flush || e->released_ns <= now_ns || s->end - n > s->mask / 2)) {
			e->held = false;
			*sample = e->sample;
			if (only_done)
				s->held_begin = n + 1;
			if (!is_measured(s, n))
				continue;
			finish(s, sample);
			return true;
		}
		only_done &= !e || !is_open(e);
		if (only_done)
			s->held_begin = n + 1;
	}
	return false;
}

uint64_t stamp_session_next(const struct stamp_session *s)
{
	const struct entry *e = &s->entries[s->begin & s->mask];
	uint64_t next = KTRXER_NEVER;

	if (s->begin != s->end && e->state == WAITING)
		next = lost_at(s, e);
	if (s->held_begin != s->end) {
		e = &s->entries[s->held_begin & s->mask];
		if (e->held && e->released_ns < next)
			next = e->released_ns;
	}
	return next;
}

void stamp_session_close(struct stamp_session *s, uint64_t first)
{
	s->close_from = first;
}

static bool far_queue_open(const struct stamp_session *s)
{
	for (uint64_t n = s->held_begin; s->counts.follow_up_seen && n < s->replied_end && n < s->close_from; n++) {
		const struct entry *e = entry_of(s, n);

		if (e && e->held && e->released_ns)
			return true;
	}
	return false;
}

bool stamp_session_unsettled(const struct stamp_session *s)
{
	return (s->counts.lost > s->counts.too_late && !s->closing_answered) || far_queue_open(s);
}

/* A reflector may report anything: the parts are of what was lost. */
void stamp_session_counts(const struct stamp_session *s, struct stamp_session_counts *counts)
{
	const uint64_t lost = s->counts.lost - s->counts.too_late;
	const bool closing = s->close_from != UINT64_MAX;
	uint64_t open = 0, doubtful = 0;
	struct stamp_split split;

	*counts = s->counts;
	counts->direction_known = s->counts.stateful || !lost;
	if (!counts->direction_known) {
		counts->lost_unknown = lost;
		return;
	}
	if (s->closing_answered)
		doubtful = s->replied_end - s->close_from - unsent_between(s, s->close_from, s->replied_end) -
			   s->closing_answered;
	else if (closing && s->close_from > s->answered_end)
		open = s->close_from - s->answered_end - unsent_between(s, s->answered_end, s->close_from);
	split = stamp_losses_split(&s->losses, lost, open, doubtful);
	counts->lost_up = split.up;
	counts->lost_down = split.down;
	counts->lost_unknown = split.unknown;
}
