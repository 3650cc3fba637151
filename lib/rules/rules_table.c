/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rules_table.h"

#include "error.h"
#include "limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static uint32_t bits_of(const struct ktrxer_addr *addr)
{
	return addr->family == AF_INET ? 32 : 128;
}

static bool rule_is_exact(const struct krx_rule *rule)
{
	return krx_rule_fields(rule) == KRX_FIELDS_ALL && rule->from_prefix == bits_of(&rule->from) && rule->to_prefix == bits_of(&rule->to);
}

static struct rules_verdict verdict_of(const struct krx_ruleset *rules, const struct krx_rule *rule, int rank)
{
	return (struct rules_verdict){ .rank = (uint32_t)rank, .rule = (uint32_t)(rule - krx_ruleset_rule(rules, 0)), .op = (uint32_t)rule->op };
}

static void put_exact(struct rules_table *table, const struct krx_rule *rule, const struct rules_verdict *verdict)
{
	struct rules_exact *e = &table->exact[table->exact_count++];
	const bool four = rule->from.family == AF_INET;

	e->verdict = *verdict;
	e->family = four ? 4 : 6;
	table->counts[!four]++;
	if (four) {
		memcpy(&e->key.four.from, rule->from.bytes, 4);
		memcpy(&e->key.four.to, rule->to.bytes, 4);
		e->key.four.from_port = htons(rule->from_port);
		e->key.four.to_port = htons(rule->to_port);
		e->key.four.proto = rule->proto;
	} else {
		memcpy(e->key.six.from, rule->from.bytes, 16);
		memcpy(e->key.six.to, rule->to.bytes, 16);
		e->key.six.from_port = htons(rule->from_port);
		e->key.six.to_port = htons(rule->to_port);
		e->key.six.proto = rule->proto;
	}
}

static void put_side(uint32_t value[4], uint32_t mask[4], const struct ktrxer_addr *addr, uint32_t prefix)
{
	uint8_t bytes[16] = { 0 };

	if (!addr->family)
		return;
	for (uint32_t i = 0; i < prefix; i++)
		bytes[i / 8] |= (uint8_t)(0x80 >> i % 8);
	memcpy(mask, bytes, 16);
	memcpy(value, addr->bytes, addr->family == AF_INET ? 4 : 16);
}

static void put_wild(struct rules_table *table, const struct krx_rule *rule, const struct rules_verdict *verdict)
{
	struct rules_wild *w = &table->constants.list[table->constants.config.list_count++];
	const int family = rule->from.family ? rule->from.family : rule->to.family;

	w->verdict = *verdict;
	w->family = family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
	w->fields = krx_rule_fields(rule) != 0;
	w->proto = rule->proto;
	w->from_port = htons(rule->from_port);
	w->to_port = htons(rule->to_port);
	put_side(w->from, w->from_mask, &rule->from, rule->from_prefix);
	put_side(w->to, w->to_mask, &rule->to, rule->to_prefix);
}

int rules_table_make(struct rules_table *table, const struct krx_ruleset *rules, struct ktrxer_error *err)
{
	const int count = krx_ruleset_count(rules);
	uint32_t wild = 0;

	memset(table, 0, sizeof *table);
	table->rules = (uint32_t)count;
	for (int i = 0; i < count; i++)
		wild += !rule_is_exact(krx_ruleset_rule(rules, i));
	if (wild > RULES_LIST_MAX)
		return ktrxer_fail(err, -E2BIG, "%u rules have wildcards or prefixes, and XDP asks %d at most; %d more may name whole 5-tuples: "
				   "join some prefixes, or write addresses and ports out", wild, RULES_LIST_MAX, KRX_RULES_MAX - RULES_LIST_MAX);
	table->exact = calloc((size_t)count + 1, sizeof *table->exact);
	if (!table->exact)
		return ktrxer_fail(err, -ENOMEM, "no memory for %d rules", count);
	for (int rank = 0; rank < count; rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(rules, rank);
		const struct rules_verdict verdict = verdict_of(rules, rule, rank);

		if (rule_is_exact(rule))
			put_exact(table, rule, &verdict);
		else
			put_wild(table, rule, &verdict);
	}
	table->constants.config.exact4 = table->counts[0] != 0;
	table->constants.config.exact6 = table->counts[1] != 0;
	return 0;
}

void rules_table_free(struct rules_table *table)
{
	free(table->exact);
	table->exact = NULL;
}
