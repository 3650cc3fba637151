/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* DSCP and ECN of the flows, sent against received, by direction. */
#include "flow.h"

#ifndef KTRXER_SMALL
#include "marks_report.h"
#include "reasons.h"

#include <string.h>

static const char *const names[] = { "up", "down" };

static bool has_same_before(const struct flow_run *run, uint32_t flow)
{
	for (uint32_t i = 0; i < flow; i++)
		if (run->specs[i].down == run->specs[flow].down && run->specs[i].tos == run->specs[flow].tos)
			return true;
	return false;
}

static bool has_other_class(const struct flow_run *run, uint32_t flow)
{
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		if (run->specs[i].tos >> 2 != run->specs[flow].tos >> 2)
			return true;
	return false;
}

/* Calls `report` once for each mark and direction, with the datagrams of all its flows together. */
static void each_mark(struct flow_run *run, void (*report)(const struct marks_report *))
{
	for (uint32_t i = 0; run->o->udp && i < run->plan.request.flows; i++) {
		const struct flow_spec *spec = &run->specs[i];
		struct marks arrived = { 0 };

		if (has_same_before(run, i))
			continue;
		for (uint32_t k = i; k < run->plan.request.flows; k++)
			if (run->specs[k].down == spec->down && run->specs[k].tos == spec->tos &&
			    run->results[k].receiver->ended)
				marks_add(&arrived, &run->results[k].receiver->end.marks);
		report(&(struct marks_report){ .cli = run->cli,
					       .arrived = &arrived,
					       .direction = names[spec->down],
					       .packets = "datagrams",
					       .sent = spec->tos,
					       .known = true,
					       .compared = has_other_class(run, i) });
	}
}

/* Both need ECN, and mark their packets for it. */
static bool needs_ecn(const struct flow_run *run, uint32_t i)
{
	static const char *const ccs[] = { "dctcp", "prague" };
	const char *cc = run->shown[i].cc[0] ? run->shown[i].cc : run->results[i].sender->end.cc;

	if (run->shown[i].ecn_wanted == FLOW_ECN_ON)
		return true;
	for (size_t k = 0; k < sizeof ccs / sizeof *ccs; k++)
		if (strcmp(cc, ccs[k]) == 0)
			return true;
	return false;
}

static bool is_bleached(const struct flow_run *run, uint32_t i)
{
	const struct flow_side *receiver = run->results[i].receiver;
	const uint64_t options = flow_value(&run->records[i], FLOW_OPTIONS);

	return !run->o->udp && receiver->ended && receiver->end.bytes && receiver->end.ecn_seen == FLOW_ECN_NONE &&
	       options != UINT64_MAX && options & FLOW_ECN_NEGOTIATED;
}

enum { RETURN_RTTS = 10, RETURN_SEGMENTS = 3 };
#define RETURN_NS (500 * (uint64_t)KTRXER_NS_PER_MS)

/*
 * The receiver repeats ECE in each acknowledgement until the sender confirms it (RFC 3168, 6.1.3): after ten round
 * trips without one, no report arrives.
 */
static bool is_unreturned(const struct flow_run *run, uint32_t i)
{
	const struct flow_side *receiver = run->results[i].receiver, *sender = run->results[i].sender;
	const struct flow_end *end = &receiver->end;
	const uint64_t rtt_us = flow_value(&run->records[i], FLOW_RTT_US);

	if (run->o->udp || !receiver->ended || !sender->ended || end->ecn_seen != FLOW_ECN_SEEN ||
	    end->ce_segments == UINT32_MAX || end->ce_segments < RETURN_SEGMENTS || !end->ce_first_ns ||
	    rtt_us == UINT64_MAX || flow_value(&run->records[i], FLOW_DELIVERED_CE) != 0)
		return false;
	return sender->end.time_ns > end->ce_first_ns &&
	       sender->end.time_ns - end->ce_first_ns > RETURN_NS + RETURN_RTTS * rtt_us * KTRXER_NS_PER_US;
}

static bool is_uncounted(const struct flow_run *run, uint32_t i)
{
	const struct flow_side *receiver = run->results[i].receiver;

	return !run->o->udp && receiver->ended && receiver->end.ecn_seen == FLOW_ECN_SEEN &&
	       receiver->end.ce_segments == UINT32_MAX;
}

struct tcp_marks {
	uint32_t flows, bleached, claimed, unreturned, uncounted;
	uint64_t ce;
};

static struct tcp_marks tcp_marks(const struct flow_run *run, bool down)
{
	struct tcp_marks m = { 0 };

	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		if (run->specs[i].down != down)
			continue;
		m.flows++;
		if (is_bleached(run, i)) {
			m.bleached++;
			m.claimed += needs_ecn(run, i);
		}
		m.uncounted += is_uncounted(run, i);
		if (is_unreturned(run, i)) {
			m.unreturned++;
			m.ce += run->results[i].receiver->end.ce_segments;
		}
	}
	return m;
}

void flow_marks_judge(struct flow_run *run)
{
	each_mark(run, marks_report_judge);
	for (int down = 0; down < 2; down++) {
		const struct tcp_marks m = tcp_marks(run, down);

		if (m.claimed)
			reason_flow_ecn_bleached(run->cli, m.claimed, m.flows, names[down]);
		if (m.unreturned)
			reason_flow_ce_not_returned(run->cli, m.unreturned, m.flows, names[down], m.ce);
	}
}

void flow_marks_text(struct flow_run *run)
{
	each_mark(run, marks_report_text);
	for (int down = 0; down < 2; down++) {
		const struct tcp_marks m = tcp_marks(run, down);

		if (m.bleached > m.claimed)
			out_text(run->cli,
				 "marks: %u of %u TCP flows %s agreed on ECN, and no segment arrived with an ECN mark",
				 m.bleached - m.claimed, m.flows, names[down]);
		if (m.uncounted)
			out_text(run->cli,
				 "marks: CE of %u of %u TCP flows %s is not observed: "
				 "Linux before 6.18 does not count it",
				 m.uncounted, m.flows, names[down]);
	}
}
#endif
