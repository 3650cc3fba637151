/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Templates: what each number's frame holds, that checksums are those of summing all again, and what is refused. */
#include "bytes.h"
#include "cm.h"
#include "packet.h"
#include "template_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { ROOM = 2048 };

struct made {
	uint8_t frame[ROOM];
	uint32_t length;
	enum ktrxer_link link;
};

static struct made frame_of(uint8_t family, uint8_t proto, uint32_t payload)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = { .device = { .link = KTRXER_LINK_ETHERNET, .mac = { 2, 0, 0, 0, 0, 1 } },
				    .next_hop_mac = { 2, 0, 0, 0, 0, 2 } };
	struct made made = { .link = KTRXER_LINK_ETHERNET };
	uint8_t bytes[ROOM];
	int n;

	ktrxer_addr_parse(&path.source, family == AF_INET ? "10.1.2.3" : "fd00::1");
	ktrxer_addr_parse(&path.to, family == AF_INET ? "10.1.2.4" : "fd00::2:ffff");
	for (uint32_t i = 0; i < payload; i++)
		bytes[i] = (uint8_t)random();
	spec.path = &path;
	spec.proto = proto;
	spec.from_port = 4000;
	spec.to_port = 9;
	spec.payload = bytes;
	spec.payload_length = payload;
	n = ktrxer_frame_build(made.frame, ROOM, &spec);
	assert_true(n > 0);
	made.length = (uint32_t)n;
	return made;
}

/* A TCP segment with two VLAN tags in front and options, which the library does not build itself. */
static struct made tcp_frame(void)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0 };
	struct made made = { .link = KTRXER_LINK_ETHERNET, .length = 22 + 20 + 24 + 13 };
	uint8_t *ip = made.frame + 22, *tcp = ip + 20;

	memcpy(made.frame, head, sizeof head);
	ip[0] = 0x45;
	store_be16(ip + 2, (uint16_t)(made.length - 22));
	ip[8] = 64;
	ip[9] = 6;
	store_be32(ip + 12, 0x0a000001);
	store_be32(ip + 16, 0x0a000002);
	store_be16(ip + 10, (uint16_t)~ktrxer_sum_fold(ktrxer_sum(ip, 20, 0)));
	store_be16(tcp, 1234);
	store_be16(tcp + 2, 80);
	tcp[12] = 6 << 4;
	tcp[13] = 2;
	memset(tcp + 20, 1, 4);
	memset(tcp + 24, 0x5a, 13);
	assert_int_equal(ktrxer_frame_checksum(made.frame, made.length, made.link), 0);
	return made;
}

static int try_make(struct ktx_template **t, const struct made *made, const struct ktx_vary *fields, uint32_t count,
		    bool combine, struct ktrxer_error *err)
{
	struct ktx_template_options o = KTX_TEMPLATE_OPTIONS_INIT;

	o.frame = made->frame;
	o.length = made->length;
	o.link = made->link;
	o.fields = fields;
	o.field_count = count;
	o.every_combination = combine;
	return ktx_template_new(t, &o, err);
}

static struct ktx_template *make(const struct made *made, const struct ktx_vary *fields, uint32_t count)
{
	struct ktrxer_error err = { 0 };
	struct ktx_template *t;
	int rc = try_make(&t, made, fields, count, false, &err);

	if (rc < 0)
		print_message("%s\n", err.text);
	assert_int_equal(rc, 0);
	return t;
}

/* The frame as it is, with the two checksums made by summing everything. */
static void sum_again(struct made *made)
{
	struct ktrxer_packet_view view;

	ktrxer_packet_parse(&view, made->frame, made->length, made->link);
	if (view.version == 4) {
		uint8_t *ip = made->frame + view.l3;

		store_be16(ip + 10, 0);
		store_be16(ip + 10, (uint16_t)~ktrxer_sum_fold(ktrxer_sum(ip, (uint32_t)(ip[0] & 15) * 4, 0)));
	}
	assert_int_equal(ktrxer_frame_checksum(made->frame, made->length, made->link), 0);
}

static void store(uint8_t *at, uint32_t width, uint64_t value)
{
	for (; width; value >>= 8)
		at[--width] = (uint8_t)value;
}

/* --------------------------------------------------------------------------------------------------------- tests */

