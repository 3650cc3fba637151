/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reference of the tables of rules (ktrxer_match.h) for tests and fuzzers: a linear scan, which shares no code with
 * them.
 */
#ifndef KTRXER_TESTS_RULE_REFERENCE_H
#define KTRXER_TESTS_RULE_REFERENCE_H

#include "rule.h"

#include <string.h>

static inline bool bits_equal(const uint8_t *a, const uint8_t *b, uint32_t bits)
{
	uint32_t whole = bits / 8, rest = bits % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

static inline bool addr_matches(const struct ktrxer_addr *rule, uint8_t prefix, const struct ktrxer_addr *addr)
{
	return !rule->family || (rule->family == addr->family && bits_equal(rule->bytes, addr->bytes, prefix));
}

static inline bool reference_rule_matches(const struct krx_rule *rule, const struct ktrxer_packet_view *view)
{
	if (!view->version)
		return !krx_rule_fields(rule);
	return (!rule->proto || rule->proto == view->proto) &&
	       addr_matches(&rule->from, rule->from_prefix, &view->from) &&
	       addr_matches(&rule->to, rule->to_prefix, &view->to) &&
	       (!rule->from_port || (view->ports && rule->from_port == view->from_port)) &&
	       (!rule->to_port || (view->ports && rule->to_port == view->to_port));
}

/* The position of the rule that decides, -1: none. */
static inline int reference_scan(const struct krx_rule *rules, int count, const struct ktrxer_packet_view *view)
{
	int best = -1;

	for (int i = 0; i < count; i++)
		if (reference_rule_matches(&rules[i], view) && (best < 0 || rules[i].priority < rules[best].priority))
			best = i;
	return best;
}

#endif
