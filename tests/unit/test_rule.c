/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "rule.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

TEST(parses_every_part)
{
	struct krx_rule r;

	assert_int_equal(krx_rule_parse(&r, "capture udp from any to 192.0.2.0/24:53", NULL), 0);
	assert_int_equal(r.op, KRX_CAPTURE);
	assert_int_equal(r.proto, 17);
	assert_int_equal(r.from.family, 0);
	assert_int_equal(r.from_port, 0);
	assert_int_equal(r.to.family, AF_INET);
	assert_memory_equal(r.to.bytes, "\300\000\002\000", 4);
	assert_int_equal(r.to_prefix, 24);
	assert_int_equal(r.to_port, 53);
	assert_int_equal(r.priority, 0);

	assert_int_equal(krx_rule_parse(&r, "  capture+drop\ttcp from [2001:db8::1]:80 to 2001:db8::/32 prio 7 ", NULL),
			 0);
	assert_int_equal(r.op, KRX_CAPTURE_DROP);
	assert_int_equal(r.from.family, AF_INET6);
	assert_int_equal(r.from_prefix, 128);
	assert_int_equal(r.from_port, 80);
	assert_int_equal(r.to_prefix, 32);
	assert_int_equal(r.to_port, 0);
	assert_int_equal(r.priority, 7);
}

/* Text of a rule is read and written again without a change; of several notations one is written. */
TEST(formats_what_it_parsed)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
		{ "capture udp from any to 192.0.2.0/24:53", NULL },
		{ "drop any from any to any", NULL },
		{ "forward tcp from any:80 to any", NULL },
		{ "capture+drop icmp from 192.0.2.1 to any prio 4294967295", NULL },
		{ "capture icmp6 from 2001:db8::/32 to ::1", NULL },
		{ "capture icmpv6 from any to ff02::1", "capture icmp6 from any to ff02::1" },
		{ "capture sctp from [2001:db8::/32]:9 to [::1]:65535", NULL },
		{ "capture udp from [2001:db8::]/32:9 to [::1]", "capture udp from [2001:db8::/32]:9 to ::1" },
		{ "capture 47 from 0.0.0.0/0 to any", NULL },
		{ "capture 17 from any to any prio 0", "capture udp from any to any" },
		{ "capture any from 192.0.2.1/32 to any:7", "capture any from 192.0.2.1 to any:7" },
		{ "capture+drop icmp6 from 2001:db8:1111:2222:3333:4444:5555:6666 to "
		  "2001:db8:1111:2222:3333:4444:5555:0/127 prio 4294967295",
		  NULL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ktrxer_error err = { 0 };
		char text[KRX_RULE_TEXT], again[KRX_RULE_TEXT];
		struct krx_rule r, twice;

		if (krx_rule_parse(&r, cases[i].text, &err))
			fail_msg("%s: %s", cases[i].text, err.text);
		krx_rule_format(&r, text);
		assert_string_equal(text, cases[i].want ? cases[i].want : cases[i].text);
		assert_int_equal(krx_rule_parse(&twice, text, NULL), 0);
		assert_string_equal(krx_rule_format(&twice, again), text);
	}
}

TEST(reports_what_is_wrong)
{
	static const struct {
		const char *text, *reason;
	} cases[] = {
		{ "", "it is empty" },
		{ NULL, "it is empty" },
		{ "catch udp from any to any", "no operation 'catch'" },
		{ "capture", "it is written OP PROTO" },
		{ "capture gre from any to any", "no protocol 'gre'" },
		{ "capture 0 from any to any", "no protocol '0'" },
		{ "capture 256 from any to any", "no protocol '256'" },
		{ "capture udp any to any", "it is written OP PROTO" },
		{ "capture udp from any to any prio", "it is written OP PROTO" },
		{ "capture udp from any to any priority 7", "it is written OP PROTO" },
		{ "capture udp from any to any prio 7 8", "it is written OP PROTO" },
		{ "capture udp from any to any prio -1", "priority '-1'" },
		{ "capture udp from any to any prio 4294967296", "priority '4294967296'" },
		{ "capture udp from 192.0.2 to any", "'192.0.2' after 'from' is no address" },
		{ "capture udp from example.org to any", "'example.org' after 'from' is no address" },
		{ "capture udp from any to 192.0.2.1:", "port ''" },
		{ "capture udp from any to 192.0.2.1:0", "port '0'" },
		{ "capture udp from any to 192.0.2.1:65536", "port '65536'" },
		{ "capture udp from any to 192.0.2.1:53x", "port '53x'" },
		{ "capture udp from any to 192.0.2.1/", "a prefix is written" },
		{ "capture udp from any to 192.0.2.1/x:53", "a prefix is written" },
		{ "capture udp from any to 192.0.2.0/33", "'/33'" },
		{ "capture udp from any to 192.0.2.1/24", "write 192.0.2.0/24" },
		{ "capture udp from any to 2001:db8::1/64", "write 2001:db8::/64" },
		{ "capture udp from any/8 to any", "'any' after 'from' takes no prefix" },
		{ "capture udp from any to [2001:db8::1:53", "no closing ']'" },
		{ "capture udp from any to [192.0.2.1]:53", "is no address" },
		{ "capture udp from any to [::1]x", "a prefix is written" },
		{ "capture udp from any to [::/1]/1", "a prefix is written" },
		{ "capture udp from any to fe80::1%lo", "leave the % part out" },
		{ "capture udp from 192.0.2.1 to ::1", "different kinds" },
		{ "capture icmp from any to any:7", "has no ports" },
		{ "capture 47 from any:7 to any", "has no ports" },
		{ "capture icmp from any to ::1", "write icmp6" },
		{ "capture icmp6 from 192.0.2.1 to any", "write icmp" },
	};
	char word[300];
	struct ktrxer_error err;
	struct krx_rule r, untouched;

	memset(&r, 0xa5, sizeof r);
	untouched = r;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		err = (struct ktrxer_error){ 0 };
		assert_int_equal(krx_rule_parse(&r, cases[i].text, &err), -EINVAL);
		if (!strstr(err.text, cases[i].reason))
			fail_msg("%s: says \"%s\", not \"%s\"", cases[i].text, err.text, cases[i].reason);
		assert_memory_equal(&r, &untouched, sizeof r);
	}
	memset(word, 'x', sizeof word - 1);
	word[sizeof word - 1] = '\0';
	assert_int_equal(krx_rule_parse(&r, word, &err), -EINVAL);
	assert_non_null(strstr(err.text, "more than 79 characters"));
}

TEST(checks_rules_made_by_programs)
{
	struct ktrxer_error err;
	struct krx_rule r = { .op = KRX_CAPTURE };
	char text[KRX_RULE_TEXT];

	assert_int_equal(krx_rule_check(&r, NULL), 0);
	assert_int_equal(krx_rule_fields(&r), 0);
	r.op = (enum krx_op)9;
	assert_int_equal(krx_rule_check(&r, &err), -EINVAL);
	assert_string_equal(krx_rule_format(&r, text), "? any from any to any");
	r.op = KRX_CAPTURE;
	r.from.family = 77;
	assert_int_equal(krx_rule_check(&r, &err), -EINVAL);
	r.from.family = AF_INET;
	r.from_prefix = 33;
	assert_int_equal(krx_rule_check(&r, &err), -EINVAL);
	assert_non_null(strstr(err.text, "IPv4 has 32 bits"));
	r.from_prefix = 0;
	assert_int_equal(krx_rule_check(&r, &err), 0);
}
