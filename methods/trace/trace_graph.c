/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_graph.h"

#include "mda.h"

#include <errno.h>
#include <stdlib.h>

/*
 * Values of `passed`. LEFT_OUT: the answer's node found no room, or there is doubt. FIRST_NODE and more: the index of a
 * node, plus FIRST_NODE.
 */
enum { UNPROBED, WANTED, LEFT_OUT, FIRST_NODE };

struct hop {
	struct trace_node *nodes;
	uint32_t count, room;
	uint16_t *passed; /* by flow */
	uint32_t flows;   /* flows below this number were probed */
	bool repeats;     /* `asked_flow` was in doubt, and is probed again */
	uint16_t doubted_flow;
	uint32_t repeated, granted;            /* probes that were in doubt and sent again; of these, with an answer */
	uint64_t silent[TRACE_FLOWS_MAX / 64]; /* a bit for each flow that had no answer again */
};

struct scan {
	struct ktrxer_addr from;
	uint8_t end;
	bool wanted, answered;
};

struct trace_graph {
	struct trace_graph_options options;
	struct hop hops[TRACE_HOPS_MAX + 1]; /* 0: this host, that all flows pass */
	uint32_t need[MDA_HOPS_MAX +
		      1]; /* probes that exclude a further next hop after so many were seen; 0: not computed */
	/* The first flow, which finds the length of the route, several hops at a time. */
	struct scan scans[TRACE_HOPS_MAX + 1];
	bool scanned;     /* the flow has ended */
	uint8_t scan_hop; /* hops below it were asked for */
	uint8_t length;   /* of its route */
	uint8_t last;     /* hop that is probed */
	bool cut;
};

static struct trace_node *node_at(struct trace_graph *g, uint8_t hop, uint16_t flow)
{
	const uint16_t value = g->hops[hop].passed[flow];

	return value >= FIRST_NODE ? &g->hops[hop].nodes[value - FIRST_NODE] : NULL;
}

static bool is_at(const struct trace_node *node, const struct ktrxer_addr *from, enum trace_end end)
{
	if (!from)
		return !node->addr.family;
	/* A router that forwards some packets and refuses others is two nodes: one goes on. */
	return ktrxer_addr_equal(&node->addr, from) &&
	       (node->end == end || (node->end > TRACE_UNREACHABLE && end == TRACE_GOES_ON) ||
		(node->unreachable_goes_on && end == TRACE_UNREACHABLE));
}

static int node_find(struct trace_graph *g, uint8_t hop, const struct ktrxer_addr *from, enum trace_end end,
		     uint32_t *index)
{
	struct hop *h = &g->hops[hop];

	for (*index = 0; *index < h->count; ++*index)
		if (is_at(&h->nodes[*index], from, end))
			return 0;
	if (h->count == TRACE_NODES_MAX) {
		g->cut = true;
		return -E2BIG;
	}
	if (h->count == h->room) {
		const uint32_t room = h->room ? 2 * h->room : 8;
		struct trace_node *nodes = realloc(h->nodes, room * sizeof *nodes);

		if (!nodes)
			return -ENOMEM;
		h->nodes = nodes;
		h->room = room;
	}
	h->nodes[h->count++] = (struct trace_node){ .hop = hop,
						    .addr = from ? *from : (struct ktrxer_addr){ 0 },
						    .end = (uint8_t)end,
						    .silent_hops = from ? 0 : UINT8_MAX };
	return 0;
}

static bool ends(const struct trace_node *node)
{
	return node->end != TRACE_GOES_ON;
}

static void spread(const struct trace_node *a, struct trace_node *b)
{
	b->linked |= a->linked;
	if (!b->addr.family && a->silent_hops + 1 < b->silent_hops)
		b->silent_hops = (uint8_t)(a->silent_hops + 1);
}

