/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nft_rules.h"

#include "error.h"
#include "rule_hash.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/ktrxer_view.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define CHAIN "rules"

enum {
	/* <linux/netfilter.h> has them, and does not go together with musl's <netinet/in.h> */
	NF_DROP = 0,
	NF_ACCEPT = 1,
	NF_NETDEV_INGRESS = 0,

	FIRST = INT32_MIN / 2, /* before the chains of others, which seldom go below -500 */
	REGISTER = NFT_REG_1,  /* 16 bytes: an IPv6 address */
	OFFSET_MASK = 0x1fff,  /* of an IPv4 header's seventh and eighth byte: where a fragment lies */
};

struct expression {
	size_t element, data;
};

static struct expression expression_begin(struct rtnl_request *b, const char *name)
{
	struct expression e = { .element = ktrxer_rtnl_request_nest(b, NFTA_LIST_ELEM) };

	ktrxer_rtnl_request_put_string(b, NFTA_EXPR_NAME, name);
	e.data = ktrxer_rtnl_request_nest(b, NFTA_EXPR_DATA);
	return e;
}

static void expression_end(struct rtnl_request *b, const struct expression *e)
{
	ktrxer_rtnl_request_nest_end(b, e->data);
	ktrxer_rtnl_request_nest_end(b, e->element);
}

static void load_meta(struct rtnl_request *b, uint32_t key)
{
	struct expression e = expression_begin(b, "meta");

	ktrxer_rtnl_request_put_be32(b, NFTA_META_KEY, key);
	ktrxer_rtnl_request_put_be32(b, NFTA_META_DREG, REGISTER);
	expression_end(b, &e);
}

static void load_payload_into(struct rtnl_request *b, uint32_t reg, uint32_t base, uint32_t offset, uint32_t length)
{
	struct expression e = expression_begin(b, "payload");

	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_DREG, reg);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_BASE, base);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_LEN, length);
	expression_end(b, &e);
}

static void load_payload(struct rtnl_request *b, uint32_t base, uint32_t offset, uint32_t length)
{
	load_payload_into(b, REGISTER, base, offset, length);
}

static void put_data(struct rtnl_request *b, uint16_t type, const void *value, size_t length)
{
	const size_t nest = ktrxer_rtnl_request_nest(b, type);

	ktrxer_rtnl_request_put(b, NFTA_DATA_VALUE, value, length);
	ktrxer_rtnl_request_nest_end(b, nest);
}

static void mask(struct rtnl_request *b, const void *bits, uint32_t length)
{
	static const uint8_t nothing[16];
	struct expression e = expression_begin(b, "bitwise");

	ktrxer_rtnl_request_put_be32(b, NFTA_BITWISE_SREG, REGISTER);
	ktrxer_rtnl_request_put_be32(b, NFTA_BITWISE_DREG, REGISTER);
	ktrxer_rtnl_request_put_be32(b, NFTA_BITWISE_LEN, length);
	put_data(b, NFTA_BITWISE_MASK, bits, length);
	put_data(b, NFTA_BITWISE_XOR, nothing, length);
	expression_end(b, &e);
}

static void compares(struct rtnl_request *b, uint32_t reg, uint32_t how, const void *value, uint32_t length)
{
	struct expression e = expression_begin(b, "cmp");

	ktrxer_rtnl_request_put_be32(b, NFTA_CMP_SREG, reg);
	ktrxer_rtnl_request_put_be32(b, NFTA_CMP_OP, how);
	put_data(b, NFTA_CMP_DATA, value, length);
	expression_end(b, &e);
}

static void equals(struct rtnl_request *b, const void *value, uint32_t length)
{
	compares(b, REGISTER, NFT_CMP_EQ, value, length);
}

static void equals_be16(struct rtnl_request *b, uint16_t value)
{
	const uint16_t swapped = htons(value);

	equals(b, &swapped, sizeof swapped);
}

