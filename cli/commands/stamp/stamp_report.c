/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `stamp`: a line for each sample, and at the end the figures with their uncertainty. */
#include "stamp_command.h"

#include "dscp.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

void stamp_say_what(const struct stamp_command *run)
{
	const struct prober *p = run->report.prober;
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->report.cli, "stamp %s (%s port %u) from %s on %s: %s mode, %u bytes of payload, by %s (%s)",
		 run->o->p.host, ktrxer_addr_format(&p->path.to, to), p->spec.port,
		 ktrxer_addr_format(&p->path.source, from), p->path.device.name,
		 run->o->auth_key_file ? "authenticated" : "open", run->result->payload, p->info.engine,
		 p->info.reason);
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
	json_i64(json, "adjusted_ns", p->adjusted_ns);
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

static void say_json(struct stamp_command *run, uint32_t which, const struct stamp_sample *p)
{
	struct json *json;

	if (run->o->p.brief && !p->too_late) {
		probe_batch_add(&run->report,
				(const int64_t[]){ (int64_t)p->number, (int64_t)p->at_ns, (int64_t)p->t1_ns, p->rtt_ns,
						   p->t2_real_ns, (int64_t)p->reflector_seq, p->own_queue_ns,
						   p->far_queue_ns, p->adjusted_ns, which });
		return;
	}
	json = out_sample(run->report.cli, p->too_late ? "too_late" : "round_trip");
	if (!json)
		return;
	json_u64(json, "number", p->number);
	if (run->report.each > 1)
		json_u64(json, "class", which);
	json_u64(json, "scheduled_ns", p->at_ns);
	json_u64(json, "sent_ns", p->t1_ns);
	json_i64(json, "reflector_received_real_ns", p->t2_real_ns);
	json_i64(json, "rtt_ns", p->rtt_ns);
	json_u64(json, "reflector_sequence", p->reflector_seq);
	say_more(json, p);
	out_put(run->report.cli, json);
}

void stamp_say_step(void *context)
{
	const struct stamp_command *run = context;
	struct json *event = out_event(run->report.cli, "clock_step");

	out_text(run->report.cli,
		 "the clocks of the two hosts were stepped against each other, or slewed by more than %d ppm",
		 CLOCK_OFFSET_RATE_PPM);
	if (event)
		out_put(run->report.cli, event);
}

void stamp_say_sample(void *context, uint32_t which, const struct stamp_sample *p)
{
	struct stamp_command *run = context;
	char rtt[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT], dscp[8], class_text[24] = "";

	if (p->too_late) {
		if (probe_is_talkative(&run->o->p))
			out_text(run->report.cli, "number %" PRIu64 ", round trip %s, after it was given up as lost",
				 p->number, ktrxer_format_ns(rtt, p->rtt_ns));
		say_json(run, which, p);
		return;
	}
	if (run->report.each > 1)
		snprintf(class_text, sizeof class_text, ", DSCP %s",
			 dscp_name(run->result->classes[which].tos >> 2, dscp));
	if (probe_is_talkative(&run->o->p))
		out_text(run->report.cli, "number %" PRIu64 "%s, round trip %s, TTL %u up %u down, sent %s late%s",
			 p->number, class_text, ktrxer_format_ns(rtt, p->rtt_ns), p->ttl_up, p->ttl_down,
			 ktrxer_format_ns(late, (int64_t)(p->t1_ns - p->at_ns)),
			 p->reordered_up || p->reordered_down ? ", reordered" : "");
	say_json(run, which, p);
}

void stamp_say_answer(void *context, enum stamp_event event)
{
	static const char *const names[] = { NULL, NULL, "duplicate", NULL, NULL, "wrong_hmac" };
	const struct stamp_command *run = context;
	struct json *json = names[event] ? out_event(run->report.cli, names[event]) : NULL;

	if (json)
		out_put(run->report.cli, json);
}

/* ------------------------------------------------------------------------------------------------- the one-way part */

static void json_ns_as_us(struct json *json, const char *key, int64_t ns)
{
	json_fixed(json, key, ns, 3);
}

