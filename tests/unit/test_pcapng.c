/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bytes.h"
#include "cm.h"
#include "pcapng.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/* A file in memory. */
struct image {
	uint8_t bytes[4096];
	size_t length;
	bool big;
};

static void put32(struct image *m, uint32_t v)
{
	uint8_t *p = m->bytes + m->length;

	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (m->big ? 24 - 8 * i : 8 * i));
	m->length += 4;
}

static void put16(struct image *m, uint32_t v)
{
	uint8_t *p = m->bytes + m->length;

	p[m->big ? 0 : 1] = (uint8_t)(v >> 8);
	p[m->big ? 1 : 0] = (uint8_t)v;
	m->length += 2;
}

static void put(struct image *m, const void *data, size_t n)
{
	memcpy(m->bytes + m->length, data, n);
	m->length += n;
}

static struct ktrxer_capture *capture_of(const struct image *m, size_t length)
{
	struct ktrxer_capture *capture = NULL;
	struct ktrxer_error err;
	FILE *stream = length ? fmemopen((void *)(uintptr_t)m->bytes, length, "rb") : fopen("/dev/null", "rb");
	int ret;

	assert_non_null(stream);
	ret = ktrxer_capture_stream(&capture, stream, "test", &err);
	assert_true(ret == 0 || (ret == -EBADMSG && !capture));
	return capture;
}

TEST(reads_every_pcap)
{
	static const struct {
		uint32_t magic;
		int64_t want;
		int extra;
	} cases[] = {
		{ 0xa1b2c3d4, 1600000000123456000, 0 },
		{ 0xa1b23c4d, 1600000000000123456, 0 },
		{ 0xa1b2cd34, 1600000000123456000, 8 },
	};

	for (int big = 0; big < 2; big++) {
		for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
			struct image m = { .big = big };
			struct ktrxer_capture_packet p;
			struct ktrxer_capture *c;
			size_t whole;

			put32(&m, cases[i].magic);
			put16(&m, 2);
			put16(&m, 4);
			put32(&m, 0);
			put32(&m, 0);
			put32(&m, 65535);
			put32(&m, 101);
			for (int n = 0; n < 2; n++) {
				put32(&m, 1600000000);
				put32(&m, 123456);
				put32(&m, 5);
				put32(&m, 60);
				put(&m, "xxxxxxxx", (size_t)cases[i].extra);
				put(&m, "hello", 5);
			}
			whole = m.length;
			c = capture_of(&m, whole);
			assert_non_null(c);
			for (int n = 0; n < 2; n++) {
				assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
				assert_int_equal(p.length, 5);
				assert_int_equal(p.original_length, 60);
				assert_memory_equal(p.data, "hello", 5);
				assert_true(p.has_time);
				assert_int_equal(p.time_ns, cases[i].want);
				assert_int_equal(p.linktype, 101);
			}
			assert_int_equal(ktrxer_capture_next(c, &p, NULL), 0);
			ktrxer_capture_close(c);

			/* Cut anywhere: as many packets as are whole, then an error unless the cut is between two. */
			for (size_t n = 0; n < whole; n++) {
				size_t record = 21 + (size_t)cases[i].extra;
				int ret, packets = 0;

				c = capture_of(&m, n);
				assert_true(!c == (n < 24));
				if (!c)
					continue;
				while ((ret = ktrxer_capture_next(c, &p, NULL)) == 1)
					packets++;
				assert_int_equal(packets, (n - 24) / record);
				assert_int_equal(ret, (n - 24) % record ? -EBADMSG : 0);
				ktrxer_capture_close(c);
			}
		}
	}
}

static void put_section(struct image *m)
{
	put(m, "\x0a\x0d\x0d\x0a", 4);
	put32(m, 28);
	put32(m, 0x1a2b3c4d);
	put16(m, 1);
	put16(m, 0);
	put32(m, UINT32_MAX);
	put32(m, UINT32_MAX);
	put32(m, 28);
}

