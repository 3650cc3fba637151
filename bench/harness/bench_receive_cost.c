/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The processor time that the program of the rules takes for one packet: all sets of rules in turns. */
#include "bench_receive.h"

#include "error.h"
#include "fields_bench.h"
#include "rules_cost.h"

#include <errno.h>
#include <stdlib.h>

enum { CASES_MAX = 2 * RECEIVE_RULES + 4 };

struct cost_case {
	const char *what;
	int exact, wildcards;
	bool six, matched;
	struct rules_cost *cost;
};

static int case_open(struct cost_case *c, struct ktrxer_error *err)
{
	struct krx_rule *rules = receive_rules(c->exact, c->wildcards, c->six);
	const struct rules_cost_options options = {
		.rules = rules,
		.count = c->exact + c->wildcards,
		.six = c->six,
		.match = c->matched && rules ? &rules[c->exact - 1] : NULL,
	};
	const int rc = rules ? rules_cost_open(&c->cost, &options, err)
			     : ktrxer_fail(err, -ENOMEM, "no memory for %d rules", options.count);

	free(rules);
	return rc;
}

static int case_run(struct receive_bench *b, struct cost_case *c, uint64_t round, struct ktrxer_error *err)
{
	struct json *sample;
	uint32_t mean_ns;
	int rc;

	bench_watch_begin(b->watch);
	rc = rules_cost_run(c->cost, (uint32_t)b->o->repeat, &mean_ns, err);
	if (bench_watch_end(b->watch).stalled)
		b->stalled++;
	if (rc < 0)
		return rc;
	sample = receive_sample(b, "cost", c->what, c->exact, c->wildcards, round);
	if (sample) {
		bench_cost_cost_ns(sample, mean_ns);
		out_put(b->cli, sample);
	}
	return 0;
}

int receive_cost(struct receive_bench *b, struct ktrxer_error *err)
{
	struct cost_case *cases = calloc(CASES_MAX, sizeof *cases);
	int count = 0, rc = 0;

	if (!cases)
		return ktrxer_fail(err, -ENOMEM, "no memory for the bench");
	for (int six = 0; six < 2; six++)
		for (int i = 0; i < b->rule_counts; i++)
			cases[count++] =
				(struct cost_case){ .what = six ? "cost, unmatched IPv6" : "cost, unmatched IPv4",
						    .exact = (int)b->rules[i],
						    .six = six };
	cases[count++] = (struct cost_case){ .what = "cost, unmatched IPv4", .exact = 1, .wildcards = 16 };
	cases[count++] = (struct cost_case){ .what = "cost, unmatched IPv4", .exact = 1, .wildcards = 256 };
	cases[count++] = (struct cost_case){ .what = "cost, dropped IPv4",
					     .exact = (int)b->rules[b->rule_counts - 1],
					     .matched = true };
	for (int i = 0; rc == 0 && i < count; i++)
		rc = case_open(&cases[i], err);
	for (uint64_t round = 0; rc == 0 && round < b->o->rounds && !cli_stopped(b->cli); round++)
		for (int i = 0; rc == 0 && i < count; i++)
			rc = case_run(b, &cases[(i + (int)round) % count], round, err);
	for (int i = 0; i < count; i++)
		rules_cost_close(cases[i].cost);
	free(cases);
	return rc;
}