/* `chain`: of a verdict that goes on there; else NULL. */
static void put_verdict(struct rtnl_request *b, int32_t verdict, const char *chain)
{
	struct expression e = expression_begin(b, "immediate");
	size_t data, code;

	ktrxer_rtnl_request_put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = ktrxer_rtnl_request_nest(b, NFTA_IMMEDIATE_DATA);
	code = ktrxer_rtnl_request_nest(b, NFTA_DATA_VERDICT);
	ktrxer_rtnl_request_put_be32(b, NFTA_VERDICT_CODE, (uint32_t)verdict);
	if (chain)
		ktrxer_rtnl_request_put_string(b, NFTA_VERDICT_CHAIN, chain);
	ktrxer_rtnl_request_nest_end(b, code);
	ktrxer_rtnl_request_nest_end(b, data);
	expression_end(b, &e);
}

static void count_and_end(struct rtnl_request *b, int32_t verdict)
{
	struct expression e = expression_begin(b, "counter");

	expression_end(b, &e);
	put_verdict(b, verdict, NULL);
}

static void match_addr(struct rtnl_request *b, const struct ktrxer_addr *addr, uint8_t prefix, bool to)
{
	const bool four = addr->family == AF_INET;
	const uint32_t length = four ? 4 : 16;
	uint8_t bits[16] = { 0 };

	if (!addr->family || !prefix)
		return;
	load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, four ? (to ? 16 : 12) : (to ? 24 : 8), length);
	for (uint32_t i = 0; i < prefix; i++)
		bits[i / 8] |= (uint8_t)(0x80 >> i % 8);
	if (prefix < length * 8)
		mask(b, bits, length);
	equals(b, addr->bytes, length);
}

struct place {
	const char *table, *chain;
};

static size_t rule_begin(struct rtnl_request *b, const struct place *at, int family)
{
	size_t list;

	ktrxer_nft_message_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	ktrxer_rtnl_request_put_string(b, NFTA_RULE_TABLE, at->table);
	ktrxer_rtnl_request_put_string(b, NFTA_RULE_CHAIN, at->chain);
	list = ktrxer_rtnl_request_nest(b, NFTA_RULE_EXPRESSIONS);
	if (family) {
		load_meta(b, NFT_META_PROTOCOL);
		equals_be16(b, family == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	}
	return list;
}

/* One rule of a chain; `family` and `proto` 0: any. */
static void put_rule(struct rtnl_request *b, const struct place *at, const struct krx_rule *rule, uint32_t mark,
		     int family, uint8_t proto)
{
	static const uint8_t offset_bits[2] = { OFFSET_MASK >> 8, OFFSET_MASK & 0xff };
	const bool drops = rule->op == KRX_DROP || rule->op == KRX_CAPTURE_DROP,
		   ports = rule->from_port || rule->to_port;
	const size_t list = rule_begin(b, at, family);

	match_addr(b, &rule->from, rule->from_prefix, false);
	match_addr(b, &rule->to, rule->to_prefix, true);
	if (proto) {
		load_meta(b, NFT_META_L4PROTO);
		equals(b, &proto, 1);
	}
	if (ports && family == AF_INET) { /* in IPv6 a later fragment has no transport header for nf_tables */
		load_payload(b, NFT_PAYLOAD_NETWORK_HEADER, 6, 2);
		mask(b, offset_bits, sizeof offset_bits);
		equals_be16(b, 0);
	}
	if (rule->from_port) {
		load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 2);
		equals_be16(b, rule->from_port);
	}
	if (rule->to_port) {
		load_payload(b, NFT_PAYLOAD_TRANSPORT_HEADER, 2, 2);
		equals_be16(b, rule->to_port);
	}
	count_and_end(b, drops ? NF_DROP : NF_ACCEPT);
	ktrxer_rtnl_request_nest_end(b, list);
	ktrxer_rtnl_request_put(b, NFTA_RULE_USERDATA, &mark, sizeof mark);
}

static void put_rules(struct rtnl_request *b, const struct place *at, const struct krx_rule *rule, uint32_t mark)
{
	const int family = rule->from.family ? rule->from.family : rule->to.family;
	const bool ports = rule->from_port || rule->to_port;

	for (int f = 0; f < 2; f++) {
		const int is = f ? AF_INET6 : AF_INET;

		/* One rule is made for each version where the version makes a difference. */
		if (family ? family != is : !ports && f)
			continue;
		if (!ports || rule->proto) {
			put_rule(b, at, rule, mark, family || ports ? is : 0, rule->proto);
			continue;
		}
		for (uint32_t proto = 0; proto < 256; proto++)
			if (krx_proto_has_ports((uint8_t)proto))
				put_rule(b, at, rule, mark, is, (uint8_t)proto);
	}
}

