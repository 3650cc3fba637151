/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rule_match.h"

#include "base_limits.h"
#include "error.h"
#include "options.h"
#include "rule.h"
#include "rule_hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct krx_ruleset {
	struct krx_rule *rules; /* as given */
	int32_t *order;         /* rank -> position */
	struct krx_match match; /* by rank */
	int count;
};

/* qsort() has no context, and is not stable: the keys carry both. */
struct ranking {
	uint32_t priority;
	int32_t position;
};

static int ranking_compare(const void *a, const void *b)
{
	const struct ranking *x = a, *y = b;

	if (x->priority != y->priority)
		return x->priority < y->priority ? -1 : 1;
	return x->position < y->position ? -1 : 1;
}

static int order_build(struct krx_ruleset *set)
{
	struct ranking *ranking = calloc((size_t)set->count + 1, sizeof *ranking);

	if (!ranking)
		return -ENOMEM;
	for (int i = 0; i < set->count; i++)
		ranking[i] = (struct ranking){ .priority = set->rules[i].priority, .position = i };
	qsort(ranking, (size_t)set->count, sizeof *ranking, ranking_compare);
	for (int i = 0; i < set->count; i++)
		set->order[i] = ranking[i].position;
	free(ranking);
	return 0;
}

static int match_build(struct krx_ruleset *set)
{
	const uint32_t count = (uint32_t)set->count;
	struct krx_match *m = &set->match;
	struct ktrxer_rx_rule rule;
	uint32_t buckets = 16;
	int ret = 0;

	while (buckets < 2 * count)
		buckets *= 2;
	*m = (struct krx_match){ .bucket_mask = buckets - 1, .wild_most = count };
	m->op = calloc(count + 1, sizeof *m->op);
	m->exact = calloc(count + 1, sizeof *m->exact);
	m->wild = calloc(count + 1, sizeof *m->wild);
	m->buckets = malloc(buckets * sizeof *m->buckets);
	if (!m->op || !m->exact || !m->wild || !m->buckets)
		return -ENOMEM;
	memset(m->buckets, 0xff, buckets * sizeof *m->buckets); /* KRX_NONE */
	for (int rank = 0; rank < set->count && !ret; rank++) {
		krx_rule_pack(&rule, krx_ruleset_ranked(set, rank));
		ret = krx_match_add(m, &rule);
	}
	return ret;
}

int krx_ruleset_new(struct krx_ruleset **out, const struct krx_rule *rules, size_t size, int count,
		    struct ktrxer_error *err)
{
	struct ktrxer_error why = { 0 };
	struct krx_ruleset *set;
	int ret;

	if (count < 0 || (count && !rules))
		return ktrxer_fail(err, -EINVAL, "rules: %d of them make no sense", count);
	if (count > KRX_RULES_MAX)
		return ktrxer_fail(err, -E2BIG,
				   "rules: %d are more than the %d that are allowed; use prefixes and wildcards", count,
				   KRX_RULES_MAX);
	set = calloc(1, sizeof *set);
	if (!set)
		return ktrxer_fail(err, -ENOMEM, "rules: no memory");
	set->count = count;
	set->rules = calloc((size_t)count + 1, sizeof *set->rules);
	set->order = calloc((size_t)count + 1, sizeof *set->order);
	if (!set->rules || !set->order) {
		ret = -ENOMEM;
		goto fail;
	}
	for (int i = 0; i < count; i++) {
		ret = ktrxer_options_copy(&set->rules[i], sizeof *set->rules, (const uint8_t *)rules + (size_t)i * size,
					  size, KRX_RULE_LEAST, "krx_rule", &why);
		if (!ret)
			ret = krx_rule_check(&set->rules[i], &why);
		if (ret) {
			krx_ruleset_free(set);
			return ktrxer_fail(err, ret, "rule %d of %d: %s", i + 1, count, why.text);
		}
	}
	ret = order_build(set);
	if (!ret)
		ret = match_build(set);
	if (ret)
		goto fail;
	*out = set;
	return 0;
fail:
	krx_ruleset_free(set);
	return ktrxer_fail(err, ret, "rules: no memory for %d of them", count);
}

int krx_ruleset_list_check(const struct krx_ruleset *set, struct ktrxer_error *err)
{
	if (set->match.wild_count <= KRX_LIST_MAX)
		return 0;
	return ktrxer_fail(err, -E2BIG,
			   "%u rules have wildcards or prefixes, and %d is the most; %d more may name whole 5-tuples: "
			   "join some prefixes, or write addresses and ports out",
			   set->match.wild_count, KRX_LIST_MAX, KRX_RULES_MAX - KRX_LIST_MAX);
}

void krx_ruleset_free(struct krx_ruleset *set)
{
	if (!set)
		return;
	free(set->match.buckets);
	free(set->match.wild);
	free(set->match.exact);
	free(set->match.op);
	free(set->order);
	free(set->rules);
	free(set);
}

int krx_ruleset_count(const struct krx_ruleset *set)
{
	return set->count;
}

const struct krx_rule *krx_ruleset_rule(const struct krx_ruleset *set, int index)
{
	return &set->rules[index];
}

const struct krx_rule *krx_ruleset_ranked(const struct krx_ruleset *set, int rank)
{
	return &set->rules[set->order[rank]];
}

const struct krx_match *krx_ruleset_table(const struct krx_ruleset *set)
{
	return &set->match;
}

int krx_ruleset_match(const struct krx_ruleset *set, const struct ktrxer_packet_view *view)
{
	struct krx_view key = { .proto = view->proto, .version = view->version };
	uint32_t rank;

	memcpy(key.from, view->from.bytes, view->version == 4 ? 4 : sizeof key.from);
	memcpy(key.to, view->to.bytes, view->version == 4 ? 4 : sizeof key.to);
	if (view->ports) {
		key.from_port = htons(view->from_port);
		key.to_port = htons(view->to_port);
	}
	rank = krx_match_find(&set->match, &key);
	return rank == KRX_NONE ? -1 : set->order[rank];
}
