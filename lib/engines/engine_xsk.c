/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AF_XDP. The tool writes its frames into memory that the device's queue reads from; there is no skb in zero-copy mode,
 * and a short way for it in copy mode (no socket per frame, no address, no qdisc). The completion ring returns a frame
 * when its buffer is free, which does not mean that it was sent: there is no time stamp, except where the NIC took one.
 */
#include "clock.h"
#include "engine.h"
#include "xsk_send.h"
#include "xsk_socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The drivers' own interrupts come about as often. */
#define REAP_NS 50000
/* The time between two looks for the device while completions are awaited. */
#define LOOK_NS (10 * 1000 * 1000)
/* Frames that take the place of those the kernel does not give back: that many losses are borne. */
#define SPARES_MAX 256
/* Frames that a driver had when the device was removed come back within this time, or never. */
#define LOST_WAIT_NS KTX_STAMP_WAIT_NS

struct ktx_engine_state {
	struct xsk_socket xsk;
	struct xsk_sender sender;
	struct ktx_request **busy;     /* by chunk: submitted, not yet back */
	uint32_t out;                  /* how many these are */
	struct ktx_request given_up;   /* stands in `busy` for a request that ended before its frame was back */
	uint32_t *spares, spare_count; /* chunks that are no request's */
	uint32_t frame_size;
	bool stamps;
	uint64_t looked_ns, lost_ns;
};

static struct xsk_setup setup_of(const struct ktrxer_device *device)
{
	return (struct xsk_setup){ .device = device->name, .index = device->index };
}

static int link_check(const struct ktrxer_device *device, struct ktrxer_error *err)
{
	if (device->link == KTRXER_LINK_ETHERNET)
		return 0;
	return ktrxer_fail(err, -EOPNOTSUPP,
			   "'%s' has no Ethernet header, AF_XDP sends nothing else: use the packet engine",
			   device->name);
}

static uint32_t features_of(const struct xsk_socket *xsk)
{
	return KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_MAPPED | KTX_CAN_BYPASS |
	       (xsk->zero_copy ? KTX_CAN_ZERO_COPY : 0);
}

static int xsk_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	struct ktrxer_error err = { 0 };
	struct xsk_socket xsk;
	struct xsk_setup setup;
	int rc;

	if (!device) {
		snprintf(info->reason, sizeof info->reason, "needs a device: name one (`ip link` lists them)");
		return -ENODEV;
	}
	setup = setup_of(device);
	setup.slots = 2;
	rc = link_check(device, &err);
	if (rc == 0)
		rc = ktrxer_xsk_socket_open(&xsk, &setup, &err);
	if (rc < 0) {
		memcpy(info->reason, err.text, sizeof info->reason);
		return rc;
	}
	info->features = features_of(&xsk);
	ktrxer_xsk_socket_close(&xsk);
	return 0;
}

static int xsk_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	struct xsk_setup socket_setup = setup_of(setup->device);
	int rc = -ENOMEM;

	if (!state)
		return ktrxer_fail(err, rc, "no memory for the xsk engine");
	socket_setup.slots = setup->slots;
	socket_setup.queue = setup->options->queue;
	socket_setup.spares = setup->slots < 4 * SPARES_MAX ? setup->slots / 4 : SPARES_MAX;
	state->busy = calloc(setup->slots + socket_setup.spares, sizeof *state->busy);
	/* never of no size, which may be NULL */
	state->spares = calloc(socket_setup.spares + 1, sizeof *state->spares);
	rc = -ENOMEM;
	if (!state->busy || !state->spares) {
		ktrxer_fail(err, rc, "no memory for the xsk engine's %u slots", setup->slots);
		goto free_arrays;
	}
	socket_setup.frame_size = state->frame_size = setup->frame_size;
	socket_setup.metadata = setup->options->purpose == KTX_FOR_TIMING && !(setup->options->flags & KTX_NO_STAMPS);
	rc = link_check(setup->device, err);
	if (rc == 0)
		rc = ktrxer_xsk_socket_open(&state->xsk, &socket_setup, err);
	if (rc < 0)
		goto free_arrays;
	for (; state->spare_count < socket_setup.spares; state->spare_count++)
		state->spares[state->spare_count] = setup->slots + state->spare_count;
	/* In copy mode the "stamp" is when the kernel freed its copy, sent or not: docs/decisions/0006-engines.md. */
	state->stamps = state->xsk.zero_copy && state->xsk.metadata;
	state->sender = (struct xsk_sender){ .tx = &state->xsk.tx,
					     .kick = ktrxer_xsk_socket_kick,
					     .invalid = ktrxer_xsk_socket_invalid,
					     .context = &state->xsk,
					     .batch = state->xsk.budget,
					     .most = state->xsk.budget };
	if (state->sender.most > setup->slots)
		state->sender.batch = state->sender.most = setup->slots;
	*out = state;
	return 0;

