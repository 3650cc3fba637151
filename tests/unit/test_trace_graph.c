/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The search for all routes, against a simulator of networks (as Fakeroute does it): the real search, answers without
 * packets. */
#include "cm.h"
#include "mda.h"
#include "random_here.h"
#include "trace_graph.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { LEVELS_MAX = 24, WIDTH_MAX = 128, WANTS = 4096 };

/* Routers in levels; the last level is the destination. Each router sends a flow to one of its next hops, by a hash of
 * its own. */
struct net {
	uint32_t levels, width[LEVELS_MAX];
	uint16_t next[LEVELS_MAX][WIDTH_MAX][WIDTH_MAX];
	uint16_t fan[LEVELS_MAX][WIDTH_MAX];
	uint16_t weight[LEVELS_MAX][WIDTH_MAX][WIDTH_MAX]; /* of a next hop; 0: one */
	uint64_t salt;
	bool silent[LEVELS_MAX][WIDTH_MAX];
	uint32_t tokens;      /* 0: no limit; else so many answers of each router, and one more in each pause */
	uint32_t pauses_each; /* pauses for a further token */
	uint32_t spent[LEVELS_MAX][WIDTH_MAX], pauses, pauses_max;
	uint64_t probes;
};

static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static struct ktrxer_addr address(uint32_t level, uint32_t router)
{
	return (struct ktrxer_addr){ .family = AF_INET,
				     .bytes = { 10, (uint8_t)level, (uint8_t)(router >> 8), (uint8_t)router } };
}

static uint32_t weight(const struct net *net, uint32_t level, uint32_t router, uint32_t next)
{
	return net->weight[level][router][next] ? net->weight[level][router][next] : 1;
}

static uint32_t weights(const struct net *net, uint32_t level, uint32_t router)
{
	uint32_t sum = 0;

	for (uint32_t j = 0; j < net->fan[level][router]; j++)
		sum += weight(net, level, router, j);
	return sum;
}

static uint32_t router_of(const struct net *net, uint32_t level, uint16_t flow)
{
	uint32_t router = 0;

	for (uint32_t l = 0; l < level; l++) {
		uint64_t at = mix(mix(net->salt ^ (uint64_t)l << 32 ^ router) + flow) % weights(net, l, router);
		uint32_t j = 0;

		for (; at >= weight(net, l, router, j); j++)
			at -= weight(net, l, router, j);
		router = net->next[l][router][j];
	}
	return router;
}

static bool answers(struct net *net, uint32_t level, uint32_t router)
{
	if (net->silent[level][router])
		return false;
	if (net->tokens && net->spent[level][router] == net->tokens + net->pauses / net->pauses_each)
		return false;
	net->spent[level][router]++;
	return true;
}

static int wanted(struct net *net, struct trace_graph *graph, struct trace_want *wants)
{
	int n = net->pauses < net->pauses_max ? trace_graph_doubts(graph, wants, WANTS) : 0;

	net->pauses += n > 0;
	return n ? n : trace_graph_want(graph, wants, WANTS);
}

static struct trace_graph *search(struct net *net, const struct trace_graph_options *options)
{
	static struct trace_want wants[WANTS];
	struct trace_graph *graph;
	int n;

	assert_int_equal(trace_graph_new(&graph, options), 0);
	while ((n = wanted(net, graph, wants)) > 0) {
		net->probes += (uint64_t)n;
		assert_true(net->probes < 500000);
		for (int k = 0; k < n; k++) {
			const int i =
				net->tokens ? k : n - 1 - k; /* answers in any order, tokens in that of the probes */
			/* Level 0 has the first routers: that of a flow is chosen by this host, whose one next hop it
			 * is. */
			const uint32_t level = wants[i].hop < net->levels ? wants[i].hop : net->levels;
			const uint32_t router = router_of(net, level, wants[i].flow);
			const struct ktrxer_addr from = address(level, router);

			assert_int_equal(trace_graph_answer(graph, wants[i], answers(net, level, router) ? &from : NULL,
							    level == net->levels ? TRACE_ARRIVED : TRACE_GOES_ON),
					 0);
			assert_int_equal(trace_graph_answer(graph, wants[i], &from, TRACE_GOES_ON), -EINVAL);
		}
	}
	return graph;
}

static uint32_t edges_of(const struct trace_graph *graph, uint8_t hop)
{
	uint32_t count, sum = 0;
	const struct trace_node *nodes = trace_graph_nodes(graph, hop, &count);

	for (uint32_t i = 0; i < count; i++)
		sum += nodes[i].linked ? nodes[i].next_count : 0;
	return sum;
}

