/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Live frames: an XDP program that the kernel runs without a packet having come (Linux 5.18) takes probes from mapped
 * slots, waits for their times and redirects them to the device. It polls one whole processor while probes are due. The
 * result of the driver's transmit function for each frame is returned with its time: the source of the stamp is
 * `driver`.
 */
#include "engine.h"
#include "live_device.h"
#include "live_program.h"
#include "live_runner.h"
#include "live_stream.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REAP_NS 50000

struct ktx_engine_state {
	struct live_program program;
	struct live_runner runner;
	struct live_stream stream;
	struct ktrxer_device device;
	const struct ktx_options *options;
	uint64_t device_packets; /* that it had sent before */
	struct ktx_request *requests;
	uint32_t mask;
	_Atomic bool trains; /* seen by the committing thread */
	bool shifts;
	uint64_t looked_ns; /* at the processors */
	int lost;           /* negative errno: nothing goes any more */
};

/* The kernel leaves out processors that are off line. */
static bool one_processor(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) <= 1;
}

static int processors_check(struct ktrxer_error *err)
{
	if (!one_processor())
		return 0;
	return ktrxer_fail(err, -EOPNOTSUPP,
			   "the live engine polls a whole processor and there is one for all: use the packet engine");
}

static int live_ready(struct live_program *program, const struct live_setup *setup, struct ktrxer_error *err)
{
	int rc = processors_check(err);

	if (rc == 0)
		rc = ktrxer_live_device_check(setup->device, err);
	return rc == 0 ? ktrxer_live_program_open(program, setup, err) : rc;
}

static uint32_t features_of(const struct live_program *program)
{
	return KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_KERNEL_WAIT |
	       KTX_CAN_MAPPED | KTX_CAN_BYPASS | KTX_CAN_TEMPLATE | KTX_CAN_POLL |
	       (program->traced ? KTX_CAN_DRIVER_STAMP : 0);
}

static int live_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	const struct live_setup setup = { .device = device, .slots = 2, .frame_size = 64 };
	struct ktrxer_error err = { 0 };
	struct live_program program;
	int rc;

	if (!device) {
		snprintf(info->reason, sizeof info->reason, "needs a device: name one (`ip link` lists them)");
		return -ENODEV;
	}
	rc = live_ready(&program, &setup, &err);
	if (rc == 0) {
		info->features = features_of(&program);
		rc = ktrxer_live_program_try(&program, &err);
		ktrxer_live_program_close(&program);
	}
	if (rc < 0)
		memcpy(info->reason, err.text, sizeof info->reason);
	return rc;
}

static int live_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	const struct live_setup program_setup = {
		.device = setup->device,
		.slots = setup->slots,
		.frame_size = setup->frame_size,
		.late_ns = setup->options->late_ns,
		.retry_ns = setup->options->retry_ns,
		.late = setup->options->late,
		.times = setup->options->purpose == KTX_FOR_TIMING,
	};
	int rc;

	if (!state)
		return ktrxer_fail(err, -ENOMEM, "no memory for the live engine");
	rc = live_ready(&state->program, &program_setup, err);
	if (rc < 0)
		goto free_state;
	rc = ktrxer_live_runner_open(&state->runner, &state->program, setup->options, err);
	if (rc < 0)
		goto close_program;
	state->requests = setup->requests;
	state->device = *setup->device;
	state->options = setup->options;
	if (!state->program.traced)
		(void)ktrxer_live_device_sent(&state->device, &state->device_packets);
	state->mask = setup->slots - 1;
	state->shifts = program_setup.late == KTX_LATE_SHIFT;
	*out = state;
	return 0;

close_program:
	ktrxer_live_program_close(&state->program);
free_state:
	free(state);
	return rc;
}

static void live_close(struct ktx_engine_state *state)
{
	ktrxer_live_stream_close(&state->stream);
	ktrxer_live_runner_close(&state->runner);
	ktrxer_live_program_close(&state->program);
	free(state);
}

static uint32_t live_features(const struct ktx_engine_state *state)
{
	return features_of(&state->program);
}

static uint8_t *live_memory(struct ktx_engine_state *state, uint32_t slot)
{
	return live_slot_at(&state->program, slot)->frame;
}

