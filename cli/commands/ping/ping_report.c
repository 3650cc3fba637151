/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `ping`: a line for each answer, a sample for each probe, and the accounts at the end. */
#include "ping_command.h"

#include "fields_ping.h"
#include "fields_probes.h"
#include "hist.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

static const char *const columns[] = { PING_BATCH_NAMES };

void ping_batch_open(struct probe_report *report)
{
	report->batch.columns = columns;
	report->batch.column_count = PING_BATCH_FIELDS;
}

void ping_say_what(const struct ping_run *run)
{
	const struct prober *p = run->report.prober;
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->report.cli, "ping %s (%s) from %s on %s: %s echo, %u bytes of payload, by engine %s (%s)",
		 run->o->p.host, ktrxer_addr_format(&p->path.to, to), ktrxer_addr_format(&p->path.source, from),
		 p->path.device.name, run->o->udp ? "UDP" : "ICMP", p->spec.payload, p->info.engine, p->info.reason);
}

static void say_line(const struct ping_run *run, enum echo_event event, const struct echo_result *r)
{
	char rtt[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT], from[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(&r->from, from);
	if (event == ECHO_DUPLICATE)
		out_text(run->report.cli, "%s: number %" PRIu64 " once more: a duplicate", from, r->number);
	else if (event == ECHO_TOO_LATE)
		out_text(run->report.cli, "%s: number %" PRIu64 ", round trip %s, after it was given up as lost", from,
			 r->number, ktrxer_format_ns(rtt, r->rtt_ns));
	else
		out_text(run->report.cli, "%s: number %" PRIu64 ", round trip %s, TTL %u, sent %s late%s", from,
			 r->number, ktrxer_format_ns(rtt, r->rtt_ns), r->ttl,
			 ktrxer_format_ns(late, (int64_t)(r->sent_ns - r->at_ns)), r->reordered ? ", reordered" : "");
}

void ping_say_answer(void *context, enum echo_event event, const struct echo_result *r)
{
	static const char *const names[] = { "", "round_trip", "duplicate", "too_late", "foreign" };
	struct ping_run *run = context;
	struct json *sample;
	char from[KTRXER_ADDR_TEXT];

#ifndef KTRXER_SMALL
	if (event == ECHO_ROUND_TRIP || event == ECHO_TOO_LATE)
		answer_log_add(&run->log, r->number);
#endif
	if (probe_is_talkative(&run->o->p))
		say_line(run, event, r);
	if (event == ECHO_ROUND_TRIP && run->o->p.brief) {
		probe_batch_add(&run->report,
				(const int64_t[PING_BATCH_FIELDS]){ [PING_BATCH_NUMBER] = (int64_t)r->number,
								    [PING_BATCH_SCHEDULED_NS] = (int64_t)r->at_ns,
								    [PING_BATCH_SENT_NS] = (int64_t)r->sent_ns,
								    [PING_BATCH_RTT_NS] = r->rtt_ns,
								    [PING_BATCH_OWN_QUEUE_NS] = r->own_queue_ns });
		return;
	}
	sample = out_sample(run->report.cli, names[event]);
	if (!sample)
		return;
	ping_from_number(sample, r->number);
	if (!run->o->p.brief) {
		ping_from_received_ns(sample, r->received_ns);
		ping_from_from(sample, ktrxer_addr_format(&r->from, from));
	}
	if (event == ECHO_ROUND_TRIP || event == ECHO_TOO_LATE) {
		ping_answer_scheduled_ns(sample, r->at_ns);
		ping_answer_sent_ns(sample, r->sent_ns);
		ping_answer_rtt_ns(sample, r->rtt_ns);
		ping_answer_lateness_ns(sample, (int64_t)(r->sent_ns - r->at_ns));
		if (r->own_queue_ns >= 0)
			ping_answer_own_queue_ns(sample, r->own_queue_ns);
		ping_answer_sent_stamp(sample, sent_source_names[r->sent_source]);
		ping_answer_received_stamp(sample, source_names[r->source]);
		ping_answer_ttl(sample, r->ttl);
		ping_answer_reordered(sample, r->reordered);
	}
	out_put(run->report.cli, sample);
}

static void finish_text(const struct ping_run *run, const struct echo_counts *c)
{
	const struct probe_result *result = &run->report.prober->result;
	const struct ktrxer_hist *rtt = result->rtt, *own_queue = result->own_queue, *lateness = result->lateness;
	struct cli *cli = run->report.cli;
	char limit[KTRXER_UNITS_TEXT], text[HIST_TEXT], lost[PROBE_LOST_TEXT];

	probe_unsent_text(&run->report);
	out_text(cli, "%" PRIu64 " sent, %" PRIu64 " received, %s, %" PRIu64 " duplicates, %" PRIu64 " reordered",
		 c->sent, c->received, probe_lost_text(lost, c->sent, c->lost, c->too_late), c->duplicates,
		 c->reordered);
	if (ktrxer_hist_count(rtt))
		out_text(cli, "%s: %s", probe_trip_text(c->lost + c->too_late),
			 hist_text(text, rtt, HIST_MIN | HIST_TAIL));
	if (ktrxer_hist_count(own_queue))
		out_text(cli, "of it in this host's own queue (%s): %s", probe_own_qdisc(&run->report),
			 hist_text(text, own_queue, HIST_TAIL));
	if (ktrxer_hist_count(lateness))
		out_text(cli, "our own lateness: %s; %" PRIu64 " late (by more than %s)",
			 hist_text(text, lateness, HIST_TAIL | HIST_IQR), result->accounts.late,
			 ktrxer_format_ns(limit, (int64_t)run->report.prober->spec.late_ns));
}

static void finish_json(const struct ping_run *run, struct json *end, const struct echo_counts *c)
{
	const struct prober *p = run->report.prober;

	json_target(end, run->o->p.host, &p->path);
	ping_end_engine(end, p->info.engine);
	ping_end_protocol(end, run->o->udp ? "udp" : "icmp");
	ping_end_payload_bytes(end, p->spec.payload);
	probe_stream_json(&run->report, end, (int)run->o->dscp << 2);
	probe_accounts_json(&run->report, end, c->sent, c->received);
	ping_end_lost(end, c->lost);
	probe_answers_unanswered_at_end(end, c->waiting);
	probe_answers_duplicates(end, c->duplicates);
	probe_answers_reordered(end, c->reordered);
	probe_answers_too_late(end, c->too_late);
	probe_errors_json(&run->report, end);
	probe_times_rtt_us(end, p->result.rtt);
	probe_own_queue_json(&run->report, end);
	probe_times_lateness_us(end, p->result.lateness);
	ping_end_stamps_open(end);
	probe_stamps_json(&run->report, end);
	json_object_end(end);
}

#ifndef KTRXER_SMALL
/* Behind a full queue the answers come at even intervals, too, but late by at least a part of such an interval. */
#define QUEUE_PART 4

static void judge_limit(const struct ping_run *run, const struct echo_counts *c)
{
	const struct prober *p = run->report.prober;
	const struct ktrxer_hist *rtt = p->result.rtt;
	const struct ktx_accounts *a = &p->result.accounts;
	double share, interval_ns;

	if (a->failed + a->skipped || !ktrxer_hist_count(rtt) || !answer_limit(&run->log, &share))
		return;
	interval_ns = (double)p->spec.interval_ns / share;
	if (ktrxer_hist_quantile(rtt, 950000) - ktrxer_hist_min(rtt) < interval_ns / QUEUE_PART)
		reason_answers_limited(run->report.cli, c->lost, c->sent, 1e9 / interval_ns,
				       run->o->udp ? "UDP" : "ICMP");
}
#endif

static void finish_verdict(const struct ping_run *run, const struct echo_counts *c)
{
	static const struct bound_name rtt = { "rtt_p50", "p50 of the round trip", NULL },
				       loss = { "loss", "loss", NULL };
	const struct probe_result *result = &run->report.prober->result;
	const struct bound_parts parts = probe_bound_parts(&run->report, c->received);
	struct cli *cli = run->report.cli;

	cli->no_figure = !c->received;
	probe_judge(&run->report, c->received);
	if (!result->failure.code && result->stopped && result->wanted != UINT64_MAX &&
	    result->committed < result->wanted)
		reason_stopped(cli, "probes");
	bound_delay(cli, &rtt, result->rtt, &parts);
	bound_loss(cli, &loss, c->sent, c->lost, &parts);
#ifndef KTRXER_SMALL
	judge_limit(run, c);
#endif
	probe_judge_answers(&run->report, c->sent, c->received, c->too_late, "", "");
}

void ping_report(struct ping_run *run, struct json *end)
{
	struct echo_counts c;

	ping_counts(run->ping, &c);
	finish_verdict(run, &c);
	finish_text(run, &c);
	finish_json(run, end, &c);
}

void ping_run_free(struct ping_run *run)
{
	ping_free(run->ping);
#ifndef KTRXER_SMALL
	answer_log_free(&run->log);
#endif
}
