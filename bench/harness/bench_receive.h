/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * `ktrxer bench receive`: the cost of rules, and the packets that they take. Each part writes a sample for each round.
 */
#ifndef KTRXER_CLI_BENCH_RECEIVE_H
#define KTRXER_CLI_BENCH_RECEIVE_H

#include "bench.h"

enum { RECEIVE_RULES = 8 };

struct receive_options {
	const char *rules, *compare, *csv, *device, *far_device, *far_netns;
	struct ktrxer_addr to;
	uint64_t rounds, repeat, payload, ring;
	struct opt_rate rate;
	uint64_t for_ns;
	bool no_flow;
};

struct receive_bench {
	struct cli *cli;
	const struct receive_options *o;
	struct bench_net net;
	struct ktrxer_path path;
	struct bench_watch *watch;
	uint64_t rules[RECEIVE_RULES];
	int rule_counts;
	uint64_t stalled, measured;
};

/* A sample of one round: its part, its set of rules, the round. NULL: the run was stopped. */
struct json *receive_sample(struct receive_bench *b, const char *part, const char *what, int rules, int wildcards,
			    uint64_t round);

void receive_note(struct receive_bench *b, const char *text);

/* Rules for whole 5-tuples, none of which matches 10.99.0.0/16; with `wildcards` more that have a prefix. */
struct krx_rule *receive_rules(int exact, int wildcards, bool six);

/* Each: 0, or a negative errno with a line; a part that cannot be had here says so in the result, and is no failure. */
int receive_cost(struct receive_bench *b, struct ktrxer_error *err);
int receive_rate(struct receive_bench *b, struct ktrxer_error *err);
int receive_flow(struct receive_bench *b, struct ktrxer_error *err);

#endif
