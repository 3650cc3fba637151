/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "tx_limits.h"
#include "fake_engine.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

struct fake_script fake;

/* ------------------------------------------------------------------------------------------ what all have in common */

static int fake_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	info->features = KTX_CAN_WHOLE_FRAME;
	return 0;
}

static int fake_open(struct ktx_engine_state **state, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	(void)err;
	fake.requests = setup->requests;
	fake.mask = setup->slots - 1;
	*state = (struct ktx_engine_state *)&fake;
	return 0;
}

static void fake_close(struct ktx_engine_state *state)
{
	(void)state;
}

static uint32_t fake_features(const struct ktx_engine_state *state)
{
	(void)state;
	return (fake.stamps ? KTX_CAN_DRIVER_STAMP : 0) | (fake.scheds ? KTX_CAN_SCHED_STAMP : 0);
}

static int fake_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	(void)state;
	return frame[0] == 0xbd && length ? ktrxer_fail(err, -EBADMSG, "no frame of mine") : 0;
}

static int fake_event_fd(const struct ktx_engine_state *state)
{
	(void)state;
	return -1;
}

/* ---------------------------------------------------------------------------------------------- the user side waits */

static int fake_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	const int most = fake.take_most;
	int refuse = fake.refuse;

	(void)state;
	memcpy(fake.last, requests[count - 1]->frame,
	       requests[count - 1]->length < 128 ? requests[count - 1]->length : 128);
	fake.sends++;
	if (fake.send_lasts_ms)
		poll(NULL, 0, fake.send_lasts_ms);
	if (count > fake.largest)
		fake.largest = count;
	/* The test may change these at any time, so each is looked at once: an engine that takes 0 frames is none. */
	while (refuse > 0 && !atomic_compare_exchange_weak(&fake.refuse, &refuse, refuse - 1))
		;
	if (refuse > 0)
		return fake.refuse_with;
	if (most && count > most)
		count = most;
	for (int i = 0; i < count; i++) {
		fake.next_key++;
		if (fake.holds_buffers) {
			requests[i]->buffer_busy = true;
			fake.held[fake.held_count++] = requests[i];
		}
		if (fake.sent < 4096) {
			fake.sent_at[fake.sent] = ktrxer_now_ns();
			fake.order[fake.sent++] = requests[i]->id;
		}
	}
	return count;
}

static void fake_clocks(struct ktrxer_clock_pair *pair)
{
	ktrxer_clock_pair_read(pair);
	if (pair->bound_ns > fake.clock_bound_ns)
		fake.clock_bound_ns = pair->bound_ns;
}

static int fake_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	struct ktrxer_clock_pair pair;
	int n = 0;

	(void)state;
	if (fake.gives_back)
		while (fake.held_count)
			fake.held[--fake.held_count]->buffer_busy = false;
	if (!fake.stamps || !fake.stamps_come)
		return 0;
	fake_clocks(&pair);
	for (; fake.scheds && (int32_t)(fake.next_key - fake.sched_key) > 0; fake.sched_key++)
		completions->sched(completions->context, fake.sched_key,
				   pair.real_ns - (int64_t)pair.mono_ns + (int64_t)fake.sent_at[fake.sched_key % 4096],
				   fake.device, &fake.from);
	for (; fake.stamped_key != fake.next_key; fake.stamped_key++, n++) {
		const int64_t sent = (int64_t)fake.sent_at[fake.stamped_key % 4096];

		if (fake.scheds && sent + fake.stamp_after_ns > (int64_t)pair.mono_ns)
			break;
		if (fake.lost_key == fake.stamped_key + 1)
			continue;
		completions->stamp(completions->context, fake.stamped_key,
				   pair.real_ns - (int64_t)pair.mono_ns + sent + fake.stamp_after_ns,
				   KTX_DEPARTURE_DRIVER, false);
		if (fake.nic_ahead_ns)
			completions->stamp(completions->context, fake.stamped_key,
					   sent + fake.nic_ahead_ns + fake.nic_after_ns, KTX_DEPARTURE_NIC, true);
	}
	return n;
}

static bool fake_holds(const struct ktx_engine_state *state)
{
	(void)state;
	return !fake.no_queue && fake.stamped_key != fake.next_key;
}

static int fake_give_up(struct ktx_engine_state *state, struct ktx_request *request)
{
	(void)state;
	assert_true(request->buffer_busy);
	fake.given_up++;
	return fake.give_up_with;
}

/* ---------------------------------------------------------------------------------------------- a queue in it waits */

static int queue_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	for (int i = 0; i < count; i++)
		fake.leave_ns[(fake.sent + i) % 4096] = requests[i]->leave_ns;
	return fake_send(state, requests, count);
}