static void one_way_json(struct json *end, const struct one_way_result *w)
{
	if (w->known) {
		json_hist_us(end, "up_us", w->delays.up);
		json_hist_us(end, "down_us", w->delays.down);
		json_object(end, "one_way_uncertainty_us");
		json_ns_as_us(end, "clock", (int64_t)w->clock_ns);
		json_ns_as_us(end, "skew", (int64_t)w->skew_ns);
		json_ns_as_us(end, "host", (int64_t)w->host_ns);
		json_ns_as_us(end, "resolution", (int64_t)w->resolution_ns);
		json_ns_as_us(end, "total", (int64_t)w->total_ns);
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
	json_u64(end, "clock_steps", w->steps);
	json_bool(end, "clocks_synchronised", w->synchronised);
	json_bool(end, "clocks_adjusted", w->adjusted);
	json_u64(end, "own_clock_changes", w->own_clock.changes);
	json_ns_as_us(end, "own_clock_change_us", w->own_clock.largest_ns);
	json_u64(end, "reflector_clock_changes", w->far_clock.changes);
	json_ns_as_us(end, "reflector_clock_change_us", w->far_clock.largest_ns);
}

static void delays_text(const struct stamp_command *run, const char *what, const struct ktrxer_hist *hist,
			const char *more)
{
	char text[HIST_TEXT];

	if (ktrxer_hist_count(hist))
		out_text(run->report.cli, "%s: %s%s", what, hist_text(text, hist, HIST_MIN | HIST_TAIL), more);
}

static void one_way_text(const struct stamp_command *run)
{
	const struct one_way_result *w = &run->result->one_way;
	char bound[KTRXER_UNITS_TEXT], offset[KTRXER_UNITS_TEXT], more[KTRXER_UNITS_TEXT + 16];

	if (!w->known)
		return;
	snprintf(more, sizeof more, ", each +- %s", ktrxer_format_ns(bound, (int64_t)w->total_ns));
	delays_text(run, "one-way delay up", w->delays.up, more);
	delays_text(run, "one-way delay down", w->delays.down, more);
	out_text(run->report.cli, "their clock is %s ahead of ours, +- %s", ktrxer_format_ns(offset, w->offset_ns),
		 ktrxer_format_ns(bound, (int64_t)w->clock_ns));
	if (w->clock.skew_known)
		out_text(run->report.cli, "%s gains %.3f ppm, +- %.3f ppm",
			 w->adjusted ? "without what the kernels adjust it" : "and", w->clock.skew_ppm,
			 w->clock.skew_bound_ppm);
}

/* ---------------------------------------------------------------------------------------------------------- the end */

static void counts_text(const struct stamp_command *run)
{
	const struct stamp_session_counts *c = &run->result->counts;

	char lost[PROBE_LOST_TEXT];

	probe_unsent_text(&run->report);
	out_text(run->report.cli,
		 "%" PRIu64 " sent, %" PRIu64 " answered, %s, %" PRIu64 " duplicates, %" PRIu64 " reordered", c->sent,
		 c->received, probe_lost_text(lost, c->sent, c->lost, c->too_late),
		 c->duplicates_up + c->duplicates_down, c->reordered_up + c->reordered_down);
	if (c->lost <= c->too_late)
		return;
	if (c->direction_known)
		out_text(run->report.cli, "lost: %" PRIu64 " up, %" PRIu64 " down, %" PRIu64 " in unknown direction",
			 c->lost_up, c->lost_down, c->lost_unknown);
	else
		out_text(run->report.cli, "lost in which direction is not known: %s",
			 c->received ? "no answer shows a count" : "no probe was answered");
}

static void losses_json(struct json *end, const struct stamp_session_counts *c)
{
	json_u64(end, "lost", c->lost);
	json_u64_or_null(end, "lost_up", c->direction_known, c->lost_up);
	json_u64_or_null(end, "lost_down", c->direction_known, c->lost_down);
	json_u64(end, "lost_unknown", c->lost_unknown);
	json_u64_or_null(end, "mark_changed_up", c->marks_known, c->mark_changed_up);
	json_u64_or_null(end, "mark_changed_down", c->marks_known, c->mark_changed_down);
}

static void counts_json(const struct stamp_command *run, struct json *end)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const bool by_direction = c->stateful || !(c->duplicates_up + c->duplicates_down);

	probe_accounts_json(&run->report, end, c->sent, c->received);
	json_u64(end, "unanswered_at_end", c->waiting);
	losses_json(end, c);
	json_u64(end, "too_late", c->too_late);
	json_u64(end, "reordered", c->reordered_up + c->reordered_down);
	json_u64(end, "reordered_up", c->reordered_up);
	json_u64(end, "reordered_down", c->reordered_down);
	json_u64(end, "duplicates", c->duplicates_up + c->duplicates_down);
	json_u64_or_null(end, "duplicates_up", by_direction, c->duplicates_up);
	json_u64_or_null(end, "duplicates_down", by_direction, c->duplicates_down);
	json_u64(end, "closing_probes", run->result->closing);
	json_u64(end, "foreign", c->foreign + run->result->elsewhere);
	json_u64(end, "wrong_hmac", c->wrong_hmac);
	json_u64(end, "tlvs_refused", c->tlvs_refused);
	json_u64(end, "dwell_max_ns", (uint64_t)(run->result->dwell_max_ns > 0 ? run->result->dwell_max_ns : 0));
	json_u64(end, "server_rate", c->server_rate);
	json_u64(end, "server_refused", c->server_refused);
	json_u64(end, "server_dropped", c->server_dropped);
	json_u64(end, "reflector_restarts", c->restarts);
	json_bool(end, "reflector_stateful", c->stateful);
	json_bool(end, "follow_up", c->follow_up_seen);
	probe_errors_json(&run->report, end);
}