/* offset: seconds; resolution as in the file */
static void put_interface(struct image *m, uint32_t linktype, uint32_t snap, uint8_t resolution, int64_t offset)
{
	uint64_t o = (uint64_t)offset;

	put32(m, 1);
	put32(m, 40);
	put16(m, linktype);
	put16(m, 0);
	put32(m, snap);
	put16(m, 9);
	put16(m, 1);
	put(m, &resolution, 1);
	put(m, "\0\0\0", 3);
	put16(m, 14);
	put16(m, 8);
	put32(m, (uint32_t)(m->big ? o >> 32 : o));
	put32(m, (uint32_t)(m->big ? o : o >> 32));
	put32(m, 40);
}

static void put_packet(struct image *m, uint32_t interface, uint64_t ticks)
{
	put32(m, 6);
	put32(m, 40);
	put32(m, interface);
	put32(m, (uint32_t)(ticks >> 32));
	put32(m, (uint32_t)ticks);
	put32(m, 5);
	put32(m, 99);
	put(m, "world\0\0\0", 8);
	put32(m, 40);
}

TEST(reads_every_pcapng)
{
	for (int big = 0; big < 2; big++) {
		struct image m = { .big = big };
		struct ktrxer_capture_packet p;
		struct ktrxer_capture *c;

		put_section(&m);
		put32(&m, 0x12345678); /* a block of an unknown type */
		put32(&m, 16);
		put32(&m, 0);
		put32(&m, 16);
		put_interface(&m, 1, 4, 6, 0);
		put_interface(&m, 101, 0, 9, -5);
		put_packet(&m, 1, 7000000001);
		put_packet(&m, 0, 7000001);
		put32(&m, 3); /* simple */
		put32(&m, 20);
		put32(&m, 9);
		put(&m, "four", 4);
		put32(&m, 20);
		put32(&m, 2); /* obsolete packet block */
		put32(&m, 40);
		put16(&m, 1);
		put16(&m, 77);
		put32(&m, 0);
		put32(&m, 8);
		put32(&m, 5);
		put32(&m, 6);
		put(&m, "world\0\0\0", 8);
		put32(&m, 40);
		m.big = !m.big; /* a section in the other order, with its own interfaces */
		put_section(&m);
		put_interface(&m, 113, 0, 0x80 | 10, 1);
		put_packet(&m, 0, 1024 + 512);

		c = capture_of(&m, m.length);
		assert_non_null(c);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		assert_int_equal(p.linktype, 101);
		assert_int_equal(p.time_ns, 2000000001);
		assert_int_equal(p.length, 5);
		assert_int_equal(p.original_length, 99);
		assert_memory_equal(p.data, "world", 5);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		assert_int_equal(p.linktype, 1);
		assert_int_equal(p.time_ns, 7000001000);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		assert_int_equal(p.length, 4);
		assert_int_equal(p.original_length, 9);
		assert_false(p.has_time);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		assert_int_equal(p.interface, 1);
		assert_int_equal(p.time_ns, -4999999992);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		assert_int_equal(p.linktype, 113);
		assert_int_equal(p.time_ns, 2500000000);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 0);
		ktrxer_capture_close(c);

		for (size_t n = 0; n < m.length; n++) {
			c = capture_of(&m, n);
			while (c && ktrxer_capture_next(c, &p, NULL) == 1)
				;
			ktrxer_capture_close(c);
		}
	}
}

