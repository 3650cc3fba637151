/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The packets in hexadecimal were built by scapy 2.x: another program's idea of the same headers. */
#include "cm.h"

#include <ktrxer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static const uint8_t payload[7] = { 1, 2, 3, 4, 5, 6, 7 };

static const char eth4udp[] = "0200000000020200000000010800450000230000400040114e8ec0000201c63364079c400007000f6740"
			      "01020304050607";
static const char eth6udp[] = "02000000000202000000000186dd60000000000f114020010db8000000000000000000000001"
			      "20010db80000000100000000000000079c400007000ff80101020304050607";
static const char raw4icmp[] = "45b90023000000000301cae5c0000201c63364070800d5c01234fffe01020304050607";
static const char raw6icmp[] = "6b900000000f3aff20010db800000000000000000000000120010db8000000010000000000000007"
			       "800001fc1234fffe01020304050607";
static const char eth4empty[] = "02000000000202000000000108004500001c0000400040114e95c0000201c63364070001ffff000813a1";
static const char raw4zero[] = "4500001e0000400040114e93c0000201c63364079c400007000affff7756";
static const char raw6zero[] = "60000000000a114020010db800000000000000000000000120010db8000000010000000000000007"
			       "9c400007000affff0818";
static const char raw4tcp[] = "4500002f0000400040064e8dc0000201c633640703e80050000000010000000250020200ad580000"
			      "01020304050607";
static const char eth4syn[] = "0200000000020200000000010800450000340000400040064e88c0000201c63364079c4001bbfedcba98"
			      "000000008002faf02b7b0000020405b40402030307000000";
static const char vlan6ack[] = "0200000000020200000000018100a12386dd60000000001b064020010db8000000000000000000000001"
			       "20010db80000000100000000000000079c4001bb000000018000000050d800012581000001020304050607";
static const char vlan4udp[] =
	"02000000000202000000000181001ffe0800450000230000400040114e8ec0000201c63364079c400007000f6740"
	"01020304050607";
static const char raw4reply[] = "450000230000400040014e9ec0000201c63364070000ddc01234fffe01020304050607";
static const char raw6reply[] = "60000000000f3a4020010db800000000000000000000000120010db8000000010000000000000007810000"
				"fc1234fffe01020304050607";
/* 1472 bytes of payload, (7 i + 3) mod 256 */
static const char eth4full[] = "0200000000020200000000010800450005dc00004000401148d5c0000201c63364079c40000705c87eca";

static uint32_t from_hex(uint8_t *bytes, const char *hex)
{
	uint32_t n = (uint32_t)strlen(hex) / 2;

	for (uint32_t i = 0; i < n; i++) {
		char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static void same_bytes(const uint8_t *got, int length, const char *hex)
{
	uint8_t want[128];
	uint32_t n = from_hex(want, hex);

	assert_int_equal(length, n);
	assert_memory_equal(got, want, n);
}

static struct ktrxer_path a_path(enum ktrxer_link link, int family)
{
	struct ktrxer_path path = { .device = { .link = link, .mac = { 2, 0, 0, 0, 0, 1 } },
				    .next_hop_mac = { 2, 0, 0, 0, 0, 2 },
				    .mtu = 1500 };

	assert_int_equal(ktrxer_addr_parse(&path.source, family == AF_INET ? "192.0.2.1" : "2001:db8::1"), 0);
	assert_int_equal(ktrxer_addr_parse(&path.to, family == AF_INET ? "198.51.100.7" : "2001:db8:0:1::7"), 0);
	return path;
}

static struct ktrxer_frame_spec a_spec(const struct ktrxer_path *path, uint8_t proto)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;

	spec.path = path;
	spec.proto = proto;
	spec.from_port = proto == KTRXER_UDP ? 40000 : 0x1234;
	spec.to_port = proto == KTRXER_UDP ? 7 : 0xfffe;
	spec.payload = payload;
	spec.payload_length = sizeof payload;
	return spec;
}

TEST(builds)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET), e6 = a_path(KTRXER_LINK_ETHERNET, AF_INET6);
	struct ktrxer_path r4 = a_path(KTRXER_LINK_RAW_IP, AF_INET), r6 = a_path(KTRXER_LINK_RAW_IP, AF_INET6);
	struct ktrxer_frame_spec spec = a_spec(&e4, KTRXER_UDP);
	uint8_t frame[128];

	assert_int_equal(ktrxer_frame_header_length(&spec), 42);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth4udp);

	spec = a_spec(&e6, KTRXER_UDP);
	assert_int_equal(ktrxer_frame_header_length(&spec), 62);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth6udp);

	spec = a_spec(&r4, KTRXER_ICMP);
	spec.may_fragment = true;
	spec.ttl = 3;
	spec.tos = 0xb9;
	assert_int_equal(ktrxer_frame_header_length(&spec), 28);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), raw4icmp);

	spec = a_spec(&r6, KTRXER_ICMPV6);
	spec.ttl = 255;
	spec.tos = 0xb9;
	assert_int_equal(ktrxer_frame_header_length(&spec), 48);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), raw6icmp);

	spec = a_spec(&e4, KTRXER_UDP);
	spec.from_port = 1;
	spec.to_port = 65535;
	spec.payload = NULL;
	spec.payload_length = 0;
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth4empty);
}

