/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `stamp` says: a line for each sample, and at the end the figures with their uncertainty. */
#include "stamp.h"

#include "dscp.h"
#include "hist.h"
#include "stamp_packet.h"
#include "units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

void stamp_say_what(struct stamp_run *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->p.cli, "stamp %s (%s port %" PRIu64 ") from %s on %s: %s mode, %u bytes of payload, by %s (%s)", run->o->p.host,
		 ktrxer_addr_format(&run->p.path.to, to), run->o->port, ktrxer_addr_format(&run->p.path.source, from), run->p.path.device.name,
		 run->auth ? "authenticated" : "open", run->payload_length, run->p.info.engine, run->p.info.reason);
}

static void say_more(struct json *json, const struct stamp_sample *p)
{
	json_i64(json, "lateness_ns", (int64_t)(p->t1_ns - p->at_ns));
	json_i64(json, "reflector_sent_real_ns", p->t3_real_ns);
	json_u64(json, "received_ns", p->t4_ns);
	json_i64(json, "dwell_ns", p->dwell_ns);
	if (p->follows) {
		json_i64(json, "ipdv_ns", p->ipdv_ns);
		json_i64(json, "ipdv_up_ns", p->ipdv_up_ns);
		json_i64(json, "ipdv_down_ns", p->ipdv_down_ns);
	}
	json_u64(json, "bound_ns", p->bound_ns);
	if (p->own_queue_ns >= 0)
		json_i64(json, "own_queue_ns", p->own_queue_ns);
	if (p->far_queue_ns >= 0)
		json_i64(json, "far_queue_ns", p->far_queue_ns);
	json_string(json, "sent_stamp", sent_source_names[p->sent_source]);
	json_string(json, "received_stamp", source_names[p->source]);
	json_u64(json, "ttl_up", p->ttl_up);
	json_u64(json, "ttl_down", p->ttl_down);
	if (p->tos_up != 0xff) {
		json_u64(json, "dscp_up", p->tos_up >> 2);
		json_string(json, "ecn_up", ecn_names[p->tos_up & 3]);
	}
	json_u64(json, "dscp_down", p->tos_down >> 2);
	json_string(json, "ecn_down", ecn_names[p->tos_down & 3]);
	json_bool(json, "reordered_up", p->reordered_up);
	json_bool(json, "reordered_down", p->reordered_down);
}

static void say_json(struct stamp_run *run, const struct stamp_class *class, const struct stamp_sample *p)
{
	const int64_t which = class - run->classes;
	struct json *json;

	if (run->o->p.brief) {
		prober_batch_add(&run->p, (const int64_t[]){ (int64_t)p->number, (int64_t)p->at_ns, (int64_t)p->t1_ns, p->rtt_ns, p->t2_real_ns,
							      (int64_t)p->reflector_seq, p->own_queue_ns, p->far_queue_ns, which });
		return;
	}
	json = out_sample(run->p.cli, "round_trip");
	if (!json)
		return;
	json_u64(json, "number", p->number);
	if (run->class_count > 1)
		json_i64(json, "class", which);
	json_u64(json, "scheduled_ns", p->at_ns);
	json_u64(json, "sent_ns", p->t1_ns);
	json_i64(json, "reflector_received_real_ns", p->t2_real_ns);
	json_i64(json, "rtt_ns", p->rtt_ns);
	json_u64(json, "reflector_sequence", p->reflector_seq);
	say_more(json, p);
	out_put(run->p.cli, json);
}

static void say_step(struct stamp_run *run)
{
	struct json *event = out_event(run->p.cli, "clock_step");

	out_text(run->p.cli, "the clocks of the two hosts were stepped against each other, or slewed by more than %d ppm", CLOCK_OFFSET_RATE_PPM);
	if (event)
		out_put(run->p.cli, event);
}

static void clock_add(struct stamp_run *run, const struct stamp_sample *p)
{
	/* Without the queues of the two hosts, which only widen the interval that the offset lies in. */
	const struct clock_exchange exchange = { .t1_ns = p->t1_ns + (uint64_t)(p->own_queue_ns > 0 ? p->own_queue_ns : 0), .t2_ns = p->t2_real_ns,
						 .t3_ns = p->t3_real_ns + (p->far_queue_ns > 0 ? p->far_queue_ns : 0), .t4_ns = p->t4_ns,
						 .widen_ns = p->bound_ns };

	if (clock_offset_add(run->clock, &exchange) == CLOCK_OFFSET_STEPPED)
		say_step(run);
}