/* A flow passes `a`, then the node of `index` at the next hop. */
static int link_nodes(struct trace_graph *g, struct trace_node *a, uint32_t index)
{
	struct trace_node *b = &g->hops[a->hop + 1].nodes[index];

	if (ends(a))
		return 0;
	a->tested++;
	spread(a, b);
	for (uint32_t i = 0; i < a->next_count; i++)
		if (a->next[i] == index)
			return 0;
	if (a->next_count == a->next_room) {
		const uint32_t room = a->next_room ? 2 * a->next_room : 2;
		uint16_t *next = realloc(a->next, room * sizeof *next);

		if (!next)
			return -ENOMEM;
		a->next = next;
		a->next_room = room;
	}
	a->next[a->next_count++] = (uint16_t)index;
	a->balances = a->next_count > 1;
	return 0;
}

static void links_renew(struct trace_graph *g);

/*
 * Packets of the same flow get behind the node: it answers an expired TTL with "unreachable", and forwards the others.
 */
static void refute_end(struct trace_graph *g, uint8_t hop, uint16_t flow)
{
	struct trace_node *node = node_at(g, hop, flow);
	const struct trace_node *next = hop < g->options.hops_max ? node_at(g, hop + 1, flow) : NULL;

	if (!node || !next || node->end != TRACE_UNREACHABLE || !next->addr.family ||
	    ktrxer_addr_equal(&node->addr, &next->addr))
		return;
	node->end = TRACE_GOES_ON;
	node->unreachable_goes_on = true;
	links_renew(g);
}

static bool is_loop(struct trace_graph *g, uint8_t hop, uint16_t flow, const struct ktrxer_addr *from)
{
	int seen = 0;

	for (uint8_t h = 1; h < hop; h++) {
		const struct trace_node *node = node_at(g, h, flow);

		seen += node && ktrxer_addr_equal(&node->addr, from);
	}
	return seen >= 2;
}

static int passed_set(struct trace_graph *g, uint8_t hop, uint16_t flow, const struct ktrxer_addr *from,
		      enum trace_end end)
{
	struct trace_node *before, *here;
	uint32_t index;
	int rc;

	if (from && end == TRACE_GOES_ON && is_loop(g, hop, flow, from))
		end = TRACE_LOOP;
	rc = node_find(g, hop, from, end, &index);
	if (rc < 0) {
		g->hops[hop].passed[flow] = LEFT_OUT;
		return rc == -E2BIG ? 0 : rc;
	}
	g->hops[hop].passed[flow] = (uint16_t)(index + FIRST_NODE);
	here = &g->hops[hop].nodes[index];
	here->flows++;
	before = node_at(g, hop - 1, flow);
	if (before && (rc = link_nodes(g, before, index)) < 0)
		return rc;
	if (hop < g->options.hops_max && g->hops[hop + 1].passed[flow] >= FIRST_NODE)
		rc = link_nodes(g, here, g->hops[hop + 1].passed[flow] - FIRST_NODE);
	refute_end(g, hop - 1, flow);
	refute_end(g, hop, flow);
	return rc;
}

/*
 * 1: the first later hop of the first flow that answers has another address than this one, which answered
 * "unreachable"; -1: that answer is awaited.
 */
static int end_refuted(const struct trace_graph *g, uint8_t hop)
{
	const struct scan *s = &g->scans[hop], *later = s + 1;

	if (s->end != TRACE_UNREACHABLE || hop == g->options.hops_max)
		return 0;
	for (; later <= &g->scans[g->scan_hop]; later++) {
		if (!later->answered)
			return -1;
		if (later->from.family)
			return !ktrxer_addr_equal(&later->from, &s->from);
	}
	return hop == g->scan_hop ? -1 : 0;
}

