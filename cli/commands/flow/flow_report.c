/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The results of `flow`: the bytes of each flow, flows that ended early, and the uncertainty of the times. */
#include "dscp.h"
#include "flow.h"
#include "flow_udp.h"
#include "units.h"

#include <inttypes.h>
#include <string.h>

enum { TABLE_MOST = 32 };

static const char *direction_of(const struct flow_run *run, uint32_t flow)
{
	return run->specs[flow].down ? "down" : "up";
}

void flow_say_what(struct flow_run *run)
{
	const struct flow_options *o = run->o;
	const struct control_request *r = &run->plan.request;
	char to[KTRXER_ADDR_TEXT], size[KTRXER_UNITS_TEXT], span[KTRXER_UNITS_TEXT], sample[KTRXER_UNITS_TEXT];

	ktrxer_format_size(size, r->bytes);
	ktrxer_format_duration(span, r->for_ns);
	out_text(run->cli, "flow %s %s (%s port %" PRIu64 "): %" PRIu64 " %s flow%s%s, %s%s%s each, sampled each %s",
		 o->direction, o->host, ktrxer_addr_format(&run->plan.to, to), o->port, o->flows,
		 o->udp ? "UDP" : "TCP", o->flows > 1 ? "s" : "", run->up && run->down ? " each way" : "",
		 r->bytes ? size : "", r->bytes && r->for_ns ? " or " : "", r->for_ns ? span : "",
		 ktrxer_format_duration(sample, r->sample_ns));
}

/* ---------------------------------------------------------------------------------------------------------- verdict */

static const char *why_ended(const struct flow_run *run, uint32_t flow)
{
	const struct flow_record *r = &run->records[flow];

	if (r->local.ended && r->local.end.error)
		return flow_error_words[r->local.end.error];
	if (r->remote.ended && r->remote.end.error)
		return flow_error_words[r->remote.end.error];
	if (r->local.ended && r->local.end.reason == FLOW_CLOSED)
		return "the server closed it";
	if (r->remote.ended && r->remote.end.reason == FLOW_CLOSED)
		return "it was closed";
	return "it was cut off";
}

static void judge_ends(struct flow_run *run)
{
	const struct control_request *q = &run->plan.request;
	uint32_t stopped = 0;

	for (uint32_t i = 0; i < q->flows; i++) {
		const struct flow_result *r = &run->results[i];
		const struct flow_side *d = r->decider;
		const uint64_t lasted = r->lasted_ns;
		char after[KTRXER_UNITS_TEXT], early[KTRXER_UNITS_TEXT];

		if (r->as_planned)
			continue;
		if (run->interrupted || (d->ended && d->end.reason == FLOW_STOPPED && !run->result.server_gone)) {
			stopped++;
			continue;
		}
		ktrxer_format_ns(after, (int64_t)lasted);
		ktrxer_format_ns(early, (int64_t)(q->for_ns > lasted ? q->for_ns - lasted : 0));
		if (q->for_ns > lasted)
			verdict_say(run->cli, VERDICT_DEGRADED, "flow %u (%s) ended %s early, after %s: %s", i,
				    direction_of(run, i), early, after, why_ended(run, i));
		else
			verdict_say(run->cli, VERDICT_DEGRADED,
				    "flow %u (%s) ended after %s with %" PRIu64 " bytes: %s", i, direction_of(run, i),
				    after, r->bytes, why_ended(run, i));
	}
	if (stopped)
		verdict_say(run->cli, VERDICT_DEGRADED, "it was stopped: %u of %u flows had not ended yet", stopped,
			    q->flows);
}

static void judge_samples(struct flow_run *run)
{
	uint64_t all = 0, lost = 0;
	uint32_t worst = 0, flows = 0;

	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const uint64_t miss = run->results[i].missing_samples, have = run->results[i].samples;

		all += have + miss;
		lost += miss;
		/* The design's bound for a series: 99 %. */
		if (miss * 100 > have + miss) {
			worst = i;
			flows++;
		}
	}
	if (flows)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "%" PRIu64 " of %" PRIu64
			    " samples of %u flows are missing (one is flow %u, %s): a host was stopped or busy, "
			    "or the control connection too slow",
			    lost, all, flows, worst, direction_of(run, worst));
	if (run->pending_lost)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "the reader of the output was too slow: %" PRIu64 " samples are lost", run->pending_lost);
}

