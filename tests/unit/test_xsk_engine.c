/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The xsk engine over a scripted socket: when buffers come back, which are dropped, which never return. Replaces
 * xsk_socket.c at link time. Copy mode's kernel works within the call; what it hands to the far end may be back before
 * the call returns.
 */
#include "cm.h"
#include "engine.h"
#include "xsk_socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 8, SPARES = 2, CHUNKS = SLOTS + SPARES, BACK = 2 * SLOTS };

static struct kernel {
	_Atomic uint32_t tx_producer, tx_consumer, tx_flags, back_producer, back_consumer;
	struct xdp_desc descs[SLOTS];
	uint64_t back[BACK];
	uint8_t memory[CHUNKS * XSK_CHUNK_MIN];
	uint64_t held[CHUNKS], invalid;
	int held_count;
	bool zero_copy, takes_none; /* zero copy only */
	bool holds;                 /* gives nothing back until kernel_gives_back() */
	int drop_at;                /* the n-th frame from now on; < 0: none */
	int sent;
	bool open;
} kernel;

static void give_back(uint64_t address)
{
	assert_true(kernel.back_producer - kernel.back_consumer < BACK);
	kernel.back[kernel.back_producer++ % BACK] = address;
}

static void kernel_gives_back(void)
{
	while (kernel.held_count)
		give_back(kernel.held[--kernel.held_count]);
}

int ktrxer_xsk_socket_open(struct xsk_socket *xsk, const struct xsk_setup *setup, struct ktrxer_error *err)
{
	(void)err;
	assert_int_equal(setup->slots, SLOTS);
	assert_int_equal(setup->spares, SPARES);
	*xsk = (struct xsk_socket){
		.fd = -1,
		.zero_copy = kernel.zero_copy,
		.budget = 32,
		.memory = kernel.memory,
		.chunk = XSK_CHUNK_MIN,
		.slots = SLOTS,
		.chunks = CHUNKS,
		.colours = 2,
		.tx = { .producer = &kernel.tx_producer,
			.consumer = &kernel.tx_consumer,
			.flags = &kernel.tx_flags,
			.entries = kernel.descs,
			.mask = SLOTS - 1 },
		.completion = { .producer = &kernel.back_producer,
				.consumer = &kernel.back_consumer,
				.entries = kernel.back,
				.mask = BACK - 1 },
	};
	kernel.open = true;
	return 0;
}

void ktrxer_xsk_socket_close(struct xsk_socket *xsk)
{
	(void)xsk;
	kernel.open = false;
}

int ktrxer_xsk_socket_kick(void *context)
{
	(void)context;
	assert_true(kernel.tx_producer - kernel.tx_consumer <= SLOTS);
	if (kernel.takes_none)
		return -EAGAIN;
	while (kernel.tx_consumer != kernel.tx_producer) {
		const struct xdp_desc desc = kernel.descs[kernel.tx_consumer++ % SLOTS];

		if (desc.options) {
			kernel.invalid++;
			continue;
		}
		if (kernel.drop_at-- == 0) {
			give_back(desc.addr);
			return -EBUSY;
		}
		kernel.sent++;
		if (kernel.holds)
			kernel.held[kernel.held_count++] = desc.addr;
		else
			give_back(desc.addr);
	}
	return 0;
}

int ktrxer_xsk_socket_invalid(void *context, uint64_t *count)
{
	(void)context;
	*count = kernel.invalid;
	return 0;
}

extern const struct ktx_engine ktx_engine_xsk;
static const struct ktx_engine *const engine = &ktx_engine_xsk;
static struct ktx_engine_state *state;
static struct ktx_request requests[SLOTS], *batch[SLOTS];
static const struct ktx_completions no_completions;

static void engine_new(bool zero_copy)
{
	static const struct ktx_options options = { .size = sizeof options, .purpose = KTX_FOR_RATE };
	static const struct ktrxer_device device = { .name = "test", .link = KTRXER_LINK_ETHERNET };
	const struct ktx_engine_setup setup = {
		.options = &options, .device = &device, .frame_size = 100, .slots = SLOTS
	};
	struct ktrxer_error err;

	memset(&kernel, 0, sizeof kernel);
	kernel.zero_copy = zero_copy;
	kernel.drop_at = -1;
	kernel.tx_flags = XDP_RING_NEED_WAKEUP;
	assert_int_equal(engine->open(&state, &setup, &err), 0);
	for (uint32_t i = 0; i < SLOTS; i++) {
		requests[i] = (struct ktx_request){ .frame = engine->memory(state, i), .length = 60 };
		batch[i] = &requests[i];
	}
}

static int send_from(int first, int count)
{
	return engine->submit->send(state, batch + first, count);
}

static int busy_count(void)
{
	int n = 0;

	for (int i = 0; i < SLOTS; i++)
		n += requests[i].buffer_busy;
	return n;
}

/* --------------------------------------------------------------------------------------------------------- tests */

