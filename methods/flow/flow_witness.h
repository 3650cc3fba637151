/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The path of flows at the client. A stamp of each packet would slow a flow down, so the packet scheduler stamps some:
 * the preface of each flow, and one send call of each second. UDP senders' stamps are those of their transmitters.
 */
#ifndef KTRXER_METHODS_FLOW_WITNESS_H
#define KTRXER_METHODS_FLOW_WITNESS_H

#include "flow_set.h"

#ifndef KTRXER_SMALL
/* The next send call of the flow is to be stamped, if the last one with a stamp was a second ago. */
void flow_witness_due(struct flow *flow);
/* Around a send call by this socket. flow_witness_end() without a begin does nothing. */
void flow_witness_begin(struct flow *flow, int fd);
void flow_witness_end(struct flow *flow, int fd);
/* Reads the stamps of this socket. True: there were some, or errors of the network. */
bool flow_witness_take(struct flow *flow, int fd);
#else
static inline void flow_witness_due(struct flow *flow)
{
	(void)flow;
}
static inline void flow_witness_begin(struct flow *flow, int fd)
{
	(void)flow, (void)fd;
}
static inline void flow_witness_end(struct flow *flow, int fd)
{
	(void)flow, (void)fd;
}
static inline bool flow_witness_take(struct flow *flow, int fd)
{
	(void)flow, (void)fd;
	return false;
}
#endif

#endif
