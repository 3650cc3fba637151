/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A 32-bit program that speaks to /dev/ktx and /dev/krx of a 64-bit kernel: sends three frames on one end of a veth
 * pair, captures them at the other, and compares. No C library: none for 32 bits is needed where it is built, and none
 * where it runs. Exits with the number of the line that failed, cut to 8 bits; 0: all is well.
 */
#include <linux/ktrxer.h>

enum { OPEN = 5, IOCTL = 54, POLL = 168, MMAP2 = 192, EXIT = 1, O_RDWR_ = 2, SHARED_RW = 3, FRAME = 60, COUNT = 3 };

static long call(long number, long a, long b, long c, long d, long e)
{
	long result;

	/*
	 * mmap2 has a sixth argument, the offset in pages, which is 0 here: in ebp, which the compiler does not give
	 * away.
	 */
	__asm__ volatile("push %%ebp; xor %%ebp, %%ebp; int $0x80; pop %%ebp"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
			 : "memory");
	return result;
}

#define CHECK(what) do { if (!(what)) call(EXIT, __LINE__ & 255 ? __LINE__ & 255 : 1, 0, 0, 0, 0); } while (0)

/* The layout in a 64-bit program. */
_Static_assert(sizeof(void *) == 4, "built for 32 bits");
_Static_assert(sizeof(struct ktrxer_tx_setup) == 96 && sizeof(struct ktrxer_tx_slot) == 32 &&
		       sizeof(struct ktrxer_tx_report) == 48,
	       "as in 64 bits");
_Static_assert(sizeof(struct ktrxer_tx_kick) == 24 && sizeof(struct ktrxer_tx_ring) == 384 &&
		       sizeof(struct ktrxer_rx_setup) == 48,
	       "as in 64 bits");
_Static_assert(sizeof(struct ktrxer_rx_rules) == 24 && sizeof(struct ktrxer_rx_stats) == 40 &&
		       sizeof(struct ktrxer_rx_record) == 48,
	       "as in 64 bits");

static unsigned int number_of(const char *text)
{
	unsigned int number = 0;

	while (*text)
		number = number * 10 + (unsigned int)(*text++ - '0');
	return number;
}

static void frame_make(volatile unsigned char *frame, unsigned int number)
{
	unsigned int i;

	for (i = 0; i < FRAME; i++)
		frame[i] = (unsigned char)(i < 6 ? 0xff : i + number);
	frame[12] = 0x88;
	frame[13] = 0xb5;
}