void stamp_say_sample(struct stamp_run *run, struct stamp_class *class, const struct stamp_sample *p)
{
	char rtt[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT], dscp[8], class_text[24] = "";

	if (!prober_is_timed(&run->p, p->rtt_ns, p->sent_source)) {
		class->untimed++;
		return;
	}
	ktrxer_hist_record(run->rtt, p->rtt_ns);
	if (p->own_queue_ns >= 0)
		ktrxer_hist_record(run->own_queue, p->own_queue_ns);
	if (p->far_queue_ns >= 0)
		ktrxer_hist_record(run->far_queue, p->far_queue_ns);
	ktrxer_hist_record(class->rtt, p->rtt_ns);
	if (p->follows) {
		ktrxer_hist_record(run->ipdv, p->ipdv_ns);
		ktrxer_hist_record(run->ipdv_up, p->ipdv_up_ns);
		ktrxer_hist_record(run->ipdv_down, p->ipdv_down_ns);
	}
	run->p.arrivals[p->source]++;
	if (p->bound_ns > run->host_ns)
		run->host_ns = p->bound_ns;
	clock_add(run, p);
	if (!stamp_samples_add(run->samples, p))
		run->p.failure = run->p.failure ? run->p.failure : -12;
	run->peer.synchronised = p->peer_synchronised && (!run->peer_seen || run->peer.synchronised);
	if (!run->peer_seen || p->peer_error_ns > run->peer.bound_ns)
		run->peer.bound_ns = p->peer_error_ns;
	run->peer_seen = true;
	if (run->class_count > 1)
		snprintf(class_text, sizeof class_text, ", DSCP %s", dscp_name(class->tos >> 2, dscp));
	if (run->p.talkative)
		out_text(run->p.cli, "number %" PRIu64 "%s, round trip %s, TTL %u up %u down, sent %s late%s", p->number, class_text,
			 ktrxer_format_ns(rtt, p->rtt_ns), p->ttl_up, p->ttl_down, ktrxer_format_ns(late, (int64_t)(p->t1_ns - p->at_ns)),
			 p->reordered_up || p->reordered_down ? ", reordered" : "");
	say_json(run, class, p);
}

void stamp_say_event(struct stamp_run *run, enum stamp_event event)
{
	static const char *const names[] = { NULL, NULL, "duplicate", "too_late", "foreign", "wrong_hmac" };
	struct json *json;

	if (!names[event] || event == STAMP_FOREIGN)
		return;
	json = out_event(run->p.cli, names[event]);
	if (json)
		out_put(run->p.cli, json);
}

/* ----------------------------------------------------------------------------------------------------- the one-way part */

/* Where the uncertainty of a one-way delay comes from. */
struct one_way {
	struct clock_offset_result clock;
	bool known, claimed, contradicted;
	int64_t offset_ns;        /* theirs minus ours, both CLOCK_REALTIME */
	uint64_t clock_ns, skew_ns, host_ns, resolution_ns;
	struct stamp_delays delays;
};

static uint64_t total_ns(const struct one_way *w)
{
	return w->clock_ns + w->skew_ns + w->host_ns + w->resolution_ns;
}

/*
 * Both clocks state that they keep UTC to so much: then the offset lies in that interval, too. If this interval and the corridor of the round
 * trips do not meet, one of the clocks is wrong, and what they state counts for nothing.
 */
static void use_claims(const struct stamp_run *run, struct one_way *w, int64_t *low_ns, int64_t *high_ns)
{
	struct clock_sync own;
	uint64_t bound_ns;
	int64_t claim;

	clock_sync_read(&own);
	if (!run->own.synchronised || !own.synchronised || !run->peer.synchronised || run->own.bound_ns > INT64_MAX / 4 || own.bound_ns > INT64_MAX / 4 ||
	    run->peer.bound_ns > INT64_MAX / 4 || clock_offset_steps(run->clock))
		return;
	claim = (int64_t)((run->own.bound_ns > own.bound_ns ? run->own.bound_ns : own.bound_ns) + run->peer.bound_ns);
	*low_ns = run->real_minus_mono - claim;
	*high_ns = run->real_minus_mono + claim;
	w->clock.offset_ns = clock_offset_within(run->clock, CLOCK_OFFSET_LONGEST, w->clock.at_ns, *low_ns, *high_ns, &bound_ns);
	w->contradicted = bound_ns == UINT64_MAX;
	if (w->contradicted) {
		*low_ns = INT64_MIN;
		*high_ns = INT64_MAX;
		return;
	}
	w->claimed = bound_ns < w->clock.offset_bound_ns;
	w->clock.offset_bound_ns = bound_ns;
}