TEST(udp_never_has_a_checksum_of_zero)
{
	struct ktrxer_path r4 = a_path(KTRXER_LINK_RAW_IP, AF_INET), r6 = a_path(KTRXER_LINK_RAW_IP, AF_INET6);
	struct ktrxer_frame_spec spec = a_spec(&r4, KTRXER_UDP);
	uint8_t frame[128];
	int length;

	spec.payload = (const uint8_t[]){ 0x77, 0x56 };
	spec.payload_length = 2;
	same_bytes(frame, length = ktrxer_frame_build(frame, sizeof frame, &spec), raw4zero);
	frame[26] = 0x12;
	assert_int_equal(ktrxer_frame_checksum(frame, (uint32_t)length, KTRXER_LINK_RAW_IP), 0);
	same_bytes(frame, length, raw4zero);

	spec = a_spec(&r6, KTRXER_UDP);
	spec.payload = (const uint8_t[]){ 0x08, 0x18 };
	spec.payload_length = 2;
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), raw6zero);
}

TEST(payload_in_place)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET);
	struct ktrxer_frame_spec spec = a_spec(&e4, KTRXER_UDP);
	uint8_t frame[128];

	/* where it belongs already, and in the way of the headers */
	for (int at = 0; at <= 42; at += 1) {
		memset(frame, 0xee, sizeof frame);
		memcpy(frame + at, payload, sizeof payload);
		spec.payload = frame + at;
		same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth4udp);
		assert_int_equal(frame[49], 0xee);
	}
}

TEST(zero_payload_overwrites)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET);
	struct ktrxer_frame_spec spec = a_spec(&e4, KTRXER_UDP);
	uint8_t frame[128];

	memset(frame, 0xee, sizeof frame);
	spec.payload = NULL;
	spec.payload_length = 5;
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), 47);
	assert_memory_equal(frame + 42, "\0\0\0\0\0\xee", 6);
}

TEST(sizes)
{
	static uint8_t big[65536 + 64], data[65536];
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET), r6 = a_path(KTRXER_LINK_RAW_IP, AF_INET6);
	struct ktrxer_frame_spec spec = a_spec(&e4, KTRXER_UDP);
	uint8_t head[64];

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(7 * i + 3);
	spec.payload = data;
	spec.payload_length = 1472;
	assert_int_equal(ktrxer_frame_build(big, 1513, &spec), -EMSGSIZE);
	assert_int_equal(ktrxer_frame_build(big, 1514, &spec), 1514);
	assert_memory_equal(big, head, from_hex(head, eth4full));
	assert_memory_equal(big + 42, data, 1472);

	spec.payload_length = 1473; /* more than the path takes, though the slot would */
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), -EMSGSIZE);
	e4.mtu = 0;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), 1515);

	spec.payload_length = 65507;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), 65535 + 14);
	assert_int_equal(ktrxer_frame_checksum(big, 65535 + 14, KTRXER_LINK_ETHERNET), 0);
	spec.payload_length = 65508;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), -EMSGSIZE);
	spec.payload_length = UINT32_MAX;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), -EMSGSIZE);
	spec.payload_length = UINT32_MAX - 41;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), -EMSGSIZE);
	assert_int_equal(ktrxer_frame_build(big, 0, &spec), -EMSGSIZE);

	r6.mtu = 65536;
	spec = a_spec(&r6, KTRXER_UDP);
	spec.payload = data;
	spec.payload_length = 65487;
	assert_int_equal(ktrxer_frame_build(big, sizeof big, &spec), 65535);
}

