/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The answers of a STAMP session: which probe they belong to, their stamps and TLVs, and what the reflector counts. */
#include "stamp_session_state.h"

enum { EXTENT_MAX = 4096 /* probes between one and those that overtake it; RFC 4737, 4.2 */ };

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
		struct stamp_entry *e = stamp_session_entry(s, n);

		if (!e || e->has_reply || !stamp_session_is_measured(s, n))
			continue;
		if (e->state == LOST && n >= from)
			s->losses.unplaced++;
		e->unplaced = (e->state == COMMITTED || e->state == WAITING) && (n >= from || !in_order);
	}
}

/* A probe of the other one's epoch arrived before it, though it has a larger number. */
static bool is_overtaken(const struct stamp_entry *e, const struct stamp_entry *by)
{
	return by->number > e->number && by->reflector.count < e->reflector.count &&
	       by->reflector.epoch == e->reflector.epoch;
}

/*
 * RFC 4737 for the direction up: the reflector's counts are the order of arrival, whatever the order of the answers. An
 * answer that comes late shows that probes answered before it were overtaken.
 */
static void find_overtaken(struct stamp_session *s, struct stamp_entry *e)
{
	const uint64_t first = e->number > EXTENT_MAX ? e->number - EXTENT_MAX : 0;

	for (uint64_t n = first; n < s->replied_end && n <= e->number + EXTENT_MAX; n++) {
		struct stamp_entry *other = stamp_session_entry(s, n);

		if (!other || !other->has_reply)
			continue;
		if (is_overtaken(e, other))
			e->sample.reordered_up = true;
		if (is_overtaken(other, e) && !other->sample.reordered_up) {
			other->sample.reordered_up = true;
			s->counts.reordered_up += other->state == DONE && stamp_session_is_measured(s, n);
		}
	}
}

static void count_answer(struct stamp_session *s, struct stamp_entry *e, uint32_t seq)
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
	if (!stamp_session_is_measured(s, e->number)) {
		s->closing_answered++;
		return;
	}
	s->counts.restarts += as == STAMP_COUNTED_ANEW;
	e->sample.reordered_down = as == STAMP_COUNTED_DOWN;
	e->sample.reordered_up = as == STAMP_COUNTED_UP;
	if (e->sample.reordered_down || e->number < highest_probe)
		find_overtaken(s, e);
	if (e->number >= s->answered_end)
		s->answered_end = e->number + 1;
}

/* A far queue longer than this is taken for a wrong stamp. */
#define FAR_QUEUE_MAX_NS (60 * (int64_t)KTRXER_NS_PER_S)

/* Finds the number near `near` whose low 32 bits these are. */
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
		struct stamp_entry *e = stamp_session_entry(s, n);

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
static void release_before(struct stamp_session *s, const struct stamp_entry *newest)
{
	for (uint64_t n = s->held_begin; n < s->replied_end; n++) {
		struct stamp_entry *e = stamp_session_entry(s, n);

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
static bool tlvs_read(struct stamp_session *s, const uint8_t *packet, size_t length, struct stamp_entry *e,
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
			/* The DSCP of the answer is the reflector's choice with RP: no change is claimed. */
			e->sample.tos_back = cos.reverse ? a->tos : (uint8_t)(cos.dscp1 << 2);
		}
	}
	return reported;
}

static struct stamp_entry *probe_of(struct stamp_session *s, const struct stamp_reply *reply)
{
	int64_t number;
	struct stamp_entry *e;

	if (!s->end)
		return NULL;
	number = unfold(reply->sender_seq, (int64_t)(s->end - 1));
	if (number < 0 || (uint64_t)number >= s->end)
		return NULL;
	e = stamp_session_entry(s, (uint64_t)number);
	/* An answer holds the time of its probe, so that only a host that has seen the probe can forge it. */
	if (!e || e->state == UNSENT || e->time != reply->sender_time ||
	    (reply->ssid && reply->ssid != s->options.ssid))
		return NULL;
	return e;
}

static bool stamps_read(struct stamp_entry *e, const struct stamp_reply *reply, const struct stamp_arrival *a,
			bool *ptp)
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
	p->tos_up = STAMP_TOS_UNKNOWN;
	p->reflector_seq = reply->seq;
	p->far_queue_ns = -1;
	return true;
}

/* A further answer: of a copy of the request, which the reflector has counted, or a copy of an answer. */
static enum stamp_event again(struct stamp_session *s, const uint8_t *packet, size_t length, struct stamp_entry *e,
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
	if (stamp_session_is_measured(s, e->number)) {
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
	struct stamp_entry *e;
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
		if (stamp_session_is_measured(s, e->number)) {
			s->counts.lost--;
			s->counts.too_late++;
		}
		e->sample.too_late = true;
		e->held = true;
		if (e->number < s->held_begin)
			s->held_begin = e->number;
		return STAMP_TOO_LATE;
	}
	if (e->state == WAITING)
		stamp_session_complete(s, e);
	return STAMP_ANSWER;
}
