/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A rule set as the tables of the rules' program (bpf/rules.h). Nothing here needs a kernel. */
#ifndef KTRXER_LIB_RULES_TABLE_H
#define KTRXER_LIB_RULES_TABLE_H

#include "rule_match.h"
#include "rules.h"

/* A whole 5-tuple, and what it decides. */
struct rules_exact {
	union {
		struct rules_key4 four;
		struct rules_key6 six;
	} key;
	struct rules_verdict verdict;
	uint8_t family; /* 4, 6 */
};

struct rules_table {
	struct rules_constants constants; /* list, list_count, exact4, exact6; the rest is the caller's */
	struct rules_exact *exact;	  /* the same tuple more than once: the first decides */
	uint32_t exact_count, counts[2];  /* how many in all; of IPv4, of IPv6 */
	uint32_t rules;
};

/* -E2BIG: more wildcards than the program's list holds; err says what helps. */
int rules_table_make(struct rules_table *table, const struct krx_ruleset *rules, struct ktrxer_error *err);
void rules_table_free(struct rules_table *table);

#endif