static void queue_queue(const struct ktx_engine_state *state, struct ktx_queue *queue)
{
	(void)state;
	*queue = (struct ktx_queue){ .ahead_ns = KTX_QUEUE_AHEAD_NS, .depth = 64 };
	if (fake.queue.depth)
		*queue = fake.queue;
}

static void queue_early(struct ktx_engine_state *state)
{
	(void)state;
	fake.left_early++;
}

static int queue_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	struct ktrxer_clock_pair pair;
	int n = 0;

	(void)state;
	fake_clocks(&pair);
	for (; fake.stamped_key != fake.next_key; fake.stamped_key++, n++) {
		const uint64_t call = fake.sent_at[fake.stamped_key % 4096],
			       leave_ns = fake.leave_ns[fake.stamped_key % 4096];
		const uint64_t at = (leave_ns > call ? leave_ns : call) + (uint64_t)fake.stamp_after_ns;

		if (at > pair.mono_ns || !fake.stamps_come)
			break;
		if (fake.drop) {
			fake.drop--;
			completions->failed(completions->context, &fake.requests[fake.stamped_key & fake.mask],
					    fake.drop_with);
			continue;
		}
		completions->stamp(completions->context, fake.stamped_key,
				   pair.real_ns - (int64_t)pair.mono_ns + (int64_t)at, KTX_DEPARTURE_DRIVER, false);
	}
	return n;
}

/* ------------------------------------------------------------------------------------------------- the kernel waits */

static uint32_t kernel_features(const struct ktx_engine_state *state)
{
	(void)state;
	return KTX_CAN_DRIVER_STAMP | KTX_CAN_KERNEL_WAIT | KTX_CAN_TEMPLATE;
}

static void fake_publish(struct ktx_engine_state *state, uint32_t from, uint32_t to)
{
	(void)state;
	assert_int_equal(from, fake.published);
	fake.last_from = from;
	fake.published = to;
	fake.publishes++;
}

static int fake_update(struct ktx_engine_state *state, const struct ktx_work *work, uint64_t *next_ns)
{
	(void)state;
	fake.updates++;
	fake.cancel_to = work->cancel_to;
	fake.compensation_ns = (uint32_t)work->compensation_ns; /* far below a second */
	*next_ns = KTRXER_NEVER;
	assert_true((int32_t)(work->head - work->done) >= 0);
	assert_true((int32_t)(work->cancel_to - work->head) <= 0);
	return fake.gone;
}

static bool request_end(uint32_t number, const struct ktx_work *work)
{
	struct ktx_request *request = &fake.requests[number & fake.mask];
	const uint64_t base = request->at_ns ? request->at_ns : work->now_ns;
	const bool sent = fake.sends_to == UINT32_MAX ? base <= work->now_ns : (int32_t)(fake.sends_to - number) > 0;

	assert_int_equal(request->status, KTX_PENDING);
	request->planned_ns = request->at_ns;
	if (sent && !fake.fail_with) {
		request->status = KTX_SENT;
		request->departure = KTX_DEPARTURE_DRIVER;
		request->sent_ns = (uint64_t)((int64_t)base + fake.late_ns);
		request->raw_ns = (int64_t)request->sent_ns;
		request->tries = 1;
		return true;
	}
	if (fake.gone || (sent && fake.fail_with)) {
		request->status = KTX_FAILED;
		request->error = fake.gone ? fake.gone : fake.fail_with;
		request->tries = 1;
		return true;
	}
	if ((int32_t)(work->cancel_to - number) > 0) {
		request->status = KTX_CANCELLED;
		return true;
	}
	return false;
}

static uint32_t fake_collect(struct ktx_engine_state *state, const struct ktx_work *work)
{
	uint32_t number = work->done;

	(void)state;
	while (number != work->head && request_end(number, work))
		number++;
	return number - work->done;
}

static int fake_stream_start(struct ktx_engine_state *state, const struct ktx_stream *stream, struct ktrxer_error *err)
{
	(void)state;
	if (fake.stream_refused)
		return ktrxer_fail(err, fake.stream_refused, "not this one");
	fake.stream = *stream;
	fake.stream_starts++;
	fake.stream_ends = fake.stream_stopped = false;
	fake.look = (struct ktx_stream_look){ 0 };
	return 0;
}

static void fake_stream_stop(struct ktx_engine_state *state)
{
	(void)state;
	fake.stream_stopped = true;
}

static void fake_stream_look(const struct ktx_engine_state *state, struct ktx_stream_look *look)
{
	(void)state;
	*look = fake.look;
	look->ended = fake.stream_ends;
}

static bool fake_stream_ended(const struct ktx_engine_state *state)
{
	(void)state;
	return fake.stream_ends;
}

