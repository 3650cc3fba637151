/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"

#include <ktrxer.h>

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

static void same_text(const char *text, const char *canonical)
{
	char out[KTRXER_ADDR_TEXT];
	struct ktrxer_addr addr, again;

	assert_int_equal(ktrxer_addr_parse(&addr, text), 0);
	assert_string_equal(ktrxer_addr_format(&addr, out), canonical);
	assert_int_equal(ktrxer_addr_parse(&again, out), 0);
	assert_true(ktrxer_addr_equal(&addr, &again));
}

TEST(parses)
{
	struct ktrxer_addr addr;

	same_text("192.0.2.1", "192.0.2.1");
	same_text("0.0.0.0", "0.0.0.0");
	same_text("255.255.255.255", "255.255.255.255");
	same_text("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
	same_text("2001:db8::", "2001:db8::");
	same_text("::", "::");
	same_text("::1", "::1");
	same_text("1::8", "1::8");
	/* RFC 5952: one zero group is written, the first of two equally long runs is shortened */
	same_text("2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1");
	same_text("2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1");
	same_text("1:0:0:2:0:0:0:3", "1:0:0:2::3");
	same_text("0:0:1:2:3:4:5:6", "::1:2:3:4:5:6");
	same_text("1:2:3:4:5:6:0:0", "1:2:3:4:5:6::");
	same_text("::ffff:192.0.2.1", "::ffff:192.0.2.1");
	same_text("::192.0.2.1", "::c000:201");
	same_text("fe80::1%lo", "fe80::1%lo");
	same_text("fe80::1%1", "fe80::1%lo");
	same_text("ff02::1%lo", "ff02::1%lo");
	same_text("fe80::1%2000000000", "fe80::1%2000000000");
	same_text("fe80::1", "fe80::1");

	assert_int_equal(ktrxer_addr_parse(&addr, "10.1.2.3"), 0);
	assert_int_equal(addr.family, AF_INET);
	assert_int_equal(addr.scope_id, 0);
	assert_memory_equal(addr.bytes, ((uint8_t[16]){ 10, 1, 2, 3 }), 16);
}

TEST(refuses)
{
	/* clang-format off */
	static const char *const bad[] = {
		"", " ", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "0x7f.0.0.1", "2130706433", "1.2.3.4 ",
		" 1.2.3.4",
		"1.2.3.4\n", "1..2.3", "1.2.3.-4", "1.2.3.+4", "localhost", "example.org", "1.2.3.4/24",
		"1.2.3.4%lo", "1.2.3.4:5",
		":", ":::", "1::2::3", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "12345::", "g::", "[::1]", "::1%lo",
		"2001:db8::1%lo",
		"fe80::1%", "%lo", "fe80::1%abcdefghijklmnop", "fe80::1%lo%lo", "ff05::1%lo", "::1.2.3",
		"::ffff:1.2.3.04",
		"0000:0000:0000:0000:0000:0000:255.255.255.2550", "fe80::1%lo ",
		"fe80:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000",
	};
	/* clang-format on */
	struct ktrxer_addr addr, before;

	memset(&before, 0x5a, sizeof before);
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		int ret;

		addr = before;
		ret = ktrxer_addr_parse(&addr, bad[i]);
		if (ret != -EINVAL && ret != -ENODEV)
			fail_msg("'%s' gave %d", bad[i], ret);
		assert_memory_equal(&addr, &before, sizeof addr);
	}
	assert_int_equal(ktrxer_addr_parse(&addr, NULL), -EINVAL);
	assert_int_equal(ktrxer_addr_parse(&addr, "fe80::1%nosuchdevice"), -ENODEV);
	assert_int_equal(ktrxer_addr_parse(&addr, "fe80::1%0"), -ENODEV);
	assert_int_equal(ktrxer_addr_parse(&addr, "fe80::1%01"), -ENODEV);
	assert_int_equal(ktrxer_addr_parse(&addr, "fe80::1%4294967297"), -ENODEV);
}

