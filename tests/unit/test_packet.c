/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bytes.h"
#include "cm.h"
#include "packet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* A frame under construction. */
struct frame {
	uint8_t bytes[2048];
	uint32_t length;
};

static void put(struct frame *f, const void *data, size_t n)
{
	memcpy(f->bytes + f->length, data, n);
	f->length += (uint32_t)n;
}

static void put8(struct frame *f, unsigned int v)
{
	f->bytes[f->length++] = (uint8_t)v;
}

static void put16(struct frame *f, unsigned int v)
{
	put8(f, v >> 8);
	put8(f, v);
}

static void put_ethernet(struct frame *f, unsigned int type)
{
	for (int i = 0; i < 12; i++)
		put8(f, i);
	put16(f, type);
}

static void put_ipv4(struct frame *f, unsigned int words, unsigned int total, unsigned int fragment, unsigned int proto)
{
	put8(f, 0x40 | words);
	put8(f, 0xb8);
	put16(f, total);
	put16(f, 0x1234);
	put16(f, fragment);
	put8(f, 63);
	put8(f, proto);
	put16(f, 0);
	put(f, "\300\000\002\001\300\000\002\002", 8); /* 192.0.2.1, 192.0.2.2 */
	for (unsigned int i = 20; i < words * 4; i++)
		put8(f, 1);
}

static void put_ipv6(struct frame *f, unsigned int length, unsigned int next)
{
	put16(f, 0x6b80);
	put16(f, 0x1234);
	put16(f, length);
	put8(f, next);
	put8(f, 63);
	put(f, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1", 16);
	put(f, "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\2", 16);
}

static void put_udp(struct frame *f, unsigned int from, unsigned int to, unsigned int payload)
{
	put16(f, from);
	put16(f, to);
	put16(f, payload + 8);
	put16(f, 0);
	for (unsigned int i = 0; i < payload; i++)
		put8(f, i);
}

/* The frame in memory of exactly its length, so that a sanitizer sees a read past its end. */
static struct ktrxer_packet_view parse_cut(const struct frame *f, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_packet_view view;
	uint8_t *copy = malloc(length ? length : 1);

	assert_non_null(copy);
	memcpy(copy, f->bytes, length);
	ktrxer_packet_parse(&view, copy, length, link);
	free(copy);
	return view;
}

static struct ktrxer_packet_view parse(const struct frame *f)
{
	return parse_cut(f, f->length, KTRXER_LINK_ETHERNET);
}

TEST(reads_udp_over_ipv4)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x0800);
	put_ipv4(&f, 5, 32, 0x4000, 17);
	put_udp(&f, 1000, 53, 4);
	for (int i = 0; i < 14; i++) /* Ethernet's padding */
		put8(&f, 0xff);
	v = parse(&f);
	assert_int_equal(v.ethertype, 0x0800);
	assert_int_equal(v.vlans, 0);
	assert_int_equal(v.version, 4);
	assert_int_equal(v.l3, 14);
	assert_int_equal(v.l4, 34);
	assert_int_equal(v.payload, 42);
	assert_int_equal(v.end, 46);
	assert_int_equal(v.proto, 17);
	assert_int_equal(v.tos, 0xb8);
	assert_int_equal(v.ttl, 63);
	assert_int_equal(v.ip_id, 0x1234);
	assert_true(v.dont_fragment);
	assert_false(v.fragment);
	assert_true(v.first_fragment);
	assert_false(v.malformed);
	assert_false(v.options);
	assert_int_equal(v.from.family, AF_INET);
	assert_memory_equal(v.from.bytes, "\300\000\002\001", 4);
	assert_memory_equal(v.to.bytes, "\300\000\002\002", 4);
	assert_true(v.ports);
	assert_int_equal(v.from_port, 1000);
	assert_int_equal(v.to_port, 53);
}

TEST(reads_vlan_tags)
{
	static const struct {
		unsigned int tags, vlans, version;
	} cases[] = { { 1, 1, 4 }, { 2, 2, 4 }, { 3, 2, 0 } };

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct frame f = { 0 };
		struct ktrxer_packet_view v;

		put_ethernet(&f, cases[i].tags == 1 ? 0x8100 : 0x88a8);
		for (unsigned int tag = 1; tag <= cases[i].tags; tag++) {
			put16(&f, 0x6000 + 100 * tag);
			put16(&f, tag < cases[i].tags ? 0x8100 : 0x0800);
		}
		put_ipv4(&f, 5, 28, 0, 17);
		put_udp(&f, 1, 2, 0);
		v = parse(&f);
		assert_int_equal(v.vlans, cases[i].vlans);
		assert_int_equal(v.vlan_tci, 0x6000 + 100);
		assert_int_equal(v.version, cases[i].version);
		assert_false(v.malformed);
		if (v.version)
			assert_int_equal(v.to_port, 2);
		else
			assert_int_equal(v.ethertype, 0x8100);
	}
}

