/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "nft_rules.h"

#include "error.h"
#include "limits.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/ktrxer_view.h>
#include <linux/netfilter/nf_tables.h>
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

/* ------------------------------------------------------------------------------------------------------ expressions */

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

static void load_payload(struct rtnl_request *b, uint32_t base, uint32_t offset, uint32_t length)
{
	struct expression e = expression_begin(b, "payload");

	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_DREG, REGISTER);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_BASE, base);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_OFFSET, offset);
	ktrxer_rtnl_request_put_be32(b, NFTA_PAYLOAD_LEN, length);
	expression_end(b, &e);
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

static void equals(struct rtnl_request *b, const void *value, uint32_t length)
{
	struct expression e = expression_begin(b, "cmp");

	ktrxer_rtnl_request_put_be32(b, NFTA_CMP_SREG, REGISTER);
	ktrxer_rtnl_request_put_be32(b, NFTA_CMP_OP, NFT_CMP_EQ);
	put_data(b, NFTA_CMP_DATA, value, length);
	expression_end(b, &e);
}

static void equals_be16(struct rtnl_request *b, uint16_t value)
{
	const uint16_t swapped = htons(value);

	equals(b, &swapped, sizeof swapped);
}

static void count_and_end(struct rtnl_request *b, uint32_t verdict)
{
	struct expression e = expression_begin(b, "counter");
	size_t data, code;

	expression_end(b, &e);
	e = expression_begin(b, "immediate");
	ktrxer_rtnl_request_put_be32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = ktrxer_rtnl_request_nest(b, NFTA_IMMEDIATE_DATA);
	code = ktrxer_rtnl_request_nest(b, NFTA_DATA_VERDICT);
	ktrxer_rtnl_request_put_be32(b, NFTA_VERDICT_CODE, verdict);
	ktrxer_rtnl_request_nest_end(b, code);
	ktrxer_rtnl_request_nest_end(b, data);
	expression_end(b, &e);
}

/* ------------------------------------------------------------------------------------------------------------ rules */

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

/* One rule of the chain; `family` and `proto` 0: any. */
static void put_rule(struct rtnl_request *b, const char *table, const struct krx_rule *rule, uint32_t mark, int family,
		     uint8_t proto)
{
	static const uint8_t offset_bits[2] = { OFFSET_MASK >> 8, OFFSET_MASK & 0xff };
	const bool drops = rule->op == KRX_DROP || rule->op == KRX_CAPTURE_DROP,
		   ports = rule->from_port || rule->to_port;
	size_t list;

	ktrxer_nft_message_begin(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	ktrxer_rtnl_request_put_string(b, NFTA_RULE_TABLE, table);
	ktrxer_rtnl_request_put_string(b, NFTA_RULE_CHAIN, CHAIN);
	list = ktrxer_rtnl_request_nest(b, NFTA_RULE_EXPRESSIONS);
	if (family) {
		load_meta(b, NFT_META_PROTOCOL);
		equals_be16(b, family == AF_INET ? ETH_P_IP : ETH_P_IPV6);
	}
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

static void put_rules(struct rtnl_request *b, const char *table, const struct krx_rule *rule, uint32_t mark)
{
	const int family = rule->from.family ? rule->from.family : rule->to.family;
	const bool ports = rule->from_port || rule->to_port;

	for (int f = 0; f < 2; f++) {
		const int is = f ? AF_INET6 : AF_INET;

		/* Once for each version where it makes a difference. */
		if (family ? family != is : !ports && f)
			continue;
		if (!ports || rule->proto) {
			put_rule(b, table, rule, mark, family || ports ? is : 0, rule->proto);
			continue;
		}
		for (uint32_t proto = 0; proto < 256; proto++)
			if (krx_proto_has_ports((uint8_t)proto))
				put_rule(b, table, rule, mark, is, (uint8_t)proto);
	}
}

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
	const int count = krx_ruleset_count(rules);

	if (count > KRX_NFT_RULES_MAX)
		return ktrxer_fail(err, -E2BIG,
				   "%d rules are more than the %d that an nftables chain asks one after another: use "
				   "prefixes, or XDP "
				   "(the back end 'xdp')",
				   count, KRX_NFT_RULES_MAX);
	ktrxer_nft_batch_begin(b);
	put_chain(b, table, device);
	for (int rank = 0; rank < count; rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(rules, rank);

		put_rules(b, table, rule, (uint32_t)(rule - krx_ruleset_rule(rules, 0)));
	}
	ktrxer_nft_batch_end(b);
	return b->failed ? ktrxer_fail(err, -ENOMEM, "no memory for the nftables table of %d rules", count) : 0;
}
