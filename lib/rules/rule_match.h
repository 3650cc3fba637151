/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A set of rules. A packet always gets the rule that a linear scan in the order of (priority, position) finds first. A
 * hash finds the rules that name a whole 5-tuple, so their number costs no time.
 */
#ifndef KTRXER_LIB_RULE_MATCH_H
#define KTRXER_LIB_RULE_MATCH_H

#include "rule.h"

enum {
	KRX_LIST_MAX = 1024,    /* with wildcards or prefixes: every back end compares them one after another */
	KRX_HEADERS_SNAP = 256, /* link, IP and transport headers with room for options: what matching a rule needs */
};

struct krx_ruleset;

/*
 * The limit of all back ends, so that a table that one of them takes is taken by all: -E2BIG if more than KRX_LIST_MAX
 * rules have wildcards or prefixes.
 */
int krx_ruleset_list_check(const struct krx_ruleset *set, struct ktrxer_error *err);

/*
 * Copies the rules; `size` is that of a rule in the caller's headers. -EINVAL: krx_rule_check() refuses a rule, and err
 * names it; -E2BIG: a rule of a newer caller has a byte that this library does not know, or there are more than
 * KRX_RULES_MAX.
 */
int krx_ruleset_new(struct krx_ruleset **set, const struct krx_rule *rules, size_t size, int count,
		    struct ktrxer_error *err);
void krx_ruleset_free(struct krx_ruleset *set);

int krx_ruleset_count(const struct krx_ruleset *set);
/* `position` is that of the caller's list. */
const struct krx_rule *krx_ruleset_rule(const struct krx_ruleset *set, int index);
/* The rule at this place in the order of (priority, position). */
const struct krx_rule *krx_ruleset_ranked(const struct krx_ruleset *set, int rank);

/* The rules by rank, as <linux/ktrxer_match.h> has them. */
struct krx_match;
const struct krx_match *krx_ruleset_table(const struct krx_ruleset *set);

/* The position of the rule that decides, -1: none does. */
int krx_ruleset_match(const struct krx_ruleset *set, const struct ktrxer_packet_view *view);

#endif
