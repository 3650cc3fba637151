/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A rule set as the tables of the rules' program (bpf/rules.h). Nothing here needs a kernel. */
#ifndef KTRXER_LIB_RULES_TABLE_H
#define KTRXER_LIB_RULES_TABLE_H

#include "rule_match.h"
#include "rules.h"

struct rules_table {
	struct rules_constants constants; /* list, list_count, exact4, exact6; the rest is the caller's */
	const struct krx_ruleset *rules;  /* has the whole 5-tuples */
	uint32_t counts[2];               /* of them: IPv4, IPv6 */
};

/* -E2BIG: more wildcards than the program's list holds; err says what helps. The table refers to `rules`. */
int ktrxer_rules_table_make(struct rules_table *table, const struct krx_ruleset *rules, struct ktrxer_error *err);

/* The verdict of the rule with this rank. */
struct rules_verdict ktrxer_rules_table_verdict(const struct rules_table *table, uint32_t rank);
struct rules_key4 ktrxer_rules_key4(const struct krx_view *key);

#endif