TEST(refuses)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET), e6 = a_path(KTRXER_LINK_ETHERNET, AF_INET6);
	struct ktrxer_path mixed = e4, none = e4;
	uint8_t frame[128];
	struct ktrxer_frame_spec spec;

	mixed.source = e6.source;
	none.to.family = none.source.family = 0;
	spec = a_spec(&mixed, KTRXER_UDP);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	spec = a_spec(&none, KTRXER_UDP);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	spec = a_spec(&e4, KTRXER_ICMPV6);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	assert_int_equal(ktrxer_frame_header_length(&spec), -EINVAL);
	spec = a_spec(&e6, KTRXER_ICMP);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	spec = a_spec(&e4, 132); /* SCTP */
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	spec = a_spec(&e4, KTRXER_UDP);
	spec.size = 0;
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	spec = a_spec(NULL, KTRXER_UDP);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EINVAL);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, NULL), -EINVAL);

	/* a caller that was built when the struct ended before the payload */
	spec = a_spec(&e4, KTRXER_UDP);
	spec.size = offsetof(struct ktrxer_frame_spec, payload);
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), 42);
}

static void checksum_one(const char *hex, enum ktrxer_link link, uint32_t field, uint32_t changes)
{
	uint8_t frame[128], good[128];
	uint32_t length = from_hex(good, hex);

	memcpy(frame, good, length);
	frame[field] ^= 0x5a;
	frame[field + 1] ^= 0xa5;
	assert_int_equal(ktrxer_frame_checksum(frame, length, link), 0);
	assert_memory_equal(frame, good, length);
	if (!changes)
		return;
	/* another payload gives another sum, and back */
	frame[changes] ^= 0xff;
	assert_int_equal(ktrxer_frame_checksum(frame, length, link), 0);
	assert_memory_not_equal(frame + field, good + field, 2);
	frame[changes] ^= 0xff;
	assert_int_equal(ktrxer_frame_checksum(frame, length, link), 0);
	assert_memory_equal(frame, good, length);
}

TEST(checksums)
{
	checksum_one(eth4udp, KTRXER_LINK_ETHERNET, 40, 45);
	checksum_one(eth6udp, KTRXER_LINK_ETHERNET, 60, 65);
	checksum_one(raw4icmp, KTRXER_LINK_RAW_IP, 22, 30);
	checksum_one(raw6icmp, KTRXER_LINK_RAW_IP, 42, 50);
	checksum_one(eth4empty, KTRXER_LINK_ETHERNET, 40, 0);
	checksum_one(raw6zero, KTRXER_LINK_RAW_IP, 46, 48);
	checksum_one(raw4tcp, KTRXER_LINK_RAW_IP, 36, 44);
}

TEST(zero_is_a_sum_for_icmp)
{
	struct ktrxer_path r4 = a_path(KTRXER_LINK_RAW_IP, AF_INET);
	struct ktrxer_frame_spec spec = a_spec(&r4, KTRXER_ICMP);
	uint8_t frame[64], sum[2];
	int length;

	/* the payload that makes the sum 0 is the checksum of the same packet with a payload of zeros */
	spec.payload = NULL;
	spec.payload_length = 2;
	ktrxer_frame_build(frame, sizeof frame, &spec);
	memcpy(sum, frame + 22, 2);
	spec.payload = sum;
	length = ktrxer_frame_build(frame, sizeof frame, &spec);
	assert_int_equal(length, 30);
	assert_memory_equal(frame + 22, "\0\0", 2);
	frame[22] = 1;
	assert_int_equal(ktrxer_frame_checksum(frame, (uint32_t)length, KTRXER_LINK_RAW_IP), 0);
	assert_memory_equal(frame + 22, "\0\0", 2);
	assert_int_equal(frame[20], 8);
}

