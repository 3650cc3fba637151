/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The verdict of `flow`: flows that ended early, and rates and losses that are not the path's. */
#include "bounds.h"
#include "error_bound.h"
#include "flow.h"
#include "flow_udp.h"
#include "path_report.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>

const char *flow_direction_of(const struct flow_run *run, uint32_t flow)
{
	return run->specs[flow].down ? "down" : "up";
}

const char *flow_why_ended(const struct flow_run *run, uint32_t flow)
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

		if (r->as_planned)
			continue;
		if (run->interrupted || (d->ended && d->end.reason == FLOW_STOPPED && !run->result.server_gone)) {
			stopped++;
			continue;
		}
		if (q->for_ns > lasted)
			reason_flow_ended_early(run->cli, i, flow_direction_of(run, i), (int64_t)(q->for_ns - lasted),
						(int64_t)lasted, flow_why_ended(run, i));
		else
			reason_flow_ended(run->cli, i, flow_direction_of(run, i), (int64_t)lasted, r->bytes,
					  flow_why_ended(run, i));
	}
	if (stopped)
		reason_flow_stopped(run->cli, stopped, q->flows);
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
		reason_flow_ecn(run->cli, i, flow_direction_of(run, i), on ? "agreed on" : "no", on ? 0 : 1,
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
		reason_flow_socket_drops(run->cli, i, flow_direction_of(run, i), dropped);
	else
		reason_flow_server_socket_drops(run->cli, i, flow_direction_of(run, i), dropped, lost,
						lost > dropped ? lost - dropped : 0);
}

/* The server began the flows too late for the rate: by more than its tolerance, as a part of a flow's time. */
static bool began_late(const struct flow_run *run)
{
	const uint64_t share = run->o->tolerance ? run->o->tolerance : BOUND_TOLERANCE / 1000;

	return run->result.begun_late_ns > BEGUN_LATE_NS &&
	       run->result.begun_late_ns / share > run->results[0].duration_ns / 100;
}

static void judge_start(struct flow_run *run)
{
	if (began_late(run))
		reason_flow_begun_late(run->cli, (int64_t)run->result.begun_late_ns,
				       run->result.start_repeated
					       ? "the path lost the start message, which TCP repeated"
					       : "the path delayed the start message, or the server had no "
						 "processor");
}

/* Packets that never left are no loss either. `failed`: those that the kernel did not take, which have a reason. */
static void judge_sender(struct flow_run *run, uint32_t i, uint64_t failed)
{
	const struct flow_side *s = run->results[i].sender;
	const bool here = s == &run->records[i].local;
	const uint64_t due = s->end.due_packets;

	if (!s->ended || due == UINT64_MAX || (!here && began_late(run)) || s->end.packets + 2 * failed > due)
		return;
	/* A stop can come between the time of a packet and its send call. */
	if (s->end.packets + due / 100 + run->interrupted < due)
		(here ? reason_flow_unsent : reason_flow_server_unsent)(run->cli, i, flow_direction_of(run, i),
									s->end.packets, due,
									100.0 * (double)s->end.packets / (double)due);
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

/* The packets that our own senders of UDP did not send, and the errors that the network returned. */
static void judge_udp(struct flow_run *run)
{
	for (uint32_t i = 0; run->o->udp && i < run->plan.request.flows; i++) {
		const struct flow_side *s = run->results[i].sender;
		struct ktx_accounts accounts = { .failed = 0 };
		struct ktrxer_hist *lateness = flow_client_lateness(run->client, i, &accounts);

		if (lateness)
			(accounts.failed ? verdict_packets : verdict_accounts)(run->cli, &accounts);
		ktrxer_hist_free(lateness);
		judge_engine(run, i);
		if (s->ended && s->end.reason == FLOW_PLANNED && s->end.error)
			(s->end.error != FLOW_NO_NEIGHBOUR ? reason_flow_network_answered
			 : s == &run->records[i].local
				 ? reason_flow_no_neighbour
				 : reason_flow_server_no_neighbour)(run->cli, i, flow_direction_of(run, i),
								    flow_error_words[s->end.error]);
		judge_receiver(run, i);
		judge_sender(run, i, accounts.failed);
	}
}

uint32_t flow_waited_most(const struct flow_run *run, bool here)
{
	uint32_t most = UINT32_MAX;

	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const struct flow_side *s = here ? &run->records[i].local : &run->records[i].remote;

		if (s->ended && s->end.waited != UINT32_MAX && (most == UINT32_MAX || s->end.waited > most))
			most = s->end.waited;
	}
	return most;
}

