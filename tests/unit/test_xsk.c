/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AF_XDP without a device: ring arithmetic, the layout of chunks, and copy mode against a scripted kernel that stops
 * where it likes, in the manner of an old one (its consumer index lags) and of a new one. Whatever it does, what
 * ktrxer_xsk_send() says went is what went, in order, once each, and nothing stays behind in the ring.
 */
#include "cm.h"
#include "xsk_send.h"
#include "xsk_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 64 };

/* --------------------------------------------------------------------------------------------- scripted kernel */

static struct kernel {
	_Atomic uint32_t producer, consumer, flags;
	struct xdp_desc descs[RING];
	uint32_t seen, next; /* cached producer and consumer, as net/xdp keeps them */
	uint64_t invalid;
	uint32_t budget;
	bool publishes_always;   /* 6.17 */
	bool one_invalid_a_call; /* 6.6 */
	uint32_t random;
	int busy_share, drop_share; /* of 256 */
	int refuse_from;            /* the n-th frame from now on: EAGAIN for ever; < 0: never */
	int down;                   /* negative errno after so many calls ... */
	int calls_until_down;       /* ... < 0: never */
	uint64_t sent[4096];
	int sent_count, dropped_count;
	uint64_t last_dropped;
	int calls;
} kernel;

static uint32_t roll(void)
{
	kernel.random = kernel.random * 1664525 + 1013904223;
	return kernel.random >> 24;
}

static bool kernel_peek(struct xdp_desc *desc, bool *invalid)
{
	*invalid = false;
	if (kernel.seen == kernel.next) {
		kernel.consumer = kernel.next;
		kernel.seen = kernel.producer;
	}
	while (kernel.seen != kernel.next) {
		*desc = kernel.descs[kernel.next % RING];
		if (desc->addr < (1 << 20) && desc->len && !desc->options)
			return true;
		kernel.invalid++;
		*invalid = true;
		if (kernel.one_invalid_a_call)
			return false;
		kernel.next++;
	}
	return false;
}

static int kernel_xmit(bool *sent_any)
{
	uint32_t budget = kernel.budget;
	struct xdp_desc desc;
	bool invalid;

	while (kernel_peek(&desc, &invalid)) {
		if (budget-- == 0)
			return -EAGAIN;
		if (kernel.refuse_from == 0 || (int)roll() < kernel.busy_share)
			return -EAGAIN;
		if (kernel.refuse_from > 0)
			kernel.refuse_from--;
		kernel.next++;
		if ((int)roll() < kernel.drop_share) {
			kernel.dropped_count++;
			kernel.last_dropped = desc.addr;
			return -EBUSY;
		}
		if (kernel.sent_count < 4096)
			kernel.sent[kernel.sent_count++] = desc.addr;
		*sent_any = true;
	}
	if (invalid && kernel.one_invalid_a_call)
		kernel.next++;
	return 0;
}

static int kernel_kick(void *context)
{
	bool sent_any = false;
	int rc;

	(void)context;
	kernel.calls++;
	if (kernel.calls_until_down == 0)
		return kernel.down;
	if (kernel.calls_until_down > 0)
		kernel.calls_until_down--;
	rc = kernel_xmit(&sent_any);
	if (sent_any && kernel.publishes_always)
		kernel.consumer = kernel.next;
	return rc;
}

static int kernel_invalid(void *context, uint64_t *count)
{
	(void)context;
	*count = kernel.invalid;
	return 0;
}

static struct xsk_ring ring;
static struct xsk_sender sender;

/* The indices begin shortly before they wrap. */
static void kernel_new(uint32_t budget, bool newer)
{
	const uint32_t start = UINT32_MAX - 40;

	kernel = (struct kernel){ .producer = start,
				  .consumer = start,
				  .seen = start,
				  .next = start,
				  .budget = budget,
				  .publishes_always = newer,
				  .one_invalid_a_call = newer,
				  .random = 1,
				  .refuse_from = -1,
				  .calls_until_down = -1 };
	ring = (struct xsk_ring){ .producer = &kernel.producer,
				  .consumer = &kernel.consumer,
				  .flags = &kernel.flags,
				  .entries = kernel.descs,
				  .mask = RING - 1,
				  .mine = start };
	sender = (struct xsk_sender){
		.tx = &ring, .kick = kernel_kick, .invalid = kernel_invalid, .batch = 64, .most = 64
	};
}