static void judge_ecn(struct flow_run *run)
{
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_record *r = &run->records[i];
		const bool on = r->info && r->values[FLOW_OPTIONS] != UINT64_MAX &&
				r->values[FLOW_OPTIONS] & FLOW_ECN_NEGOTIATED;

		if (run->o->udp || !r->info || run->shown[i].ecn_wanted == FLOW_ECN_ANY ||
		    on == (run->shown[i].ecn_wanted == FLOW_ECN_ON))
			continue;
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "flow %u (%s) has %s ECN: `sysctl net.ipv4.tcp_ecn=%d` on %s decides it", i,
			    direction_of(run, i), on ? "agreed on" : "no", on ? 0 : 1,
			    on ? "either host" : "both hosts");
	}
}

#define BEGUN_LATE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

/* A full socket of the receiver is no loss of the path. */
static void judge_receiver(struct flow_run *run, uint32_t i)
{
	const uint64_t dropped = flow_value(&run->records[i], FLOW_OVERFLOWS),
		       lost = flow_value(&run->records[i], FLOW_UDP_LOST);
	const struct flow_side *receiver = run->results[i].receiver;

	if (!receiver->ended || dropped == UINT64_MAX || !dropped)
		return;
	if (receiver == &run->records[i].local)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "flow %u (%s): %" PRIu64 " packets were lost in this host's own socket, so that loss is "
			    "overstated",
			    i, direction_of(run, i), dropped);
	else
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "flow %u (%s): limited by the server: its socket dropped %" PRIu64
			    " packets, so of %" PRIu64 " lost packets the path lost %" PRIu64
			    " at the least; its processor was too busy, or it was stopped",
			    i, direction_of(run, i), dropped, lost, lost > dropped ? lost - dropped : 0);
}

/* The server began the flows too late for its counts: by more than a hundredth of a flow's time. */
static bool began_late(const struct flow_run *run)
{
	return run->result.begun_late_ns > BEGUN_LATE_NS &&
	       run->result.begun_late_ns > run->results[0].duration_ns / 100;
}

static void judge_start(struct flow_run *run)
{
	char late[KTRXER_UNITS_TEXT];

	if (began_late(run))
		verdict_say(run->cli, VERDICT_DEGRADED, "the server began its part %s late, because %s",
			    ktrxer_format_ns(late, (int64_t)run->result.begun_late_ns),
			    run->result.start_repeated ? "the path lost the start message, which TCP repeated"
						       : "the path delayed the start message, or the server had no "
							 "processor");
}

/* Packets that never left are no loss either. */
static void judge_sender(struct flow_run *run, uint32_t i)
{
	const struct flow_side *s = run->results[i].sender;
	const bool here = s == &run->records[i].local;
	const uint64_t due = s->end.due_packets;

	if (!s->ended || due == UINT64_MAX || (!here && began_late(run)))
		return;
	if (s->end.packets + due / 100 < due)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "flow %u (%s): %s sent %" PRIu64 " of the %" PRIu64 " packets that were due (%.1f %%): %s",
			    i, direction_of(run, i), here ? "this host" : "the server", s->end.packets, due,
			    100.0 * (double)s->end.packets / (double)due,
			    here ? "its processor was too busy, or its own queue was full"
				 : "limited by the server: its processor was too busy, or its own queue was full");
	if (!here && s->end.late_packets > due / 100)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "flow %u (%s): limited by the server: %" PRIu64 " of %" PRIu64 " packets left late there",
			    i, direction_of(run, i), s->end.late_packets, due);
}

