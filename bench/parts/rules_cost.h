/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cost of the program of the XDP rules, by BPF_PROG_RUN: the one part of the bench that uses private headers of lib/.
 */
#ifndef KTRXER_BENCH_RULES_COST_H
#define KTRXER_BENCH_RULES_COST_H

#include <ktrxer.h>

struct rules_cost;

/* A set of rules, and the packet that is passed to their program. */
struct rules_cost_options {
	const struct krx_rule *rules;
	int count;
	const struct krx_rule *match; /* the packet is this IPv4 rule's, which drops it; NULL: no rule matches it */
	bool six;                     /* without `match`: an IPv6 packet */
};

/* Loads the program. 0, or a negative errno. */
int rules_cost_open(struct rules_cost **out, const struct rules_cost_options *options, struct ktrxer_error *err);
void rules_cost_close(struct rules_cost *cost);
/* The mean time of `repeat` runs. -EBADMSG: the program did not decide as the options say. */
int rules_cost_run(struct rules_cost *cost, uint32_t repeat, uint32_t *mean_ns, struct ktrxer_error *err);

#endif