TEST(reads_raw_ip)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ipv4(&f, 6, 32, 0, 17);
	put_udp(&f, 7, 8, 0);
	v = parse_cut(&f, f.length, KTRXER_LINK_RAW_IP);
	assert_int_equal(v.version, 4);
	assert_int_equal(v.ethertype, 0);
	assert_int_equal(v.l3, 0);
	assert_int_equal(v.l4, 24);
	assert_true(v.options);
	assert_int_equal(v.from_port, 7);
	f.bytes[0] = 0x50;
	v = parse_cut(&f, f.length, KTRXER_LINK_RAW_IP);
	assert_int_equal(v.version, 0);
	assert_true(v.malformed);
	v = parse_cut(&f, 0, KTRXER_LINK_RAW_IP);
	assert_int_equal(v.version, 0);
	assert_true(v.malformed);
}

TEST(reads_fragments)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x0800);
	put_ipv4(&f, 5, 44, 0x2000, 17);
	put_udp(&f, 9, 10, 1000 - 984);
	store_be16(f.bytes + 38, 1400); /* the whole datagram is longer than its first fragment */
	v = parse(&f);
	assert_true(v.fragment);
	assert_true(v.first_fragment);
	assert_true(v.ports);
	assert_false(v.malformed);

	store_be16(f.bytes + 20, 0x0002);
	v = parse(&f);
	assert_true(v.fragment);
	assert_false(v.first_fragment);
	assert_false(v.ports);
	assert_int_equal(v.proto, 17);
	assert_int_equal(v.l4, 0);
	assert_false(v.malformed);
}

TEST(walks_extension_headers)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x86dd);
	put_ipv6(&f, 8 + 16 + 8 + 8 + 16 + 12, 0);
	put(&f, "\x3c\0\1\4\0\0\0\0", 8);                    /* hop by hop */
	put(&f, "\x2b\1\1\x0c\0\0\0\0\0\0\0\0\0\0\0\0", 16); /* destination */
	put(&f, "\x2c\0\0\0\0\0\0\0", 8);                    /* routing, no segments left */
	put(&f, "\x33\0\0\0\0\0\0\1", 8);                    /* fragment, atomic */
	put(&f, "\x11\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16);   /* AH */
	put_udp(&f, 11, 12, 4);
	v = parse(&f);
	assert_int_equal(v.version, 6);
	assert_int_equal(v.proto, 17);
	assert_int_equal(v.tos, 0xb8);
	assert_true(v.options);
	assert_true(v.fragment);
	assert_true(v.first_fragment);
	assert_false(v.malformed);
	assert_int_equal(v.l4, 14 + 40 + 56);
	assert_int_equal(v.payload, 14 + 40 + 56 + 8);
	assert_int_equal(v.to_port, 12);

	f.bytes[14 + 40 + 24 + 8 + 3] = 0x08; /* fragment offset 1: what follows is the middle of something */
	v = parse(&f);
	assert_false(v.first_fragment);
	assert_int_equal(v.proto, 51);
	assert_int_equal(v.l4, 0);
	assert_false(v.ports);
}

TEST(gives_up_on_endless_extensions)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x86dd);
	put_ipv6(&f, 8 * 100, 60);
	for (int i = 0; i < 100; i++)
		put(&f, "\x3c\0\1\4\0\0\0\0", 8);
	v = parse(&f);
	assert_true(v.malformed);
	assert_int_equal(v.proto, 60);
	assert_int_equal(v.l4, 0);
}

TEST(reads_other_transports)
{
	static const struct {
		uint8_t proto, ok_at, ok_value, bad_value, header;
	} cases[] = {
		{ 6, 12, 0x60, 0x40, 24 },
		{ 33, 4, 4, 2, 16 },
		{ 132, 0, 0, 0, 12 },
		{ 136, 0, 0, 0, 8 },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct frame f = { 0 };
		struct ktrxer_packet_view v;

		put_ethernet(&f, 0x0800);
		put_ipv4(&f, 5, 20 + 32, 0, cases[i].proto);
		put16(&f, 0x1111);
		put16(&f, 0x2222);
		f.length += 28;
		if (cases[i].ok_at)
			f.bytes[34 + cases[i].ok_at] = cases[i].ok_value;
		v = parse(&f);
		assert_false(v.malformed);
		assert_true(v.ports);
		assert_int_equal(v.from_port, 0x1111);
		assert_int_equal(v.to_port, 0x2222);
		assert_int_equal(v.payload, 34 + cases[i].header);
		if (!cases[i].ok_at)
			continue;
		f.bytes[34 + cases[i].ok_at] = cases[i].bad_value;
		v = parse(&f);
		assert_true(v.malformed);
		assert_true(v.ports);
		assert_int_equal(v.payload, 0);
		f.bytes[34 + cases[i].ok_at] = 0xff; /* header longer than the packet */
		v = parse(&f);
		assert_true(v.malformed);
		assert_int_equal(v.payload, 0);
	}
}