static void one_way_find(struct stamp_run *run, struct one_way *w)
{
	struct clock_offset_result *c = &w->clock;
	int64_t low_ns = INT64_MIN, high_ns = INT64_MAX;

	memset(w, 0, sizeof *w);
	clock_offset_settle(run->clock);
	clock_offset_result(run->clock, CLOCK_OFFSET_LONGEST, c);
	w->delays.up = ktrxer_hist_new();
	w->delays.down = ktrxer_hist_new();
	if (!c->points || !w->delays.up || !w->delays.down)
		return;
	use_claims(run, w, &low_ns, &high_ns);
	stamp_samples_delays(run->samples, run->clock, low_ns, high_ns, &w->delays);
	w->known = ktrxer_hist_count(w->delays.up) > 0;
	w->offset_ns = c->offset_ns - run->real_minus_mono;
	w->clock_ns = c->offset_bound_ns;
	/* Round trips that are further from a short one leave the offset more room. */
	w->skew_ns = w->delays.bound_ns > w->clock_ns ? w->delays.bound_ns - w->clock_ns : 0;
	w->host_ns = run->host_ns;
	w->resolution_ns = stamp_samples_resolution(run->samples);
}

static void json_ns_as_us(struct json *json, const char *key, int64_t ns)
{
	json_fixed(json, key, ns, 3);
}

static void one_way_json(const struct stamp_run *run, struct json *end, const struct one_way *w)
{
	if (w->known) {
		json_hist_us(end, "up_us", w->delays.up);
		json_hist_us(end, "down_us", w->delays.down);
		json_object(end, "one_way_uncertainty_us");
		json_ns_as_us(end, "clock", (int64_t)w->clock_ns);
		json_ns_as_us(end, "skew", (int64_t)w->skew_ns);
		json_ns_as_us(end, "host", (int64_t)w->host_ns);
		json_ns_as_us(end, "resolution", (int64_t)w->resolution_ns);
		json_ns_as_us(end, "total", (int64_t)total_ns(w));
		json_object_end(end);
		json_ns_as_us(end, "offset_us", w->offset_ns);
		json_ns_as_us(end, "offset_bound_us", (int64_t)w->clock_ns);
		json_u64(end, "offset_at_ns", w->clock.at_ns);
		json_string(end, "offset_from", w->claimed ? "round_trips_and_synchronised_clocks" : "round_trips");
	} else {
		json_null(end, "up_us");
		json_null(end, "down_us");
		json_null(end, "one_way_uncertainty_us");
		json_null(end, "offset_us");
		json_null(end, "offset_bound_us");
	}
	if (w->known && w->clock.skew_known) {
		json_rounded(end, "skew_ppm", w->clock.skew_ppm, 6);
		json_rounded(end, "skew_bound_ppm", w->clock.skew_bound_ppm, 6);
	} else {
		json_null(end, "skew_ppm");
		json_null(end, "skew_bound_ppm");
	}
	json_u64(end, "one_way_contradicted", w->delays.contradicted);
	json_u64(end, "clock_steps", clock_offset_steps(run->clock));
	json_bool(end, "clocks_synchronised", run->own.synchronised && run->peer_seen && run->peer.synchronised);
}

static void delays_text(struct stamp_run *run, const char *what, const struct ktrxer_hist *hist, const char *more)
{
	char x[4][KTRXER_UNITS_TEXT];

	out_text(run->p.cli, "%s: min %s, p50 %s, p99 %s, max %s%s", what, ktrxer_format_ns(x[0], ktrxer_hist_min(hist)),
		 ktrxer_format_ns(x[1], ktrxer_hist_quantile(hist, 500000)), ktrxer_format_ns(x[2], ktrxer_hist_quantile(hist, 990000)),
		 ktrxer_format_ns(x[3], ktrxer_hist_max(hist)), more);
}

static void one_way_text(struct stamp_run *run, const struct one_way *w)
{
	char bound[KTRXER_UNITS_TEXT], offset[KTRXER_UNITS_TEXT], more[80];

	if (!w->known)
		return;
	snprintf(more, sizeof more, ", each +- %s",
		 ktrxer_format_ns(bound, (int64_t)total_ns(w)));
	delays_text(run, "one-way delay up", w->delays.up, more);
	delays_text(run, "one-way delay down", w->delays.down, more);
	out_text(run->p.cli, "their clock is %s ahead of ours, +- %s", ktrxer_format_ns(offset, w->offset_ns),
		 ktrxer_format_ns(bound, (int64_t)w->clock_ns));
	if (w->clock.skew_known)
		out_text(run->p.cli, "and gains %.3f ppm, +- %.3f ppm", w->clock.skew_ppm, w->clock.skew_bound_ppm);
}

