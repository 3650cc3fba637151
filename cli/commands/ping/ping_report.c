/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What `ping` says: a line for each answer, a sample for each probe, and the accounts at the end. */
#include "ping.h"

#include "error.h"
#include "hist.h"
#include "units.h"

#include <inttypes.h>
#include <string.h>

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

void ping_say_what(struct ping_run *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->p.cli, "ping %s (%s) from %s on %s: %s echo, %" PRIu64 " bytes of payload, by %s (%s)", run->o->p.host,
		 ktrxer_addr_format(&run->p.path.to, to), ktrxer_addr_format(&run->p.path.source, from), run->p.path.device.name,
		 run->o->udp ? "UDP" : "ICMP", run->o->payload, run->p.info.engine, run->p.info.reason);
}

static void say_line(struct ping_run *run, enum echo_event event, const struct echo_result *r)
{
	char rtt[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT], from[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(&r->from, from);
	if (event == ECHO_DUPLICATE)
		out_text(run->p.cli, "%s: number %" PRIu64 " once more: a duplicate", from, r->number);
	else if (event == ECHO_TOO_LATE)
		out_text(run->p.cli, "%s: number %" PRIu64 " after it was given up as lost", from, r->number);
	else
		out_text(run->p.cli, "%s: number %" PRIu64 ", round trip %s, TTL %u, sent %s late%s", from, r->number,
			 ktrxer_format_ns(rtt, r->rtt_ns), r->ttl, ktrxer_format_ns(late, (int64_t)(r->sent_ns - r->at_ns)), r->reordered ? ", reordered" : "");
}

void ping_say_result(struct ping_run *run, enum echo_event event, const struct echo_result *r)
{
	static const char *const names[] = { "", "round_trip", "duplicate", "too_late", "foreign" };
	struct json *sample;
	char from[KTRXER_ADDR_TEXT];

	if (event == ECHO_NOTHING || event == ECHO_FOREIGN)
		return;
	if (event == ECHO_ROUND_TRIP && !prober_is_timed(&run->p, r->rtt_ns, r->sent_source))
		return;
	if (event == ECHO_ROUND_TRIP) {
		ktrxer_hist_record(run->rtt, r->rtt_ns);
		if (r->own_queue_ns >= 0)
			ktrxer_hist_record(run->own_queue, r->own_queue_ns);
		run->p.arrivals[r->source]++;
	}
	if (run->p.talkative)
		say_line(run, event, r);
	if (event == ECHO_ROUND_TRIP && run->o->p.brief) {
		prober_batch_add(&run->p, (const int64_t[]){ (int64_t)r->number, (int64_t)r->at_ns, (int64_t)r->sent_ns, r->rtt_ns,
							      r->own_queue_ns });
		return;
	}
	sample = out_sample(run->p.cli, names[event]);
	if (!sample)
		return;
	json_u64(sample, "number", r->number);
	if (!run->o->p.brief) {
		json_u64(sample, "received_ns", r->received_ns);
		json_string(sample, "from", ktrxer_addr_format(&r->from, from));
	}
	if (event == ECHO_ROUND_TRIP) {
		json_u64(sample, "scheduled_ns", r->at_ns);
		json_u64(sample, "sent_ns", r->sent_ns);
		json_i64(sample, "rtt_ns", r->rtt_ns);
		json_i64(sample, "lateness_ns", (int64_t)(r->sent_ns - r->at_ns));
		if (r->own_queue_ns >= 0)
			json_i64(sample, "own_queue_ns", r->own_queue_ns);
		json_string(sample, "sent_stamp", sent_source_names[r->sent_source]);
		json_string(sample, "received_stamp", source_names[r->source]);
		json_u64(sample, "ttl", r->ttl);
		json_bool(sample, "reordered", r->reordered);
	}
	out_put(run->p.cli, sample);
}

static void finish_text(struct ping_run *run, const struct ktx_accounts *a, const struct echo_counts *c, const struct ktrxer_hist *lateness)
{
	char x[5][KTRXER_UNITS_TEXT];
	uint64_t lost_tenths = c->sent ? c->lost * 1000 / c->sent : 0;

	if (a->failed || a->skipped || a->cancelled)
		out_text(run->p.cli, "not sent: %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64 " cancelled", a->failed, a->skipped, a->cancelled);
	out_text(run->p.cli, "%" PRIu64 " sent, %" PRIu64 " received, %" PRIu64 " lost (%" PRIu64 ".%" PRIu64 " %%), %" PRIu64
		 " duplicates, %" PRIu64 " reordered", c->sent, c->received, c->lost, lost_tenths / 10, lost_tenths % 10, c->duplicates,
		 c->reordered);
	if (ktrxer_hist_count(run->rtt))
		out_text(run->p.cli, "round trip: min %s, p50 %s, p99 %s, max %s", ktrxer_format_ns(x[0], ktrxer_hist_min(run->rtt)),
			 ktrxer_format_ns(x[1], ktrxer_hist_quantile(run->rtt, 500000)),
			 ktrxer_format_ns(x[2], ktrxer_hist_quantile(run->rtt, 990000)), ktrxer_format_ns(x[3], ktrxer_hist_max(run->rtt)));
	if (ktrxer_hist_count(run->own_queue))
		out_text(run->p.cli, "of it in this host's own queue (%s): p50 %s, p99 %s, max %s",
			 prober_own_qdisc(&run->p),
			 ktrxer_format_ns(x[1], ktrxer_hist_quantile(run->own_queue, 500000)),
			 ktrxer_format_ns(x[2], ktrxer_hist_quantile(run->own_queue, 990000)), ktrxer_format_ns(x[3], ktrxer_hist_max(run->own_queue)));
	if (ktrxer_hist_count(lateness))
		out_text(run->p.cli, "our own lateness: p50 %s, IQR %s, p99 %s, max %s; %" PRIu64 " late (by more than %s)",
			 ktrxer_format_ns(x[0], ktrxer_hist_quantile(lateness, 500000)), ktrxer_format_ns(x[1], ktrxer_hist_iqr(lateness)),
			 ktrxer_format_ns(x[2], ktrxer_hist_quantile(lateness, 990000)), ktrxer_format_ns(x[3], ktrxer_hist_max(lateness)), a->late,
			 ktrxer_format_ns(x[4], (int64_t)verdict_late_ns(run->o->p.interval_ns)));
}

static void finish_json(struct ping_run *run, struct json *end, const struct ktx_accounts *a, const struct echo_counts *c,
			const struct ktrxer_hist *lateness)
{
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "target", run->o->p.host);
	json_string(end, "to", ktrxer_addr_format(&run->p.path.to, address));
	json_string(end, "from", ktrxer_addr_format(&run->p.path.source, address));
	json_string(end, "device", run->p.path.device.name);
	json_string(end, "engine", run->p.info.engine);
	json_string(end, "protocol", run->o->udp ? "udp" : "icmp");
	json_u64(end, "payload_bytes", run->o->payload);
	prober_accounts_json(end, a, c->sent, c->received);
	json_u64(end, "lost", c->lost);
	json_u64(end, "unanswered_at_end", c->waiting);
	json_u64(end, "duplicates", c->duplicates);
	json_u64(end, "reordered", c->reordered);
	json_u64(end, "too_late", c->too_late);
	json_u64(end, "network_errors", run->p.network_errors);
	json_u64(end, "untimed", run->p.contradictions + run->p.unstamped);
	json_late(end, a->late, verdict_late_ns(run->o->p.interval_ns));
	json_hist_us(end, "rtt_us", run->rtt);
	prober_own_queue_json(&run->p, end, run->own_queue);
	json_hist_us(end, "lateness_us", lateness);
	json_object(end, "stamps");
	prober_stamps_json(&run->p, end, a);
	json_object_end(end);
}

static void finish_verdict(struct ping_run *run, const struct ktx_accounts *a, const struct echo_counts *c,
			   const struct ktrxer_hist *lateness)
{
	const uint64_t drops = reply_receiver_drops(&run->p.receiver);

	verdict_probes(run->p.cli, a, lateness, verdict_late_ns(run->o->p.interval_ns));
	if (run->p.failure)
		verdict_say(run->p.cli, a->sent ? VERDICT_DEGRADED : VERDICT_INVALID, "it ended early: %s", run->p.failure_text);
	else if (cli_stopped(run->p.cli) && run->p.wanted != UINT64_MAX && run->p.next < run->p.wanted)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "it was stopped before all probes were sent");
	prober_judge_times(&run->p, c->received);
	if (c->sent && !c->received)
		verdict_say(run->p.cli, VERDICT_INVALID, "%s answered nothing at all", run->o->p.host);
	if (run->p.receiver.socket_drops)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "%" PRIu64 " packets were lost in this host's own socket, so that loss is overstated",
			    run->p.receiver.socket_drops);
	if (drops)
		verdict_say(run->p.cli, VERDICT_DEGRADED, "%" PRIu64 " packets were lost in this host's own receiver, so that loss is overstated",
			    drops);
}

int ping_finish(struct ping_run *run)
{
	struct ktrxer_hist *lateness = ktx_lateness(run->p.tx);
	struct json *end;
	struct ktx_accounts a;
	struct echo_counts c;

	prober_batch_tell(&run->p);
	end = out_end(run->p.cli);
	prober_accounts(&run->p, &a);
	echo_book_counts(run->book, &c);
	finish_verdict(run, &a, &c, lateness);
	finish_text(run, &a, &c, lateness);
	finish_json(run, end, &a, &c, lateness);
	ktrxer_hist_free(lateness);
	return out_finish(run->p.cli, end);
}
