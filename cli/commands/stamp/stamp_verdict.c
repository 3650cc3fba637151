/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The verdict of `stamp`: loss that is not the path's, clocks that moved, and answers that do not count. */
#include "stamp_command.h"

#include "dscp.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#ifndef KTRXER_SMALL
enum { UNCORRECTED_PERCENT = 1 };

static void judge_host_delay(const struct stamp_command *run)
{
	const struct stamp_result *r = run->result;

	if (r->uncorrected && r->uncorrected == r->counts.received)
		reason_host_delay_unknown(run->report.cli, run->o->p.host);
	else if (r->uncorrected * 100 > r->counts.received * UNCORRECTED_PERCENT)
		reason_host_delay_partly(run->report.cli, r->uncorrected, r->counts.received);
}
#endif

/* Probes that the server refused are not lost on the path. */
static void judge_server(const struct stamp_command *run)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const uint64_t impossible = run->report.prober->result.impossible;

	if (c->server_refused)
		reason_server_refused(run->report.cli, c->server_refused, c->server_rate, c->lost);
	if (impossible)
		reason_stamps_impossible(run->report.cli, impossible, c->received);
}

/* The rate of the reflector's clock against ours, rounded up. */
static int64_t rate_ppm(const struct one_way_result *w)
{
	const double ppm = w->known && w->clock.skew_known ? 1 + fabs(w->clock.skew_ppm) + w->clock.skew_bound_ppm
							   : CLOCK_ADJUST_RATE_PPM;

	return ppm < CLOCK_ADJUST_RATE_PPM ? (int64_t)ppm : CLOCK_ADJUST_RATE_PPM;
}

static int64_t dwell_error(int64_t dwell_ns, int64_t ppm)
{
	return dwell_ns > 0 ? dwell_ns / 1000000 * ppm + dwell_ns % 1000000 * ppm / 1000000 : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The numbers of all classes are limits of that of each. */
static void of_class(struct bound_parts *p, const struct stamp_class_result *class, uint32_t classes)
{
	const struct stamp_session_counts *c = &class->counts;

	p->count[BOUND_BY_SEND_TIME] = least(p->count[BOUND_BY_SEND_TIME], c->received);
	p->count[BOUND_BY_RECEIVE_TIME] = least(p->count[BOUND_BY_RECEIVE_TIME], c->received);
	p->count[BOUND_BY_DWELL] = least(p->count[BOUND_BY_DWELL], c->received);
	p->count[BOUND_BY_RECEIVE_BUFFER] = least(p->count[BOUND_BY_RECEIVE_BUFFER], c->lost);
	p->count[BOUND_BY_LEFT_OUT] = class->untimed;
	p->count[BOUND_BY_SKIPPED] = (p->count[BOUND_BY_SKIPPED] + classes - 1) / classes;
	p->count[BOUND_BY_UNSENT] = (p->count[BOUND_BY_UNSENT] + classes - 1) / classes;
	p->unseen = least(p->unseen, c->lost);
}

static void judge_bounds(const struct stamp_command *run)
{
	struct bound_name rtt = { "rtt_p50", "p50 of the round trip", NULL }, loss = { "loss", "loss", NULL };
	const struct stamp_result *r = run->result;
	struct bound_parts parts = probe_bound_parts(&run->report, r->counts.received);
	const int64_t ppm = rate_ppm(&r->one_way);

	if (r->counts.server_dropped > parts.count[BOUND_BY_RECEIVE_BUFFER])
		parts.far = "the reflector's socket";
	parts.count[BOUND_BY_RECEIVE_BUFFER] =
		least(parts.count[BOUND_BY_RECEIVE_BUFFER] + r->counts.server_dropped, r->counts.lost);
	parts.count[BOUND_BY_LEFT_OUT] += r->uncorrected;
	parts.count[BOUND_BY_DWELL] = r->held;
	parts.dwell_ns = dwell_error(stamp_held_ns(run->report.prober), ppm);
	parts.ns[BOUND_BY_DWELL] = dwell_error(r->dwell_max_ns, ppm);
	for (uint32_t i = 0; i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];
		struct bound_parts p = parts;
		char name[16], dscp[8];

		if (r->class_count > 1) {
			snprintf(name, sizeof name, "DSCP %s", dscp_name(class->tos >> 2, dscp));
			rtt.probes = loss.probes = name;
			of_class(&p, class, r->class_count);
		}
		bound_delay(run->report.cli, &rtt, class->rtt, &p);
		bound_loss(run->report.cli, &loss, class->counts.sent, class->counts.lost, &p);
	}
}

static void judge_clock(const struct stamp_command *run, const struct clock_watch *clock, const char *whose,
			const char *effect)
{
	if (clock->changes)
		reason_clock_changed(run->report.cli, whose, CLOCK_ADJUST_RATE_PPM, clock->changes, clock->largest_ns,
				     effect);
}

static void judge_clocks(const struct stamp_command *run)
{
	const struct one_way_result *w = &run->result->one_way;

	judge_clock(run, &w->far_clock, "the reflector",
		    "one-way delays leave the change out, because the reflector reported it");
	judge_clock(run, &w->own_clock, "this host", "in that time delays are wrong by the rate of the slew");
	if (w->steps)
		reason_clocks_stepped(run->report.cli, CLOCK_OFFSET_RATE_PPM, w->steps);
	if (w->clock.free_running && w->clock.drifts)
		reason_clock_drifts(run->report.cli, CLOCK_OFFSET_DRIFT_PPM_PER_S, CLOCK_OFFSET_RATE_PPM);
	if (w->contradicted)
		reason_clocks_contradicted(run->report.cli);
}

void stamp_judge(const struct stamp_command *run)
{
	const struct probe_result *p = &run->report.prober->result;
	const struct stamp_session_counts *c = &run->result->counts;
	char port[48];

	run->report.cli->no_figure = !c->received;
	probe_judge(&run->report, c->received);
	if (p->stopped && p->wanted != UINT64_MAX)
		reason_stamp_stopped(run->report.cli, p->accounts.sent, p->wanted * run->report.each);
	judge_bounds(run);
	if (c->wrong_hmac && !c->received)
		reason_wrong_hmac(run->report.cli, run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && c->foreign)
		reason_not_a_reflector(run->report.cli, c->foreign, run->o->p.port, run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && run->result->elsewhere)
		reason_from_elsewhere(run->report.cli, run->result->elsewhere, run->o->p.host);
	else {
		snprintf(port, sizeof port, " on UDP port %" PRIu64, run->o->p.port);
		probe_judge_answers(&run->report, c->sent, c->received, c->too_late, port,
				    run->o->auth_key_file
					    ? " (a reflector with another key stays silent, too)"
					    : ": start `ktrxer serve` there, give its --port, or a longer --timeout");
	}
	judge_server(run);
#ifndef KTRXER_SMALL
	stamp_judge_path(run);
	judge_host_delay(run);
#endif
	/* Where nothing was lost, as behind a NAT that changes the port, a new count is no fault of a figure. */
	if (c->restarts && c->lost_unknown)
		reason_reflector_restarted(run->report.cli, c->restarts);
	judge_clocks(run);
	if (c->tlvs_refused)
		reason_extensions_refused(run->report.cli, c->tlvs_refused);
}