static void classes_json(const struct stamp_result *r, struct json *end)
{
	if (r->class_count == 1)
		return;
	json_array(end, "classes");
	for (uint32_t i = 0; i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];

		json_object(end, NULL);
		json_u64(end, "dscp", class->tos >> 2);
		json_string(end, "ecn", ecn_names[class->tos & 3]);
		json_u64(end, "ssid", class->ssid);
		json_u64(end, "sent", class->counts.sent);
		json_u64(end, "failed", class->counts.failed);
		json_u64(end, "received", class->counts.received);
		json_u64(end, "unanswered_at_end", class->counts.waiting);
		losses_json(end, &class->counts);
		json_u64(end, "untimed", class->untimed);
#ifndef KTRXER_SMALL
		stamp_ttl_json(end, class, 1);
#endif
		json_hist_us(end, "rtt_us", class->rtt);
		json_object_end(end);
	}
	json_array_end(end);
}

/* ------------------------------------------------------------------------------------------------------- host delay */

#ifdef KTRXER_SMALL
#define PART_OF(RUN, WAY) ", part of the delay " WAY
#else
#define PART_OF(RUN, WAY) ((RUN)->o->host_delay ? ", subtracted from the delay " WAY : ", part of the delay " WAY)

enum { UNCORRECTED_PERCENT = 1 };

/*
 * The rest that --host-delay leaves in the delays: the packet's time between driver and wire, and between wire and the
 * kernel's arrival stamp. No time on a path is negative, so the least round trip is a limit of the sum for both hosts.
 */
static void host_delay_text(const struct stamp_command *run)
{
	const struct probe_result *p = &run->report.prober->result;
	char own[KTRXER_UNITS_TEXT], far[KTRXER_UNITS_TEXT], least[KTRXER_UNITS_TEXT];

	if (!run->o->host_delay || !ktrxer_hist_count(p->rtt))
		return;
	out_text(run->report.cli,
		 "host delay: subtracted %s up (p50, this host) and %s down (p50, far host); residual, driver to wire "
		 "and wire to kernel in both hosts: at most %s together, the least round trip",
		 ktrxer_format_ns(own, ktrxer_hist_quantile(p->own_queue, 500000)),
		 ktrxer_format_ns(far, ktrxer_hist_quantile(run->result->far_queue, 500000)),
		 ktrxer_format_ns(least, ktrxer_hist_min(p->rtt)));
}

static void host_delay_json(const struct stamp_command *run, struct json *end)
{
	const struct ktrxer_hist *rtt = run->report.prober->result.rtt;

	if (!run->o->host_delay)
		return;
	json_object(end, "host_delay");
	json_u64(end, "left_out", run->result->uncorrected);
	if (ktrxer_hist_count(rtt))
		json_fixed(end, "residual_max_us", ktrxer_hist_min(rtt), 3);
	else
		json_null(end, "residual_max_us");
	json_object_end(end);
}

static void judge_host_delay(const struct stamp_command *run)
{
	const struct stamp_result *r = run->result;

	if (r->uncorrected && r->uncorrected == r->counts.received)
		verdict_say(
			run->report.cli, VERDICT_INVALID,
			"--host-delay: no round trip could be corrected: %s reports no driver stamps of its answers "
			"(follow-up telemetry), or this host's device gives none",
			run->o->p.host);
	else if (r->uncorrected * 100 > r->counts.received * UNCORRECTED_PERCENT)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "--host-delay: %" PRIu64 " of %" PRIu64
			    " round trips lack a driver's stamp and are left out of the times",
			    r->uncorrected, r->counts.received);
}
#endif