TEST(keeps_to_64_bits)
{
	static const struct {
		uint8_t resolution;
		uint64_t ticks;
		int64_t offset, want;
		bool has_time;
	} cases[] = {
		{ 0, 1600000000, 0, 1600000000000000000, true },
		{ 0, UINT64_MAX, 0, 0, false },
		{ 9, UINT64_MAX, 0, 0, false },
		{ 9, INT64_MAX, 0, INT64_MAX, true },
		{ 9, INT64_MAX, 1, 0, false },
		{ 9, 5, INT64_MAX, 0, false },
		{ 9, 5, INT64_MIN, 0, false },
		{ 12, 1234567890123, 0, 1234567890, true },
		{ 19, UINT64_MAX, 0, 1844674407, true },
		{ 20, UINT64_MAX, 0, 184467440, true },
		{ 28, UINT64_MAX, 0, 1, true },
		{ 29, UINT64_MAX, 0, 0, true },
		{ 127, UINT64_MAX, 0, 0, true },
		{ 0x80, 3, 0, 3000000000, true },
		{ 0x80 | 32, 0x180000000, 0, 1500000000, true },
		{ 0x80 | 34, 0x600000000, 0, 1500000000, true },
		{ 0x80 | 40, 0x18000000000, 0, 1500000000, true },
		{ 0x80 | 63, UINT64_MAX, 0, 1999999999, true },
		{ 0x80 | 64, UINT64_MAX, 0, 999999999, true },
		{ 0x80 | 65, UINT64_MAX, 0, 499999999, true },
		{ 0x80 | 127, UINT64_MAX, 0, 0, true },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct image m = { .big = false };
		struct ktrxer_capture_packet p;
		struct ktrxer_capture *c;

		put_section(&m);
		put_interface(&m, 1, 0, cases[i].resolution, cases[i].offset);
		put_packet(&m, 0, cases[i].ticks);
		c = capture_of(&m, m.length);
		assert_non_null(c);
		assert_int_equal(ktrxer_capture_next(c, &p, NULL), 1);
		if (p.has_time != cases[i].has_time || p.time_ns != cases[i].want)
			fail_msg("case %zu: %lld, not %lld", i, (long long)p.time_ns, (long long)cases[i].want);
		ktrxer_capture_close(c);
	}
}

TEST(refuses_lies)
{
	/* Each lie: 4 bytes at an offset of a good file. */
	static const struct {
		size_t at;
		uint32_t value;
		const char *reason;
	} cases[] = {
		{ 0, 0x0badf00d, NULL },
		{ 4, 24, NULL },
		{ 4, 29, NULL },
		{ 4, 0x7ffffffc, NULL },
		{ 8, 0x1a2b3c4e, NULL },
		{ 12, 2, NULL },
		{ 24, 32, NULL },
		{ 32, 0xfffffffc, "block of impossible length" },
		{ 32, 8, "block of impossible length" },
		{ 32, 45, "block of impossible length" },
		{ 32, 12, "two lengths differ" },
		{ 44, 0xffff0009, "option that is longer" },
		{ 64, 44, "two lengths differ" },
		{ 76, 1, "was not described" },
		{ 88, 8, "" }, /* more of its block than there was: no reader can see that */
		{ 88, 0x00100000, "impossible length" },
		{ 88, 9, "longer than its block" },
		{ 104, 44, "two lengths differ" },
	};
	struct image good = { .big = false };

	put_section(&good);
	put_interface(&good, 1, 0, 9, 0);
	put_packet(&good, 0, 1);
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct image m = good;
		size_t length = m.length;
		struct ktrxer_capture_packet p;
		struct ktrxer_error err = { 0 };
		struct ktrxer_capture *c;

		m.length = cases[i].at;
		put32(&m, cases[i].value);
		c = capture_of(&m, length);
		assert_true(!c == !cases[i].reason);
		if (!c)
			continue;
		assert_int_equal(ktrxer_capture_next(c, &p, &err), cases[i].reason[0] ? -EBADMSG : 1);
		if (!strstr(err.text, cases[i].reason))
			fail_msg("case %zu: says \"%s\"", i, err.text);
		ktrxer_capture_close(c);
	}
	assert_null(capture_of(&good, 0));
}