static void judge_windows(struct flow_run *run, bool down)
{
	uint32_t limited = 0, flows = 0;

	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		if (run->specs[i].down == down) {
			flows++;
			limited += run->results[i].receiver_limited;
		}
	if (limited)
		(down ? reason_flow_window : reason_flow_server_window)(run->cli, down ? "down" : "up", limited, flows);
}

static void judge_buffers(struct flow_run *run, bool down)
{
#ifndef KTRXER_SMALL
	uint32_t limited = 0, flows = 0;

	flow_find_buffer_limits(down, run->plan.request.flows, run->specs, run->records, run->results);
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		if (run->specs[i].down == down) {
			flows++;
			limited += run->results[i].sender_limited;
		}
	if (limited)
		(down ? reason_flow_server_buffer : reason_flow_buffer)(run->cli, down ? "down" : "up", limited, flows);
#else
	(void)run;
	(void)down;
#endif
}

/* A sender whose process is stopped leaves the path empty, however large its buffers are. */
static void judge_idle(struct flow_run *run, bool down)
{
#ifndef KTRXER_SMALL
	uint32_t idle = 0, flows = 0, most = 0;

	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		if (run->specs[i].down == down) {
			flows++;
			if (!run->results[i].sender_idle)
				continue;
			idle++;
			if (run->results[i].sender->end.idle > most)
				most = run->results[i].sender->end.idle;
		}
	if (idle)
		(down ? reason_flow_server_idle : reason_flow_idle)(run->cli, down ? "down" : "up", idle, flows,
								    most / 10.0);
#else
	(void)run;
	(void)down;
#endif
}

static uint64_t dropped_by_receivers(const struct flow_run *run, bool down)
{
	uint64_t dropped = 0, value;

	for (uint32_t i = 0; run->o->udp && i < run->plan.request.flows; i++) {
		value = flow_value(&run->records[i], FLOW_OVERFLOWS);
		if (run->specs[i].down == down && value != UINT64_MAX)
			dropped += value;
	}
	return dropped;
}

static void judge_rates(struct flow_run *run, const struct flow_total totals[2])
{
	static const struct bound_name names[] = { { "rate_up", "rate up", NULL }, { "rate_down", "rate down", NULL } };

	for (int down = 0; down < 2; down++) {
		const struct flow_total *t = &totals[down];
		struct bound_parts p = { .far = down ? NULL : "the server's socket", .tolerance = run->o->tolerance };

		if (!t->flows)
			continue;
		if (!flow_has_rate(t)) {
			reason_flow_not_covered(run->cli, t->coverage / 10.0, down ? "down" : "up");
			continue;
		}
		p.count[BOUND_BY_COVERAGE] = t->coverage < 1000 ? 1000 - t->coverage : 0;
		p.count[BOUND_BY_RESOLUTION] = (uint64_t)bound_share(t->edge_bytes, t->bytes);
		p.count[BOUND_BY_RECEIVE_BUFFER] = dropped_by_receivers(run, down);
		bound_rate(run->cli, &names[down], t->rate_bps, t->sent > t->lost ? t->sent - t->lost : 0, &p);
	}
}

void flow_judge(struct flow_run *run, const struct flow_total totals[2])
{
	const struct control_request *q = &run->plan.request;
	const struct path_report path = flow_path_report(run);
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < q->flows; i++)
		bytes += run->results[i].bytes;
	if (run->result.error.code)
		reason_failure(run->cli, VERDICT_DEGRADED, run->result.error.code, run->result.error.text);
	run->cli->no_figure = !bytes;
	if (!bytes)
		reason_flow_nothing_received(run->cli, q->flows);
	judge_ends(run);
	if (run->result.remote_missing && !run->result.server_gone && !run->interrupted)
		reason_flow_ends_missing(run->cli, run->result.remote_missing, q->flows);
	judge_rates(run, totals);
	if (run->pending_lost)
		reason_flow_samples_lost(run->cli, run->pending_lost);
	path_report_judge(&path);
	judge_ecn(run);
	flow_marks_judge(run);
	judge_start(run);
	judge_udp(run);
	judge_windows(run, false);
	judge_windows(run, true);
	judge_buffers(run, false);
	judge_buffers(run, true);
	judge_idle(run, false);
	judge_idle(run, true);
	if (run->late_ns > 0)
		reason_flow_started_late(run->cli, (int64_t)run->late_ns);
	if (run->result.clock_steps)
		reason_flow_clock_jumped(run->cli, CLOCK_OFFSET_RATE_PPM, run->result.clock_steps);
}
