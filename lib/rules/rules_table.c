/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rules_table.h"

#include "rule_hash.h"
#include "rule_match.h"

#include <string.h>

struct rules_verdict ktrxer_rules_table_verdict(const struct rules_table *table, uint32_t rank)
{
	const struct krx_rule *rule = krx_ruleset_ranked(table->rules, (int)rank);

	return (struct rules_verdict){ .rank = rank,
				       .rule = (uint32_t)(rule - krx_ruleset_rule(table->rules, 0)),
				       .op = (uint32_t)rule->op };
}

struct rules_key4 ktrxer_rules_key4(const struct krx_view *key)
{
	return (struct rules_key4){ .from = key->from[0],
				    .to = key->to[0],
				    .from_port = key->from_port,
				    .to_port = key->to_port,
				    .proto = key->proto };
}

int ktrxer_rules_table_make(struct rules_table *table, const struct krx_ruleset *rules, struct ktrxer_error *err)
{
	const struct krx_match *m = krx_ruleset_table(rules);
	struct rules_config *config = &table->constants.config;
	const int ret = krx_ruleset_list_check(rules, err);

	_Static_assert((int)RULES_LIST_MAX == (int)KRX_LIST_MAX, "one limit for all back ends");
	memset(table, 0, sizeof *table);
	table->rules = rules;
	if (ret)
		return ret;
	for (uint32_t i = 0; i < m->wild_count; i++) {
		const struct rules_verdict verdict = ktrxer_rules_table_verdict(table, m->wild[i].rule);

		table->constants.list[i] =
			(struct rules_wild){ .wild = m->wild[i], .rule = verdict.rule, .op = verdict.op };
	}
	for (uint32_t i = 0; i < m->exact_count; i++)
		table->counts[m->exact[i].key.version == 6]++;
	config->list_count = m->wild_count;
	config->exact4 = table->counts[0] != 0;
	config->exact6 = table->counts[1] != 0;
	return 0;
}
