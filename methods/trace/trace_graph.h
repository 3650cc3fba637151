/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which probes find all routes to a host, and the graph that their answers make: the Multipath Detection Algorithm
 * (Augustin, Friedman, Teixeira, E2EMON 2007), hop by hop (MDA-Lite: Vermeulen et al., IMC 2018). A router that
 * balances load chooses the next hop by a packet's flow identifier (addresses, ports), so each probe has a number of a
 * flow, and all probes of one flow take one route. The same flows are probed at all hops, so that their number bounds
 * the share of all flows that a next hop may have unnoticed, with any weights. No I/O and no clock: a caller sends what
 * is wanted and adds the answers.
 */
#ifndef KTRXER_METHODS_TRACE_GRAPH_H
#define KTRXER_METHODS_TRACE_GRAPH_H

#include <ktrxer.h>

enum {
	TRACE_HOPS_MAX = 64,
	TRACE_FLOWS_MAX = 8192, /* probes of different flows at one hop */
	TRACE_NODES_MAX = 1024, /* of one hop */
	TRACE_AHEAD = 4,        /* hops that the first flow probes at once */
};

enum trace_end {
	TRACE_GOES_ON = 0,
	TRACE_ARRIVED = 1,     /* the destination */
	TRACE_UNREACHABLE = 2, /* a router or a firewall refuses the packets */
	TRACE_LOOP = 3,        /* the address occurs at two earlier hops of the same flow */
	TRACE_SILENCE = 4,     /* too many hops in a row do not answer */
};

struct trace_node {
	struct ktrxer_addr addr; /* family 0: no answer */
	uint8_t hop;             /* 1: the first router */
	uint8_t end;             /* enum trace_end */
	uint8_t silent_hops;     /* hops in a row without an answer, up to this one */
	bool complete;           /* the search has ended, and its next hop was probed */
	bool balances;           /* it has more than one next hop */
	uint32_t flows;          /* that have passed */
	uint32_t tested;         /* of these: probed at the next hop as well */
	uint16_t *next;          /* the nodes of the next hop, by their index in that hop */
	uint32_t next_count, next_room;
	bool unreachable_goes_on; /* it answers an expired TTL with "unreachable", and forwards other packets */
	bool linked;              /* a node of the hop before it leads here */
};

struct trace_graph_options {
	uint8_t hops_max;   /* TRACE_HOPS_MAX at most */
	uint8_t silent_max; /* so many hops in a row without an answer end the search */
	double failure; /* of missing a next hop with `share` or more, over all hops, at most; 0: one flow, no search */
	double share;   /* of all flows; at most a half */
};

struct trace_want {
	uint8_t hop;
	uint16_t flow;
};

struct trace_graph;
int trace_graph_new(struct trace_graph **graph, const struct trace_graph_options *options);
void trace_graph_free(struct trace_graph *graph);

/*
 * The next probes, `max` at most, each of them once. 0: the graph is complete. All of them must be answered before the
 * next call: the number that is needed depends on their answers.
 */
int trace_graph_want(struct trace_graph *graph, struct trace_want *wants, int max);
/*
 * The answer to a probe, or that there is none (`from` NULL). `end`: TRACE_GOES_ON, TRACE_ARRIVED or TRACE_UNREACHABLE.
 * 0, -ENOMEM, or -EINVAL: it was not wanted, or is answered already.
 */
int trace_graph_answer(struct trace_graph *graph, struct trace_want probe, const struct ktrxer_addr *from,
		       enum trace_end end);

/*
 * A probe without an answer is in doubt where its router may limit its answers: a node leads to the silent node, and to
 * one that answered. One such probe of each hop, to be sent once more after a pause, its former result taken back. Like
 * trace_graph_want(), and before it; 0: none is in doubt. A hop of which the first three do not answer is silent.
 */
int trace_graph_doubts(struct trace_graph *graph, struct trace_want *wants, int max);
/* All that is in doubt still is left out of the graph. Returns how many probes; nothing is to be wanted after it. */
uint32_t trace_graph_leave_doubts(struct trace_graph *graph);

/* The last hop that has a node that can be reached from here. */
uint8_t trace_graph_hops(const struct trace_graph *graph);
/* The nodes of a hop, `linked` or not: those that are not are no part of the graph. */
const struct trace_node *trace_graph_nodes(const struct trace_graph *graph, uint8_t hop, uint32_t *count);
/* Returns -1 if the node is not known. */
int trace_graph_node_of(const struct trace_graph *graph, uint8_t hop, uint16_t flow);
/* UINT64_MAX: that many and more. */
uint64_t trace_graph_routes(const struct trace_graph *graph);
/* Nodes or flows were left out because of the limits above. */
bool trace_graph_is_cut(const struct trace_graph *graph);

#endif