static bool is_whole(const struct net *net, const struct trace_graph *graph)
{
	if (trace_graph_hops(graph) != net->levels)
		return false;
	for (uint32_t l = 0; l < net->levels; l++) {
		uint32_t edges = 0;

		for (uint32_t i = 0; i < net->width[l]; i++)
			edges += net->fan[l][i];
		if (edges_of(graph, (uint8_t)l) != edges)
			return false;
	}
	return true;
}

static void chain(struct net *net, uint32_t levels)
{
	memset(net, 0, sizeof *net);
	net->levels = levels;
	for (uint32_t l = 0; l <= levels; l++) {
		net->width[l] = 1;
		net->fan[l][0] = 1;
	}
}

/* Each router of level `at` leads to all of `width` routers of the next level, which lead to the one after. */
static void spread_at(struct net *net, uint32_t at, uint32_t width)
{
	for (uint32_t i = 0; i < net->width[at]; i++) {
		net->fan[at][i] = (uint16_t)width;
		for (uint32_t j = 0; j < width; j++)
			net->next[at][i][j] = (uint16_t)j;
	}
	net->width[at + 1] = width;
	for (uint32_t j = 0; j < width; j++) {
		net->fan[at + 1][j] = 1;
		net->next[at + 1][j][0] = 0;
	}
}

static const struct trace_node *node_of(const struct trace_graph *graph, uint32_t level, uint32_t router)
{
	const struct ktrxer_addr wanted = address(level, router);
	uint32_t count;
	const struct trace_node *nodes = trace_graph_nodes(graph, (uint8_t)level, &count);

	for (uint32_t i = 0; i < count; i++)
		if (nodes[i].linked && (!level || ktrxer_addr_equal(&nodes[i].addr, &wanted)))
			return &nodes[i];
	return NULL;
}

static bool leads_to(const struct trace_graph *graph, const struct trace_node *node, const struct trace_node *next)
{
	uint32_t count;
	const struct trace_node *nodes = trace_graph_nodes(graph, next->hop, &count);

	for (uint32_t i = 0; i < node->next_count; i++)
		if (&nodes[node->next[i]] == next)
			return true;
	return false;
}

/* A next hop with at least this share of all flows is missing. */
static bool misses(const struct net *net, const struct trace_graph *graph, double least)
{
	static double share[LEVELS_MAX + 1][WIDTH_MAX];

	memset(share, 0, sizeof share);
	share[0][0] = 1;
	for (uint32_t l = 0; l < net->levels; l++)
		for (uint32_t i = 0; i < net->width[l]; i++)
			for (uint32_t j = 0; j < net->fan[l][i]; j++) {
				const double part = share[l][i] * weight(net, l, i, j) / weights(net, l, i);
				const struct trace_node *node = node_of(graph, l, i),
							*next = node_of(graph, l + 1, net->next[l][i][j]);

				share[l + 1][net->next[l][i][j]] += part;
				if (part > least - 1e-9 && (!node || !next || !leads_to(graph, node, next)))
					return true;
			}
	return false;
}

static const struct trace_graph_options usual = { .hops_max = 30, .silent_max = 5, .failure = 0.05, .share = 0.1 };

TEST(one_route)
{
	struct trace_graph *graph;
	static struct net net;
	uint32_t count;

	chain(&net, 9);
	graph = search(&net, &usual);
	assert_true(is_whole(&net, graph));
	assert_int_equal(trace_graph_routes(graph), 1);
	/* 0.9^50 is below 0.05 / 9: so many flows at each of nine hops, and what the first one sent beyond the end. */
	assert_in_range(net.probes, 9 * 50, 9 * 50 + TRACE_AHEAD);
	assert_int_equal(trace_graph_nodes(graph, 9, &count)->end, TRACE_ARRIVED);
	assert_true(trace_graph_nodes(graph, 8, &count)->complete);
	trace_graph_free(graph);
}

TEST(one_flow_alone)
{
	struct trace_graph_options options = usual;
	struct trace_graph *graph;
	static struct net net;

	chain(&net, 12);
	spread_at(&net, 4, 16);
	options.failure = 0;
	graph = search(&net, &options);
	assert_int_equal(trace_graph_hops(graph), 12);
	assert_int_equal(trace_graph_routes(graph), 1);
	assert_in_range(net.probes, 12, 12 + TRACE_AHEAD);
	trace_graph_free(graph);
}