TEST(checksum_refuses)
{
	uint8_t frame[128], good[128];
	uint32_t length = from_hex(good, eth4udp);

	/* cut anywhere it is no such frame, and is left as it was */
	for (uint32_t cut = 0; cut < length; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees a step too far */

		assert_non_null(exact);
		memcpy(exact, good, cut);
		assert_int_equal(ktrxer_frame_checksum(exact, cut, KTRXER_LINK_ETHERNET), -EBADMSG);
		assert_memory_equal(exact, good, cut);
		free(exact);
	}
	memcpy(frame, good, length);
	frame[12] = 0x08;
	frame[13] = 0x06; /* ARP */
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	memcpy(frame, good, length);
	frame[23] = 132; /* SCTP has no such sum */
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	memcpy(frame, good, length);
	frame[23] = KTRXER_ICMPV6; /* over IPv4 */
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	memcpy(frame, good, length);
	frame[20] = 0x20; /* more fragments: the sum covers what is not here */
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	memcpy(frame, good, length);
	frame[38] = 0xff; /* a UDP length past the packet */
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	memcpy(frame, good, length);
	assert_int_equal(ktrxer_frame_checksum(frame, length, KTRXER_LINK_RAW_IP), -EBADMSG);
}

/* The stack's engines have frames without a link header, whatever device the path names. */
TEST(the_spec_decides_what_a_frame_begins_with)
{
	struct ktrxer_path path = a_path(KTRXER_LINK_ETHERNET, AF_INET);
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	uint8_t whole[128], tail[128];

	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.payload = payload;
	spec.payload_length = sizeof payload;
	assert_int_equal(ktrxer_frame_header_length(&spec), 42);
	assert_int_equal(ktrxer_frame_build(whole, sizeof whole, &spec), 49);
	spec.link = KTRXER_LINK_RAW_IP;
	assert_int_equal(ktrxer_frame_header_length(&spec), 28);
	assert_int_equal(ktrxer_frame_build(tail, sizeof tail, &spec), 35);
	assert_memory_equal(tail, whole + 14, 35);
	spec.link = (enum ktrxer_link)3;
	assert_int_equal(ktrxer_frame_build(tail, sizeof tail, &spec), -EINVAL);
	/* A caller from before this field. */
	spec.size = offsetof(struct ktrxer_frame_spec, link);
	assert_int_equal(ktrxer_frame_header_length(&spec), 42);
}

static const uint8_t syn_options[] = { 2, 4, 5, 0xb4, 4, 2, 3, 3, 7 };

static struct ktrxer_frame_spec a_syn(const struct ktrxer_path *path)
{
	struct ktrxer_frame_spec spec = a_spec(path, KTRXER_TCP);

	spec.from_port = 40000;
	spec.to_port = 443;
	spec.tcp_sequence = 0xfedcba98;
	spec.tcp_flags = KTRXER_TCP_SYN;
	spec.tcp_window = 64240;
	spec.tcp_options = syn_options;
	spec.tcp_options_length = sizeof syn_options;
	spec.payload_length = 0;
	return spec;
}

static struct ktrxer_frame_spec an_ack(const struct ktrxer_path *path)
{
	struct ktrxer_frame_spec spec = a_spec(path, KTRXER_TCP);

	spec.from_port = 40000;
	spec.to_port = 443;
	spec.tcp_sequence = 1;
	spec.tcp_acknowledgement = 0x80000000;
	spec.tcp_flags = KTRXER_TCP_PSH | KTRXER_TCP_ACK | KTRXER_TCP_ECE | KTRXER_TCP_CWR;
	spec.tcp_window = 1;
	spec.vlan = true;
	spec.vlan_tci = 5 << 13 | 0x123;
	return spec;
}

