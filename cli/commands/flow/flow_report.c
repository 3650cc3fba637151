/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `flow` for people: what it measures, and at the end the bytes of each flow. */
#include "dscp.h"
#include "flow.h"
#include "path_report.h"
#include "units.h"

#include <inttypes.h>

enum { TABLE_MAX = 32 };

void flow_say_what(struct flow_run *run)
{
	const struct flow_options *o = run->o;
	const struct control_request *r = &run->plan.request;
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], size[KTRXER_UNITS_TEXT], span[KTRXER_UNITS_TEXT],
		sample[KTRXER_UNITS_TEXT];

	ktrxer_format_size(size, r->bytes);
	ktrxer_format_duration(span, r->for_ns);
	out_text(run->cli,
		 "flow %s %s (%s port %" PRIu64 " from %s on %s): %" PRIu64
		 " %s flow%s%s, %s%s%s each, sampled each %s",
		 o->direction, o->host, ktrxer_addr_format(&run->plan.to, to), o->port,
		 ktrxer_addr_format(&run->path.source, from), run->path.device.name, o->flows, o->udp ? "UDP" : "TCP",
		 o->flows > 1 ? "s" : "", run->up && run->down ? " each way" : "", r->bytes ? size : "",
		 r->bytes && r->for_ns ? " or " : "", r->for_ns ? span : "",
		 ktrxer_format_duration(sample, r->sample_ns));
}

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
		out_text(run->cli, "%4u  %-4s  %-15s  %8s  %9s  %9s  %8s  %9s  %9s  %9s  %s", i,
			 flow_direction_of(run, i), ktrxer_format_bitrate(rate, run->results[i].rate_bps), texts[0],
			 texts[1], texts[2], texts[3], texts[4], texts[5], texts[6],
			 dscp_name(run->specs[i].tos >> 2, dscp));
	}
}

#ifndef KTRXER_SMALL
static void moves_text(struct flow_run *run)
{
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_side *server = &run->records[i].remote;

		if (server->ended && server->end.moves)
			out_text(run->cli, "flow %u %s: a NAT on the path changed its address or port %u times; %s", i,
				 flow_direction_of(run, i), server->end.moves,
				 run->specs[i].down ? "its datagrams to the last one are lost"
						    : "its datagrams count all the same");
	}
}
#else
static void moves_text(struct flow_run *run)
{
	(void)run;
}
#endif

static void table_text(struct flow_run *run)
{
	char bytes[KTRXER_UNITS_TEXT], rate[KTRXER_UNITS_TEXT], dscp[8], again[24];

	out_text(run->cli, "flow  dir   bytes         rate             retransmits  cc        dscp  ecn");
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_record *r = &run->records[i];
		const uint64_t retransmits = flow_value(r, FLOW_RETRANSMITS), options = flow_value(r, FLOW_OPTIONS);

		snprintf(again, sizeof again, "%" PRIu64, retransmits);
		out_text(run->cli, "%4u  %-4s  %-12s  %-15s  %11s  %-8s  %-4s  %s", i, flow_direction_of(run, i),
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
		what[96], covered[48] = "";

	if (!t->flows)
		return;
	ktrxer_format_bitrate(rate, t->rate_bps);
	ktrxer_format_size(bytes, t->bytes);
	if (!flow_has_rate(t)) {
		out_text(run->cli, "%s: no rate, because only %.1f %% of the time is counted: %s, %s received in %s",
			 direction, t->coverage / 10.0, rate, bytes, ktrxer_format_ns(low, (int64_t)t->duration_ns));
		return;
	}
	if (t->coverage < 1000)
		snprintf(covered, sizeof covered, " (%.1f %% of the time is counted)", t->coverage / 10.0);
	if (run->o->udp && !t->sent)
		snprintf(what, sizeof what, "the number of lost packets is not known");
	else if (run->o->udp)
		snprintf(what, sizeof what, "%" PRIu64 " of %" PRIu64 " packets lost (%.3f %%)", t->lost, t->sent,
			 t->sent ? 100.0 * (double)t->lost / (double)t->sent : 0.0);
	else
		snprintf(what, sizeof what, "%" PRIu64 " retransmitted segments", t->retransmits);
	if (t->flows == 1)
		out_text(run->cli, "%s: %s%s, %s received, %s", direction, rate, covered, bytes, what);
	else
		out_text(run->cli, "%s: %s in all%s, %s received, %s; the slowest of %u flows %s, the fastest %s",
			 direction, rate, covered, bytes, what, t->flows, ktrxer_format_bitrate(low, t->slowest_bps),
			 ktrxer_format_bitrate(high, t->fastest_bps));
}

static void report_text(struct flow_run *run, const struct flow_total totals[2])
{
	const struct path_report path = flow_path_report(run);
	char bound[KTRXER_UNITS_TEXT], pace[KTRXER_UNITS_TEXT];

	flow_findings_text(run, false);
	flow_findings_text(run, true);
	if (run->o->udp)
		udp_table_text(run);
	else if (run->plan.request.flows > 1 && run->plan.request.flows <= TABLE_MAX)
		table_text(run);
	total_text(run, "up", &totals[0]);
	total_text(run, "down", &totals[1]);
	path_report_text(&path);
	flow_marks_text(run);
	moves_text(run);
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
	struct flow_plan plan;
	struct json *end;

	flow_client_result(run->client, &run->result);
	if (!run->result.started) {
		if (run->result.error.code)
			cli_fail(run->cli, &run->result.error);
		else
			cli_complain(run->cli, "it was stopped before the flows had started");
		return EXIT_NO_RESULT;
	}
	flow_pending_flush(run);
	flow_client_witness(run->client);
	path_witness_end(&run->witness,
			 &(struct path_claim){
				 .path = &run->path, .device = run->plan.device, .from = &run->plan.from, .sent = 1 });
	end = out_end(run->cli);
	plan = (struct flow_plan){ .start_ns = run->result.start_ns,
				   .sample_ns = run->plan.request.sample_ns,
				   .for_ns = run->plan.request.for_ns,
				   .bytes = run->plan.request.bytes,
				   .rtt_ns = run->result.rtt_ns,
				   .stopped = run->interrupted };
	for (uint32_t i = 0; i < flows; i++)
		flow_result(&run->results[i], &run->specs[i], &run->records[i], &plan);
	for (int down = 0; down < 2; down++)
		flow_total(&totals[down], down, flows, run->specs, run->records, run->results);
	for (int down = 0; down < 2; down++) {
		flow_find(&run->findings[down], &run->ends[down], down, flows, run->specs, run->results, &plan);
#ifndef KTRXER_SMALL
		flow_find_stalls(&run->findings[down], run->each, down, flows, run->specs, run->results, &plan);
#endif
	}
	flow_judge(run, totals);
	report_text(run, totals);
	flow_end_json(run, end, totals);
	return out_finish(run->cli, end);
}