/*
 * The promised probability, measured at one router with weights. Its next hops end the routes, so that no probe for a
 * later hop finds one of them by chance. The two hops of the search have half of the probability each.
 */
TEST(failure_of_one_balancer)
{
	static const struct {
		uint16_t weights[12];
		double share, failure, measured; /* next hops of this share and more are to be found */
		double least, most;              /* failures */
	} cases[] = { { { 15, 1 }, 1 / 16., 0.05, 1 / 16., 0.01, 0.05 },
		      { { 9, 1 }, 0.1, 0.05, 0.1, 0.01, 0.05 },
		      { { 8, 1, 1 }, 0.1, 0.05, 0.1, 0.01, 0.05 },
		      { { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 0.1, 0.05, 0.1, 0, 0.05 },
		      { { 3, 3, 3, 1 }, 0.3, 0.05, 0.3, 0, 0.05 },
		      { { 60, 40 }, 0.4, 0.01, 0.4, 0, 0.01 },
		      { { 40, 40, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2 }, 0.4, 0.05, 0.4, 0, 0.05 },
		      /* The former rule, for equal weights, misses a rare one. */
		      { { 15, 1 }, 0.5, 0.05, 1 / 16., 0.5, 0.8 },
		      /* Equal weights below the share: the rule of equal weights finds them all. */
		      { { 1, 1, 1, 1, 1, 1, 1, 1 }, 0.4, 0.05, 0.125, 0.01, 0.05 } };
	const uint64_t runs = getenv("KTRXER_EMULATED") ? 400 : 4000;
	static struct net net;

	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct trace_graph_options options = usual;
		double failed = 0;
		uint32_t fan = 0;

		while (fan < 12 && cases[c].weights[fan])
			fan++;
		options.failure = cases[c].failure;
		options.share = cases[c].share;
		for (uint64_t run = 0; run < runs; run++) {
			struct trace_graph *graph;

			chain(&net, 2);
			spread_at(&net, 1, fan);
			memcpy(net.weight[1][0], cases[c].weights, sizeof cases[c].weights);
			net.salt = mix(run + 1000000 * c);
			graph = search(&net, &options);
			failed += misses(&net, graph, cases[c].measured);
			trace_graph_free(graph);
		}
		failed /= (double)runs;
		print_message("%u next hops, share %.4f: failed %.4f\n", fan, cases[c].share, failed);
		assert_true(failed >= cases[c].least);
		assert_true(failed <= cases[c].most + 3 * sqrt(cases[c].most / (double)runs));
	}
}

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(random_uniform() * n);
}

/* A random network: diamonds of random width and length, some of them meshed, between routers that do not balance. */
static void random_net(struct net *net)
{
	uint32_t level = 1;

	chain(net, 4 + random_below(12));
	while (level + 3 < net->levels) {
		const uint32_t width = 2 + random_below(random_below(4) ? 4 : 16), length = random_below(3);

		spread_at(net, level, width);
		for (uint32_t j = 0; j < width && random_below(3); j++)
			net->weight[level][0][j] = (uint16_t)(1 + random_below(8));
		/* Further levels of the same width: straight on, or each router to some of the next level. */
		for (uint32_t l = 0; l < length && level + 3 < net->levels; l++, level++) {
			const uint32_t fan = random_below(2) ? 1 : 1 + random_below(width < 4 ? width : 4);

			net->width[level + 2] = width;
			for (uint32_t i = 0; i < width; i++) {
				net->fan[level + 1][i] = (uint16_t)fan;
				for (uint32_t j = 0; j < fan; j++)
					net->next[level + 1][i][j] = (uint16_t)((i + j) % width);
				net->fan[level + 2][i] = 1;
				net->next[level + 2][i][0] = 0;
			}
		}
		level += 2 + random_below(3);
	}
}

/*
 * Over 1,000 random networks with weights: in no more than 5 % of the searches a next hop with a tenth of the flows is
 * missed. An emulator has time for 200 networks.
 */
TEST(failure_over_random_networks)
{
	const int runs = getenv("KTRXER_EMULATED") ? 200 : 1000;
	static struct net net;
	uint64_t probes = 0;
	double failed = 0, rare = 0;

	for (int run = 0; run < runs; run++) {
		struct trace_graph *graph;

		random_net(&net);
		net.salt = mix((uint64_t)run);
		net.probes = 0;
		graph = search(&net, &usual);
		failed += misses(&net, graph, usual.share);
		rare += misses(&net, graph, 0.001);
		assert_false(trace_graph_is_cut(graph));
		probes += net.probes;
		trace_graph_free(graph);
	}
	print_message("%d networks: %.0f failed, %.0f missed some rare next hop; %.0f probes a network\n", runs, failed,
		      rare, (double)probes / runs);
	assert_true(failed < 0.05 * runs + 3 * sqrt(0.05 * runs));
	assert_true(rare > 0.1 * runs);
}