/* -------------------------------------------------------------------------------------------------------- the table */

static const struct ktx_submit_ops fake_submit = { .send = fake_send, .reap = fake_reap, .holds = fake_holds };
static const struct ktx_submit_ops holder_submit = { .send = fake_send, .reap = fake_reap, .give_up = fake_give_up };
static const struct ktx_submit_ops queue_submit = {
	.send = queue_send,
	.reap = queue_reap,
	.queue = queue_queue,
	.left_early = queue_early,
};
static const struct ktx_kernel_ops kernel_kernel = { .publish = fake_publish,
						     .update = fake_update,
						     .collect = fake_collect };
static const struct ktx_stream_ops kernel_stream = {
	.start = fake_stream_start,
	.stop = fake_stream_stop,
	.look = fake_stream_look,
	.ended = fake_stream_ended,
};

#define COMMON                                                                                                         \
	.summary = "for tests", .probe = fake_probe, .open = fake_open,                     \
	.close = fake_close, .check = fake_check,                                                                      \
	.event_fd = fake_event_fd

/* clang-format off */
static const struct ktx_engine fake_engine = {
	COMMON, .name = "fake",
	.can = KTX_CAN_HOST_STACK | KTX_CAN_SEND_TIME, .submit = &fake_submit,
	.why_timing = "the only one", .why_rate = "the only one",
	.features = fake_features,
};
/* clang-format on */

/* clang-format off */
static const struct ktx_engine holder_engine = {
	COMMON, .name = "holder", .can = KTX_CAN_HOST_STACK,
	.submit = &holder_submit, .reap_ns = 200000, .frame_max = 1000,
	.features = fake_features,
};
/* clang-format on */

/* clang-format off */
static const struct ktx_engine kernel_engine = {
	COMMON, .name = "kernel",
	.can = KTX_CAN_HOST_STACK, .kernel = &kernel_kernel, .stream = &kernel_stream, .reap_ns = 100000,
	.features = kernel_features, .why_ended = "the kernel side has ended",
};
/* clang-format on */

static const struct ktx_engine queue_engine = {
	COMMON,
	.name = "queue",
	.can = KTX_CAN_HOST_STACK,
	.submit = &queue_submit,
	.reap_ns = 200000,
	.features = fake_features,
};

static const struct ktx_engine *const engine_list[] = { &fake_engine, &holder_engine, &kernel_engine, &queue_engine,
							NULL };

int ktx_open(struct ktx **out, const struct ktx_options *options, struct ktrxer_error *err)
{
	return ktx_open_of(out, engine_list, options, err);
}

int fake_engines_sized(struct ktx_engine_info *engines, size_t size, int max)
{
	return ktx_engine_try_all(engine_list, engines, size, max, NULL);
}

/* ---------------------------------------------------------------------------------------------------------- helpers */

struct ktx *fake_open_with(struct ktx_options options)
{
	struct ktrxer_error err = { 0 };
	struct ktx *tx;

	memset(&fake, 0, sizeof fake);
	options.flags |= KTX_NO_REALTIME;
	assert_int_equal(ktx_open(&tx, &options, &err), 0);
	return tx;
}

int fake_commit(struct ktx *tx, uint64_t id, uint64_t at_ns, uint32_t flags)
{
	const struct ktx_probe probe = { .id = id, .at_ns = at_ns, .length = 60, .flags = flags };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int rc = ktx_reserve(tx, &slot);

	if (rc < 0)
		return rc;
	assert_true(slot.capacity >= 60);
	memset(slot.frame, 0, 60);
	return ktx_commit(tx, &probe, &err);
}

void fake_await(struct ktx *tx)
{
	struct pollfd p = { .fd = ktx_fd(tx), .events = POLLIN };

	assert_int_equal(poll(&p, 1, FAKE_LIMIT_S * 1000), 1);
}

void fake_commit_all(struct ktx *tx, uint64_t count)
{
	for (uint64_t sent = 0; sent < count;) {
		int rc = fake_commit(tx, sent, 0, 0);

		if (rc == 0) {
			sent++;
			continue;
		}
		assert_int_equal(rc, -EAGAIN);
		fake_await(tx);
	}
}

struct ktx_accounts fake_drain(struct ktx *tx)
{
	struct ktx_accounts a;

	assert_int_equal(ktx_drain(tx, ktrxer_now_ns() + FAKE_LIMIT_S * (uint64_t)KTRXER_NS_PER_S), 0);
	ktx_accounts(tx, &a);
	assert_int_equal(a.requested, a.sent + a.failed + a.skipped + a.cancelled);
	assert_int_equal(a.pending, 0);
	assert_int_equal(a.sent, a.nic + a.driver + a.queued);
	return a;
}