TEST(counters_are_where_they_belong)
{
	static const struct {
		uint8_t family, proto;
		enum ktx_field field;
		uint32_t at, width; /* behind the link header */
	} cases[] = {
		{ AF_INET, 17, KTX_FIELD_SOURCE, 12, 4 },       { AF_INET, 17, KTX_FIELD_DESTINATION, 16, 4 },
		{ AF_INET, 17, KTX_FIELD_SOURCE_PORT, 20, 2 },  { AF_INET, 17, KTX_FIELD_DESTINATION_PORT, 22, 2 },
		{ AF_INET, 17, KTX_FIELD_IP_ID, 4, 2 },         { AF_INET, 17, KTX_FIELD_TOS, 1, 1 },
		{ AF_INET, 17, KTX_FIELD_TTL, 8, 1 },           { AF_INET6, 17, KTX_FIELD_SOURCE, 16, 8 },
		{ AF_INET6, 17, KTX_FIELD_DESTINATION, 32, 8 }, { AF_INET6, 17, KTX_FIELD_TTL, 7, 1 },
		{ AF_INET6, 17, KTX_FIELD_SOURCE_PORT, 40, 2 }, { AF_INET, 1, KTX_FIELD_ICMP_ID, 24, 2 },
		{ AF_INET, 1, KTX_FIELD_ICMP_SEQUENCE, 26, 2 }, { AF_INET6, 58, KTX_FIELD_ICMP_SEQUENCE, 46, 2 },
		{ AF_INET6, 58, KTX_FIELD_SOURCE, 16, 8 },      { AF_INET, 1, KTX_FIELD_SOURCE, 12, 4 },
	};

	for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
		struct made made = frame_of(cases[c].family, cases[c].proto, 33);
		const struct ktx_vary field = {
			.field = cases[c].field, .how = KTX_VARY_COUNTER, .from = 3, .step = 5, .count = 40
		};
		struct ktx_template *t = make(&made, &field, 1);
		uint8_t frame[ROOM];

		assert_int_equal(ktx_template_length(t), made.length);
		assert_int_equal(ktx_template_space(t), 40);
		for (uint64_t n = 0; n < 100; n++) {
			store(made.frame + 14 + cases[c].at, cases[c].width, 3 + 5 * (n % 40));
			sum_again(&made);
			ktx_template_fill(t, frame, n);
			assert_memory_equal(frame, made.frame, made.length);
		}
		ktx_template_free(t);
	}
}

TEST(flow_label_leaves_its_neighbours_alone)
{
	const struct ktx_vary field = { .field = KTX_FIELD_FLOW_LABEL, .how = KTX_VARY_COUNTER, .from = 0xffff0 };
	struct made made = frame_of(AF_INET6, 17, 8);
	struct ktx_template *t;
	uint8_t frame[ROOM];

	made.frame[14] |= 0x0b; /* traffic class */
	made.frame[15] |= 0x50;
	t = make(&made, &field, 1);
	assert_int_equal(ktx_template_space(t), 16);
	for (uint64_t n = 0; n < 20; n++) {
		ktx_template_fill(t, frame, n);
		assert_int_equal(load_be32(frame + 14), 0x6b500000 | (0xffff0 + n % 16));
		assert_memory_equal(frame + 18, made.frame + 18, made.length - 18);
	}
	ktx_template_free(t);
}