TEST(reads_back_what_it_wrote)
{
	char path[] = "/tmp/ktrxer-test-pcapng-XXXXXX";
	uint8_t data[1600];
	struct krx_packet packet = { .data = data };
	struct ktrxer_capture_packet p;
	struct ktrxer_pcapng *file;
	struct ktrxer_capture *c;
	struct ktrxer_error err;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)i;
	assert_int_equal(ktrxer_pcapng_create(&file, path, "ktrxer test", "a comment", &err), 0);
	assert_int_equal(ktrxer_pcapng_interface(file, "veth0", NULL, KTRXER_LINK_ETHERNET, 0), 0);
	assert_int_equal(ktrxer_pcapng_interface(file, "tun0", "stamps of the NIC's own clock", KTRXER_LINK_RAW_IP, 96),
			 1);
	for (uint32_t i = 0; i < 1500; i++) {
		packet.length = i;
		packet.original_length = i + 3;
		packet.raw_ns = 1763719897123456789 + i;
		packet.direction = (uint8_t)(i % 6);
		assert_int_equal(ktrxer_pcapng_packet(file, (int)(i % 2), &packet, i % 3 ? NULL : "because"), 0);
	}
	assert_int_equal(ktrxer_pcapng_packet(file, 2, &packet, NULL), -EINVAL);
	assert_int_equal(ktrxer_pcapng_statistics(file, 0,
						  &(struct ktrxer_pcapng_stats){ .lost = 7, .delivered = 1500 }),
			 0);
	assert_int_equal(ktrxer_pcapng_close(file, &err), 0);

	assert_int_equal(ktrxer_capture_open(&c, path, &err), 0);
	for (uint32_t i = 0; i < 1500; i++) {
		assert_int_equal(ktrxer_capture_next(c, &p, &err), 1);
		assert_int_equal(p.length, i);
		assert_int_equal(p.original_length, i + 3);
		assert_int_equal(p.time_ns, 1763719897123456789 + i);
		assert_int_equal(p.interface, i % 2);
		assert_int_equal(p.linktype, i % 2 ? 101 : 1);
		if (i)
			assert_memory_equal(p.data, data, i);
	}
	assert_int_equal(ktrxer_capture_next(c, &p, &err), 0);
	ktrxer_capture_close(c);
	unlink(path);
}

TEST(reports_when_nothing_can_be_written)
{
	struct ktrxer_pcapng *file;
	struct ktrxer_capture *c;
	struct ktrxer_error err;

	assert_int_equal(ktrxer_pcapng_create(&file, "/nonexistent/x.pcapng", NULL, NULL, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/x.pcapng: cannot be written"));
	assert_int_equal(ktrxer_capture_open(&c, "/nonexistent/x.pcapng", &err), -ENOENT);
	if (access("/dev/full", W_OK) == 0) {
		assert_int_equal(ktrxer_pcapng_create(&file, "/dev/full", NULL, NULL, &err), -ENOSPC);
		assert_non_null(strstr(err.text, "not everything could be written"));
	}
}

enum { STACK = 64 << 10 };

/*
 * How many zero bytes lie in the part of the stack that the next function called will use; `paint` sets all of them to
 * another value.
 */
static __attribute__((noinline)) size_t stack_zeros(bool paint)
{
	volatile uint8_t stack[STACK];
	size_t zeros = 0;

	for (size_t i = 0; paint && i < sizeof stack; i++)
		stack[i] = 0xa5;
	for (size_t i = 0; i < sizeof stack; i++)
		zeros += stack[i] == 0;
	return zeros;
}

/* The room for a block is 12.8 KB: to clear it takes 17 times the instructions of the rest. */
TEST(a_packet_does_not_clear_the_room_for_a_block)
{
	const uint8_t data[64] = { 1 };
	const struct krx_packet packet = { .data = data,
					   .length = sizeof data,
					   .original_length = sizeof data,
					   .raw_ns = 1,
					   .clock = KTRXER_CLOCK_REALTIME };
	struct ktrxer_pcapng *file;

	assert_int_equal(ktrxer_pcapng_create(&file, "/dev/null", "test", NULL, NULL), 0);
	assert_int_equal(ktrxer_pcapng_interface(file, "eth0", NULL, KTRXER_LINK_ETHERNET, 0), 0);
	assert_int_equal(ktrxer_pcapng_packet(file, 0, &packet, NULL), 0); /* all that is done once is done */
	assert_int_equal(stack_zeros(true), 0);
	assert_int_equal(ktrxer_pcapng_packet(file, 0, &packet, NULL), 0);
	assert_true(stack_zeros(false) < 4096);
	assert_int_equal(ktrxer_pcapng_close(file, NULL), 0);
}
