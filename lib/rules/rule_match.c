/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rule_match.h"

#include "error.h"
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A whole 5-tuple. No padding: it is hashed and compared as bytes. */
struct tuple {
	uint8_t from[16], to[16];
	uint16_t from_port, to_port;
	uint8_t proto, family, zero[2];
};
_Static_assert(sizeof(struct tuple) == 40, "struct tuple has padding");

struct bucket {
	struct tuple tuple;
	int32_t rank; /* -1: empty */
};

struct krx_ruleset {
	struct krx_rule *rules; /* as given */
	int32_t *order;	       /* rank -> position */
	int32_t *list;	       /* ranks of the rules that have wildcards, rising */
	struct bucket *buckets;
	uint32_t mask; /* buckets - 1; at most half of them are taken */
	int count, list_count, exact_count;
};

static bool rule_is_exact(const struct krx_rule *rule)
{
	uint8_t bits = rule->from.family == AF_INET ? 32 : 128;

	return krx_rule_fields(rule) == KRX_FIELDS_ALL && rule->from_prefix == bits && rule->to_prefix == bits;
}

static void tuple_set(struct tuple *tuple, const struct ktrxer_addr *from, const struct ktrxer_addr *to,
		      uint16_t from_port, uint16_t to_port, uint8_t proto)
{
	memset(tuple, 0, sizeof *tuple);
	tuple->family = from->family;
	memcpy(tuple->from, from->bytes, from->family == AF_INET ? 4 : 16);
	memcpy(tuple->to, to->bytes, from->family == AF_INET ? 4 : 16);
	tuple->from_port = from_port;
	tuple->to_port = to_port;
	tuple->proto = proto;
}

static uint32_t tuple_hash(const struct tuple *tuple)
{
	uint64_t hash = 0x9e3779b97f4a7c15, word;

	for (size_t i = 0; i < sizeof *tuple; i += sizeof word) {
		memcpy(&word, (const uint8_t *)tuple + i, sizeof word);
		hash = (hash ^ word) * 0xff51afd7ed558ccd;
		hash ^= hash >> 32;
	}
	return (uint32_t)hash;
}

/* The bucket of this tuple, or the empty one where it would go. */
static struct bucket *bucket_find(const struct krx_ruleset *set, const struct tuple *tuple)
{
	uint32_t at = tuple_hash(tuple) & set->mask;

	while (set->buckets[at].rank >= 0 && memcmp(&set->buckets[at].tuple, tuple, sizeof *tuple) != 0)
		at = (at + 1) & set->mask;
	return &set->buckets[at];
}

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

static void index_build(struct krx_ruleset *set)
{
	for (uint32_t i = 0; i <= set->mask; i++)
		set->buckets[i].rank = -1;
	for (int rank = 0; rank < set->count; rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(set, rank);
		struct tuple tuple;
		struct bucket *bucket;

		if (!rule_is_exact(rule)) {
			set->list[set->list_count++] = rank;
			continue;
		}
		tuple_set(&tuple, &rule->from, &rule->to, rule->from_port, rule->to_port, rule->proto);
		bucket = bucket_find(set, &tuple);
		if (bucket->rank >= 0) /* the same tuple once more: the earlier rule has spoken */
			continue;
		*bucket = (struct bucket){ .tuple = tuple, .rank = rank };
		set->exact_count++;
	}
}

int krx_ruleset_new(struct krx_ruleset **out, const struct krx_rule *rules, int count, struct ktrxer_error *err)
{
	struct ktrxer_error why = { 0 };
	struct krx_ruleset *set;
	uint32_t buckets = 16;
	int ret;

	if (count < 0 || (count && !rules))
		return ktrxer_fail(err, -EINVAL, "rules: %d of them make no sense", count);
	if (count > KRX_RULES_MAX)
		return ktrxer_fail(err, -E2BIG,
				   "rules: %d are more than the %d that are allowed; use prefixes and wildcards", count,
				   KRX_RULES_MAX);
	for (int i = 0; i < count; i++)
		if (krx_rule_check(&rules[i], &why))
			return ktrxer_fail(err, -EINVAL, "rule %d of %d: %s", i + 1, count, why.text);

	set = calloc(1, sizeof *set);
	if (!set)
		return ktrxer_fail(err, -ENOMEM, "rules: no memory");
	while (buckets < 2 * (uint32_t)count)
		buckets *= 2;
	set->count = count;
	set->mask = buckets - 1;
	set->rules = calloc((size_t)count + 1, sizeof *set->rules);
	set->order = calloc((size_t)count + 1, sizeof *set->order);
	set->list = calloc((size_t)count + 1, sizeof *set->list);
	set->buckets = calloc(buckets, sizeof *set->buckets);
	if (!set->rules || !set->order || !set->list || !set->buckets) {
		ret = -ENOMEM;
		goto fail;
	}
	if (count)
		memcpy(set->rules, rules, (size_t)count * sizeof *rules);
	ret = order_build(set);
	if (ret)
		goto fail;
	index_build(set);
	*out = set;
	return 0;
fail:
	krx_ruleset_free(set);
	return ktrxer_fail(err, ret, "rules: no memory for %d of them", count);
}

void krx_ruleset_free(struct krx_ruleset *set)
{
	if (!set)
		return;
	free(set->buckets);
	free(set->list);
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

int krx_ruleset_match(const struct krx_ruleset *set, const struct ktrxer_packet_view *view)
{
	int32_t best = INT32_MAX;

	if (view->ports && set->exact_count) {
		struct tuple tuple;
		const struct bucket *bucket;

		tuple_set(&tuple, &view->from, &view->to, view->from_port, view->to_port, view->proto);
		bucket = bucket_find(set, &tuple);
		if (bucket->rank >= 0)
			best = bucket->rank;
	}
	for (int i = 0; i < set->list_count && set->list[i] < best; i++) {
		if (krx_rule_matches(krx_ruleset_ranked(set, set->list[i]), view)) {
			best = set->list[i];
			break;
		}
	}
	return best == INT32_MAX ? -1 : set->order[best];
}