TEST(reads_echo)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x0800);
	put_ipv4(&f, 5, 28, 0, 1);
	put(&f, "\x08\0\0\0\x12\x34\0\x07", 8);
	v = parse(&f);
	assert_int_equal(v.icmp_type, 8);
	assert_int_equal(v.icmp_id, 0x1234);
	assert_int_equal(v.icmp_seq, 7);
	assert_false(v.ports);
	f.bytes[34] = 3; /* unreachable: no id */
	v = parse(&f);
	assert_int_equal(v.icmp_type, 3);
	assert_int_equal(v.icmp_id, 0);

	f = (struct frame){ 0 };
	put_ethernet(&f, 0x86dd);
	put_ipv6(&f, 8, 58);
	put(&f, "\x81\0\0\0\x12\x34\0\x08", 8);
	v = parse(&f);
	assert_int_equal(v.icmp_type, 129);
	assert_int_equal(v.icmp_seq, 8);
	assert_int_equal(v.payload, 62);
}

TEST(marks_lies)
{
	struct frame f = { 0 };
	struct ktrxer_packet_view v;

	put_ethernet(&f, 0x0800);
	put_ipv4(&f, 5, 32, 0, 17);
	put_udp(&f, 1, 2, 4);

	f.bytes[14] = 0x44; /* header of 16 bytes */
	assert_true(parse(&f).malformed);
	f.bytes[14] = 0x46; /* options beyond the total length are not; beyond the packet they are */
	store_be16(f.bytes + 16, 22);
	assert_true(parse(&f).malformed);
	f.bytes[14] = 0x45;
	store_be16(f.bytes + 16, 19);
	assert_true(parse(&f).malformed);
	store_be16(f.bytes + 16, 0); /* merged by the kernel */
	v = parse(&f);
	assert_false(v.malformed);
	assert_int_equal(v.end, f.length);
	store_be16(f.bytes + 16, 33); /* more than is here: cut by the capture, no lie */
	v = parse(&f);
	assert_false(v.malformed);
	assert_int_equal(v.end, f.length);
	store_be16(f.bytes + 16, 32);
	store_be16(f.bytes + 38, 13); /* datagram longer than its packet */
	assert_true(parse(&f).malformed);
	store_be16(f.bytes + 38, 7);
	v = parse(&f);
	assert_true(v.malformed);
	assert_true(v.ports);
	f.bytes[14] = 0x65; /* Ethernet says 4, the packet says 6 */
	v = parse(&f);
	assert_true(v.malformed);
	assert_int_equal(v.version, 0);
}

/* Every length of every frame here: no read outside (the sanitizer tells), fields never beyond the end. */
TEST(survives_every_cut)
{
	struct frame frames[3] = { 0 };

	put_ethernet(&frames[0], 0x88a8);
	put(&frames[0], "\0\1\x81\0\0\2\x08\0", 8);
	put_ipv4(&frames[0], 15, 60 + 32, 0, 6);
	for (int i = 0; i < 32; i++)
		put8(&frames[0], i == 12 ? 0x50 : i);
	put_ethernet(&frames[1], 0x86dd);
	put_ipv6(&frames[1], 8 + 8 + 12, 0);
	put(&frames[1], "\x2c\0\1\4\0\0\0\0", 8);
	put(&frames[1], "\x11\0\0\1\0\0\0\1", 8);
	put_udp(&frames[1], 11, 12, 4);
	put_ethernet(&frames[2], 0x86dd);
	put_ipv6(&frames[2], 8, 58);
	put(&frames[2], "\x81\0\0\0\x12\x34\0\x08", 8);

	for (int i = 0; i < 3; i++) {
		assert_false(parse(&frames[i]).malformed);
		for (uint32_t n = 0; n < frames[i].length; n++) {
			for (int link = KTRXER_LINK_ETHERNET; link <= KTRXER_LINK_RAW_IP; link++) {
				struct ktrxer_packet_view v = parse_cut(&frames[i], n, (enum ktrxer_link)link);

				assert_true(v.end <= n);
				assert_true(v.l4 <= v.end);
				assert_true(v.payload <= v.end);
			}
		}
	}
}