static void put_ranked(struct rtnl_request *b, const struct place *at, const struct krx_ruleset *rules, uint32_t rank)
{
	const struct krx_rule *rule = krx_ruleset_ranked(rules, (int)rank);

	put_rules(b, at, rule, (uint32_t)(rule - krx_ruleset_rule(rules, 0)));
}

#ifndef KTRXER_SMALL
/*
 * Rules with whole 5-tuples that follow one another in the order of the rules cannot both fit a packet, so their order
 * among themselves is free. Sorted by addresses and ports they become a tree of chains: each inner chain compares the
 * packet with one key and goes to one of two chains, so that 16384 rules take ten comparisons and one leaf, and no set.
 * The tree is of IPv4: a comparison has 16 bytes at most, and a key of IPv6 has 36 (EOVERFLOW), so those are a list.
 */
enum { LEAF = 16, KEY_REGISTER = NFT_REG32_00, ADDRESS = 4, KEY = 2 * ADDRESS + 4 };

struct leaf_rule {
	uint8_t key[KEY]; /* addresses and ports as they stand in a packet */
	uint32_t rank;
};

struct tree {
	struct rtnl_request *batch;
	const char *table;
	const struct krx_ruleset *rules;
	struct leaf_rule *leaves;
	uint32_t count, chains; /* chains: of all trees of the table */
};

struct chain_name {
	char text[16];
};

static void leaf_add(struct tree *t, const struct krx_exact *exact)
{
	struct leaf_rule *leaf = &t->leaves[t->count++];

	memcpy(leaf->key, exact->key.from, ADDRESS);
	memcpy(leaf->key + ADDRESS, exact->key.to, ADDRESS);
	memcpy(leaf->key + 2 * ADDRESS, &exact->key.from_port, 2);
	memcpy(leaf->key + 2 * ADDRESS + 2, &exact->key.to_port, 2);
	leaf->rank = exact->rule;
}

static int leaf_compare(const void *a, const void *b)
{
	const struct leaf_rule *one = a, *other = b;

	return memcmp(one->key, other->key, sizeof one->key);
}