/* The example of MDA-Lite's authors: eight next hops, and the two hops around them. */
TEST(few_probes_for_a_large_share)
{
	struct trace_graph_options options = usual;
	uint64_t probes = 0, runs = 200, whole = 0;
	static struct net net;

	options.share = 0.4;
	for (uint64_t run = 0; run < runs; run++) {
		struct trace_graph *graph;

		chain(&net, 4);
		spread_at(&net, 1, 8);
		net.salt = mix(run);
		net.probes = 0;
		graph = search(&net, &options);
		whole += is_whole(&net, graph);
		probes += net.probes;
		trace_graph_free(graph);
	}
	print_message("8 next hops: %.1f probes, all routes in %llu of %llu\n", (double)probes / (double)runs,
		      (unsigned long long)whole, (unsigned long long)runs);
	assert_true(probes <= 90 * runs);
	assert_true(whole >= 0.9 * (double)runs);
}

TEST(sixty_four_routes)
{
	struct trace_graph_options options = usual;
	struct trace_graph *graph;
	static struct net net;

	/* 64 next hops at once, and their 64 straight continuations over eight hops. */
	chain(&net, 12);
	spread_at(&net, 1, 64);
	for (uint32_t l = 2; l < 10; l++) {
		net.width[l + 1] = 64;
		for (uint32_t i = 0; i < 64; i++) {
			net.fan[l][i] = net.fan[l + 1][i] = 1;
			net.next[l][i][0] = (uint16_t)i;
			net.next[l + 1][i][0] = 0;
		}
	}
	options.failure = 0.001;
	options.share = 1. / 64;
	graph = search(&net, &options);
	print_message("64 routes of 12 hops: %llu probes\n", (unsigned long long)net.probes);
	assert_true(is_whole(&net, graph));
	assert_int_equal(trace_graph_routes(graph), 64);
	trace_graph_free(graph);
	/* Six balancers in a row, each of two next hops. */
	chain(&net, 14);
	for (uint32_t l = 1; l < 12; l += 2)
		spread_at(&net, l, 2);
	graph = search(&net, &options);
	assert_true(is_whole(&net, graph));
	assert_int_equal(trace_graph_routes(graph), 64);
	trace_graph_free(graph);
}

TEST(routers_without_answers)
{
	const struct trace_node *nodes;
	struct trace_graph *graph;
	static struct net net;
	uint32_t count;

	chain(&net, 8);
	net.silent[3][0] = net.silent[4][0] = true;
	graph = search(&net, &usual);
	assert_int_equal(trace_graph_hops(graph), 8);
	nodes = trace_graph_nodes(graph, 4, &count);
	assert_int_equal(count, 1);
	assert_int_equal(nodes->addr.family, 0);
	assert_int_equal(nodes->silent_hops, 2);
	trace_graph_free(graph);
	/* One of three next hops is silent: it is a node, and what follows is found through it. */
	chain(&net, 6);
	spread_at(&net, 1, 3);
	net.silent[2][1] = true;
	net.pauses_max = 100;
	graph = search(&net, &usual);
	assert_int_equal(net.pauses, 3);
	trace_graph_nodes(graph, 2, &count);
	assert_int_equal(count, 3);
	assert_int_equal(trace_graph_routes(graph), 3);
	trace_graph_free(graph);
	/* Nothing answers from hop 3 on: five hops are tried. */
	chain(&net, 12);
	for (uint32_t l = 3; l <= 12; l++)
		net.silent[l][0] = true;
	graph = search(&net, &usual);
	assert_int_equal(trace_graph_hops(graph), 7);
	trace_graph_free(graph);
}

/*
 * Linux's limit: six answers, then one in each pause. Without pauses, routers seem to balance load that do not; with
 * them there is one route, and a balancer's routes are those that it has.
 */
TEST(routers_that_limit_their_answers)
{
	struct trace_graph *graph;
	static struct net net;

	for (int fan = 1; fan <= 3; fan++)
		for (uint32_t pauses = 0; pauses <= 100; pauses += 100) {
			chain(&net, 10);
			if (fan > 1)
				spread_at(&net, 4, (uint32_t)fan);
			net.tokens = 4;
			net.pauses_each = 1;
			net.pauses_max = pauses;
			graph = search(&net, &usual);
			assert_true(pauses ? is_whole(&net, graph) : trace_graph_routes(graph) > (uint64_t)fan);
			if (pauses)
				assert_int_equal(trace_graph_routes(graph), fan);
			assert_true(net.pauses < 100);
			trace_graph_free(graph);
		}
}