static int live_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	(void)state;
	(void)frame;
	(void)length;
	(void)err;
	return 0; /* the transmitter has seen to the length; any Ethernet frame goes */
}

static int live_event_fd(const struct ktx_engine_state *state)
{
	(void)state;
	return -1;
}

/* Publish from the last to the first, because the number of probes that follow in a train is known then. */
static void live_publish(struct ktx_engine_state *state, uint32_t from, uint32_t to)
{
	uint32_t train = 1;

	for (uint32_t number = to; number != from; number--) {
		const struct ktx_request *request = &state->requests[(number - 1) & state->mask];
		struct live_slot *slot = live_slot_at(&state->program, number - 1);

		train = request->flags & KTX_TRAIN_GOES_ON ? train + 1 : 1;
		slot->at_ns = request->at_ns;
		slot->length = request->length;
		slot->train = train;
		slot->restarts = request->restarts;
		slot->refused = 0;
		state->program.ends[(number - 1) & state->mask] = 0; /* not read before `head` passes it */
		if (train > 1 && !atomic_load_explicit(&state->trains, memory_order_relaxed))
			atomic_store(&state->trains, true);
	}
	__atomic_store_n(&state->program.control->head, to, __ATOMIC_RELEASE);
}

static struct live_need need_of(struct ktx_engine_state *state, const struct ktx_work *work)
{
	const struct ktx_request *next = &state->requests[work->done & state->mask];
	struct live_need need = {
		.now_ns = work->now_ns, .due_ns = KTRXER_NEVER, .frame_size = 64, .trains = atomic_load(&state->trains)
	};

	if (work->done == work->head)
		return need;
	need.due_ns = next->at_ns ? next->at_ns : work->now_ns;
	need.frame_size = next->length;
	return need;
}

static int live_update(struct ktx_engine_state *state, const struct ktx_work *work, uint64_t *next_ns)
{
	struct live_control *control = state->program.control;
	const struct live_need need = need_of(state, work);
	int rc;

	if (control->compensation_ns != work->compensation_ns)
		__atomic_store_n(&control->compensation_ns, (uint32_t)work->compensation_ns, __ATOMIC_RELAXED);
	/* Publish also without a cancellation: an old number would seem to lie ahead after two billion probes. */
	if (work->cancel_to != work->done || (uint32_t)(work->done - control->cancel_to) > UINT32_MAX / 4)
		__atomic_store_n(&control->cancel_to, work->cancel_to, __ATOMIC_RELAXED);
	/* A thread that the caller has put on one processor (`cpu`) can see no other. */
	if (!state->lost && state->options->cpu < 0 && work->now_ns - state->looked_ns > KTRXER_NS_PER_S) {
		state->looked_ns = work->now_ns;
		if (one_processor()) {
			state->lost = -ESHUTDOWN;
			ktrxer_live_stream_lose(&state->stream, state->lost);
		}
	}
	rc = atomic_load(&state->stream.lost);
	if (!state->lost && rc && rc != -ECANCELED)
		state->lost = rc;
	if (!state->lost) {
		rc = ktrxer_live_runner_update(&state->runner, &need, next_ns);
		if (rc < 0)
			state->lost = rc;
	}
	if (state->lost)
		ktrxer_live_runner_stop(&state->runner, work->now_ns, next_ns);
	ktrxer_live_stream_update(&state->stream, work->now_ns, next_ns);
	return state->lost;
}

static void request_ended(struct ktx_engine_state *state, struct ktx_request *request, uint32_t number, uint64_t word)
{
	const struct live_slot *slot = live_slot_at(&state->program, number);
	const int error = (int)(word & UINT32_MAX);

	request->bound_ns = 0;
	request->status = KTX_SENT;
	request->tries = 1;
	request->planned_ns = request->at_ns;
	if (!(word & LIVE_WITHOUT_STAMP)) {
		request->departure = KTX_DEPARTURE_DRIVER;
		request->sent_ns = request->call_ns = word;
		request->raw_ns = (int64_t)word;
		if (state->shifts)
			request->planned_ns = slot->at_ns;
		if (state->program.control->refusals)
			request->tries += slot->refused;
		return;
	}
	request->departure = KTX_DEPARTURE_NONE;
	switch ((enum live_kind)(word >> 32 & 0xff)) {
	case LIVE_UNPROVEN:
		request->departure = KTX_DEPARTURE_QUEUED;
		request->sent_ns = request->call_ns = ktrxer_now_ns();
		return;
	case LIVE_SKIPPED:
		request->status = KTX_SKIPPED;
		request->tries = 0;
		return;
	case LIVE_CANCELLED:
		request->status = KTX_CANCELLED;
		request->tries = slot->refused;
		return;
	default:
		request->status = KTX_FAILED;
		request->error = -error;
		request->tries = slot->refused ? slot->refused : 1;
		if (error == ENODEV || error == ENETDOWN)
			state->lost = -error;
	}
}

