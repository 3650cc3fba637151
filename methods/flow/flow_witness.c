/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_witness.h"

#ifndef KTRXER_SMALL
#include "path_witness.h"
#include "txstamp.h"

#include <sys/socket.h>

#define EACH_NS ((uint64_t)KTRXER_NS_PER_S)

static uint8_t family_of(int fd)
{
	int family = AF_INET;
	socklen_t length = sizeof family;

	(void)!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &length);
	return (uint8_t)family;
}

void flow_witness_due(struct flow *flow)
{
	if (flow_set_options(flow->set)->witness && ktrxer_now_ns() - flow->stamped_ns >= EACH_NS)
		flow->stamp_due = true;
}

void flow_witness_begin(struct flow *flow, int fd)
{
	if (!flow_set_options(flow->set)->witness || flow->unwatched)
		return;
	flow->stamp_due = true;
	flow->stamped_ns = ktrxer_now_ns();
	ktrxer_txstamp_path(fd, family_of(fd), true);
}

void flow_witness_end(struct flow *flow, int fd)
{
	if (!flow->stamp_due)
		return;
	flow->stamp_due = false;
	ktrxer_txstamp_path(fd, family_of(fd), false);
}

struct stamps {
	struct flow *flow;
	bool any;
};

static void sched_arrived(void *context, uint32_t key, int64_t real_ns, uint32_t device, const struct ktrxer_addr *from)
{
	struct stamps *stamps = context;
	struct flow *flow = stamps->flow;

	(void)real_ns;
	stamps->any = true;
	/* The first of stacked devices counts, and a packet that TCP sends again keeps its number. */
	if (!flow->stamp_seen || (int32_t)(key - flow->stamp_key) > 0)
		path_witness_left(flow_set_options(flow->set)->witness, device, from, 1);
	flow->stamp_key = key;
	flow->stamp_seen = true;
}

static void refusal_arrived(void *context, const struct ktx_network_error *error)
{
	(void)error;
	((struct stamps *)context)->any = true;
}

bool flow_witness_take(struct flow *flow, int fd)
{
	struct stamps stamps = { .flow = flow };
	const struct ktx_completions to = { .sched = sched_arrived, .refusal = refusal_arrived, .context = &stamps };

	if (!flow_set_options(flow->set)->witness || !flow->stamped_ns)
		return false;
	(void)ktrxer_txstamp_reap(fd, &to);
	return stamps.any;
}
#endif