static void judge_engine(struct flow_run *run, uint32_t i)
{
#ifndef KTRXER_SMALL
	struct ktrxer_qdiscs qdiscs;
	struct ktx_info info;

	if (flow_client_engine(run->client, i, &info, &qdiscs))
		verdict_bypass(run->cli, &info, &qdiscs, "udp");
#else
	(void)run;
	(void)i;
#endif
}

/* Our own senders of UDP: did each packet leave, and on time? And what did the network answer? */
static void judge_udp(struct flow_run *run)
{
	for (uint32_t i = 0; run->o->udp && i < run->plan.request.flows; i++) {
		const struct flow_side *s = run->results[i].sender;
		struct ktx_accounts accounts;
		struct ktrxer_hist *lateness = flow_client_lateness(run->client, i, &accounts);

		if (lateness)
			verdict_probes(run->cli, &accounts, 0, lateness,
				       verdict_late_ns(flow_udp_gap_ns(&run->specs[i])));
		ktrxer_hist_free(lateness);
		judge_engine(run, i);
		if (s->ended && s->end.reason == FLOW_PLANNED && s->end.error)
			verdict_say(run->cli, VERDICT_DEGRADED, "flow %u (%s): %s: %s", i, direction_of(run, i),
				    s->end.error != FLOW_NO_NEIGHBOUR ? "the network answered"
				    : s == &run->records[i].local     ? "limited by this host"
								      : "limited by the server",
				    flow_error_words[s->end.error]);
		judge_receiver(run, i);
		judge_sender(run, i);
	}
}

/* Thousandths of a flow's time without a processor, beyond which the flow is limited by that. */
#define WAITED_MOST 200

/* Of the flows' ends on one host the one that waited most; UINT32_MAX: not known. */
static uint32_t waited_most(const struct flow_run *run, bool here)
{
	uint32_t most = UINT32_MAX;

	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_side *s = here ? &run->records[i].local : &run->records[i].remote;

		if (s->ended && s->end.waited != UINT32_MAX && (most == UINT32_MAX || s->end.waited > most))
			most = s->end.waited;
	}
	return most;
}

/* With one of several processors taken the mean over all of them is no sign. */
static void judge_waits(struct flow_run *run)
{
	static const char *const ends[] = { "the server: it", "this host: the flows' thread" };

	for (int here = 0; here < 2; here++) {
		const uint32_t waited = waited_most(run, here);

		if (waited != UINT32_MAX && waited > WAITED_MOST)
			verdict_say(run->cli, VERDICT_DEGRADED,
				    "limited by %s waited for a processor during %u %% of a flow's time (run delay)",
				    ends[here], waited / 10);
	}
}

/* Rates that are not the path's. */
static void judge_windows(struct flow_run *run, bool down)
{
	uint32_t limited = 0, flows = 0;

	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		if (run->specs[i].down == down) {
			flows++;
			limited += run->results[i].receiver_limited;
		}
	if (limited)
		verdict_say(
			run->cli, VERDICT_DEGRADED,
			"%s: limited by %s: the window of its socket (tcp_rmem) was full in %u of %u flows, and the "
			"path had no queue: the path may carry more",
			down ? "down" : "up", down ? "this host" : "the server", limited, flows);
}