/* Fields at odd offsets, over values that make carries, at both ends of the sum; UDP's 0 becomes 0xffff. */
TEST(checksums_are_those_of_summing_all_again)
{
	static const uint32_t widths[] = { 1, 2, 4, 8 };

	srandom(7);
	for (int round = 0; round < 3000; round++) {
		static const uint8_t protos[][2] = {
			{ AF_INET, 17 }, { AF_INET6, 17 }, { AF_INET, 1 }, { AF_INET6, 58 }
		};
		const int which = (int)(random() % 5);
		struct made made = which == 4
					   ? tcp_frame()
					   : frame_of(protos[which][0], protos[which][1], 24 + (uint32_t)random() % 9);
		const uint32_t width = widths[random() % 4], at = (uint32_t)random() % (which == 4 ? 6 : 17);
		/* clang-format off */
		struct ktx_vary fields[3] = {
			{ .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .at = at, .width = width,
			  .from = random() % 2 ? 0 : (width == 8 ? ~0ULL : (1ULL << 8 * width) - 1) },
			{ .field = KTX_FIELD_DESTINATION, .how = KTX_VARY_RANDOM, .from = 0xfffffff0, .count = 16,
			  .seed = (uint64_t)random() },
			{ .field = which < 2 || which == 4 ? KTX_FIELD_SOURCE_PORT : KTX_FIELD_TTL,
			  .how = KTX_VARY_COUNTER, .from = (uint64_t)random() % 200 },
		};
		/* clang-format on */
		struct ktx_template *t = make(&made, fields, 3);
		struct made got = made;

		for (int n = 0; n < 20; n++) {
			uint8_t before[ROOM];

			ktx_template_fill(t, got.frame, (uint64_t)random() << 20 | (uint64_t)random());
			memcpy(before, got.frame, got.length);
			sum_again(&got);
			assert_memory_equal(before, got.frame, got.length);
		}
		ktx_template_free(t);
	}
}

TEST(udp_without_a_checksum_keeps_none)
{
	const struct ktx_vary field = { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_COUNTER };
	struct made made = frame_of(AF_INET, 17, 20);
	struct ktx_template *t;
	uint8_t frame[ROOM];

	store_be16(made.frame + 40, 0);
	t = make(&made, &field, 1);
	for (uint64_t n = 0; n < 10; n++) {
		ktx_template_fill(t, frame, n);
		assert_int_equal(load_be16(frame + 40), 0);
		assert_int_equal(load_be16(frame + 34), n);
	}
	ktx_template_free(t);
}

/* A sum of 0 is written as 0xffff: found by trying all values of a word. */
TEST(udp_checksum_of_zero_is_sent_as_all_ones)
{
	const struct ktx_vary field = { .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 2 };
	struct made made = frame_of(AF_INET, 17, 4);
	struct ktx_template *t = make(&made, &field, 1);
	uint8_t frame[ROOM];
	int ones = 0;

	for (uint64_t n = 0; n < 65536; n++) {
		ktx_template_fill(t, frame, n);
		assert_int_not_equal(load_be16(frame + 40), 0);
		ones += load_be16(frame + 40) == 0xffff;
	}
	assert_int_equal(ones, 1);
	ktx_template_free(t);
}

/*
 * Of all messages it alone can sum to nothing at all, which is written as 0xffff; each other multiple of that is
 * written as 0.
 */
TEST(an_echo_reply_of_zeros_sums_to_nothing)
{
	const struct ktx_vary field = { .field = KTX_FIELD_ICMP_ID, .how = KTX_VARY_COUNTER };
	struct made made = frame_of(AF_INET, 1, 8), got;
	struct ktx_template *t;

	memset(made.frame + 34, 0, made.length - 34);
	sum_again(&made);
	assert_int_equal(load_be16(made.frame + 36), 0xffff);
	t = make(&made, &field, 1);
	for (uint64_t n = 0; n < 65536; n++) {
		made.length = ktx_template_length(t);
		ktx_template_fill(t, made.frame, n);
		got = made;
		sum_again(&got);
		assert_memory_equal(made.frame, got.frame, made.length);
	}
	ktx_template_free(t);
}

TEST(orders_are_permutations)
{
	static const uint64_t counts[] = { 1,  2,  3,    4,    5,    7,    8,     9,     31,
					   32, 33, 1000, 1001, 4096, 4097, 65536, 65537, 99991 };
	struct made made = frame_of(AF_INET, 17, 20);
	uint8_t frame[ROOM], *seen = malloc(100000);

	for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
		for (uint64_t seed = 0; seed < 3; seed++) {
			const struct ktx_vary field = { .field = KTX_FIELD_PAYLOAD,
							.how = KTX_VARY_RANDOM,
							.width = 4,
							.from = 100,
							.step = 3,
							.count = counts[c],
							.seed = seed };
			struct ktx_template *t = make(&made, &field, 1);
			uint64_t as_they_were = 0;

			memset(seen, 0, 100000);
			for (uint64_t n = 0; n < counts[c]; n++) {
				uint64_t value;

				ktx_template_fill(t, frame, n);
				value = load_be32(frame + 42);
				assert_int_equal((value - 100) % 3, 0);
				value = (value - 100) / 3;
				assert_true(value < counts[c]);
				assert_int_equal(seen[value]++, 0);
				as_they_were += value == n;
			}
			ktx_template_fill(t, frame, counts[c]);
			if (counts[c] > 4000)
				assert_true(as_they_were < 20); /* one is to be expected */
			ktx_template_free(t);
		}
	free(seen);
}