/* Moves the answers of the first flow into the graph, up to its end. */
static int scan_take(struct trace_graph *g)
{
	int refuted;

	while (!g->scanned && g->length < g->scan_hop && g->scans[g->length + 1].answered &&
	       (refuted = end_refuted(g, g->length + 1)) >= 0) {
		const struct scan *s = &g->scans[++g->length];
		struct trace_node *node;
		int rc = passed_set(g, g->length, 0, s->from.family ? &s->from : NULL, s->end);

		if (rc < 0)
			return rc;
		node = node_at(g, g->length, 0);
		if (refuted) {
			node->end = TRACE_GOES_ON;
			node->unreachable_goes_on = true;
		}
		g->scanned =
			ends(node) || g->length == g->options.hops_max || node->silent_hops >= g->options.silent_max;
	}
	return 0;
}

static int scan_want(struct trace_graph *g, struct trace_want *wants, int max)
{
	int n = 0;

	while (n < max && g->scan_hop < g->options.hops_max && g->scan_hop < g->length + TRACE_AHEAD) {
		g->scans[++g->scan_hop].wanted = true;
		wants[n++] = (struct trace_want){ .hop = g->scan_hop };
	}
	return n;
}

static bool want(struct trace_graph *g, uint8_t hop, uint16_t flow, struct trace_want *wants, int max, int *n)
{
	if (*n == max || g->hops[hop].passed[flow] != UNPROBED)
		return false;
	g->hops[hop].passed[flow] = WANTED;
	if (flow >= g->hops[hop].flows)
		g->hops[hop].flows = flow + 1;
	wants[(*n)++] = (struct trace_want){ hop, flow };
	return true;
}

/* Flows that get to the next hop of the node. */
static bool goes_on(const struct trace_graph *g, const struct trace_node *node)
{
	return node->linked && !ends(node) && node->hop < g->options.hops_max &&
	       node->silent_hops < g->options.silent_max;
}

/*
 * So many flows are probed at a hop: enough for the share that no next hop may have unnoticed, with this probability
 * over all hops, and for one more node where all nodes of the hop have the same share.
 */
static uint32_t needed(struct trace_graph *g, uint8_t hop)
{
	const struct hop *h = &g->hops[hop], *before = h - 1;
	uint32_t seen = 0, edges = 0, share;

	for (uint32_t i = 0; i < h->count; i++)
		seen += h->nodes[i].linked;
	for (uint32_t i = 0; i < before->count; i++)
		edges += before->nodes[i].linked ? before->nodes[i].next_count : 0;
	seen = seen ? seen : 1;
	if (seen >= MDA_HOPS_MAX)
		seen = MDA_HOPS_MAX - 1;
	if (!g->need[seen])
		g->need[seen] = mda_probes(seen + 1, g->options.failure);
	share = mda_share_probes(edges ? edges : 1, g->options.share, g->options.failure / g->last);
	if (share > TRACE_FLOWS_MAX) {
		g->cut = true;
		share = TRACE_FLOWS_MAX;
	}
	return share > g->need[seen] ? share : g->need[seen];
}

/* The route of the flow is known to end before this hop. */
static bool ended_before(struct trace_graph *g, uint8_t hop, uint32_t flow)
{
	const struct trace_node *before = node_at(g, hop - 1, (uint16_t)flow);

	return before && (ends(before) || (before->linked && before->silent_hops >= g->options.silent_max));
}

/* The last hop that some flow gets to. */
static uint8_t last_hop(const struct trace_graph *g)
{
	uint8_t last = g->length;

	for (uint8_t hop = g->length; hop < g->options.hops_max; hop++)
		for (uint32_t i = 0; i < g->hops[hop].count; i++)
			if (goes_on(g, &g->hops[hop].nodes[i]))
				last = hop + 1;
	return last;
}

/* A node of which no flow was probed at the next hop yet. */
static void want_next(struct trace_graph *g, uint8_t hop, struct trace_want *wants, int max, int *n)
{
	for (uint32_t i = 0; i < g->hops[hop].count; i++) {
		const struct trace_node *node = &g->hops[hop].nodes[i];
		bool wanted = !goes_on(g, node) || node->tested;

		for (uint32_t f = 0; f < g->hops[hop].flows && !wanted; f++)
			if (g->hops[hop].passed[f] == i + FIRST_NODE)
				wanted = g->hops[hop + 1].passed[f] == WANTED ||
					 want(g, hop + 1, (uint16_t)f, wants, max, n);
	}
}