static void finish_json(const struct stamp_command *run, struct json *end)
{
	const struct prober *p = run->report.prober;
	const struct stamp_result *r = run->result;
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "server", run->o->p.host);
	json_string(end, "to", ktrxer_addr_format(&p->path.to, address));
	json_u64(end, "port", p->spec.port);
	json_string(end, "from", ktrxer_addr_format(&p->path.source, address));
	json_string(end, "device", p->path.device.name);
	json_string(end, "engine", p->info.engine);
	json_string(end, "mode", run->o->auth_key_file ? "authenticated" : "open");
	json_u64(end, "ssid", r->ssid);
	json_u64(end, "payload_bytes", r->payload);
	counts_json(run, end);
	json_hist_us(end, "rtt_us", p->result.rtt);
	probe_own_queue_json(&run->report, end);
	json_hist_us(end, "far_queue_us", r->far_queue);
#ifndef KTRXER_SMALL
	stamp_ttl_json(end, r->classes, r->class_count);
	host_delay_json(run, end);
#endif
	one_way_json(end, &r->one_way);
	json_hist_us(end, "ipdv_us", r->ipdv);
	json_hist_us(end, "ipdv_up_us", r->ipdv_up);
	json_hist_us(end, "ipdv_down_us", r->ipdv_down);
	json_hist_us(end, "lateness_us", p->result.lateness);
	classes_json(r, end);
	json_object(end, "stamps");
	probe_stamps_json(&run->report, end);
	json_u64(end, "reflector_departures", ktrxer_hist_count(r->far_queue));
	json_object_end(end);
}

#define DWELL_LONG_NS (250 * (int64_t)KTRXER_NS_PER_MS)

/* Probes that the server refused or dropped are not lost on the path. */
static void judge_server(const struct stamp_command *run)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const struct stamp_result *r = run->result;
	char longest[KTRXER_UNITS_TEXT], limit[KTRXER_UNITS_TEXT];

	if (c->server_refused)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "limited by the server: it refused %" PRIu64 " probes beyond its limit of %" PRIu64
			    " answers "
			    "a second to one network (`serve --max-answer-rate`); of %" PRIu64
			    " lost probes so many may not be lost on the path",
			    c->server_refused, c->server_rate, c->lost);
	if (r->dwell_max_ns > DWELL_LONG_NS || r->held * 100 > c->received)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "limited by the server: it held a probe for up to %s before its answer, and %" PRIu64
			    " of %" PRIu64
			    " for longer than %s (not in the round trip): its processor was too busy, or "
			    "it was stopped",
			    ktrxer_format_ns(longest, r->dwell_max_ns), r->held, c->received,
			    ktrxer_format_ns(limit, stamp_held_ns(run->report.prober)));
	if (c->server_dropped)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "limited by the server: its socket dropped %" PRIu64
			    " packets: its processor was too busy, or it was stopped; of %" PRIu64
			    " lost probes so many may not be lost on the path",
			    c->server_dropped, c->lost);
}

static void judge_clock(const struct stamp_command *run, const struct clock_watch *clock, const char *whose,
			const char *effect)
{
	char change[KTRXER_UNITS_TEXT];

	if (clock->changes)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "the clock of %s was stepped, or slewed by more than %d ppm, %" PRIu32
			    " times, by up to %s: %s",
			    whose, CLOCK_ADJUST_RATE_PPM, clock->changes, ktrxer_format_ns(change, clock->largest_ns),
			    effect);
}

static void judge_clocks(const struct stamp_command *run)
{
	const struct one_way_result *w = &run->result->one_way;

	judge_clock(run, &w->far_clock, "the reflector",
		    "one-way delays leave the change out, because the reflector reported it");
	judge_clock(run, &w->own_clock, "this host", "in that time delays are wrong by the rate of the slew");
	if (w->steps)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "the clocks were stepped against each other, or slewed by more than %d ppm, %" PRIu32
			    " times; one-way delays are of the longest time without a step",
			    CLOCK_OFFSET_RATE_PPM, w->steps);
	if (w->clock.free_running && w->clock.drifts)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "an oscillator changed its rate by more than %.2g ppm a second: the uncertainty of one-way "
			    "delays is widened to that of clocks that are slewed by %d ppm",
			    CLOCK_OFFSET_DRIFT_PPM_PER_S, CLOCK_OFFSET_RATE_PPM);
	if (w->contradicted)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "both clocks report that they are synchronised, and the round trips contradict that");
}