/* The order is good: neighbours are far apart, halves are mixed, other seeds are other orders. */
TEST(orders_look_random)
{
	const uint64_t count = 3000000019;
	struct vary_part part = { .count = count, .bits = 31 };
	double apart = 0;
	int low = 0, sixteenths[16] = { 0 }, same = 0;

	srandom(3);
	for (int i = 0; i < VARY_KEYS; i++)
		part.keys[i] = (uint64_t)random() << 33 | (uint64_t)random() << 2;
	for (uint64_t n = 0; n < 100000; n++) {
		const uint64_t a = vary_permute(&part, n), b = vary_permute(&part, n + 1);

		assert_true(a < count);
		apart += a > b ? (double)(a - b) : (double)(b - a);
		low += a < count / 2;
		sixteenths[a / (count / 16 + 1)]++;
		same += a == n;
	}
	apart /= 1e5 * (double)count; /* of two random places: a third */
	assert_true(apart > 0.2 && apart < 0.47);
	assert_true(low > 47000 && low < 53000);
	for (int i = 0; i < 16; i++)
		assert_true(sixteenths[i] > 4500 && sixteenths[i] < 8000);
	assert_int_equal(same, 0);
}

TEST(numbers_near_both_ends)
{
	static const uint64_t counts[] = { (1ULL << 62) - 1, 1ULL << 62, (1ULL << 62) + 12345, (1ULL << 63) - 1 };

	for (size_t c = 0; c < 4; c++) {
		struct vary_part part = { .count = counts[c],
					  .bits = (uint8_t)(63 - __builtin_clzll(counts[c])),
					  .keys = { 3, 99, ~0ULL, 5, 1, 7, 11, 13 } };

		for (uint64_t n = 0; n < 1000; n++) {
			assert_true(vary_permute(&part, n) < counts[c]);
			assert_true(vary_permute(&part, counts[c] - 1 - n) < counts[c]);
		}
	}
}

TEST(tables_and_pace)
{
	static const uint8_t ports[] = { 0, 80, 1, 187, 31, 144 };
	static const uint8_t hosts[] = { 0x20, 1,    0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1,
					 0xfe, 0x80, 0,   0,    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9 };
	const struct ktx_vary fields[] = {
		{ .field = KTX_FIELD_DESTINATION_PORT, .how = KTX_VARY_TABLE, .count = 3, .table = ports, .every = 2 },
		{ .field = KTX_FIELD_SOURCE, .how = KTX_VARY_TABLE, .count = 2, .table = hosts },
	};
	struct made made = frame_of(AF_INET6, 17, 9);
	struct ktx_template *t = make(&made, fields, 2);
	uint8_t frame[ROOM];

	assert_int_equal(ktx_template_space(t), 6);
	for (uint64_t n = 0; n < 20; n++) {
		memcpy(made.frame + 56, ports + n / 2 % 3 * 2, 2);
		memcpy(made.frame + 22, hosts + n % 2 * 16, 16);
		sum_again(&made);
		ktx_template_fill(t, frame, n);
		assert_memory_equal(frame, made.frame, made.length);
	}
	ktx_template_free(t);
}

TEST(every_combination_comes_once)
{
	const struct ktx_vary fields[] = {
		{ .field = KTX_FIELD_DESTINATION_PORT, .how = KTX_VARY_RANDOM, .from = 10, .count = 7 },
		{ .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_COUNTER, .count = 4 },
		{ .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 8, .every = 1 },
		{ .field = KTX_FIELD_IP_ID, .how = KTX_VARY_COUNTER, .count = 6 },
	};
	struct made made = frame_of(AF_INET, 17, 9);
	struct ktrxer_error err;
	struct ktx_template *t;
	uint8_t frame[ROOM], seen[6][4][7] = { 0 };

	assert_int_equal(try_make(&t, &made, fields, 4, true, &err), 0);
	assert_int_equal(ktx_template_space(t), 0); /* the payload's number takes longer */
	for (uint64_t n = 0; n < 6 * 4 * 7; n++) {
		uint32_t port, from, id;

		ktx_template_fill(t, frame, n);
		port = load_be16(frame + 36) - 10U;
		from = load_be16(frame + 34);
		id = load_be16(frame + 18);
		assert_true(port < 7 && from < 4 && id < 6);
		assert_int_equal(from, n / 7 % 4);
		assert_int_equal(id, n / 28);
		assert_int_equal(seen[id][from][port]++, 0);
		assert_int_equal(load_be64(frame + 42), n);
	}
	ktx_template_free(t);
}

