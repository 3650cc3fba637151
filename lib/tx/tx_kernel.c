/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The pump of an engine whose kernel side waits: committed requests are with the engine at once, and the pump only
 * brings back what became of them, passes a cancellation on, and keeps the kernel side running.
 */
#include "tx.h"

#include <errno.h>

/* The thread stays awake for so long after the last request: a tool that commits often would wake it each time. */
#define LINGER_NS (5ULL * 1000 * 1000)
/* A frame that was due has ended by then, most likely. */
#define AFTER_NS 10000
/* A larger lateness has another cause than the submission. */
#define COMPENSATION_WINDOW_NS 5000

/*
 * Frames leave late by the cost of their submission in the kernel. One small step of the compensation for each frame,
 * up or down, brings the median of the lateness to zero.
 */
static void compensation_learn(struct ktx *tx, const struct ktx_request *request)
{
	int64_t late = (int64_t)(request->sent_ns - request->planned_ns), step;

	if (!request->at_ns || request->status != KTX_SENT || request->departure < KTX_DEPARTURE_DRIVER ||
	    late > COMPENSATION_WINDOW_NS || late < -COMPENSATION_WINDOW_NS)
		return;
	if (tx->pump.waiter.compensation_samples < 64)
		tx->pump.waiter.compensation_samples++;
	step = tx->pump.waiter.compensation_samples < 64 ? 32 : 4;
	tx->pump.waiter.compensation_ns += late > 0 ? step : -step;
	if (tx->pump.waiter.compensation_ns < 0)
		tx->pump.waiter.compensation_ns = 0;
}

/* When there will be something to bring back. */
static uint64_t next_look(const struct ktx *tx, uint64_t now)
{
	const uint64_t at = ktx_request_at(tx, tx->pump.submitted)->at_ns, often = tx->engine->reap_ns;
	const uint64_t after = at < KTRXER_NEVER - AFTER_NS ? at + AFTER_NS : KTRXER_NEVER;

	/* Just after it: a gap follows, in which the engine may have something to do. */
	return after > now + often / 2 ? after : now + often;
}

void ktx_pump_kernel(struct ktx *tx, uint64_t *next_ns)
{
	struct ktx_work work = { .done = tx->pump.submitted, .now_ns = ktrxer_now_ns() };
	uint32_t ended;
	int rc;

	work.cancel_to = work.done;
	if (atomic_load(&tx->shared.cancel_seq) != tx->pump.cancel_seen) {
		tx->pump.cancel_seen = atomic_load(&tx->shared.cancel_seq);
		tx->pump.cancel_to_kernel = atomic_load(&tx->shared.cancel_to);
	}
	/* After the cancellation, which may reach past the head of before. */
	work.head = atomic_load(&tx->ring.head);
	if ((int32_t)(tx->pump.cancel_to_kernel - work.done) > 0)
		work.cancel_to = tx->pump.cancel_to_kernel;
	else
		tx->pump.cancel_to_kernel = work.done;

	ended = tx->engine->kernel->collect(tx->state, &work);
	for (uint32_t i = 0; i < ended; i++)
		compensation_learn(tx, ktx_request_at(tx, tx->pump.submitted + i));
	tx->pump.submitted += ended;

	if (!(tx->options.flags & KTX_NO_COMPENSATION))
		work.compensation_ns = (uint64_t)tx->pump.waiter.compensation_ns;
	work.done = tx->pump.submitted;
	if ((int32_t)(work.cancel_to - work.done) < 0)
		work.cancel_to = work.done;
	rc = tx->engine->kernel->update(tx->state, &work, next_ns);
	if (rc < 0)
		ktx_dead(tx, rc);
	/* After `dead`: a thread that sees that all requests have ended must see the reason, too. */
	ktx_done_advance(tx, work.now_ns);
	if (atomic_load(&tx->shared.stream_runs) && tx->engine->stream->ended(tx->state)) {
		atomic_store(&tx->shared.stream_runs, false);
		ktx_signal(tx->report_fd);
	}

	if (tx->pump.submitted != work.head)
		tx->pump.busy_ns = work.now_ns;
	/*
	 * Where a descriptor becomes readable for completions, a commit need not wake the pump, and the pump need not
	 * poll.
	 */
	if (!tx->engine->reap_ns) {
		tx->pump.starved = tx->pump.submitted == work.head && tx->engine->event_fd(tx->state) < 0;
		return;
	}
	tx->pump.starved = tx->pump.submitted == work.head && work.now_ns - tx->pump.busy_ns > LINGER_NS;
	if (!tx->pump.starved) {
		uint64_t look = tx->pump.submitted == work.head ? work.now_ns + tx->engine->reap_ns
								: next_look(tx, work.now_ns);

		if (look < *next_ns)
			*next_ns = look;
	}
}
