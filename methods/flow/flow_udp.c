/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A UDP flow as one of a set of flows: the operations of both ends. */
#include "flow_set.h"
#include "flow_udp_state.h"
#include "flow_witness.h"

#include "message.h"

#include <unistd.h>

enum { KTRXER_FLOW_QUEUE_S = 20 /* a receiver of UDP waits for what is queued on its way at most so long */ };

#define RUN_OUT_NS (100 * (uint64_t)KTRXER_NS_PER_MS) /* for what was committed before the end */

static void udp_sample(struct flow *flow, struct flow_sample *s)
{
	struct flow_udp *u = flow->udp;

	s->kind = FLOW_UDP;
	for (int i = 0; i < FLOW_UDP_VALUES; i++)
		s->values[i] = UINT64_MAX;
	if (flow->sends) {
		struct ktx_accounts a;

		flow_witness_due(flow);
		ktx_accounts(u->tx, &a);
		s->values[FLOW_PACKETS] = a.sent - u->before.sent;
		s->bytes = a.bytes - u->before.bytes - s->values[FLOW_PACKETS] * u->head;
		return;
	}
	s->bytes = u->count.bytes;
	s->values[FLOW_PACKETS] = u->count.packets;
	s->values[FLOW_ECT0] = u->count.ect0;
	s->values[FLOW_ECT1] = u->count.ect1;
	s->values[FLOW_CE] = u->count.ce;
	s->values[FLOW_UDP_LOST] = flow_count_lost(&u->count, u->reported_packets);
	s->values[FLOW_REORDERED] = u->count.reordered;
	s->values[FLOW_DUPLICATES] = u->count.duplicates;
	flow->end.marks = u->count.marks;
	if (u->socket < 0)
		return;
	ktrxer_socket_drops(u->socket, &u->overflow_seen, &u->overflows);
	s->values[FLOW_OVERFLOWS] = u->overflows;
}

/*
 * So long after `from_ns`, or after the last packet if that came later; KTRXER_FLOW_QUEUE_S after `from_ns` at the
 * latest.
 */
static uint64_t quiet_ns(const struct flow_udp *u, uint64_t from_ns, uint64_t silence_ns)
{
	const uint64_t silent_ns = (u->last_ns > from_ns ? u->last_ns : from_ns) + silence_ns;
	const uint64_t last_ns = from_ns + KTRXER_FLOW_QUEUE_S * (uint64_t)KTRXER_NS_PER_S;

	return silent_ns < last_ns ? silent_ns : last_ns;
}

/* A slow bottleneck needs longer than usual for each packet of its queue. */
static uint64_t silence_ns(const struct flow_udp *u)
{
	const uint64_t least_ns = KTRXER_FLOW_REPORTED_MS / 2 * (uint64_t)KTRXER_NS_PER_MS,
		       most_ns = KTRXER_FLOW_WORD_S * (uint64_t)KTRXER_NS_PER_S;
	const uint64_t gaps_ns = u->gap_ns < most_ns ? 3 * u->gap_ns : most_ns;

	return gaps_ns < least_ns ? least_ns : gaps_ns < most_ns ? gaps_ns : most_ns;
}

static uint64_t udp_end_ns(struct flow *flow, uint64_t now_ns)
{
	struct flow_udp *u = flow->udp;

	if (flow->sends) {
		if (flow->end_ns > now_ns || now_ns >= flow->end_ns + RUN_OUT_NS)
			return flow->end_ns;
		/* Packets that a busy machine could not commit in time belong to the flow, too. */
		if (!u->exhausted)
			u->timer.at_ns = 0;
		return u->exhausted && !flow_udp_pending(u) ? flow->end_ns : now_ns + KTRXER_NS_PER_MS;
	}
	/*
	 * The last packets may still wait in a queue, for seconds, and are not lost: as long as packets arrive, more
	 * may come. The sender reports how many there were.
	 */
	if (u->reported)
		return u->count.packets >= u->reported_packets ? 0 : quiet_ns(u, u->reported_ns, silence_ns(u));
	return flow->end_ns == KTRXER_NEVER
		       ? KTRXER_NEVER
		       : quiet_ns(u, flow->end_ns, KTRXER_FLOW_SETTLE_S * (uint64_t)KTRXER_NS_PER_S);
}

uint64_t flow_udp_arrival_gap_ns(const struct flow *flow)
{
	const struct flow_udp *u = flow->udp;

	return u->count.packets > 1 ? (u->last_ns - flow->end.first_ns) / (u->count.packets - 1) : 0;
}

/*
 * Its time begins with the first packet and lasts as long as that of the sender, or, if a queue delays the last packet,
 * until the time of that one ends. Without an end by time the last packet has the time of a mean gap, as the others.
 */
static uint64_t udp_last_ns(const struct flow *flow)
{
	const struct flow_udp *u = flow->udp;
	uint64_t end_ns = u->last_ns ? u->last_ns + flow_udp_gap_ns(&flow->spec) : 0, late_ns, gap_ns;

	if (flow->end_ns == KTRXER_NEVER || u->ended_early)
		return end_ns;
	end_ns = flow->end_ns;
	if (flow->end.first_ns > flow->start_ns)
		end_ns += flow->end.first_ns - flow->start_ns;
	if (u->last_ns <= end_ns)
		return end_ns;
	late_ns = u->last_ns - end_ns;
	gap_ns = flow_udp_arrival_gap_ns(flow);
	return u->last_ns + (late_ns < gap_ns ? late_ns : gap_ns);
}

static void udp_reported(struct flow *flow, const struct flow_end *end)
{
	struct flow_udp *u = flow->udp;

	if (!u || flow->sends || u->reported)
		return;
	u->reported = true;
	u->reported_ns = ktrxer_now_ns();
	u->reported_packets = end->packets;
	u->ended_early = end->reason != FLOW_PLANNED;
}

static int udp_error(const struct flow *flow)
{
	return flow->udp ? flow->udp->network_error : 0;
}

/* A receiver's own socket; a sender's is its transmitter's. */
static void udp_close(struct flow *flow, bool gently)
{
	(void)gently;
	if (flow->source.fd < 0)
		return;
	loop_unwatch(flow->udp->loop, &flow->source);
	close(flow->source.fd);
	flow->source.fd = -1;
}

const struct flow_ops flow_udp_ops = {
	.begin = flow_udp_begin,
	.sample = udp_sample,
	.end_ns = udp_end_ns,
	.stop = flow_udp_stop,
	.last_ns = udp_last_ns,
	.reported = udp_reported,
	.account = flow_udp_account,
	.error = udp_error,
	.close = udp_close,
	.free = flow_udp_free,
};