/* A node that was found by a flow of which the hop before is not known: that hop is probed as well. */
static void want_link(struct trace_graph *g, uint8_t hop, struct trace_want *wants, int max, int *n)
{
	for (uint32_t i = 0; i < g->hops[hop].count; i++) {
		bool wanted = g->hops[hop].nodes[i].linked;

		for (uint32_t f = 0; f < g->hops[hop].flows && !wanted; f++)
			if (g->hops[hop].passed[f] == i + FIRST_NODE)
				wanted = g->hops[hop - 1].passed[f] == WANTED ||
					 want(g, hop - 1, (uint16_t)f, wants, max, n);
	}
}

/* The search has ended: each hop has its flows. */
static void complete(struct trace_graph *g)
{
	for (uint8_t hop = 0; hop < g->options.hops_max; hop++)
		for (uint32_t i = 0; i < g->hops[hop].count; i++)
			g->hops[hop].nodes[i].complete =
				goes_on(g, &g->hops[hop].nodes[i]) && g->hops[hop].nodes[i].tested;
}

/* Nodes are linked when the node that leads to them is: in the order of the hops, since answers come in any order. */
static void spread_links(struct trace_graph *g)
{
	for (uint8_t hop = 0; hop < g->options.hops_max; hop++)
		for (uint32_t i = 0; i < g->hops[hop].count; i++)
			for (uint32_t j = 0; g->hops[hop].nodes[i].linked && j < g->hops[hop].nodes[i].next_count; j++)
				spread(&g->hops[hop].nodes[i], &g->hops[hop + 1].nodes[g->hops[hop].nodes[i].next[j]]);
}

int trace_graph_want(struct trace_graph *g, struct trace_want *wants, int max)
{
	uint32_t need[TRACE_HOPS_MAX + 1], most = 0;
	int n = 0;

	if (!g->scanned)
		return scan_want(g, wants, max);
	if (!(g->options.failure > 0))
		return 0;
	spread_links(g);
	g->last = last_hop(g);
	for (uint8_t hop = 1; hop <= g->last; hop++) {
		need[hop] = needed(g, hop);
		most = need[hop] > most ? need[hop] : most;
	}
	/* All hops in one round, one after the other, so that each router has time between its answers. */
	for (uint32_t f = 0; f < most; f++)
		for (uint8_t hop = 1; hop <= g->last; hop++)
			if (f < need[hop] && !ended_before(g, hop, f))
				want(g, hop, (uint16_t)f, wants, max, &n);
	for (uint8_t hop = 1; hop < g->last; hop++) {
		if (hop > 1)
			want_link(g, hop, wants, max, &n);
		want_next(g, hop, wants, max, &n);
	}
	if (g->last > 1)
		want_link(g, g->last, wants, max, &n);
	if (!n)
		complete(g);
	return n;
}

int trace_graph_answer(struct trace_graph *g, struct trace_want probe, const struct ktrxer_addr *from,
		       enum trace_end end)
{
	if (!probe.hop || probe.hop > g->options.hops_max || probe.flow >= TRACE_FLOWS_MAX || end > TRACE_UNREACHABLE)
		return -EINVAL;
	if (!g->scanned) {
		struct scan *s = &g->scans[probe.hop];

		if (probe.flow || !s->wanted || s->answered)
			return -EINVAL;
		*s = (struct scan){ .from = from ? *from : (struct ktrxer_addr){ 0 },
				    .end = (uint8_t)(from ? end : TRACE_GOES_ON),
				    .wanted = true,
				    .answered = true };
		return scan_take(g);
	}
	/* The first flow was probed beyond the end of its route. */
	if (!probe.flow && g->scans[probe.hop].wanted && !g->scans[probe.hop].answered) {
		g->scans[probe.hop].answered = true;
		return 0;
	}
	if (g->hops[probe.hop].passed[probe.flow] != WANTED)
		return -EINVAL;
	return passed_set(g, probe.hop, probe.flow, from, from ? end : TRACE_GOES_ON);
}