/* The far end was quicker than the call, which ended with a dropped frame: those back already are as final as any. */
TEST(what_is_back_before_a_drop_is_reported_is_not_waited_for)
{
	for (int at = 0; at < SLOTS; at++) {
		engine_new(false);
		kernel.drop_at = at;
		assert_int_equal(send_from(0, SLOTS), at ? at : -ENOBUFS);
		engine->submit->reap(state, &no_completions);
		assert_int_equal(busy_count(), 0);
		/* the dropped one and those after it go with the next calls */
		for (int next = at, n; next < SLOTS; next += n) {
			n = send_from(next, SLOTS - next);
			assert_true(n > 0);
		}
		engine->submit->reap(state, &no_completions);
		assert_int_equal(busy_count(), 0);
		assert_int_equal(kernel.sent, SLOTS);
		engine->close(state);
	}
}

TEST(what_is_not_back_when_a_drop_is_reported_is_waited_for)
{
	engine_new(false);
	kernel.holds = true;
	kernel.drop_at = 5;
	assert_int_equal(send_from(0, SLOTS), 5);
	engine->submit->reap(state, &no_completions);
	assert_int_equal(busy_count(), 5);
	kernel_gives_back();
	engine->submit->reap(state, &no_completions);
	assert_int_equal(busy_count(), 0);
	engine->close(state);
}

TEST(a_frame_that_never_returns_is_replaced_and_left_alone)
{
	engine_new(false);
	uint8_t *const kept = requests[3].frame;

	memset(kept, 0x5a, 100);
	kernel.holds = true;
	assert_int_equal(send_from(3, 1), 1);
	/* the kernel took it */
	assert_int_equal(engine->submit->give_up(state, &requests[3]), 0);
	assert_false(requests[3].buffer_busy);
	assert_ptr_not_equal(requests[3].frame, kept);
	assert_memory_equal(requests[3].frame, kept, 100);
	/* the request goes on with its new frame, whatever comes back of the old one */
	assert_int_equal(send_from(3, 1), 1);
	assert_true(requests[3].buffer_busy);
	give_back((uint64_t)(kept - kernel.memory));
	engine->submit->reap(state, &no_completions);
	assert_true(requests[3].buffer_busy);
	give_back((uint64_t)(requests[3].frame - kernel.memory));
	engine->submit->reap(state, &no_completions);
	assert_false(requests[3].buffer_busy);
	engine->close(state);
}

TEST(the_last_look_finds_what_came_back_meanwhile)
{
	engine_new(false);
	uint8_t *const frame = requests[0].frame;

	assert_int_equal(send_from(0, 1), 1);
	assert_true(requests[0].buffer_busy);
	assert_int_equal(engine->submit->give_up(state, &requests[0]), 0);
	assert_false(requests[0].buffer_busy);
	assert_ptr_equal(requests[0].frame, frame);
	engine->close(state);
}

/* As often as the kernel gives late what was given up, there are spares again. */
TEST(late_returns_are_spares_again)
{
	engine_new(false);
	kernel.holds = true;
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < SPARES; i++) {
			assert_int_equal(send_from(i, 1), 1);
			assert_int_equal(engine->submit->give_up(state, &requests[i]), 0);
		}
		kernel_gives_back();
		assert_int_equal(send_from(SLOTS - 1, 1), 1); /* reap takes a look while something is out */
		engine->submit->reap(state, &no_completions);
		kernel_gives_back();
		engine->submit->reap(state, &no_completions);
		assert_int_equal(busy_count(), 0);
		for (int i = 0; i < SLOTS; i++)
			for (int k = 0; k < i; k++)
				assert_ptr_not_equal(requests[i].frame, requests[k].frame);
	}
	engine->close(state);
}

TEST(a_kernel_that_keeps_all_ends_the_socket_not_the_accounts)
{
	engine_new(false);
	kernel.holds = true;
	assert_int_equal(send_from(0, SLOTS), SLOTS);
	for (int i = 0; i < SLOTS; i++) {
		assert_int_equal(engine->submit->give_up(state, &requests[i]), 0);
		assert_false(requests[i].buffer_busy);
	}
	assert_int_equal(send_from(0, 1), -EIO);
	engine->close(state);
}

TEST(what_the_driver_never_took_has_failed)
{
	engine_new(true);
	kernel.takes_none = true;
	assert_int_equal(send_from(0, SLOTS), SLOTS);
	assert_int_equal(engine->submit->give_up(state, &requests[0]), -EIO);
	assert_false(requests[0].buffer_busy);
	/* its descriptor lies in the ring still: no room for one more */
	assert_int_equal(send_from(0, 1), -EAGAIN);
	kernel.takes_none = false;
	engine->submit->reap(state, &no_completions); /* kicks */
	engine->submit->reap(state, &no_completions);
	assert_int_equal(busy_count(), 0);
	assert_int_equal(send_from(0, 1), 1);
	engine->close(state);
}