TEST(sums_as_rfc_1071)
{
	static const uint8_t example[] = { 0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7 };
	uint8_t big[70000];

	assert_int_equal(ktrxer_sum(example, 8, 0), 0xddf2);
	assert_int_equal(ktrxer_sum(example, 7, 0), ktrxer_sum_fold(0x0001 + 0xf203 + 0xf4f5 + 0xf600));
	assert_int_equal(ktrxer_sum(example + 4, 4, ktrxer_sum(example, 4, 0)), 0xddf2);
	assert_int_equal(ktrxer_sum(example, 0, 0x1ffff), 1);
	assert_int_equal(ktrxer_sum(example, 0, 0xffffffff), 0xffff);
	memset(big, 0xff, sizeof big);
	assert_int_equal(ktrxer_sum(big, sizeof big, 0), 0xffff);
	assert_int_equal(ktrxer_sum_fold(0xffff0001), 1);
}

/* Frames that Linux made, checksums and all. */
TEST(checksums_are_those_of_linux)
{
	static const uint8_t ping4[] = {
		0x45, 0x00, 0x00, 0x1c, 0x00, 0x00, 0x40, 0x00, 0x40, 0x01, 0x7c, 0xdf, 0x7f, 0x00,
		0x00, 0x01, 0x7f, 0x00, 0x00, 0x01, 0x08, 0x00, 0xf7, 0xf3, 0x00, 0x0b, 0x00, 0x01,
	};
	struct ktrxer_packet_view v;
	struct frame f = { 0 };
	uint32_t sum;

	ktrxer_packet_parse(&v, ping4, sizeof ping4, KTRXER_LINK_RAW_IP);
	assert_int_equal(ktrxer_transport_checksum(ping4, &v), 0xf7f3);

	/* UDP over IPv4, worked out by hand: the sum of everything, checksum included, is all ones. */
	put_ipv4(&f, 5, 33, 0, 17);
	put_udp(&f, 1000, 2000, 5);
	v = parse_cut(&f, f.length, KTRXER_LINK_RAW_IP);
	store_be16(f.bytes + 26, ktrxer_transport_checksum(f.bytes, &v));
	sum = 0xc000 + 0x0201 + 0xc000 + 0x0202 + 17 + 13;
	sum += 1000 + 2000 + 13 + load_be16(f.bytes + 26) + 0x0001 + 0x0203 + 0x0400;
	assert_int_equal(ktrxer_sum_fold(sum), 0xffff);
	/* The checksum that stands there does not count. */
	assert_int_equal(ktrxer_transport_checksum(f.bytes, &v), load_be16(f.bytes + 26));

	/* A sum of zero is sent as ones in UDP. */
	store_be16(f.bytes + 28, 0);
	store_be16(f.bytes + 30, 0);
	f.bytes[32] = 0;
	store_be16(f.bytes + 28, ktrxer_transport_checksum(f.bytes, &v));
	assert_int_equal(ktrxer_transport_checksum(f.bytes, &v), 0xffff);

	/* Cut short, or a fragment: not known. */
	v = parse_cut(&f, f.length - 1, KTRXER_LINK_RAW_IP);
	assert_int_equal(ktrxer_transport_checksum(f.bytes, &v), 0);
	store_be16(f.bytes + 6, 0x2000);
	v = parse_cut(&f, f.length, KTRXER_LINK_RAW_IP);
	assert_int_equal(ktrxer_transport_checksum(f.bytes, &v), 0);
}

TEST(sums_to_the_final_destination)
{
	struct frame direct = { 0 }, routed = { 0 };
	struct ktrxer_packet_view v;
	uint16_t want;

	put_ipv6(&direct, 12, 17);
	put_udp(&direct, 11, 12, 4);
	v = parse_cut(&direct, direct.length, KTRXER_LINK_RAW_IP);
	want = ktrxer_transport_checksum(direct.bytes, &v);
	assert_int_not_equal(want, 0);

	/* The same packet on its way by a first hop; the real destination stands in the routing header. */
	put_ipv6(&routed, 24 + 12, 43);
	routed.bytes[39] = 0x77;
	put(&routed, "\x11\2\4\1\0\0\0\0", 8);
	put(&routed, direct.bytes + 24, 16);
	put_udp(&routed, 11, 12, 4);
	v = parse_cut(&routed, routed.length, KTRXER_LINK_RAW_IP);
	assert_int_equal(ktrxer_transport_checksum(routed.bytes, &v), want);
	routed.bytes[42] = 0;
	assert_int_equal(ktrxer_transport_checksum(routed.bytes, &v), want);
	routed.bytes[42] = 99; /* an unknown type */
	assert_int_equal(ktrxer_transport_checksum(routed.bytes, &v), 0);
}