static void finish_verdict(const struct stamp_command *run)
{
	const struct probe_result *p = &run->report.prober->result;
	const struct stamp_session_counts *c = &run->result->counts;
	char port[48];

	probe_judge(&run->report, c->sent, c->received);
	if (p->stopped && p->wanted != UINT64_MAX)
		verdict_say(run->report.cli, VERDICT_DEGRADED, "it was stopped after %" PRIu64 " of %" PRIu64 " probes",
			    p->accounts.sent, p->wanted * run->report.each);
	probe_judge_times(&run->report, c->received);
	if (c->wrong_hmac && !c->received)
		verdict_say(run->report.cli, VERDICT_INVALID,
			    "%s answers with a wrong HMAC: the keys of the two ends differ", run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && c->foreign)
		verdict_say(run->report.cli, VERDICT_INVALID,
			    "%" PRIu64 " packets came from UDP port %" PRIu64
			    " of %s, but no packet answers a probe of this run by its sequence number, time and "
			    "session identifier. Is this a STAMP or TWAMP Light reflector?",
			    c->foreign, run->o->p.port, run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && run->result->elsewhere)
		verdict_say(run->report.cli, VERDICT_INVALID,
			    "%" PRIu64
			    " packets came, but from other addresses than %s: the reflector answers from another "
			    "address, or a NAT changes it",
			    run->result->elsewhere, run->o->p.host);
	else {
		snprintf(port, sizeof port, " on UDP port %" PRIu64, run->o->p.port);
		probe_judge_answers(&run->report, c->sent, c->received, c->too_late, port,
				    run->o->auth_key_file ? " (a reflector with another key stays silent, too)" : "");
	}
	judge_server(run);
#ifndef KTRXER_SMALL
	stamp_judge_path(run);
	judge_host_delay(run);
#endif
	if (c->restarts)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "the reflector began to count anew (count: %" PRIu64
			    "): it restarted, deleted this session, or a NAT changed the port",
			    c->restarts);
	judge_clocks(run);
	if (c->tlvs_refused)
		verdict_say(run->report.cli, VERDICT_DEGRADED,
			    "the extensions of %" PRIu64
			    " answers failed their HMAC and were not used: the keys of the "
			    "two ends differ, or something changes packets on the way",
			    c->tlvs_refused);
}

static void finish_text(const struct stamp_command *run)
{
	const struct prober *p = run->report.prober;
	const struct stamp_result *r = run->result;

	counts_text(run);
	delays_text(run, probe_trip_text(r->counts.lost), p->result.rtt, "");
	for (uint32_t i = 0; r->class_count > 1 && i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];
		const struct stamp_session_counts *c = &class->counts;
		char text[HIST_TEXT], dscp[8], lost[PROBE_LOST_TEXT];

		out_text(run->report.cli, "round trip, DSCP %s: %s; %s", dscp_name(class->tos >> 2, dscp),
			 ktrxer_hist_count(class->rtt) ? hist_text(text, class->rtt, HIST_MIN | HIST_TAIL)
						       : "no probe was answered",
			 probe_lost_text(lost, c->sent, c->lost, c->too_late));
	}
	one_way_text(run);
#ifndef KTRXER_SMALL
	host_delay_text(run);
#endif
	if (ktrxer_hist_count(p->result.own_queue)) {
		char what[64];

		snprintf(what, sizeof what, "this host's own queue (%s)", probe_own_qdisc(&run->report));
		delays_text(run, what, p->result.own_queue, PART_OF(run, "up"));
	}
	delays_text(run, "the far host's own queue", r->far_queue, PART_OF(run, "down"));
	if (p->result.lateness && ktrxer_hist_count(p->result.lateness)) {
		char limit[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT + 48];

		snprintf(late, sizeof late, "; %" PRIu64 " late (by more than %s)", p->result.accounts.late,
			 ktrxer_format_ns(limit, (int64_t)p->spec.late_ns));
		delays_text(run, "our own lateness", p->result.lateness, late);
	}
}

int stamp_finish(struct stamp_command *run)
{
	struct json *end;

	probe_batch_flush(&run->report);
	end = out_end(run->report.cli);
	finish_verdict(run);
	finish_text(run);
	finish_json(run, end);
	return out_finish(run->report.cli, end);
}