static void judge(struct flow_run *run)
{
	const struct control_request *q = &run->plan.request;
	uint64_t bytes = 0;
	char late[KTRXER_UNITS_TEXT];

	for (uint32_t i = 0; i < q->flows; i++)
		bytes += run->results[i].bytes;
	if (run->result.error.code)
		verdict_say(run->cli, VERDICT_DEGRADED, "%s", run->result.error.text);
	if (!bytes)
		verdict_say(run->cli, VERDICT_INVALID, "nothing was received at all by any of %u flows", q->flows);
	judge_ends(run);
	if (run->result.remote_missing && !run->result.server_gone && !run->interrupted)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "the server's final counts of %u of %u flows did not arrive: the path down is lost or "
			    "slow. The figures of "
			    "the server's end are from its last samples",
			    run->result.remote_missing, q->flows);
	judge_samples(run);
	judge_ecn(run);
	judge_start(run);
	judge_udp(run);
	judge_waits(run);
	judge_windows(run, false);
	judge_windows(run, true);
	if (run->late_ns > 0)
		verdict_say(
			run->cli, VERDICT_DEGRADED,
			"the flows started %s after the time of --start-at: to connect them took longer than there was",
			ktrxer_format_ns(late, (int64_t)run->late_ns));
	if (run->result.clock_steps)
		verdict_say(run->cli, VERDICT_DEGRADED,
			    "the monotonic clock of one of the hosts jumped, or was slewed by more than %d ppm "
			    "(count: %u): a host was suspended, another one answers, or a time daemon corrects a "
			    "large error",
			    CLOCK_OFFSET_RATE_PPM, run->result.clock_steps);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static const char *error_of(const struct flow_run *run, uint32_t flow)
{
	return run->results[flow].as_planned || run->interrupted ? NULL : why_ended(run, flow);
}

static void value_json(struct json *json, const char *key, const struct flow_record *r, int which)
{
	json_u64_or_null(json, key, flow_value(r, which) != UINT64_MAX, flow_value(r, which));
}

static void tcp_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_record *r = &run->records[i];
	const uint64_t options = flow_value(r, FLOW_OPTIONS);

	value_json(json, "retransmits", r, FLOW_RETRANSMITS);
	value_json(json, "delivered_ce", r, FLOW_DELIVERED_CE);
	value_json(json, "min_rtt_us", r, FLOW_MIN_RTT_US);
	json_bool(json, "receiver_limited", run->results[i].receiver_limited);
	json_string(json, "cc",
		    run->shown[i].cc[0]                 ? run->shown[i].cc
		    : run->results[i].sender->end.cc[0] ? run->results[i].sender->end.cc
		    : run->specs[i].cc[0]               ? run->specs[i].cc
							: NULL);
	json_string(json, "ecn", options == UINT64_MAX ? NULL : options & FLOW_ECN_NEGOTIATED ? "on" : "off");
}

static void udp_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_record *r = &run->records[i];
	const struct flow_side *s = run->results[i].sender;
	struct ktx_accounts accounts;
	struct ktrxer_hist *lateness = flow_client_lateness(run->client, i, &accounts);

	json_u64_or_null(json, "sent_packets", s->ended, s->end.packets);
	json_u64_or_null(json, "due_packets", s->ended && s->end.due_packets != UINT64_MAX, s->end.due_packets);
	json_u64_or_null(json, "late_packets", s->ended && s->end.late_packets != UINT64_MAX, s->end.late_packets);
	for (int v = 0; v < FLOW_UDP_VALUES; v++)
		value_json(json, v == FLOW_PACKETS ? "received_packets" : flow_udp_names[v], r, v);
	json_string(json, "ecn", ecn_names[run->specs[i].tos & 3]);
	if (lateness)
		json_hist_us(json, "lateness_us", lateness);
	else
		json_null(json, "lateness_us");
	ktrxer_hist_free(lateness);
	json_null(json, "retransmits");
	json_null(json, "cc");
}

static void flow_json(const struct flow_run *run, struct json *json, uint32_t i)
{
	const struct flow_result *r = &run->results[i];
	const struct flow_spec *s = &run->specs[i];

	json_object(json, NULL);
	json_u64(json, "flow", i);
	json_string(json, "direction", direction_of(run, i));
	json_u64(json, "bytes", r->bytes);
	json_u64(json, "rate_bps", r->rate_bps);
	json_u64_or_null(json, "received_bytes", r->received_known, r->received_bytes);
	/* Of a UDP flow nothing is acknowledged. */
	json_u64_or_null(json, s->udp ? "sent_bytes" : "acked_bytes", r->acked_known, r->acked_bytes);
	json_u64(json, "dscp", s->tos >> 2);
	if (s->udp)
		udp_json(run, json, i);
	else
		tcp_json(run, json, i);
	json_u64(json, "start_ns", r->start_ns);
	json_u64(json, "duration_ns", r->duration_ns);
	json_u64(json, "samples_local", run->records[i].local.samples);
	json_u64(json, "samples_remote", run->records[i].remote.samples);
	json_u64(json, "samples_missing", r->missing_samples);
	json_string(json, "error", error_of(run, i));
	json_object_end(json);
}