static uint32_t descs_make(struct xdp_desc descs[RING], uint64_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		descs[i] = (struct xdp_desc){ .addr = first + i, .len = 60 };
	return count;
}

/* --------------------------------------------------------------------------------------------------------- tests */

TEST(all_go_when_nothing_is_in_the_way)
{
	static const uint32_t budgets[] = { 16, 32, 64 };
	struct xdp_desc descs[RING];
	bool dropped;

	for (int newer = 0; newer <= 1; newer++)
		for (int b = 0; b < 3; b++) {
			kernel_new(budgets[b], newer);
			for (int i = 0; i < 40; i++) {
				assert_int_equal(ktrxer_xsk_send(&sender, descs,
								 descs_make(descs, (uint64_t)i * 64, 64), &dropped),
						 64);
				assert_false(dropped);
			}
			assert_int_equal(kernel.sent_count, 40 * 64);
			for (int i = 0; i < kernel.sent_count; i++)
				assert_int_equal(kernel.sent[i], i);
			assert_int_equal(kernel.invalid, 0);
			/* one call more than needed would cost its price for each batch */
			assert_true(kernel.calls <= 40 * 64 / (int)budgets[b]);
		}
}

TEST(a_refusal_leaves_nothing_behind)
{
	struct xdp_desc descs[RING];
	bool dropped;

	for (int newer = 0; newer <= 1; newer++)
		for (int from = 0; from < 64; from++) {
			kernel_new(32, newer);
			kernel.refuse_from = from;
			assert_int_equal(ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 64), &dropped),
					 from ? from : -EAGAIN);
			assert_int_equal(kernel.sent_count, from);
			assert_int_equal(xsk_ring_left(&ring), 0);
			assert_false(dropped);
			/* others may go in their stead, and only they do */
			kernel.refuse_from = -1;
			assert_true(ktrxer_xsk_send(&sender, descs, descs_make(descs, 1000, 1), &dropped) == 1);
			assert_int_equal(kernel.sent_count, from + 1);
			assert_int_equal(kernel.sent[from], 1000);
		}
}

TEST(whatever_the_kernel_does_the_accounts_are_exact)
{
	struct xdp_desc descs[RING];

	for (int round = 0; round < 4000; round++) {
		uint64_t next = 0;

		kernel_new(round % 3 ? 32 : 16, round & 1);
		kernel.random = (uint32_t)round * 2654435761u;
		kernel.busy_share = round % 7 * 12;
		kernel.drop_share = round % 5 * 12;
		for (int i = 0; i < 30 && next < 3000; i++) {
			const int before = kernel.sent_count, drops = kernel.dropped_count;
			bool dropped;
			int n = ktrxer_xsk_send(&sender, descs, descs_make(descs, next, 1 + (uint32_t)i * 7 % 64),
						&dropped);

			assert_int_equal(kernel.sent_count - before, n > 0 ? n : 0);
			assert_int_equal(kernel.dropped_count - drops, dropped);
			for (int k = 0; k < n; k++)
				assert_int_equal(kernel.sent[before + k], next + (uint64_t)k);
			if (dropped)
				assert_int_equal(kernel.last_dropped, next + (uint64_t)(n > 0 ? n : 0));
			if (n < 0)
				assert_int_equal(n, dropped ? -EBUSY : -EAGAIN);
			assert_int_equal(xsk_ring_left(&ring), 0);
			assert_int_equal(sender.lost, 0);
			next += n > 0 ? (uint64_t)n : 0;
		}
	}
}

TEST(a_lost_device_is_lost_for_good)
{
	static const int errors[] = { -ENETDOWN, -ENXIO };
	struct xdp_desc descs[RING];
	bool dropped;

	for (int newer = 0; newer <= 1; newer++)
		for (int e = 0; e < 2; e++)
			for (int after = 0; after < 4; after++) {
				kernel_new(16, newer);
				kernel.down = errors[e];
				kernel.calls_until_down = after;
				int n = ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 64), &dropped);

				if (after == 0)
					assert_int_equal(n, errors[e]);
				else if (newer)
					assert_int_equal(n, after == 4 ? 64 : after * 16);
				else
					assert_true(n <= kernel.sent_count);
				if (after < 4)
					assert_int_equal(sender.lost, errors[e]);
				const int sent = kernel.sent_count;

				/* down first, then removed */
				kernel.down = -ENXIO;
				assert_int_equal(ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 4), &dropped),
						 -ENXIO);
				kernel.calls_until_down = -1;
				assert_int_equal(ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 4), &dropped),
						 sender.lost);
				assert_int_equal(kernel.sent_count, sent);
			}
}