/* ----------------------------------------------------------------------------------------------------------- the end */

static void counts_text(struct stamp_run *run, const struct ktx_accounts *a, const struct stamp_session_counts *c)
{
	if (a->failed || a->skipped || a->cancelled)
		out_text(run->p.cli, "not sent: %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64 " cancelled", a->failed, a->skipped, a->cancelled);
	out_text(run->p.cli, "%" PRIu64 " sent, %" PRIu64 " answered, %" PRIu64 " lost, %" PRIu64 " duplicates, %" PRIu64 " reordered", c->sent,
		 c->received, c->lost, c->duplicates_up + c->duplicates_down, c->reordered_up + c->reordered_down);
	if (!c->lost)
		return;
	if (c->direction_known)
		out_text(run->p.cli, "lost: %" PRIu64 " up, %" PRIu64 " down, %" PRIu64 " answered too late, %" PRIu64 " unknown", c->lost_up, c->lost_down, c->too_late, c->lost_unknown);
	else
		out_text(run->p.cli, "lost in which direction is not known: this reflector does not count");
}

static void counts_json(const struct stamp_run *run, struct json *end, const struct ktx_accounts *a, const struct stamp_session_counts *c)
{
	prober_accounts_json(end, a, c->sent, c->received);
	json_u64(end, "unanswered_at_end", c->waiting);
	stamp_losses_json(end, c);
	json_u64(end, "too_late", c->too_late);
	json_u64(end, "reordered", c->reordered_up + c->reordered_down);
	json_u64(end, "reordered_up", c->reordered_up);
	json_u64(end, "reordered_down", c->reordered_down);
	json_u64(end, "duplicates", c->duplicates_up + c->duplicates_down);
	json_u64(end, "duplicates_up", c->duplicates_up);
	json_u64(end, "duplicates_down", c->duplicates_down);
	json_u64(end, "closing_probes", run->closing);
	json_u64(end, "foreign", c->foreign);
	json_u64(end, "wrong_hmac", c->wrong_hmac);
	json_u64(end, "tlvs_refused", c->tlvs_refused);
	json_u64(end, "reflector_restarts", c->restarts);
	json_bool(end, "reflector_stateful", c->stateful);
	json_bool(end, "follow_up", c->follow_up_seen);
	json_u64(end, "network_errors", run->p.network_errors);
	json_u64(end, "untimed", run->p.contradictions + run->p.unstamped);
	json_late(end, a->late, verdict_late_ns(run->o->p.interval_ns));
}

static void stamps_json(const struct stamp_run *run, struct json *end, const struct ktx_accounts *a)
{
	json_object(end, "stamps");
	prober_stamps_json(&run->p, end, a);
	json_u64(end, "reflector_departures", ktrxer_hist_count(run->far_queue));
	json_object_end(end);
}

static void finish_json(struct stamp_run *run, struct json *end, const struct ktx_accounts *a, const struct stamp_session_counts *c,
			const struct one_way *w)
{
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "server", run->o->p.host);
	json_string(end, "to", ktrxer_addr_format(&run->p.path.to, address));
	json_u64(end, "port", run->o->port);
	json_string(end, "from", ktrxer_addr_format(&run->p.path.source, address));
	json_string(end, "device", run->p.path.device.name);
	json_string(end, "engine", run->p.info.engine);
	json_string(end, "mode", run->auth ? "authenticated" : "open");
	json_u64(end, "ssid", run->ssid);
	json_u64(end, "payload_bytes", run->payload_length);
	counts_json(run, end, a, c);
	json_hist_us(end, "rtt_us", run->rtt);
	prober_own_queue_json(&run->p, end, run->own_queue);
	json_hist_us(end, "far_queue_us", run->far_queue);
	one_way_json(run, end, w);
	json_hist_us(end, "ipdv_us", run->ipdv);
	json_hist_us(end, "ipdv_up_us", run->ipdv_up);
	json_hist_us(end, "ipdv_down_us", run->ipdv_down);
	json_hist_us(end, "lateness_us", run->lateness);
	stamp_classes_json(run, end);
	stamps_json(run, end, a);
}