TEST(builds_tcp_replies_and_tags)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET), e6 = a_path(KTRXER_LINK_ETHERNET, AF_INET6);
	struct ktrxer_path r4 = a_path(KTRXER_LINK_RAW_IP, AF_INET), r6 = a_path(KTRXER_LINK_RAW_IP, AF_INET6);
	struct ktrxer_frame_spec spec = a_syn(&e4);
	uint8_t frame[128];

	assert_int_equal(ktrxer_frame_header_length(&spec), 66);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth4syn);
	/* Options where the header is written. */
	for (int at = 0; at < 70; at++) {
		memset(frame, 0xee, sizeof frame);
		memcpy(frame + at, syn_options, sizeof syn_options);
		spec.tcp_options = frame + at;
		same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), eth4syn);
	}
	spec = an_ack(&e6);
	assert_int_equal(ktrxer_frame_header_length(&spec), 78);
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), vlan6ack);
	assert_int_equal(ktrxer_frame_build(frame, 84, &spec), -EMSGSIZE);
	assert_int_equal(ktrxer_frame_build(frame, 85, &spec), 85);
	e6.mtu = 67; /* the tag is no part of the IP packet */
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), 85);
	e6.mtu = 66;
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &spec), -EMSGSIZE);
	spec = a_spec(&e4, KTRXER_UDP);
	spec.vlan = true;
	spec.vlan_tci = 1 << 12 | 4094;
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), vlan4udp);
	spec = a_spec(&r4, KTRXER_ICMP);
	spec.echo_reply = true;
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), raw4reply);
	spec = a_spec(&r6, KTRXER_ICMPV6);
	spec.echo_reply = true;
	same_bytes(frame, ktrxer_frame_build(frame, sizeof frame, &spec), raw6reply);
}

TEST(refuses_fields_of_another_protocol)
{
	struct ktrxer_path e4 = a_path(KTRXER_LINK_ETHERNET, AF_INET), r4 = a_path(KTRXER_LINK_RAW_IP, AF_INET);
	const struct ktrxer_frame_spec udp = a_spec(&e4, KTRXER_UDP), syn = a_syn(&e4);
	struct ktrxer_frame_spec cases[9] = { udp, udp, udp, udp, syn, syn, syn, udp, a_spec(&e4, KTRXER_ICMP) };
	uint8_t frame[256], options[KTRXER_TCP_OPTIONS_MAX] = { 1 };

	cases[0].tcp_flags = KTRXER_TCP_SYN;
	cases[1].tcp_options_length = 1;
	cases[2].echo_reply = true;
	cases[3].vlan_tci = 1; /* without `vlan` */
	cases[4].echo_reply = true;
	cases[5].tcp_options = NULL;
	cases[6].tcp_options_length = KTRXER_TCP_OPTIONS_MAX + 1;
	cases[7].path = &r4;
	cases[7].vlan = true;
	cases[8].tcp_flags = KTRXER_TCP_ACK;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &cases[i]), -EINVAL);
		assert_int_equal(ktrxer_frame_header_length(&cases[i]), -EINVAL);
	}
	cases[6].tcp_options = options;
	cases[6].tcp_options_length = KTRXER_TCP_OPTIONS_MAX;
	assert_int_equal(ktrxer_frame_build(frame, sizeof frame, &cases[6]), 94);
}

static struct ktrxer_frame_view view_of(const char *hex, enum ktrxer_link link)
{
	struct ktrxer_frame_view view;
	uint8_t frame[128];
	uint32_t length = from_hex(frame, hex);

	memset(frame + length, 0xee, 10); /* padding of Ethernet */
	memset(&view, 0xff, sizeof view);
	assert_int_equal(ktrxer_frame_read(&view, frame, length + 10, link), 0);
	assert_int_equal(view.payload + view.payload_length, length);
	return view;
}