static void waits_json(const struct flow_run *run, struct json *end)
{
	json_object(end, "processor_wait_percent");
	for (int here = 0; here < 2; here++) {
		const uint32_t waited = waited_most(run, here);

		json_fixed_or_null(end, here ? "here" : "server", waited != UINT32_MAX, waited, 1);
	}
	json_object_end(end);
}

static void report_json(const struct flow_run *run, struct json *end, const struct flow_total totals[2])
{
	const struct clock_offset_result *c = &run->result.clock;
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "server", run->o->host);
	json_string(end, "to", ktrxer_addr_format(&run->plan.to, address));
	json_u64(end, "port", run->o->port);
	json_string(end, "protocol", run->o->udp ? "udp" : "tcp");
	json_string(end, "direction", run->o->direction);
	json_u64(end, "start_ns", run->result.start_ns);
	json_u64(end, "sample_ns", run->plan.request.sample_ns);
	json_array(end, "flows");
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		flow_json(run, end, i);
	json_array_end(end);
	json_u64(end, "bytes", totals[0].bytes + totals[1].bytes);
	json_u64(end, "rate_bps", totals[0].rate_bps + totals[1].rate_bps);
	json_u64_or_null(end, "up_bps", run->up, totals[0].rate_bps);
	json_u64_or_null(end, "down_bps", run->down, totals[1].rate_bps);
	json_u64(end, "server_began_late_ns", run->result.begun_late_ns);
	json_u64_or_null(end, "server_limit_bps", run->result.pace_bps != 0, run->result.pace_bps);
	json_u64_or_null(end, "control_up_bytes", run->result.control_known, run->result.control_up_bytes);
	json_u64_or_null(end, "control_down_bytes", run->result.control_known, run->result.control_down_bytes);
	waits_json(run, end);
	json_object(end, "clock");
	json_i64(end, "offset_ns", c->offset_ns);
	json_u64(end, "bound_ns", run->result.clock_bound_ns);
	json_u64(end, "at_ns", c->at_ns);
	if (c->skew_known)
		json_rounded(end, "skew_ppm", c->skew_ppm, 6);
	else
		json_null(end, "skew_ppm");
	json_u64(end, "exchanges", c->points);
	json_u64(end, "rtt_ns", run->result.rtt_ns);
	json_object_end(end);
}

/* ------------------------------------------------------------------------------------------------------- for people */

static void udp_table_text(struct flow_run *run)
{
	static const int columns[] = { FLOW_PACKETS, FLOW_UDP_LOST, FLOW_REORDERED, FLOW_DUPLICATES,
				       FLOW_ECT0,    FLOW_ECT1,     FLOW_CE };
	char rate[KTRXER_UNITS_TEXT], dscp[8], texts[7][24];

	out_text(run->cli, "flow  dir   rate             received       lost  reordered     twice       ect0       "
			   "ect1         ce  dscp");
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		for (int c = 0; c < 7; c++) {
			const uint64_t value = flow_value(&run->records[i], columns[c]);

			snprintf(texts[c], sizeof texts[c], value == UINT64_MAX ? "-" : "%" PRIu64, value);
		}
		out_text(run->cli, "%4u  %-4s  %-15s  %8s  %9s  %9s  %8s  %9s  %9s  %9s  %s", i, direction_of(run, i),
			 ktrxer_format_bitrate(rate, run->results[i].rate_bps), texts[0], texts[1], texts[2], texts[3],
			 texts[4], texts[5], texts[6], dscp_name(run->specs[i].tos >> 2, dscp));
	}
}