enum { DOUBTS_REPEATED = 3 }; /* without any answer: the router is silent */

static bool is_answered(const struct trace_node *node)
{
	return node && node->addr.family;
}

/* Returns NULL unless the silence of a flow is in doubt. */
static const struct trace_node *in_doubt(struct trace_graph *g, uint8_t hop, uint16_t flow)
{
	const struct hop *h = &g->hops[hop];
	const struct trace_node *node = node_at(g, hop, flow), *before = node_at(g, hop - 1, flow);

	if (!node || is_answered(node) || !before || h->silent[flow / 64] >> flow % 64 & 1 ||
	    (h->repeated >= DOUBTS_REPEATED && !h->granted))
		return NULL;
	for (uint32_t i = 0; i < before->next_count; i++)
		if (is_answered(&h->nodes[before->next[i]]))
			return &h->nodes[before->next[i]];
	return NULL;
}

static void links_renew(struct trace_graph *g)
{
	for (uint8_t hop = 0; hop <= g->options.hops_max; hop++)
		for (uint32_t i = 0; i < g->hops[hop].count; i++) {
			struct trace_node *node = &g->hops[hop].nodes[i];

			node->flows = node->tested = node->next_count = 0;
			node->balances = node->complete = false;
			node->linked = !hop;
			node->silent_hops = !hop || node->addr.family ? 0 : UINT8_MAX;
		}
	for (uint8_t hop = 1; hop <= g->options.hops_max; hop++)
		for (uint32_t f = 0; f < g->hops[hop].flows; f++) {
			struct trace_node *node = node_at(g, hop, (uint16_t)f), *before;

			if (!node)
				continue;
			node->flows++;
			before = node_at(g, hop - 1, (uint16_t)f);
			if (before) /* the links had room before */
				(void)link_nodes(g, before, (uint32_t)(node - g->hops[hop].nodes));
		}
}

static void doubt_end(struct trace_graph *g, uint8_t hop)
{
	struct hop *h = &g->hops[hop];

	if (!h->repeats)
		return;
	h->repeats = false;
	h->repeated++;
	if (is_answered(node_at(g, hop, h->doubted_flow)))
		h->granted++;
	else
		h->silent[h->doubted_flow / 64] |= UINT64_C(1) << h->doubted_flow % 64;
}

int trace_graph_doubts(struct trace_graph *g, struct trace_want *wants, int max)
{
	bool last = false;
	int n = 0;

	if (!g->scanned || !(g->options.failure > 0))
		return 0;
	for (uint8_t hop = 1; hop <= g->options.hops_max; hop++)
		doubt_end(g, hop);
	/* Hops behind a destination that limits its answers wait: it is the destination that answers again. */
	for (uint8_t hop = 1; hop <= g->options.hops_max && !last; hop++) {
		struct hop *h = &g->hops[hop];

		for (uint32_t f = 0; f < h->flows && !h->repeats && n < max; f++) {
			const struct trace_node *other = in_doubt(g, hop, (uint16_t)f);

			if (!other)
				continue;
			h->repeats = true;
			h->doubted_flow = (uint16_t)f;
			wants[n++] = (struct trace_want){ hop, (uint16_t)f };
			last = ends(other);
		}
	}
	for (int i = 0; i < n; i++)
		g->hops[wants[i].hop].passed[wants[i].flow] = WANTED;
	if (n)
		links_renew(g);
	return n;
}

uint32_t trace_graph_leave_doubts(struct trace_graph *g)
{
	uint32_t left = 0;

	/* From the last hop on, since a flow is in doubt by the links of the hop before. */
	for (uint8_t hop = g->options.hops_max; hop; hop--) {
		doubt_end(g, hop);
		for (uint32_t f = 0; f < g->hops[hop].flows; f++)
			if (in_doubt(g, hop, (uint16_t)f)) {
				g->hops[hop].passed[f] = LEFT_OUT;
				left++;
			}
	}
	if (left) {
		links_renew(g);
		complete(g);
	}
	return left;
}