free_arrays:
	free(state->spares);
	free(state->busy);
	free(state);
	return rc;
}

static void xsk_close(struct ktx_engine_state *state)
{
	ktrxer_xsk_socket_close(&state->xsk);
	free(state->spares);
	free(state->busy);
	free(state);
}

static uint32_t xsk_features(const struct ktx_engine_state *state)
{
	return features_of(&state->xsk);
}

static uint8_t *xsk_memory(struct ktx_engine_state *state, uint32_t slot)
{
	return state->xsk.memory + xsk_frame_offset(&state->xsk, slot);
}

static int xsk_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	(void)state;
	(void)frame;
	(void)length;
	(void)err;
	return 0; /* the transmitter has seen to the length; any Ethernet frame goes */
}

static uint64_t offset_of(const struct ktx_engine_state *state, const struct ktx_request *request)
{
	return (uint64_t)(request->frame - state->xsk.memory);
}

static void request_back(struct ktx_engine_state *state, uint32_t slot)
{
	struct ktx_request *request = state->busy[slot];

	/* A dropped frame comes back, too, and was never out for us. */
	if (!request)
		return;
	if (request == &state->given_up) {
		state->busy[slot] = NULL;
		state->spares[state->spare_count++] = slot;
		return;
	}
	if (state->stamps) {
		uint64_t stamp = xsk_metadata_at(&state->xsk, slot)->stamp_ns;

		if (stamp) {
			request->raw_ns = (int64_t)stamp;
			request->departure = KTX_DEPARTURE_NIC;
		}
	}
	request->buffer_busy = false;
	state->busy[slot] = NULL;
	state->out--;
}

static int completions_take(struct ktx_engine_state *state)
{
	struct xsk_ring *ring = &state->xsk.completion;
	const uint32_t ready = xsk_ring_ready(ring);

	if (!ready)
		return 0;
	for (uint32_t i = 0; i < ready; i++) {
		uint64_t slot = xsk_slot_of(&state->xsk, xsk_ring_take(ring));

		if (slot < state->xsk.chunks)
			request_back(state, (uint32_t)slot);
	}
	xsk_ring_give_back(ring);
	return (int)ready;
}

/* Zero copy: what a lost device never took from the ring has failed after all. */
static void fail_untaken(struct ktx_engine_state *state)
{
	for (uint32_t left = xsk_ring_left(&state->xsk.tx); left; left--) {
		uint64_t slot =
			xsk_slot_of(&state->xsk, xsk_ring_desc(&state->xsk.tx, state->xsk.tx.mine - left)->addr);

		if (slot >= state->xsk.chunks || !state->busy[slot] || state->busy[slot] == &state->given_up)
			continue;
		state->busy[slot]->status = KTX_FAILED;
		state->busy[slot]->error = state->sender.lost;
		state->busy[slot]->departure = KTX_DEPARTURE_NONE;
		request_back(state, (uint32_t)slot);
	}
}

static void lost_look(struct ktx_engine_state *state, uint64_t now)
{
	if (!state->lost_ns) {
		state->lost_ns = now;
		if (state->xsk.zero_copy)
			fail_untaken(state);
	}
	if (now - state->lost_ns < LOST_WAIT_NS)
		return;
	for (uint32_t slot = 0; state->out && slot < state->xsk.chunks; slot++)
		request_back(state, slot);
}

static bool is_lost(int rc)
{
	return rc == -ENETDOWN || rc == -ENXIO || rc == -ENODEV;
}

static int xsk_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	int n = completions_take(state);
	uint64_t now;

	(void)completions;
	if (!state->out)
		return n;
	now = ktrxer_now_ns();
	if (!state->sender.lost &&
	    ((state->xsk.zero_copy && xsk_ring_wants_kick(&state->xsk.tx)) || now - state->looked_ns > LOOK_NS)) {
		int rc = ktrxer_xsk_socket_kick(&state->xsk);

		state->looked_ns = now;
		if (is_lost(rc))
			state->sender.lost = rc;
	}
	if (state->sender.lost) {
		lost_look(state, now);
		return state->sender.lost;
	}
	return n;
}

/* Zero copy: true if the chunk still lies in the ring. In copy mode nothing stays there. */
static bool is_untaken(const struct ktx_engine_state *state, uint32_t chunk)
{
	const struct xsk_ring *tx = &state->xsk.tx;

	for (uint32_t left = xsk_ring_left(tx); left; left--)
		if (xsk_slot_of(&state->xsk, xsk_ring_desc(tx, tx->mine - left)->addr) == chunk)
			return true;
	return false;
}

