/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The verdict of `stamp`: loss that is not the path's, clocks that moved, and answers that do not count. */
#include "stamp_command.h"

#include "units.h"

#include <inttypes.h>
#include <stdio.h>

#ifndef KTRXER_SMALL
enum { UNCORRECTED_PERCENT = 1 };

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

void stamp_judge(const struct stamp_command *run)
{
	const struct probe_result *p = &run->report.prober->result;
	const struct stamp_session_counts *c = &run->result->counts;
	char port[48];

	probe_judge(&run->report, c->received);
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
