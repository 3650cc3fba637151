/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The classifier and the tables of rules that library, module and XDP program share, against the references.
 * test_rules_program.c and tests/lab/test_module_rx.py do the same in kernels.
 */
#include "cm.h"
#include "random_packets.h"
#include "rule_hash.h"
#include "rules_table.h"
#include "rules_twin.h"

#include <errno.h>
#include <stdlib.h>

static void say_equals_parse(uint64_t round, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	const char *difference = twins_differ(frame, length, link);

	if (difference)
		fail_msg("packet %llu of %u bytes: %s", (unsigned long long)round, length, difference);
}

TEST(classifies_as_the_parser_does)
{
	struct chance c = { .state = 7 };
	uint64_t ports = 0, fragments = 0, odd = 0;

	for (uint64_t round = 0; round < 400000; round++) {
		const enum ktrxer_link link = round % 8 ? KTRXER_LINK_ETHERNET : KTRXER_LINK_RAW_IP;
		struct ktrxer_packet_view view;
		uint8_t frame[256];
		uint32_t length = chance_frame(&c, frame, link);

		say_equals_parse(round, frame, length, link);
		ktrxer_packet_parse(&view, frame, length, link);
		ports += view.ports;
		fragments += view.fragment && !view.first_fragment;
		odd += view.malformed;
	}
	/* The test is worth something only if each happens often. */
	assert_true(ports > 10000 && fragments > 1000 && odd > 10000);
}

/* Every header chain of IPv6 up to a few headers, each length that lies, each place to cut. */
TEST(walks_every_chain)
{
	static const uint8_t kinds[] = { 0, 43, 44, 51, 60, 17, 59 };
	struct chance c = { .state = 9 };

	for (uint32_t chain = 0; chain < 7 * 7 * 7 * 7; chain++) {
		uint8_t frame[256] = { 0 };
		uint32_t at = 14 + 40, left = chain, next = 14 + 6;

		store_be16(frame + 12, 0x86dd);
		frame[14] = 0x60;
		for (int i = 0; i < 4; i++, left /= 7) {
			frame[next] = kinds[left % 7];
			next = at;
			frame[at + 1] = (uint8_t)chance_next(&c, 3);
			store_be16(frame + at + 2, (uint16_t)(chance_next(&c, 3) ? 0 : 8));
			at += kinds[left % 7] == 44   ? 8
			      : kinds[left % 7] == 51 ? (frame[at + 1] + 2u) * 4
						      : (frame[at + 1] + 1u) * 8;
		}
		frame[next] = 17;
		store_be16(frame + at, 1000);
		store_be16(frame + at + 2, 2000);
		at += 8;
		store_be16(frame + 14 + 4, (uint16_t)(at - 54));
		for (uint32_t length = 0; length <= at; length++)
			say_equals_parse(chain, frame, length, KTRXER_LINK_ETHERNET);
		store_be16(frame + 14 + 4, (uint16_t)chance_next(&c, at));
		say_equals_parse(chain, frame, at, KTRXER_LINK_ETHERNET);
	}
}

TEST(ends_after_sixteen_headers)
{
	uint8_t frame[512];

	for (uint32_t headers = 0; headers <= 20; headers++) {
		struct ktrxer_packet_view view;
		uint32_t at = 54;

		memset(frame, 0, sizeof frame);
		store_be16(frame + 12, 0x86dd);
		frame[14] = 0x60;
		frame[20] = headers ? 60 : 17;
		for (uint32_t i = 0; i < headers; i++, at += 8)
			frame[at] = i + 1 < headers ? 60 : 17;
		store_be16(frame + at, 1);
		store_be16(frame + at + 2, 2);
		at += 8;
		store_be16(frame + 18, (uint16_t)(at - 54));
		say_equals_parse(headers, frame, at, KTRXER_LINK_ETHERNET);
		ktrxer_packet_parse(&view, frame, at, KTRXER_LINK_ETHERNET);
		assert_int_equal(view.ports, headers <= KTRXER_IPV6_EXTENSIONS_MAX);
	}
}

TEST(refuses_a_list_that_is_too_long)
{
	struct krx_rule *rules = calloc(RULES_LIST_MAX + 2, sizeof *rules);
	struct rules_table *table = malloc(sizeof *table);
	struct krx_ruleset *set;
	struct ktrxer_error err;

	assert_true(rules && table);
	for (unsigned i = 0; i < RULES_LIST_MAX + 1; i++)
		rules[i] = (struct krx_rule){ .op = KRX_DROP, .proto = 17, .to_port = (uint16_t)(1 + i) };
	assert_int_equal(krx_rule_parse(&rules[RULES_LIST_MAX + 1], "drop udp from 10.0.0.1:1 to 10.0.0.2:2", NULL), 0);
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), RULES_LIST_MAX + 2, NULL), 0);
	assert_int_equal(ktrxer_rules_table_make(table, set, &err), -E2BIG);
	assert_non_null(strstr(err.text, "1025 rules have wildcards"));
	krx_ruleset_free(set);
	assert_int_equal(krx_ruleset_new(&set, rules + 1, sizeof(struct krx_rule), RULES_LIST_MAX + 1, NULL), 0);
	assert_int_equal(ktrxer_rules_table_make(table, set, NULL), 0);
	assert_int_equal(table->constants.config.list_count, RULES_LIST_MAX);
	assert_int_equal(table->counts[0], 1);
	for (uint32_t i = 0; i < RULES_LIST_MAX; i++) {
		assert_int_equal(table->constants.list[i].rule, i);
		assert_int_equal(table->constants.list[i].op, KRX_DROP);
		assert_int_equal(ntohs(table->constants.list[i].wild.to_port), 2 + i);
	}
	krx_ruleset_free(set);
	free(table);
	free(rules);
}

/* Programs give their rules to the module as they like. */
TEST(refuses_rules_that_cannot_be)
{
	struct krx_rule good;
	struct ktrxer_rx_rule rule;
	struct krx_wild wild;
	__u32 bucket = KRX_NONE;
	__u8 op[3];
	struct krx_match m = { .wild_most = 1, .op = op, .wild = &wild, .buckets = &bucket };

	assert_int_equal(krx_rule_parse(&good, "drop udp from 10.0.0.0/8 to any:2", NULL), 0);
	for (int bad = 0; bad < 7; bad++) {
		krx_rule_pack(&rule, &good);
		if (bad == 0)
			rule.op = KTRXER_RX_FORWARD + 1;
		else if (bad == 1)
			rule.op = 0;
		else if (bad == 2)
			rule.family = 5;
		else if (bad == 3)
			rule.from_prefix = 33;
		else if (bad == 4)
			rule.from[1] = 1;
		else if (bad == 5)
			rule.to[15] = 1;
		else
			rule.reserved[2] = 1;
		assert_int_equal(krx_match_add(&m, &rule), -EINVAL);
		assert_int_equal(m.count, 0);
	}
	krx_rule_pack(&rule, &good);
	assert_int_equal(krx_match_add(&m, &rule), 0);
	assert_int_equal(krx_match_add(&m, &rule), -E2BIG);
	assert_int_equal(m.wild_count, 1);
}