TEST(reads)
{
	struct ktrxer_frame_view view = view_of(eth4syn, KTRXER_LINK_ETHERNET);
	char text[KTRXER_ADDR_TEXT];

	assert_string_equal(ktrxer_addr_format(&view.from, text), "192.0.2.1");
	assert_string_equal(ktrxer_addr_format(&view.to, text), "198.51.100.7");
	assert_int_equal(view.proto, KTRXER_TCP);
	assert_int_equal(view.from_port, 40000);
	assert_int_equal(view.to_port, 443);
	assert_int_equal(view.tcp_sequence, 0xfedcba98);
	assert_int_equal(view.tcp_acknowledgement, 0);
	assert_int_equal(view.tcp_flags, KTRXER_TCP_SYN);
	assert_int_equal(view.tcp_window, 64240);
	assert_int_equal(view.ttl, 64);
	assert_int_equal(view.payload, 66);
	assert_int_equal(view.payload_length, 0);
	assert_false(view.vlan);
	assert_int_equal(view.version, 4);
	assert_int_equal(view.ethertype, 0x0800);
	assert_int_equal(view.network, 14);
	assert_int_equal(view.transport, 34);
	assert_true(view.ports && view.first_fragment && !view.fragment && !view.malformed);

	view = view_of(vlan6ack, KTRXER_LINK_ETHERNET);
	assert_string_equal(ktrxer_addr_format(&view.to, text), "2001:db8:0:1::7");
	assert_int_equal(view.tcp_acknowledgement, 0x80000000);
	assert_int_equal(view.tcp_flags, 0xd8);
	assert_true(view.vlan);
	assert_int_equal(view.vlan_tci, 0xa123);
	assert_int_equal(view.payload, 78);
	assert_int_equal(view.payload_length, 7);

	view = view_of(raw4reply, KTRXER_LINK_RAW_IP);
	assert_int_equal(view.proto, KTRXER_ICMP);
	assert_int_equal(view.icmp_type, 0);
	assert_int_equal(view.from_port, 0x1234);
	assert_int_equal(view.to_port, 0xfffe);
	assert_int_equal(view.payload, 28);
	assert_int_equal(view.tcp_flags, 0);
	assert_int_equal(view_of(raw6reply, KTRXER_LINK_RAW_IP).icmp_type, 129);
	assert_int_equal(view_of(raw4icmp, KTRXER_LINK_RAW_IP).tos, 0xb9);
	assert_int_equal(view_of(eth6udp, KTRXER_LINK_ETHERNET).payload, 62);
}

TEST(reads_no_broken_frame)
{
	struct ktrxer_frame_view view;
	uint8_t good[128], arp[60] = { [12] = 8, [13] = 6 };
	uint32_t length = from_hex(good, eth4syn);

	assert_int_equal(ktrxer_frame_read(NULL, good, length, KTRXER_LINK_ETHERNET), -EINVAL);
	assert_int_equal(ktrxer_frame_read(&view, NULL, length, KTRXER_LINK_ETHERNET), -EINVAL);
	assert_int_equal(ktrxer_frame_read(&view, arp, sizeof arp, KTRXER_LINK_ETHERNET), -EBADMSG);
	assert_int_equal(view.version, 0);
	assert_int_equal(view.ethertype, 0x0806);
	for (uint32_t cut = 0; cut < length; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1); /* so that a sanitizer sees a step too far */

		assert_non_null(exact);
		memcpy(exact, good, cut);
		assert_int_equal(ktrxer_frame_read(&view, exact, cut, KTRXER_LINK_ETHERNET), -EBADMSG);
		free(exact);
		assert_true(view.malformed);
		assert_int_equal(view.payload_length, 0);
	}
	/* Fields before the end of a frame that is cut short are read. */
	assert_int_equal(view.version, 4);
	assert_int_equal(view.transport, 34);
	assert_int_equal(view.to_port, 443);
	good[20] = 0x20; /* more fragments */
	assert_int_equal(ktrxer_frame_read(&view, good, length, KTRXER_LINK_ETHERNET), -EBADMSG);
	assert_true(view.fragment && view.first_fragment && !view.malformed);
}
