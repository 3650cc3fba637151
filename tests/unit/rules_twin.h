/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The rules' program without a kernel: the same text for classification and lists, a plain search for the hash. For tests and fuzzers. */
#ifndef KTRXER_TESTS_RULES_TWIN_H
#define KTRXER_TESTS_RULES_TWIN_H

#include "../../bpf/rules_classify.h"
#include "packet.h"
#include "rules_table.h"

#include <arpa/inet.h>
#include <string.h>

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