TEST(whole_range_of_a_number)
{
	const struct ktx_vary field = { .field = KTX_FIELD_PAYLOAD, .how = KTX_VARY_COUNTER, .width = 8 };
	struct made made = frame_of(AF_INET, 17, 8);
	struct ktx_template *t = make(&made, &field, 1);
	uint8_t frame[ROOM];

	assert_int_equal(ktx_template_space(t), 0);
	ktx_template_fill(t, frame, UINT64_MAX);
	assert_int_equal(load_be64(frame + 42), UINT64_MAX);
	ktx_template_free(t);
}

TEST(nothing_varies)
{
	struct made made = frame_of(AF_INET, 17, 8);
	struct ktx_template *t = make(&made, NULL, 0);
	uint8_t frame[ROOM];

	ktx_template_fill(t, frame, 5);
	assert_memory_equal(frame, made.frame, made.length);
	assert_int_equal(ktx_template_space(t), 1);
	ktx_template_free(t);
}

TEST(refusals_say_why)
{
	static const uint8_t table[] = { 0, 1, 2, 3 };
	const struct {
		struct ktx_vary fields[2];
		uint32_t count;
		int rc;
		const char *words;
		/* clang-format off */
	} cases[] = {
		{ { { .field = KTX_FIELD_TCP_SEQUENCE, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG, "no TCP sequence" },
		{ { { .field = KTX_FIELD_FLOW_LABEL, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG, "no flow label" },
		{ { { .field = KTX_FIELD_ICMP_ID, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG, "no ICMP" },
		{ { { .field = (enum ktx_field)99, .how = KTX_VARY_COUNTER } }, 1, -EINVAL, "unknown" },
		{ { { .field = KTX_FIELD_TTL, .how = (enum ktx_vary_how)9 } }, 1, -EINVAL, "does not know" },
		{ { { .field = KTX_FIELD_TTL, .how = KTX_VARY_COUNTER, .from = 256 } }, 1, -ERANGE,
		  "the largest is 255" },
		{ { { .field = KTX_FIELD_TTL, .how = KTX_VARY_COUNTER, .from = 200, .count = 57 } }, 1, -ERANGE,
		  "pass the largest" },
		{ { { .field = KTX_FIELD_PAYLOAD, .width = 8, .how = KTX_VARY_COUNTER, .from = 2, .count = ~0ULL,
		      .step = 3 } }, 1, -ERANGE, "pass" },
		{ { { .field = KTX_FIELD_PAYLOAD, .width = 8, .how = KTX_VARY_RANDOM } }, 1, -ERANGE, "give fewer" },
		{ { { .field = KTX_FIELD_PAYLOAD, .width = 3, .how = KTX_VARY_COUNTER } }, 1, -EINVAL, "1, 2, 4 or 8" },
		{ { { .field = KTX_FIELD_PAYLOAD, .width = 4, .at = 5, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG,
		  "pass the end" },
		{ { { .field = KTX_FIELD_PAYLOAD, .width = 4, .at = ~0U, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG,
		  "the frame has" },
		{ { { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_TABLE } }, 1, -EINVAL, "without entries" },
		{ { { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_TABLE, .table = table, .count = 1 << 21 } }, 1,
		  -E2BIG, "entries" },
		/* type */
		{ { { .field = KTX_FIELD_BYTES, .width = 2, .at = 12, .how = KTX_VARY_COUNTER } }, 1, -EINVAL,
		  "cannot vary" },
		/* length */
		{ { { .field = KTX_FIELD_BYTES, .width = 2, .at = 16, .how = KTX_VARY_COUNTER } }, 1, -EINVAL,
		  "cannot vary" },
		/* checksum */
		{ { { .field = KTX_FIELD_BYTES, .width = 2, .at = 24, .how = KTX_VARY_COUNTER } }, 1, -EINVAL,
		  "cannot vary" },
		/* UDP's length */
		{ { { .field = KTX_FIELD_BYTES, .width = 2, .at = 38, .how = KTX_VARY_COUNTER } }, 1, -EINVAL,
		  "cannot vary" },
		/* two headers */
		{ { { .field = KTX_FIELD_BYTES, .width = 4, .at = 32, .how = KTX_VARY_COUNTER } }, 1, -EINVAL,
		  "cannot vary" },
		{ { { .field = KTX_FIELD_BYTES, .width = 8, .at = 46, .how = KTX_VARY_COUNTER } }, 1, -EBADMSG, "end" },
		{ { { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_COUNTER },
		    { .field = KTX_FIELD_BYTES, .at = 35, .width = 1, .how = KTX_VARY_COUNTER } }, 2,
		  -EINVAL, "vary already" },
	};
	/* clang-format on */
	struct made made = frame_of(AF_INET, 17, 8);

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct ktrxer_error err = { 0 };
		struct ktx_template *t = (struct ktx_template *)1;
		int rc = try_make(&t, &made, cases[i].fields, cases[i].count, false, &err);

		if (rc != cases[i].rc || !strstr(err.text, cases[i].words))
			print_message("case %zu: %d '%s'\n", i, rc, err.text);
		assert_int_equal(rc, cases[i].rc);
		assert_non_null(strstr(err.text, cases[i].words));
		assert_null(t);
	}
}

TEST(frames_that_cannot_vary)
{
	const struct ktx_vary port = { .field = KTX_FIELD_SOURCE_PORT, .how = KTX_VARY_COUNTER },
			      source = { .field = KTX_FIELD_SOURCE, .how = KTX_VARY_COUNTER };
	struct made sctp = frame_of(AF_INET, 17, 20), fragment = sctp, arp = sctp, cut = sctp;
	struct ktrxer_error err;
	struct ktx_template *t;

	sctp.frame[14 + 9] = 132;
	assert_int_equal(try_make(&t, &sctp, &port, 1, false, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "132"));
	store_be16(fragment.frame + 14 + 6, 0x2000);
	assert_int_equal(try_make(&t, &fragment, &source, 1, false, &err), -EBADMSG);
	store_be16(arp.frame + 12, 0x0806);
	assert_int_equal(try_make(&t, &arp, &source, 1, false, &err), -EBADMSG);
	/* by their offset its bytes may */
	struct ktx_vary bytes = { .field = KTX_FIELD_BYTES, .at = 28, .width = 4, .how = KTX_VARY_COUNTER };

	t = make(&arp, &bytes, 1);
	ktx_template_free(t);
	cut.length = 36;
	assert_int_equal(try_make(&t, &cut, &port, 1, false, &err), -EBADMSG);
	cut.length = 0;
	assert_int_equal(try_make(&t, &cut, &port, 1, false, &err), -EINVAL);
}

TEST(options_of_other_sizes)
{
	struct made made = frame_of(AF_INET, 17, 8);
	struct ktx_template_options o = KTX_TEMPLATE_OPTIONS_INIT;
	struct {
		struct ktx_vary field;
		uint64_t newer;
	} wide[2] = { { .field = { .field = KTX_FIELD_TTL, .how = KTX_VARY_COUNTER } },
		      { .field = { .field = KTX_FIELD_TOS, .how = KTX_VARY_COUNTER } } };
	struct ktrxer_error err;
	struct ktx_template *t;

	o.frame = made.frame;
	o.length = made.length;
	o.link = made.link;
	o.fields = &wide[0].field;
	o.field_size = sizeof wide[0];
	o.field_count = 2;
	assert_int_equal(ktx_template_new(&t, &o, &err), 0);
	ktx_template_free(t);
	wide[1].newer = 1;
	assert_int_equal(ktx_template_new(&t, &o, &err), -E2BIG);
	o.field_size = 8;
	assert_int_equal(ktx_template_new(&t, &o, &err), -EINVAL);
	o.size = 4;
	assert_int_equal(ktx_template_new(&t, &o, &err), -EINVAL);
}
