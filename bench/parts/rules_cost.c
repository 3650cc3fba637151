/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rules_cost.h"

#include "error.h"
#include "rule_match.h"
#include "rules_program.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

struct rules_cost {
	uint8_t packet[128];
	uint32_t length, action;
	struct krx_ruleset *set;
	struct rules_program program;
	bool open;
};

static void packet_make(struct rules_cost *c, const struct rules_cost_options *o)
{
	uint8_t *p = c->packet;

	memset(p, 0, sizeof c->packet);
	memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1", 12);
	if (o->six) {
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
	if (o->match) {
		const struct krx_rule *r = o->match;

		memcpy(c->packet + 26, r->from.bytes, 4);
		memcpy(c->packet + 30, r->to.bytes, 4);
		p[0] = (uint8_t)(r->from_port >> 8);
		p[1] = (uint8_t)r->from_port;
	}
}

int rules_cost_open(struct rules_cost **out, const struct rules_cost_options *options, struct ktrxer_error *err)
{
	struct rules_setup setup = { .ring_bytes = 4096, .link = KTRXER_LINK_ETHERNET };
	struct rules_cost *c = calloc(1, sizeof *c);
	int rc;

	*out = NULL;
	if (!c)
		return ktrxer_fail(err, -ENOMEM, "no memory for the bench");
	rc = krx_ruleset_new(&c->set, options->rules, sizeof(struct krx_rule), options->count, err);
	if (rc < 0)
		goto fail;
	setup.rules = c->set;
	rc = ktrxer_rules_program_open(&c->program, &setup, err);
	if (rc < 0)
		goto fail;
	c->open = true;
	c->action = options->match ? XDP_DROP : XDP_PASS;
	packet_make(c, options);
	*out = c;
	return 0;
fail:
	rules_cost_close(c);
	return rc;
}

void rules_cost_close(struct rules_cost *c)
{
	if (!c)
		return;
	if (c->open)
		ktrxer_rules_program_close(&c->program);
	krx_ruleset_free(c->set);
	free(c);
}

int rules_cost_run(struct rules_cost *c, uint32_t repeat, uint32_t *mean_ns, struct ktrxer_error *err)
{
	struct rules_trial trial;
	const int rc = ktrxer_rules_program_try(&c->program, c->packet, c->length, repeat, &trial);

	if (rc < 0)
		return ktrxer_fail(err, rc, "BPF_PROG_RUN of the rules' program: %s", strerror(-rc));
	if (trial.action != c->action)
		return ktrxer_fail(err, -EBADMSG, "the rules' program returned action %u, not %u", trial.action,
				   c->action);
	*mean_ns = trial.cost_ns;
	return 0;
}