/* Nothing runs: the ring is ours. */
static void end_by_hand(struct ktx_engine_state *state, const struct ktx_work *work)
{
	struct live_control *control = state->program.control;
	const uint32_t to = state->lost ? work->head : work->cancel_to;
	const uint64_t word = state->lost ? LIVE_END(LIVE_FAILED, -state->lost) : LIVE_END(LIVE_CANCELLED, 0);

	if ((int32_t)(to - work->done) <= 0)
		return;
	for (uint32_t number = work->done; number != to; number++) {
		uint64_t *end = &state->program.ends[number & state->mask];

		if (*end <= LIVE_SUBMITTED)
			*end = word;
	}
	control->completed = control->submitted;
	if ((int32_t)(to - control->tail) > 0)
		control->tail = to;
	control->in_train = 0;
}

static uint32_t live_collect(struct ktx_engine_state *state, const struct ktx_work *work)
{
	uint32_t tail, number = work->done;

	if (ktrxer_live_runner_rests(&state->runner))
		end_by_hand(state, work);
	/* Stop at the tail: the program has yet to skip the slots behind it, and must not find a new frame there. */
	tail = __atomic_load_n(&state->program.control->tail, __ATOMIC_ACQUIRE);
	for (; number != work->head && number != tail; number++) {
		uint64_t word;

		if (!live_end_read(&state->program.ends[number & state->mask], &word))
			break;
		request_ended(state, &state->requests[number & state->mask], number, word);
	}
	return number - work->done;
}

static int stream_start(struct ktx_engine_state *state, const struct ktx_stream *stream, struct ktrxer_error *err)
{
	return ktrxer_live_stream_start(&state->stream, &state->device, state->options, stream, err);
}

static void stream_stop(struct ktx_engine_state *state)
{
	ktrxer_live_stream_stop(&state->stream);
}

static void stream_look(const struct ktx_engine_state *state, struct ktx_stream_look *look)
{
	ktrxer_live_stream_look(&state->stream, look);
}

static bool stream_ended(const struct ktx_engine_state *state)
{
	return atomic_load(&state->stream.phase) == STREAM_ENDED;
}

static int device_sent(const struct ktx_engine_state *state, uint64_t *packets)
{
	int rc = state->program.traced ? -EOPNOTSUPP : ktrxer_live_device_sent(&state->device, packets);

	if (rc == 0)
		*packets -= state->device_packets;
	return rc;
}

static const struct ktx_kernel_ops kernel_ops = {
	.publish = live_publish,
	.update = live_update,
	.collect = live_collect,
};

static const struct ktx_stream_ops stream_ops = {
	.start = stream_start,
	.stop = stream_stop,
	.look = stream_look,
	.ended = stream_ended,
};

const struct ktx_engine ktx_engine_live = {
	.name = "live",
	.summary = "an XDP program in the kernel sends from mapped slots, at their times; takes a processor",
	.kernel = &kernel_ops,
	.stream = &stream_ops,
	.frame_max = LIVE_FRAME_MAX,
	.reap_ns = REAP_NS,
	.polls = true,
	.rank_timing = 1, /* the most precise, but it takes a whole processor: only if it is named */
	.rank_rate = 80,
	.why_timing = "an XDP program keeps the time in the kernel",
	.why_rate = "an XDP program sends from mapped slots, with no socket buffer; it takes a whole processor",
	.why_ended = "the engine polls a whole processor, and only one is left",
	.probe = live_probe,
	.open = live_open,
	.close = live_close,
	.features = live_features,
	.memory = live_memory,
	.check = live_check,
	.event_fd = live_event_fd,
	.device_sent = device_sent,
};