static void work(const char *from, const char *to)
{
	static struct ktrxer_tx_setup tx = { .size = sizeof(tx),
					     .slots = 8,
					     .frame_size = FRAME,
					     .queue = KTRXER_TX_ANY_QUEUE,
					     .cpu = KTRXER_TX_ANY_CPU,
					     .clock = 1, /* CLOCK_MONOTONIC */
					     .late_ns = 1000000000,
					     .retry_ns = 1000000 };
	static struct ktrxer_rx_setup rx = { .size = sizeof(rx), .hook = KTRXER_RX_INGRESS, .ring_bytes = 65536 };
	static struct ktrxer_rx_rule rule = { .op = KTRXER_RX_CAPTURE_DROP };
	static struct ktrxer_rx_rules rules = { .size = sizeof(rules), .count = 1, .rule_size = sizeof(rule) };
	static struct ktrxer_rx_stats stats = { .size = sizeof(stats), .count = 1 };
	static struct ktrxer_tx_kick kick = { .size = sizeof(kick) };
	static struct ktrxer_version version;
	static unsigned long long matched;
	const long ktx = call(OPEN, (long)"/dev/ktx", O_RDWR_, 0, 0, 0),
		   krx = call(OPEN, (long)"/dev/krx", O_RDWR_, 0, 0, 0);
	volatile unsigned char *out, *in;
	unsigned int i, j, at = 0;

	CHECK(ktx >= 0);
	CHECK(krx >= 0);
	CHECK(call(IOCTL, ktx, (long)KTRXER_IOC_VERSION, (long)&version, 0, 0) == 0 && version.magic == KTRXER_MAGIC);
	version.magic = 0;
	CHECK(call(IOCTL, krx, (long)KTRXER_IOC_VERSION, (long)&version, 0, 0) == 0 && version.magic == KTRXER_MAGIC);
	tx.ifindex = number_of(from);
	rx.ifindex = number_of(to);
	CHECK(call(IOCTL, ktx, (long)KTRXER_TX_SETUP, (long)&tx, 0, 0) == 0);
	CHECK(call(IOCTL, krx, (long)KTRXER_RX_SETUP, (long)&rx, 0, 0) == 0);
	rules.rules = (unsigned long)&rule;
	CHECK(call(IOCTL, krx, (long)KTRXER_RX_RULES, (long)&rules, 0, 0) == 0);
	out = (void *)call(MMAP2, 0, (long)tx.map_size, SHARED_RW, 1, ktx);
	in = (void *)call(MMAP2, 0, (long)rx.map_bytes, SHARED_RW, 1, krx);
	CHECK((unsigned long)out < -4096UL && (unsigned long)in < -4096UL);
	for (i = 0; i < COUNT; i++) {
		volatile struct ktrxer_tx_slot *slot = (volatile void *)(out + tx.slots_offset + i * sizeof(*slot));

		frame_make(out + tx.frames_offset + i * tx.frame_stride, i);
		slot->at_ns = i; /* 0: at once; the others are long past */
		slot->length = FRAME;
		slot->flags = 0;
	}
	((volatile struct ktrxer_tx_ring *)out)->head = COUNT;
	CHECK(call(IOCTL, ktx, (long)KTRXER_TX_KICK, (long)&kick, 0, 0) == 0);
	for (i = 0; i < 200 && ((volatile struct ktrxer_tx_ring *)out)->tail != COUNT; i++)
		call(POLL, 0, 0, 5, 0, 0);
	for (i = 0; i < COUNT; i++) {
		volatile struct ktrxer_tx_report *report =
			(volatile void *)(out + tx.reports_offset + i * sizeof(*report));

		CHECK(report->status == KTRXER_TX_SENT && report->error == 0 && report->planned_ns == i &&
		      report->sent_ns > 1000000);
	}
	for (i = 0; i < 200 && ((volatile struct ktrxer_rx_ring *)in)->head == 0; i++)
		call(POLL, 0, 0, 5, 0, 0);
	call(POLL, 0, 0, 20, 0, 0);
	for (i = 0; i < COUNT; i++) {
		volatile struct ktrxer_rx_record *record = (volatile void *)(in + rx.data_offset + at);
		unsigned char wanted[FRAME];

		CHECK(((volatile struct ktrxer_rx_ring *)in)->head > at);
		CHECK(record->kept == FRAME && record->length == FRAME && record->ifindex == rx.ifindex &&
		      record->mono_ns > 1000000);
		frame_make(wanted, i);
		for (j = 0; j < FRAME; j++)
			CHECK(record->data[j] == wanted[j]);
		at += record->size;
	}
	stats.matched = (unsigned long)&matched;
	CHECK(call(IOCTL, krx, (long)KTRXER_RX_STATS, (long)&stats, 0, 0) == 0);
	CHECK(matched == COUNT && stats.captured == COUNT && stats.lost == 0 && stats.count == 1);
	call(EXIT, 0, 0, 0, 0, 0);
}

__attribute__((used, noreturn)) static void begin(const long *stack)
{
	CHECK(stack[0] == 3);
	work((const char *)stack[2], (const char *)stack[3]);
	for (;;)
		;
}

__attribute__((naked)) void _start(void)
{
	__asm__("mov %esp, %eax; and $-16, %esp; sub $12, %esp; push %eax; call begin");
}