static void put_plain_chain(struct tree *t, struct chain_name *name)
{
	snprintf(name->text, sizeof name->text, "tree%u", t->chains++);
	ktrxer_nft_message_begin(t->batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	ktrxer_rtnl_request_put_string(t->batch, NFTA_CHAIN_TABLE, t->table);
	ktrxer_rtnl_request_put_string(t->batch, NFTA_CHAIN_NAME, name->text);
}

/* Goes from the chain `at` to the chain `name` if the packet's key is `least` or more; NULL: in any case. */
static void put_turn(struct tree *t, const struct place *at, const uint8_t *least, const struct chain_name *name)
{
	const size_t list = rule_begin(t->batch, at, 0);

	if (least) {
		load_payload_into(t->batch, KEY_REGISTER, NFT_PAYLOAD_NETWORK_HEADER, 12, 2 * ADDRESS);
		load_payload_into(t->batch, KEY_REGISTER + ADDRESS / 2, NFT_PAYLOAD_TRANSPORT_HEADER, 0, 4);
		compares(t->batch, KEY_REGISTER, NFT_CMP_GTE, least, KEY);
	}
	put_verdict(t->batch, NFT_GOTO, name->text);
	ktrxer_rtnl_request_nest_end(t->batch, list);
}

static void put_branch(struct tree *t, uint32_t from, uint32_t to, struct chain_name *name)
{
	const struct place at = { .table = t->table, .chain = name->text };
	struct chain_name below, above;
	uint32_t middle = from + (to - from) / 2;

	put_plain_chain(t, name);
	if (to - from <= LEAF) {
		for (uint32_t i = from; i < to; i++)
			put_ranked(t->batch, &at, t->rules, t->leaves[i].rank);
		return;
	}
	/* Rules of several protocols may have one key; there are fewer of these than half a leaf. */
	while (!memcmp(t->leaves[middle].key, t->leaves[middle - 1].key, KEY))
		middle++;
	put_branch(t, from, middle, &below);
	put_branch(t, middle, to, &above);
	put_turn(t, &at, t->leaves[middle].key, &above);
	put_turn(t, &at, NULL, &below);
}

/* The rules exact[from .. to) of IPv4. */
static void put_tree(struct tree *t, const struct krx_exact *exact, uint32_t from, uint32_t to)
{
	const struct place at = { .table = t->table, .chain = CHAIN };
	struct chain_name root;
	size_t list;

	t->count = 0;
	for (uint32_t i = from; i < to; i++)
		if (exact[i].key.version == 4)
			leaf_add(t, &exact[i]);
	if (t->count <= LEAF) {
		for (uint32_t i = 0; i < t->count; i++)
			put_ranked(t->batch, &at, t->rules, t->leaves[i].rank);
		return;
	}
	qsort(t->leaves, t->count, sizeof *t->leaves, leaf_compare);
	put_branch(t, 0, t->count, &root);
	list = rule_begin(t->batch, &at, AF_INET);
	put_verdict(t->batch, NFT_JUMP, root.text);
	ktrxer_rtnl_request_nest_end(t->batch, list);
}

/* Puts the rules in their order: each with wildcards, and a tree of the others before it. */
static void put_all(struct rtnl_request *b, const char *table, const struct krx_ruleset *rules)
{
	const struct krx_match *m = krx_ruleset_table(rules);
	const struct place at = { .table = table, .chain = CHAIN };
	struct tree t = { .batch = b, .table = table, .rules = rules };
	uint32_t exact = 0;

	t.leaves = calloc((size_t)m->exact_count + 1, sizeof *t.leaves);
	b->failed |= !t.leaves;
	for (uint32_t wild = 0; wild <= m->wild_count && t.leaves; wild++) {
		const uint32_t from = exact;

		while (exact < m->exact_count && (wild == m->wild_count || m->exact[exact].rule < m->wild[wild].rule))
			exact++;
		put_tree(&t, m->exact, from, exact);
		for (uint32_t i = from; i < exact; i++)
			if (m->exact[i].key.version == 6)
				put_ranked(b, &at, rules, m->exact[i].rule);
		if (wild < m->wild_count)
			put_ranked(b, &at, rules, m->wild[wild].rule);
	}
	free(t.leaves);
}
#else
static void put_all(struct rtnl_request *b, const char *table, const struct krx_ruleset *rules)
{
	const struct place at = { .table = table, .chain = CHAIN };

	for (int rank = 0; rank < krx_ruleset_count(rules); rank++)
		put_ranked(b, &at, rules, (uint32_t)rank);
}
#endif

static void put_chain(struct rtnl_request *b, const char *table, const char *device)
{
	size_t hook;

	ktrxer_nft_message_begin(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	ktrxer_rtnl_request_put_string(b, NFTA_TABLE_NAME, table);
	ktrxer_rtnl_request_put_be32(b, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);

	ktrxer_nft_message_begin(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	ktrxer_rtnl_request_put_string(b, NFTA_CHAIN_TABLE, table);
	ktrxer_rtnl_request_put_string(b, NFTA_CHAIN_NAME, CHAIN);
	hook = ktrxer_rtnl_request_nest(b, NFTA_CHAIN_HOOK);
	ktrxer_rtnl_request_put_be32(b, NFTA_HOOK_HOOKNUM, NF_NETDEV_INGRESS);
	ktrxer_rtnl_request_put_be32(b, NFTA_HOOK_PRIORITY, (uint32_t)FIRST);
	ktrxer_rtnl_request_put_string(b, NFTA_HOOK_DEV, device);
	ktrxer_rtnl_request_nest_end(b, hook);
	ktrxer_rtnl_request_put_be32(b, NFTA_CHAIN_POLICY, NF_ACCEPT);
	ktrxer_rtnl_request_put_string(b, NFTA_CHAIN_TYPE, "filter");
}

int ktrxer_nft_rules_make(struct rtnl_request *b, const struct krx_ruleset *rules, const char *table,
			  const char *device, struct ktrxer_error *err)
{
	ktrxer_nft_batch_begin(b);
	put_chain(b, table, device);
	put_all(b, table, rules);
	ktrxer_nft_batch_end(b);
	return b->failed ? ktrxer_fail(err, -ENOMEM, "no memory for the nftables table of %d rules",
				       krx_ruleset_count(rules))
			 : 0;
}
