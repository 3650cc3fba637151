/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The verdict of `stamp`: loss that is not the path's, clocks that moved, and answers that do not count. */
#include "stamp_command.h"

#include "reasons.h"
#include "units.h"

#include <inttypes.h>
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

#define DWELL_LONG_NS (250 * (int64_t)KTRXER_NS_PER_MS)

/* Probes that the server refused or dropped are not lost on the path. */
static void judge_server(const struct stamp_command *run)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const struct stamp_result *r = run->result;
	const uint64_t impossible = run->report.prober->result.impossible;

	if (c->server_refused)
		reason_server_refused(run->report.cli, c->server_refused, c->server_rate, c->lost);
	if (impossible)
		reason_stamps_impossible(run->report.cli, impossible, c->received);
	if (r->dwell_max_ns > DWELL_LONG_NS || r->held * 100 > c->received)
		reason_server_held(run->report.cli, r->dwell_max_ns, r->held, c->received,
				   stamp_held_ns(run->report.prober));
	if (c->server_dropped)
		reason_server_dropped(run->report.cli, c->server_dropped, c->lost);
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

	probe_judge(&run->report, c->received);
	if (p->stopped && p->wanted != UINT64_MAX)
		reason_stamp_stopped(run->report.cli, p->accounts.sent, p->wanted * run->report.each);
	probe_judge_times(&run->report, c->received);
	if (c->wrong_hmac && !c->received)
		reason_wrong_hmac(run->report.cli, run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && c->foreign)
		reason_not_a_reflector(run->report.cli, c->foreign, run->o->p.port, run->o->p.host);
	else if (c->sent && !c->received && !c->too_late && run->result->elsewhere)
		reason_from_elsewhere(run->report.cli, run->result->elsewhere, run->o->p.host);
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
		reason_reflector_restarted(run->report.cli, c->restarts);
	judge_clocks(run);
	if (c->tlvs_refused)
		reason_extensions_refused(run->report.cli, c->tlvs_refused);
}
