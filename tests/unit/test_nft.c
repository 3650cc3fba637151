/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transaction that makes a table is well formed in each message and attribute; counters are read back from such
 * messages.
 */
#include "cm.h"
#include "nft_rules.h"
#include "random_packets.h"
#include "rtnl.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>

/* Attributes at each depth fill the attribute that holds them, to the byte. */
static void check_attributes(struct bytes b, int depth)
{
	while (bytes_left(&b)) {
		struct nlattr attribute;
		struct bytes value;
		size_t padding;

		assert_true(bytes_copy(&b, &attribute, sizeof attribute));
		assert_true(attribute.nla_len >= sizeof attribute);
		value = bytes_sub(&b, attribute.nla_len - sizeof attribute);
		assert_true(b.ok);
		padding = -(size_t)attribute.nla_len % 4;
		assert_true(bytes_skip(&b, padding));
		if (attribute.nla_type & NLA_F_NESTED) {
			assert_true(depth < 8);
			check_attributes(value, depth + 1);
		}
	}
}

/* How many messages of each kind; every length right. */
static void check_batch(const struct rtnl_request *batch, int *rules)
{
	struct bytes b = bytes_of(batch->data, batch->length);
	bool ended = false;

	*rules = 0;
	while (bytes_left(&b)) {
		struct nlmsghdr header;
		struct bytes body;

		assert_false(ended);
		assert_true(bytes_copy(&b, &header, sizeof header));
		assert_int_equal(header.nlmsg_len % 4, 0);
		assert_true(header.nlmsg_len >= sizeof header + sizeof(struct nfgenmsg));
		body = bytes_sub(&b, header.nlmsg_len - sizeof header);
		assert_true(b.ok);
		assert_true(bytes_skip(&body, sizeof(struct nfgenmsg)));
		check_attributes(body, 0);
		if (header.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE))
			++*rules;
		ended = header.nlmsg_type == NFNL_MSG_BATCH_END;
		/* The last before the end is the one that is acknowledged. */
		assert_int_equal(!!(header.nlmsg_flags & NLM_F_ACK),
				 bytes_left(&b) == sizeof header + sizeof(struct nfgenmsg));
	}
	assert_true(ended);
}

static int rules_of(const char *const *texts)
{
	struct krx_rule rules[8];
	struct rtnl_request batch;
	struct krx_ruleset *set;
	int count = 0, made;

	for (; texts[count]; count++)
		assert_int_equal(krx_rule_parse(&rules[count], texts[count], NULL), 0);
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
	assert_int_equal(ktrxer_nft_rules_make(&batch, set, "ktrxer-1-0", "eth0", NULL), 0);
	check_batch(&batch, &made);
	ktrxer_rtnl_request_free(&batch);
	krx_ruleset_free(set);
	return made;
}

TEST(makes_well_formed_transactions)
{
	assert_int_equal(rules_of((const char *const[]){ "drop any from any to any", NULL }), 1);
	assert_int_equal(rules_of((const char *const[]){ "drop udp from any to any", NULL }), 1);
	assert_int_equal(rules_of((const char *const[]){ "drop udp from any to any:53", NULL }), 2);
	assert_int_equal(rules_of((const char *const[]){ "drop any from any to any:53", NULL }), 10);
	assert_int_equal(rules_of((const char *const[]){ "drop tcp from 10.0.0.1:1 to 10.0.0.2:2",
							 "capture any from fe80::/10 to any", NULL }),
			 2);
}

TEST(takes_any_rules)
{
	struct chance c = { .state = 5 };
	struct krx_rule rules[50];

	for (int round = 0; round < 200; round++) {
		struct rtnl_request batch;
		struct krx_ruleset *set;
		int made;

		for (int i = 0; i < 50; i++)
			rules[i] = chance_rule(&c, 3);
		assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), 50, NULL), 0);
		assert_int_equal(ktrxer_nft_rules_make(&batch, set, "t", "eth0", NULL), 0);
		check_batch(&batch, &made);
		assert_true(made >= 50);
		ktrxer_rtnl_request_free(&batch);
		krx_ruleset_free(set);
	}
}

TEST(reads_counters)
{
	struct rtnl_request b;
	size_t list, element, data;
	const uint32_t mark = 77;
	uint32_t got_mark = 0;
	uint64_t packets = 0;
	uint8_t number[8];
	struct bytes body;

	store_be64(number, 0x123456789a);
	ktrxer_nft_batch_begin(&b);
	ktrxer_nft_message_begin(&b, NFT_MSG_NEWRULE, 0);
	list = ktrxer_rtnl_request_nest(&b, NFTA_RULE_EXPRESSIONS);
	element = ktrxer_rtnl_request_nest(&b, NFTA_LIST_ELEM);
	ktrxer_rtnl_request_put_string(&b, NFTA_EXPR_NAME, "counter");
	data = ktrxer_rtnl_request_nest(&b, NFTA_EXPR_DATA);
	ktrxer_rtnl_request_put(&b, NFTA_COUNTER_PACKETS, number, sizeof number);
	ktrxer_rtnl_request_nest_end(&b, data);
	ktrxer_rtnl_request_nest_end(&b, element);
	ktrxer_rtnl_request_nest_end(&b, list);
	ktrxer_rtnl_request_put(&b, NFTA_RULE_USERDATA, &mark, sizeof mark);
	assert_false(b.failed);
	body = bytes_of(b.data + b.message + sizeof(struct nlmsghdr), b.length - b.message - sizeof(struct nlmsghdr));
	assert_true(ktrxer_nft_rule_read(body, &got_mark, &packets));
	assert_int_equal(got_mark, mark);
	assert_true(packets == 0x123456789a);
	/* Cut anywhere it is no such rule, and nothing past the end is read. */
	for (size_t n = 0; n < bytes_left(&body); n++)
		assert_false(ktrxer_nft_rule_read(bytes_of(body.at, n), &got_mark, &packets));
	ktrxer_rtnl_request_free(&b);
}
