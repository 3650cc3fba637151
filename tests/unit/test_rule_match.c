/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "base_limits.h"
#include "cm.h"
#include "random_packets.h"
#include "rule_reference.h"

#include <errno.h>
#include <stdlib.h>

TEST(equals_a_linear_scan)
{
	struct chance c = { .state = 42 };
	struct krx_rule rules[200];
	uint64_t met = 0, missed = 0;

	for (int round = 0; round < 300; round++) {
		int count = (int)chance_next(&c, round % 2 ? 200 : 12);
		struct krx_ruleset *set;

		for (int i = 0; i < count; i++)
			rules[i] = chance_rule(&c, (uint32_t)round % 11);
		assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
		assert_int_equal(krx_ruleset_count(set), count);
		for (int i = 0; i < 300; i++) {
			struct ktrxer_packet_view view;
			uint8_t frame[256];
			uint32_t length = chance_frame(&c, frame, KTRXER_LINK_ETHERNET);
			int want;

			ktrxer_packet_parse(&view, frame, length, KTRXER_LINK_ETHERNET);
			want = reference_scan(rules, count, &view);
			if (krx_ruleset_match(set, &view) != want)
				fail_msg("round %d packet %d: rule %d, not %d", round, i, krx_ruleset_match(set, &view),
					 want);
			met += want >= 0;
			missed += want < 0;
		}
		krx_ruleset_free(set);
	}
	/* The test is worth something only if both happen often. */
	assert_true(met > 10000);
	assert_true(missed > 10000);
}

TEST(asks_in_order)
{
	struct krx_rule rules[4];
	struct ktrxer_packet_view view = { .version = 4 };
	struct krx_ruleset *set;

	krx_rule_parse(&rules[0], "capture any from any to any prio 5", NULL);
	krx_rule_parse(&rules[1], "forward any from any to any prio 2", NULL);
	krx_rule_parse(&rules[2], "capture any from any to any prio 2", NULL);
	krx_rule_parse(&rules[3], "capture udp from any to any", NULL);
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), 4, NULL), 0);
	assert_int_equal(krx_ruleset_match(set, &view), 1);
	view.proto = 17;
	assert_int_equal(krx_ruleset_match(set, &view), 3);
	assert_int_equal(krx_ruleset_ranked(set, 0)->proto, 17);
	assert_int_equal(krx_ruleset_ranked(set, 3)->priority, 5);
	krx_ruleset_free(set);
}

TEST(refuses_what_it_cannot_hold)
{
	struct krx_rule *rules = calloc(KRX_RULES_MAX + 1, sizeof *rules);
	struct krx_ruleset *set = NULL;
	struct ktrxer_error err;
	struct ktrxer_packet_view view = { .version = 4 };

	assert_non_null(rules);
	for (int i = 0; i <= KRX_RULES_MAX; i++)
		rules[i].op = KRX_CAPTURE;
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), KRX_RULES_MAX + 1, &err), -E2BIG);
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), -1, &err), -EINVAL);
	assert_int_equal(krx_ruleset_new(&set, NULL, sizeof(struct krx_rule), 1, &err), -EINVAL);
	rules[2].from_prefix = 1;
	rules[2].from.family = 3;
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), 4, &err), -EINVAL);
	assert_non_null(strstr(err.text, "rule 3 of 4: "));
	assert_null(set);
	rules[2] = rules[1];
	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), KRX_RULES_MAX, NULL), 0);
	assert_int_equal(krx_ruleset_match(set, &view), 0);
	krx_ruleset_free(set);
	assert_int_equal(krx_ruleset_new(&set, NULL, sizeof(struct krx_rule), 0, NULL), 0);
	assert_int_equal(krx_ruleset_match(set, &view), -1);
	krx_ruleset_free(set);
	krx_ruleset_free(NULL);
	free(rules);
}

static bool rule_matches(const char *text, const struct ktrxer_packet_view *view)
{
	struct krx_ruleset *set;
	struct krx_rule rule;
	int matched;

	assert_int_equal(krx_rule_parse(&rule, text, NULL), 0);
	assert_int_equal(krx_ruleset_new(&set, &rule, sizeof(struct krx_rule), 1, NULL), 0);
	matched = krx_ruleset_match(set, view);
	krx_ruleset_free(set);
	assert_int_equal(matched, reference_rule_matches(&rule, view) ? 0 : -1);
	return matched == 0;
}

TEST(matches_fields)
{
	struct ktrxer_packet_view v = { .version = 4, .proto = 17, .ports = true, .from_port = 9, .to_port = 53 };
	const char *text;

	v.from.family = v.to.family = AF_INET;
	memcpy(v.from.bytes, "\012\0\0\1", 4);
	memcpy(v.to.bytes, "\300\000\002\201", 4);
	text = "capture udp from any to 192.0.2.128/25:53";
	assert_true(rule_matches(text, &v));
	v.to.bytes[3] = 0x7f;
	assert_false(rule_matches(text, &v));
	v.to.bytes[3] = 0x81;
	v.ports = false; /* a later fragment */
	assert_false(rule_matches(text, &v));
	text = "capture udp from any to 192.0.2.128/25";
	assert_true(rule_matches(text, &v));
	text = "capture udp from ::/0 to any";
	assert_false(rule_matches(text, &v));
	v.version = 0; /* ARP, say: only for a rule that wants everything */
	text = "capture udp from any to any";
	assert_false(rule_matches(text, &v));
	text = "capture any from any to any";
	assert_true(rule_matches(text, &v));
}

/* Of an IPv4 address only four bytes count, also in a session that a program gives to krx_open(). */
TEST(ignores_bytes_behind_an_ipv4_address)
{
	struct ktrxer_packet_view view = { .version = 4, .proto = 6, .ports = true, .from_port = 5000, .to_port = 22 };
	struct krx_ruleset *set;
	struct krx_rule rule;

	assert_int_equal(krx_rule_parse(&rule, "drop tcp from 10.0.0.1:5000 to 10.0.0.2:22", NULL), 0);
	view.from = rule.from;
	view.to = rule.to;
	memset(view.from.bytes + 4, 7, 12);
	memset(view.to.bytes + 4, 7, 12);
	assert_int_equal(krx_ruleset_new(&set, &rule, sizeof(struct krx_rule), 1, NULL), 0);
	assert_int_equal(krx_ruleset_match(set, &view), 0);
	krx_ruleset_free(set);
}
