/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer bench receive`: what rules cost, and how much they can take. Its parts; each adds rows to one table. */
#ifndef KTRXER_CLI_BENCH_RECEIVE_H
#define KTRXER_CLI_BENCH_RECEIVE_H

#include "bench.h"

enum { RECEIVE_RULES = 8 };

struct receive_options {
	const char *rules;
	uint64_t rounds, repeat, payload, ring;
	struct opt_rate rate;
	uint64_t for_ns;
	bool no_flow;
};

struct receive_bench {
	struct cli *cli;
	const struct receive_options *o;
	struct bench_net net;
	struct bench_watch *watch;
	struct bench_table table;
	uint64_t rules[RECEIVE_RULES];
	int rule_counts;
	uint64_t stalled;
};

/* Rules for whole 5-tuples, none of which speaks for 10.99.0.0/16; with `wildcards` more that have a prefix. */
struct krx_rule *receive_rules(int exact, int wildcards, bool six);

/* Each: 0, or a negative errno with a line; a part that cannot be had here says so in the result, and is no failure. */
int receive_cost(struct receive_bench *b, struct ktrxer_error *err);
int receive_rate(struct receive_bench *b, struct ktrxer_error *err);
int receive_flow(struct receive_bench *b, struct ktrxer_error *err);

#endif