TEST(ports)
{
	static const struct {
		const char *text, *addr;
		int port;
	} good[] = {
		{ "192.0.2.1:7", "192.0.2.1", 7 },          { "192.0.2.1", "192.0.2.1", 1234 },
		{ "192.0.2.1:65535", "192.0.2.1", 65535 },  { "[2001:db8::1]:7", "2001:db8::1", 7 },
		{ "[2001:db8::1]", "2001:db8::1", 1234 },   { "2001:db8::1", "2001:db8::1", 1234 },
		{ "2001:db8::1:7", "2001:db8::1:7", 1234 }, { "::1", "::1", 1234 },
		{ "[fe80::1%lo]:7", "fe80::1%lo", 7 },
	};
	/* clang-format off */
	static const char *const bad[] = {
		"192.0.2.1:", "192.0.2.1:0", "192.0.2.1:65536", "192.0.2.1:07", "192.0.2.1:+7", "192.0.2.1: 7",
		"192.0.2.1:7 ",
		"192.0.2.1:7:8", "192.0.2.1:99999999999999999999", "[192.0.2.1]:7", "[::1", "[::1]7", "[::1]:",
		"[::1]:0", "::1]:7",
		"[]:7", "[", "]", ":7", ":", "", "localhost:7", "[::1]]:7", "[[::1]]:7", "192.0.2.1:http",
	};
	/* clang-format on */
	char text[KTRXER_ADDR_TEXT];
	struct ktrxer_addr addr;
	uint16_t port;

	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		port = 1234;
		if (ktrxer_addr_port_parse(&addr, &port, good[i].text))
			fail_msg("'%s' was refused", good[i].text);
		assert_string_equal(ktrxer_addr_format(&addr, text), good[i].addr);
		assert_int_equal(port, good[i].port);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		port = 1234;
		memset(&addr, 0x5a, sizeof addr);
		if (ktrxer_addr_port_parse(&addr, &port, bad[i]) != -EINVAL)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(port, 1234);
		assert_int_equal(addr.family, 0x5a);
	}
	assert_int_equal(ktrxer_addr_port_parse(&addr, &port, NULL), -EINVAL);
}

TEST(equality)
{
	struct ktrxer_addr a, b;

	ktrxer_addr_parse(&a, "10.0.0.1");
	ktrxer_addr_parse(&b, "10.0.0.1");
	b.bytes[9] = 1; /* past an IPv4 address nothing counts */
	assert_true(ktrxer_addr_equal(&a, &b));
	ktrxer_addr_parse(&b, "a00:1::");
	assert_false(ktrxer_addr_equal(&a, &b));
	ktrxer_addr_parse(&a, "fe80::1%5");
	ktrxer_addr_parse(&b, "fe80::1%6");
	assert_false(ktrxer_addr_equal(&a, &b));
	a = b = (struct ktrxer_addr){ .family = 0 };
	assert_true(ktrxer_addr_equal(&a, &b));
}

TEST(local_use)
{
	static const char *const yes[] = {
		"10.0.0.0",    "10.255.255.254",   "172.16.0.1",  "172.31.255.254", "192.168.0.1",
		"100.64.0.1",  "100.127.255.254",  "169.254.0.1", "127.0.0.1",      "127.255.255.254",
		"192.0.2.1",   "198.51.100.1",     "203.0.113.1", "198.18.0.1",     "198.19.255.254",
		"::1",         "fe80::1",          "febf::1",     "fc00::1",        "fdff::1",
		"2001:db8::1", "2001:db8:ffff::1", "3fff:fff::1", "2001:2::1",
	};
	/* clang-format off */
	static const char *const no[] = {
		"9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255", "192.169.0.0",
		"100.63.255.255",
		"100.128.0.0", "169.253.255.255", "169.255.0.0", "126.255.255.255", "128.0.0.0", "192.0.1.255",
		"192.0.3.0",
		"198.17.255.255", "198.20.0.0", "8.8.8.8", "224.0.0.1", "239.255.255.255", "255.255.255.255", "0.0.0.0",
		"240.0.0.1", "::", "::2", "fec0::1", "fe7f::1", "fbff::1", "fe00::1", "ff02::1", "2001:db7::1",
		"2001:db9::1",
		"2606:4700::1111", "::ffff:10.0.0.1", "64:ff9b::a00:1", "3fff:1000::1", "2001:2:1::1",
	};
	/* clang-format on */
	struct ktrxer_addr addr = { .family = 0 };

	assert_false(ktrxer_addr_is_local_use(&addr));
	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
		assert_int_equal(ktrxer_addr_parse(&addr, yes[i]), 0);
		if (!ktrxer_addr_is_local_use(&addr))
			fail_msg("%s is local use", yes[i]);
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
		assert_int_equal(ktrxer_addr_parse(&addr, no[i]), 0);
		if (ktrxer_addr_is_local_use(&addr))
			fail_msg("%s is not local use", no[i]);
	}
}
