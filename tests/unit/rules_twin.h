/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rules in the kernel without a kernel, for tests and fuzzers: the XDP program's (the same text for classification and lists, a plain
 * search for the hash) and the module's (the same text for all of it).
 */
#ifndef KTRXER_TESTS_RULES_TWIN_H
#define KTRXER_TESTS_RULES_TWIN_H

#include "../../bpf/rules_classify.h"
#include "packet.h"
#include "rules_table.h"

#include "rx_module.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------------------------------------------------- the module */

struct krx_source {
	const uint8_t *at; /* the network header */
	__u32 length;
};

static inline const __u8 *krx_take(const struct krx_source *s, __u32 at, __u32 n, void *room)
{
	(void)room;
	return at > s->length || n > s->length - at ? NULL : s->at + at;
}

static inline __u32 krx_hash(const void *words, __u32 count, __u32 seed)
{
	__u32 hash = seed, word;

	for (__u32 i = 0; i < count; i++) {
		memcpy(&word, (const uint8_t *)words + (size_t)i * 4, 4);
		hash = (hash ^ word) * 0x9e3779b1u;
		hash ^= hash >> 15;
	}
	return hash;
}

#include "../../module/rx_match.h"

/* As rx_hook.c calls it. The kernel takes the outer tag off before that, `untag`. */
static inline void module_twin_classify(struct krx_view *v, const uint8_t *frame, uint32_t length, enum ktrxer_link link, bool untag)
{
	struct krx_source s = { frame, length };
	uint32_t type = KRX_TYPE_RAW, tags = 0;

	memset(v, 0, sizeof *v);
	if (link == KTRXER_LINK_ETHERNET) {
		if (length < 14)
			return;
		s = (struct krx_source){ frame + 14, length - 14 };
		type = krx_number(frame + 12);
		if (untag && (type == KRX_TYPE_VLAN || type == KRX_TYPE_SERVICE)) {
			if (s.length < 4)
				return; /* such a packet comes no farther */
			type = krx_number(frame + 16);
			s = (struct krx_source){ frame + 18, length - 18 };
			tags = 1;
		}
	}
	krx_classify(v, &s, type, tags);
}

static inline bool module_twin_make(struct krx_match *m, const struct krx_ruleset *set, uint32_t wild_most)
{
	const uint32_t count = (uint32_t)krx_ruleset_count(set);
	struct ktrxer_rx_rule *rules = calloc(count + 1, sizeof *rules);
	uint32_t buckets = 16;
	int rc = 0;

	while (buckets < 2 * count)
		buckets *= 2;
	*m = (struct krx_match){ .bucket_mask = buckets - 1, .wild_most = wild_most, .seed = count };
	m->op = calloc(count + 1, sizeof *m->op);
	m->exact = calloc(count + 1, sizeof *m->exact);
	m->wild = calloc(wild_most + 1, sizeof *m->wild);
	m->buckets = malloc(buckets * sizeof *m->buckets);
	if (!rules || !m->op || !m->exact || !m->wild || !m->buckets)
		abort();
	memset(m->buckets, 0xff, buckets * sizeof *m->buckets);
	krx_module_rules(rules, set);
	for (uint32_t i = 0; i < count && !rc; i++)
		rc = krx_match_add(m, &rules[i]);
	free(rules);
	return !rc;
}

static inline void module_twin_free(struct krx_match *m)
{
	free(m->op);
	free(m->exact);
	free(m->wild);
	free(m->buckets);
}

/* The position of the rule that decides, -1: none. */
static inline int module_twin_match(const struct krx_match *m, const struct krx_ruleset *set, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct krx_view v;
	uint32_t rank;

	module_twin_classify(&v, frame, length, link, true);
	rank = krx_match_find(m, &v);
	return rank == KRX_NONE ? -1 : (int)(krx_ruleset_ranked(set, (int)rank) - krx_ruleset_rule(set, 0));
}

static inline const char *module_twin_differs(const uint8_t *frame, uint32_t length, enum ktrxer_link link, bool untag)
{
	struct ktrxer_packet_view want;
	struct krx_view got;

	ktrxer_packet_parse(&want, frame, length, link);
	module_twin_classify(&got, frame, length, link, untag);
	if (got.version != want.version)
		return "the module's IP version";
	if (!want.version)
		return NULL;
	if (got.proto != want.proto)
		return "the module's protocol";
	if (memcmp(got.from, want.from.bytes, 16) != 0 || memcmp(got.to, want.to.bytes, 16) != 0)
		return "the module's addresses";
	if (ntohs(got.from_port) != (want.ports ? want.from_port : 0) || ntohs(got.to_port) != (want.ports ? want.to_port : 0))
		return "the module's ports";
	return NULL;
}

/* -------------------------------------------------------------------------------------------------------- the XDP program */

/* A word where the two disagree on a packet; NULL: nowhere. */
static inline const char *rules_twin_differs(const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_packet_view want;
	struct rules_view got = { 0 };

	ktrxer_packet_parse(&want, frame, length, link);
	rules_classify(&got, frame, frame + length, link == KTRXER_LINK_RAW_IP);
	if (got.version != want.version)
		return "IP version";
	if (!want.version)
		return NULL;
	if (got.key.proto != want.proto)
		return "protocol";
	if (memcmp(got.key.from, want.from.bytes, 16) != 0 || memcmp(got.key.to, want.to.bytes, 16) != 0)
		return "addresses";
	if (ntohs(got.key.from_port) != (want.ports ? want.from_port : 0) || ntohs(got.key.to_port) != (want.ports ? want.to_port : 0))
		return "ports";
	return NULL;
}

static inline const char *twins_differ(const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	const char *difference = length <= RULES_REACH ? rules_twin_differs(frame, length, link) : NULL;

	if (!difference)
		difference = module_twin_differs(frame, length, link, false);
	return difference ? difference : module_twin_differs(frame, length, link, true);
}

static inline bool rules_twin_is(const struct rules_exact *e, const struct rules_view *v)
{
	if (e->family != v->version || !v->key.from_port || !v->key.to_port)
		return false;
	if (e->family == 4)
		return e->key.four.from == v->key.from[0] && e->key.four.to == v->key.to[0] && e->key.four.from_port == v->key.from_port &&
		       e->key.four.to_port == v->key.to_port && e->key.four.proto == v->key.proto;
	return !memcmp(e->key.six.from, v->key.from, 16) && !memcmp(e->key.six.to, v->key.to, 16) && e->key.six.from_port == v->key.from_port &&
	       e->key.six.to_port == v->key.to_port && e->key.six.proto == v->key.proto;
}

/* The position of the rule that decides, -1: none. */
static inline int rules_twin_match(const struct rules_table *table, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	const struct rules_constants *c = &table->constants;
	uint32_t rank = RULES_NONE, rule = 0;
	struct rules_view v = { 0 };

	rules_classify(&v, frame, frame + length, link == KTRXER_LINK_RAW_IP);
	for (uint32_t i = 0; i < table->exact_count && rank == RULES_NONE; i++)
		if (rules_twin_is(&table->exact[i], &v)) {
			rank = table->exact[i].verdict.rank;
			rule = table->exact[i].verdict.rule;
		}
	for (uint32_t i = 0; i < c->config.list_count && c->list[i].verdict.rank < rank; i++)
		if (rules_wild_matches(&c->list[i], &v))
			return (int)c->list[i].verdict.rule;
	return rank == RULES_NONE ? -1 : (int)rule;
}

#endif