TEST(a_full_device_is_offered_less_then_more)
{
	struct xdp_desc descs[RING];
	bool dropped;

	kernel_new(32, true);
	kernel.refuse_from = 0;
	for (int i = 0; i < 10; i++)
		assert_int_equal(ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 64), &dropped), -EAGAIN);
	assert_int_equal(sender.batch, 1);
	kernel.refuse_from = -1;
	for (int i = 0; i < 7; i++)
		assert_int_equal(ktrxer_xsk_send(&sender, descs, descs_make(descs, 0, 64), &dropped), 1 << i);
	assert_int_equal(sender.batch, 64);
}

TEST(completions_are_read_across_the_wrap)
{
	_Atomic uint32_t producer = UINT32_MAX - 2, consumer = UINT32_MAX - 2;
	uint64_t entries[8];
	struct xsk_ring back = {
		.producer = &producer, .consumer = &consumer, .entries = entries, .mask = 7, .mine = UINT32_MAX - 2
	};

	assert_int_equal(xsk_ring_ready(&back), 0);
	for (uint64_t i = 0; i < 6; i++)
		entries[(uint32_t)(UINT32_MAX - 2 + i) & 7] = 100 + i;
	producer += 6;
	assert_int_equal(xsk_ring_ready(&back), 6);
	for (uint64_t i = 0; i < 6; i++)
		assert_int_equal(xsk_ring_take(&back), 100 + i);
	assert_int_equal(consumer, UINT32_MAX - 2);
	xsk_ring_give_back(&back);
	assert_int_equal(consumer, 3);
	assert_int_equal(xsk_ring_ready(&back), 0);
}

TEST(chunks_hold_their_frames)
{
	uint8_t *memory = calloc(4, XSK_CHUNK_MIN);
	struct xsk_socket xsk = { .memory = memory, .chunk = XSK_CHUNK_MIN, .slots = 4, .colours = 3 };

	assert_int_equal(ktrxer_xsk_chunk_size(0), 2048);
	assert_int_equal(ktrxer_xsk_chunk_size(1514), 2048);
	assert_int_equal(ktrxer_xsk_chunk_size(1984), 2048);
	assert_int_equal(ktrxer_xsk_chunk_size(1985), 4096);
	assert_int_equal(ktrxer_xsk_chunk_size(4032), 4096);
	assert_int_equal(ktrxer_xsk_chunk_size(4033), 0);
	assert_int_equal(ktrxer_xsk_chunk_size(UINT32_MAX), 0);
	assert_int_equal(sizeof(struct xsk_metadata),
			 24); /* what the kernel of 6.15 has; a multiple of 8 below 256 for all */
	for (uint32_t slot = 0; slot < 4; slot++) {
		uint64_t at = xsk_frame_offset(&xsk, slot);

		assert_int_equal(at, slot * 2048 + 64 + slot % 3 * 64);
		assert_int_equal(xsk_slot_of(&xsk, at), slot);
		assert_int_equal(xsk_slot_of(&xsk, at - sizeof(struct xsk_metadata)), slot);
		/* metadata ends where the frame begins: the kernel looks there */
		assert_ptr_equal((uint8_t *)(xsk_metadata_at(&xsk, slot) + 1), memory + at);
	}
	/* no colour takes a frame past the end of its chunk, and no line is left unused */
	for (uint32_t size = 0; size <= XSK_FRAME_MAX; size++) {
		const uint32_t chunk = ktrxer_xsk_chunk_size(size),
			       end = XSK_HEADROOM + (ktrxer_xsk_chunk_colours(chunk, size) - 1) * XSK_LINE + size;

		assert_true(end <= chunk && end + XSK_LINE > chunk);
	}
	/* an address that is none of ours */
	assert_true(xsk_slot_of(&xsk, UINT64_MAX) >= xsk.slots);
	assert_true(xsk_slot_of(&xsk, 4 * 2048) >= xsk.slots);
	free(memory);
}