static void finish_verdict(struct stamp_run *run, const struct ktx_accounts *a, const struct stamp_session_counts *c, const struct one_way *w)
{
	const uint64_t lost = run->p.receiver.socket_drops + reply_receiver_drops(&run->p.receiver);

	verdict_probes(run->p.cli, a, run->lateness, verdict_late_ns(run->o->p.interval_ns));
	if (run->p.failure)
		verdict_say(run->p.cli, c->sent ? VERDICT_DEGRADED : VERDICT_INVALID, "it ended early: %s",
			    run->p.failure_text[0] ? run->p.failure_text : "out of memory");
	if (run->interrupted && run->p.wanted != UINT64_MAX)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "it was stopped after %" PRIu64 " of %" PRIu64 " probes", run->accounts.sent, run->p.wanted * run->class_count);
	prober_judge_times(&run->p, c->received);
	if (c->wrong_hmac && !c->received)
		verdict_say(run->p.cli, VERDICT_INVALID, "%s answers with a wrong HMAC: the keys of the two ends differ", run->o->p.host);
	else if (c->sent && !c->received)
		verdict_say(run->p.cli, VERDICT_INVALID, "%s answered nothing at all on UDP port %" PRIu64 "%s", run->o->p.host, run->o->port,
			    run->auth ? " (a reflector with another key stays silent, too)" : "");
	if (lost)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "%" PRIu64 " packets were lost in this host's own receiver, so that loss is overstated", lost);
	if (c->restarts)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "the reflector began to count anew %" PRIu64 " times: it was restarted, or has forgotten us",
			    c->restarts);
	if (clock_offset_steps(run->clock))
		verdict_say(run->p.cli, VERDICT_DEGRADED, "the clocks were stepped against each other, or slewed by more than %d ppm, %" PRIu32 " times; "
			    "one-way delays are those of the longest part between", CLOCK_OFFSET_RATE_PPM, clock_offset_steps(run->clock));
	if (w->clock.free_running && w->clock.drifts)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "an oscillator changed its rate by more than %.2g ppm a second: the uncertainty of one-way delays "
			    "is widened to that of clocks that are slewed by %d ppm", CLOCK_OFFSET_DRIFT_PPM_PER_S, CLOCK_OFFSET_RATE_PPM);
	if (w->contradicted)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "both clocks say that they are synchronised, and the round trips prove that they are not");
	if (c->tlvs_refused)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "the extensions of %" PRIu64 " answers failed their HMAC and were not used: the keys of the "
			    "two ends differ, or something changes packets on the way", c->tlvs_refused);
}

int stamp_finish(struct stamp_run *run)
{
	struct json *end;
	struct stamp_session_counts c;
	struct one_way w;

	prober_batch_tell(&run->p);
	end = out_end(run->p.cli);
	stamp_counts(run, &c);
	one_way_find(run, &w);
	finish_verdict(run, &run->accounts, &c, &w);
	counts_text(run, &run->accounts, &c);
	if (ktrxer_hist_count(run->rtt))
		delays_text(run, "round trip", run->rtt, "");
	for (uint32_t i = 0; run->class_count > 1 && i < run->class_count; i++) {
		char what[32], dscp[8];

		snprintf(what, sizeof what, "round trip, DSCP %s", dscp_name(run->classes[i].tos >> 2, dscp));
		delays_text(run, what, run->classes[i].rtt, "");
	}
	one_way_text(run, &w);
	if (ktrxer_hist_count(run->own_queue)) {
		char what[64];

		snprintf(what, sizeof what, "this host's own queue (%s)", prober_own_qdisc(&run->p));
		delays_text(run, what, run->own_queue, ", part of the delay up");
	}
	if (ktrxer_hist_count(run->far_queue))
		delays_text(run, "the far host's own queue", run->far_queue, ", part of the delay down");
	if (run->lateness && ktrxer_hist_count(run->lateness)) {
		char limit[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT + 48];

		snprintf(late, sizeof late, "; %" PRIu64 " late (by more than %s)", run->accounts.late,
			 ktrxer_format_ns(limit, (int64_t)verdict_late_ns(run->o->p.interval_ns)));
		delays_text(run, "our own lateness", run->lateness, late);
	}
	finish_json(run, end, &run->accounts, &c, &w);
	ktrxer_hist_free(run->lateness);
	ktrxer_hist_free(w.delays.up);
	ktrxer_hist_free(w.delays.down);
	return out_finish(run->p.cli, end);
}