uint8_t trace_graph_hops(const struct trace_graph *g)
{
	uint8_t last = 0;

	for (uint8_t hop = 1; hop <= g->options.hops_max; hop++)
		for (uint32_t i = 0; i < g->hops[hop].count; i++)
			if (g->hops[hop].nodes[i].linked)
				last = hop;
	return last;
}

const struct trace_node *trace_graph_nodes(const struct trace_graph *g, uint8_t hop, uint32_t *count)
{
	*count = hop <= g->options.hops_max ? g->hops[hop].count : 0;
	return hop <= g->options.hops_max ? g->hops[hop].nodes : NULL;
}

int trace_graph_node_of(const struct trace_graph *g, uint8_t hop, uint16_t flow)
{
	if (hop > g->options.hops_max || flow >= TRACE_FLOWS_MAX || g->hops[hop].passed[flow] < FIRST_NODE)
		return -1;
	return g->hops[hop].passed[flow] - FIRST_NODE;
}

uint64_t trace_graph_routes(const struct trace_graph *g)
{
	uint64_t lead[2][TRACE_NODES_MAX] = { { 1 } }, sum = 0;

	for (uint8_t hop = 0; hop <= g->options.hops_max; hop++) {
		uint64_t *here = lead[hop & 1], *after = lead[~hop & 1];

		for (uint32_t i = 0; i < TRACE_NODES_MAX; i++)
			after[i] = 0;
		for (uint32_t i = 0; i < g->hops[hop].count; i++) {
			const struct trace_node *node = &g->hops[hop].nodes[i];

			if (!node->next_count && __builtin_add_overflow(sum, here[i], &sum))
				return UINT64_MAX;
			for (uint32_t j = 0; j < node->next_count; j++)
				if (__builtin_add_overflow(after[node->next[j]], here[i], &after[node->next[j]]))
					return UINT64_MAX;
		}
	}
	return sum;
}

bool trace_graph_is_cut(const struct trace_graph *g)
{
	return g->cut;
}

int trace_graph_new(struct trace_graph **out, const struct trace_graph_options *options)
{
	struct trace_graph *g;
	uint32_t index;

	*out = NULL;
	if (!options->hops_max || options->hops_max > TRACE_HOPS_MAX || !options->silent_max || options->failure < 0 ||
	    options->failure >= 1 || (options->failure > 0 && !(options->share > 0 && options->share <= 0.5)))
		return -EINVAL;
	g = calloc(1, sizeof *g);
	if (!g)
		return -ENOMEM;
	g->options = *options;
	for (uint8_t hop = 0; hop <= options->hops_max; hop++) {
		g->hops[hop].passed = calloc(TRACE_FLOWS_MAX, sizeof *g->hops[hop].passed);
		if (!g->hops[hop].passed) {
			trace_graph_free(g);
			return -ENOMEM;
		}
	}
	if (node_find(g, 0, NULL, TRACE_GOES_ON, &index) < 0) {
		trace_graph_free(g);
		return -ENOMEM;
	}
	g->hops[0].nodes[0].linked = true;
	g->hops[0].nodes[0].silent_hops = 0;
	for (uint32_t f = 0; f < TRACE_FLOWS_MAX; f++)
		g->hops[0].passed[f] = FIRST_NODE;
	g->hops[0].flows = TRACE_FLOWS_MAX;
	*out = g;
	return 0;
}

void trace_graph_free(struct trace_graph *g)
{
	if (!g)
		return;
	for (uint8_t hop = 0; hop <= g->options.hops_max; hop++) {
		for (uint32_t i = 0; i < g->hops[hop].count; i++)
			free(g->hops[hop].nodes[i].next);
		free(g->hops[hop].nodes);
		free(g->hops[hop].passed);
	}
	free(g);
}
