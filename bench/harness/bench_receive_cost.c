/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the rules' program costs a packet: BPF_PROG_RUN, all sets of rules in turns. */
#include "bench_receive.h"

#include "error.h"
#include "rule_match.h"
#include "rules_program.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

enum { CASES_MOST = 2 * RECEIVE_RULES + 4 };

struct cost_case {
	const char *what;
	int exact, wildcards;
	bool six, matched;
	uint8_t packet[128];
	uint32_t length;
	struct krx_rule *rules;
	struct krx_ruleset *set;
	struct rules_program program;
	bool open;
};

static void packet_make(struct cost_case *c)
{
	uint8_t *p = c->packet;

	memset(p, 0, sizeof c->packet);
	memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1", 12);
	if (c->six) {
		memcpy(p + 12, "\x86\xdd\x60\0\0\0\0\x24\x11\x40", 10);
		memcpy(p + 22, "\x20\x01\x0d\xb8\0\1", 6);
		memcpy(p + 38, "\x20\x01\x0d\xb8\0\2", 6);
		p[53] = 1;
		p += 54;
		c->length = 54 + 36;
	} else {
		memcpy(p + 12, "\x08\0\x45\0\0\x38\0\0\0\0\x40\x11\0\0\x0a\x63\0\1\x0a\x63\0\2", 22);
		p += 34;
		c->length = 34 + 36;
	}
	p[0] = 0x9c; /* from port 40000 to port 9 */
	p[1] = 0x40;
	p[3] = 9;
	p[5] = 36;
	if (c->matched) { /* the last rule: 10.1.x.x to 10.2.0.1 */
		const struct krx_rule *r = &c->rules[c->exact - 1];

		memcpy(c->packet + 26, r->from.bytes, 4);
		memcpy(c->packet + 30, r->to.bytes, 4);
		p[0] = (uint8_t)(r->from_port >> 8);
		p[1] = (uint8_t)r->from_port;
	}
}

static int case_open(struct cost_case *c, struct ktrxer_error *err)
{
	struct rules_setup setup = { .ring_bytes = 4096, .link = KTRXER_LINK_ETHERNET };
	int rc;

	c->rules = receive_rules(c->exact, c->wildcards, c->six);
	if (!c->rules)
		return ktrxer_fail(err, -ENOMEM, "no memory for %d rules", c->exact);
	rc = krx_ruleset_new(&c->set, c->rules, c->exact + c->wildcards, err);
	if (rc < 0)
		return rc;
	setup.rules = c->set;
	rc = ktrxer_rules_program_open(&c->program, &setup, err);
	c->open = rc == 0;
	packet_make(c);
	return rc;
}

static void case_close(struct cost_case *c)
{
	if (c->open)
		ktrxer_rules_program_close(&c->program);
	krx_ruleset_free(c->set);
	free(c->rules);
}

static int case_run(struct receive_bench *b, struct cost_case *c, uint64_t round, struct ktrxer_error *err)
{
	struct rules_trial trial;
	struct bench_quiet quiet;
	struct json *sample;
	int rc;

	bench_watch_begin(b->watch);
	rc = ktrxer_rules_program_try(&c->program, c->packet, c->length, (uint32_t)b->o->repeat, &trial);
	quiet = bench_watch_end(b->watch);
	if (rc < 0)
		return ktrxer_fail(err, rc, "BPF_PROG_RUN of the rules' program: %s", strerror(-rc));
	if (trial.action != (c->matched ? XDP_DROP : XDP_PASS))
		return ktrxer_fail(err, -EBADMSG,
				   "the rules' program took another way than was to be measured (action %u)",
				   trial.action);
	if (quiet.stalled)
		b->stalled++;
	sample = receive_sample(b, "cost", c->what, c->exact, c->wildcards, round);
	if (sample) {
		json_u64(sample, "cost_ns", trial.cost_ns);
		out_put(b->cli, sample);
	}
	return 0;
}

int receive_cost(struct receive_bench *b, struct ktrxer_error *err)
{
	struct cost_case *cases = calloc(CASES_MOST, sizeof *cases);
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
		case_close(&cases[i]);
	free(cases);
	return rc;
}