/* A router that answers in each second pause only: what is left in doubt makes no route. */
TEST(doubts_that_remain)
{
	struct trace_graph *graph;
	static struct net net;

	chain(&net, 6);
	net.tokens = 2;
	net.pauses_each = 2;
	net.pauses_max = 3;
	graph = search(&net, &usual);
	assert_true(trace_graph_leave_doubts(graph) > 0);
	assert_int_equal(trace_graph_leave_doubts(graph), 0);
	assert_true(trace_graph_hops(graph) >= 6);
	trace_graph_free(graph);
}

/* Two routers that send to each other until the hop limit. */
TEST(loop)
{
	static struct trace_want wants[WANTS];
	struct trace_graph *graph;
	const struct trace_node *nodes;
	uint32_t count;
	int n;

	assert_int_equal(trace_graph_new(&graph, &usual), 0);
	while ((n = trace_graph_want(graph, wants, WANTS)) > 0)
		for (int i = 0; i < n; i++) {
			const struct ktrxer_addr from =
				address(wants[i].hop > 3 ? 4 + wants[i].hop % 2 : wants[i].hop, 0);

			assert_int_equal(trace_graph_answer(graph, wants[i], &from, TRACE_GOES_ON), 0);
		}
	assert_int_equal(trace_graph_hops(graph), 8);
	nodes = trace_graph_nodes(graph, 8, &count);
	assert_int_equal(count, 1);
	assert_int_equal(nodes->end, TRACE_LOOP);
	trace_graph_free(graph);
}

/* Answers of forged, ever new addresses end in limits, not in endless probes. */
TEST(answers_of_any_address)
{
	static struct trace_want wants[WANTS];
	struct trace_graph_options options = usual;
	struct trace_graph *graph;
	uint64_t probes = 0;
	uint32_t count;
	int n;

	options.hops_max = 4;
	assert_int_equal(trace_graph_new(&graph, &options), 0);
	while ((n = trace_graph_want(graph, wants, WANTS)) > 0) {
		probes += (uint64_t)n;
		for (int i = 0; i < n; i++) {
			const struct ktrxer_addr from = address(wants[i].hop, random_below(60000));

			assert_int_equal(trace_graph_answer(graph, wants[i], &from, TRACE_GOES_ON), 0);
		}
	}
	assert_true(trace_graph_is_cut(graph));
	assert_true(probes <= 4 * TRACE_FLOWS_MAX);
	trace_graph_nodes(graph, 1, &count);
	assert_true(count <= TRACE_NODES_MAX);
	trace_graph_free(graph);
}

TEST(arguments_out_of_limits)
{
	const struct trace_graph_options wrong[] = {
		{ .hops_max = 0, .silent_max = 5 },
		{ .hops_max = 65, .silent_max = 5 },
		{ .hops_max = 30 },
		{ .hops_max = 30, .silent_max = 5, .failure = 1 },
		{ .hops_max = 30, .silent_max = 5, .failure = -0.1 },
		{ .hops_max = 30, .silent_max = 5, .failure = 0.1 },
		{ .hops_max = 30, .silent_max = 5, .failure = 0.1, .share = 0.6 }
	};
	const struct ktrxer_addr from = address(1, 1);
	struct trace_graph *graph;

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		assert_int_equal(trace_graph_new(&graph, &wrong[i]), -EINVAL);
	assert_int_equal(trace_graph_new(&graph, &usual), 0);
	assert_int_equal(trace_graph_answer(graph, (struct trace_want){ 1, 0 }, &from, TRACE_GOES_ON), -EINVAL);
	assert_int_equal(trace_graph_answer(graph, (struct trace_want){ 0, 0 }, &from, TRACE_GOES_ON), -EINVAL);
	assert_int_equal(trace_graph_answer(graph, (struct trace_want){ 31, 0 }, &from, TRACE_GOES_ON), -EINVAL);
	assert_int_equal(trace_graph_answer(graph, (struct trace_want){ 1, TRACE_FLOWS_MAX }, &from, TRACE_GOES_ON),
			 -EINVAL);
	assert_int_equal(trace_graph_hops(graph), 0);
	assert_int_equal(trace_graph_node_of(graph, 1, 0), -1);
	trace_graph_free(graph);
}