static void table_text(struct flow_run *run)
{
	char bytes[KTRXER_UNITS_TEXT], rate[KTRXER_UNITS_TEXT], dscp[8], again[24];

	out_text(run->cli, "flow  dir   bytes         rate             retransmits  cc        dscp  ecn");
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_record *r = &run->records[i];
		const uint64_t retransmits = flow_value(r, FLOW_RETRANSMITS), options = flow_value(r, FLOW_OPTIONS);

		snprintf(again, sizeof again, "%" PRIu64, retransmits);
		out_text(run->cli, "%4u  %-4s  %-12s  %-15s  %11s  %-8s  %-4s  %s", i, direction_of(run, i),
			 ktrxer_format_size(bytes, run->results[i].bytes),
			 ktrxer_format_bitrate(rate, run->results[i].rate_bps), retransmits == UINT64_MAX ? "-" : again,
			 run->shown[i].cc[0]   ? run->shown[i].cc
			 : run->specs[i].cc[0] ? run->specs[i].cc
					       : "-",
			 dscp_name(run->specs[i].tos >> 2, dscp),
			 options == UINT64_MAX           ? "-"
			 : options & FLOW_ECN_NEGOTIATED ? "on"
							 : "off");
	}
}

static void total_text(struct flow_run *run, const char *direction, const struct flow_total *t)
{
	char bytes[KTRXER_UNITS_TEXT], rate[KTRXER_UNITS_TEXT], low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT],
		what[96];

	if (!t->flows)
		return;
	ktrxer_format_bitrate(rate, t->rate_bps);
	ktrxer_format_size(bytes, t->bytes);
	if (run->o->udp)
		snprintf(what, sizeof what, "%" PRIu64 " of %" PRIu64 " packets lost (%.3f %%)", t->lost, t->sent,
			 t->sent ? 100.0 * (double)t->lost / (double)t->sent : 0.0);
	else
		snprintf(what, sizeof what, "%" PRIu64 " retransmitted segments", t->retransmits);
	if (t->flows == 1)
		out_text(run->cli, "%s: %s, %s received, %s", direction, rate, bytes, what);
	else
		out_text(run->cli, "%s: %s in all, %s received, %s; the slowest of %u flows %s, the fastest %s",
			 direction, rate, bytes, what, t->flows, ktrxer_format_bitrate(low, t->slowest_bps),
			 ktrxer_format_bitrate(high, t->fastest_bps));
}

static void report_text(struct flow_run *run, const struct flow_total totals[2])
{
	char bound[KTRXER_UNITS_TEXT], pace[KTRXER_UNITS_TEXT];

	if (run->o->udp)
		udp_table_text(run);
	else if (run->plan.request.flows > 1 && run->plan.request.flows <= TABLE_MOST)
		table_text(run);
	total_text(run, "up", &totals[0]);
	total_text(run, "down", &totals[1]);
	if (run->result.pace_bps)
		out_text(run->cli, "the server limits each direction to %s",
			 ktrxer_format_bitrate(pace, run->result.pace_bps));
	out_text(run->cli, "uncertainty of the times of the far end: +- %s",
		 ktrxer_format_ns(bound, (int64_t)run->result.clock_bound_ns));
}

int flow_finish_report(struct flow_run *run)
{
	const uint32_t flows = run->plan.request.flows;
	struct flow_total totals[2];
	struct json *end;

	flow_client_result(run->client, &run->result);
	if (!run->result.started) {
		if (run->result.error.code)
			cli_complain(run->cli, "%s", run->result.error.text);
		else
			cli_complain(run->cli, "it was stopped before the flows had started");
		return EXIT_BAD;
	}
	flow_pending_flush(run);
	end = out_end(run->cli);
	for (uint32_t i = 0; i < flows; i++)
		flow_result(&run->results[i], &run->specs[i], &run->records[i], run->result.start_ns,
			    run->plan.request.sample_ns);
	judge(run);
	for (int down = 0; down < 2; down++)
		flow_total(&totals[down], down, flows, run->specs, run->records, run->results);
	report_text(run, totals);
	report_json(run, end, totals);
	return out_finish(run->cli, end);
}