static int xsk_give_up(struct ktx_engine_state *state, struct ktx_request *request)
{
	const uint32_t chunk = (uint32_t)xsk_slot_of(&state->xsk, offset_of(state, request));
	uint8_t *frame;
	int rc;

	/* It may be this process that slept. */
	completions_take(state);
	if (!request->buffer_busy)
		return 0;
	rc = is_untaken(state, chunk) ? -EIO : 0;
	if (!state->spare_count) {
		/* A kernel that keeps so many gives none back: this socket has come to its end. */
		if (!state->sender.lost)
			state->sender.lost = -EIO;
		request_back(state, chunk);
		return rc;
	}
	frame = state->xsk.memory + xsk_frame_offset(&state->xsk, state->spares[--state->spare_count]);
	/* A program may write a slot once and then change one number for each probe: the slot keeps its content. */
	memcpy(frame, request->frame, state->frame_size);
	request->frame = frame;
	request->buffer_busy = false;
	state->busy[chunk] = &state->given_up;
	state->out--;
	return rc;
}

static int send_zero_copy(struct ktx_engine_state *state, const struct xdp_desc *descs, uint32_t count)
{
	struct xsk_ring *tx = &state->xsk.tx;
	uint32_t room;
	int rc = 0;

	if (state->sender.lost)
		return ktrxer_xsk_lost(&state->sender);
	/* Less than a slot for each request where some were given up untaken. */
	room = state->xsk.slots - xsk_ring_left(tx);
	if (count > room)
		count = room;
	for (uint32_t i = 0; i < count; i++)
		*xsk_ring_desc(tx, tx->mine + i) = descs[i];
	xsk_ring_publish(tx, count);
	if (xsk_ring_wants_kick(tx))
		rc = ktrxer_xsk_socket_kick(&state->xsk);
	if (!is_lost(rc))
		return count ? (int)count : -EAGAIN; /* EAGAIN, EBUSY: the driver's own poll takes them, and reap kicks
							again */
	state->sender.lost = rc;
	return rc;
}

static int xsk_engine_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	struct xdp_desc descs[KTX_BATCH_MAX];
	bool dropped = false;
	int n;

	if (count > KTX_BATCH_MAX)
		count = KTX_BATCH_MAX;
	for (int i = 0; i < count; i++) {
		descs[i] = (struct xdp_desc){ .addr = offset_of(state, requests[i]), .len = requests[i]->length };
		if (state->stamps) {
			*xsk_metadata_at(&state->xsk, (uint32_t)xsk_slot_of(&state->xsk, descs[i].addr)) =
				(struct xsk_metadata){ .flags = XDP_TXMD_FLAGS_TIMESTAMP };
			descs[i].options = XDP_TX_METADATA;
		}
	}
	n = state->xsk.zero_copy ? send_zero_copy(state, descs, (uint32_t)count)
				 : ktrxer_xsk_send(&state->sender, descs, (uint32_t)count, &dropped);
	for (int i = 0; i < n; i++) {
		requests[i]->buffer_busy = true;
		state->busy[xsk_slot_of(&state->xsk, descs[i].addr)] = requests[i];
		state->out++;
	}
	/*
	 * Before the dropped one's slot is submitted again, and not before those that went with it are known to be
	 * out.
	 */
	if (dropped)
		completions_take(state);
	return n == -EBUSY && dropped ? -ENOBUFS : n; /* as other engines call it */
}

static int xsk_event_fd(const struct ktx_engine_state *state)
{
	(void)state;
	return -1; /* never to be polled: in copy mode poll() itself transmits */
}

static const struct ktx_submit_ops xsk_submit = {
	.send = xsk_engine_send,
	.reap = xsk_reap,
	.give_up = xsk_give_up,
};

const struct ktx_engine ktx_engine_xsk = {
	.name = "xsk",
	.summary = "AF_XDP: frames in memory shared with the device's queue",
	.submit = &xsk_submit,
	.can = KTX_CAN_SEND_TIME,
	.frame_max = XSK_FRAME_MAX,
	.reap_ns = REAP_NS,
	.rank_timing = 30,
	.rank_rate = 60,
	.why_timing = "no qdisc in the way",
	.why_rate = "AF_XDP: frames lie in memory shared with the device's queue",
	.probe = xsk_probe,
	.open = xsk_open,
	.close = xsk_close,
	.features = xsk_features,
	.memory = xsk_memory,
	.check = xsk_check,
	.event_fd = xsk_event_fd,
};
