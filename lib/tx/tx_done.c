/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which requests are final. Called by the pump. */
#include "tx_limits.h"
#include "tx_request.h"

static bool request_final(const struct ktx_request *request)
{
	return request->status != KTX_PENDING && !request->stamp_due && !request->sched_due && !request->buffer_busy;
}

static bool wakes_tool(const struct ktx *tx, const struct ktx_request *request)
{
	return tx->options.reports == KTX_REPORT_ALL ||
	       (tx->options.reports == KTX_REPORT_FAILURES && request->status != KTX_SENT);
}

/*
 * Returns for how long the error queue has been read since the request was submitted. A pump that was descheduled has
 * not yet read stamps that have arrived.
 */
static uint64_t looked_for(const struct ktx *tx, const struct ktx_request *request)
{
	return tx->pump.reaped_ns > request->call_ns ? tx->pump.reaped_ns - request->call_ns : 0;
}

/*
 * True if the driver's stamp is given up. A packet that has entered the packet scheduler waits in this host's own
 * queue, or the queue has dropped it. If a later packet has its stamp, then this packet was dropped or overtaken. Slots
 * that run out must not make the next probes late.
 */
static bool stamp_overdue(const struct ktx *tx, const struct ktx_request *request, uint32_t number)
{
	const uint64_t waited = looked_for(tx, request);

	if (waited < KTX_STAMP_WAIT_NS || request->departure >= KTX_DEPARTURE_DRIVER)
		return false;
	if (!request->sched_ns || waited >= KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S)
		return true;
	/* A device without stamps, or one whose queue was long from the start: its first stamp is still to come. */
	if (!tx->pump.driver_seen && !tx->engine->submit->holds(tx->state))
		return true;
	if (tx->pump.passed_ns && (int32_t)(tx->pump.passer - number) > 0 && tx->pump.reaped_ns > tx->pump.passed_ns &&
	    tx->pump.reaped_ns - tx->pump.passed_ns >= KTX_STAMP_WAIT_NS)
		return true;
	return atomic_load_explicit(&tx->ring.head, memory_order_relaxed) - number > tx->ring.slots / 2;
}

static bool buffer_overdue(const struct ktx *tx, const struct ktx_request *request, uint64_t now)
{
	return request->buffer_busy && request->status == KTX_SENT && tx->engine->submit->give_up &&
	       now > request->call_ns && now - request->call_ns >= KTX_BUFFER_WAIT_NS;
}

/* Accounts close even where the kernel reports no stamp. */
static void buffer_give_up(struct ktx *tx, struct ktx_request *request)
{
	int rc = tx->engine->submit->give_up(tx->state, request);

	if (rc < 0)
		request_end(request, KTX_FAILED, rc);
	request->buffer_busy = false;
}

/* Gives up the stamps and the buffer that have been awaited for too long. */
static void request_give_up(struct ktx *tx, struct ktx_request *request, uint32_t number, uint64_t now)
{
	if (request->stamp_due && request->departure == KTX_DEPARTURE_DRIVER &&
	    (int64_t)(now - request->sent_ns) >= KTX_NIC_WAIT_NS)
		request->stamp_due = false; /* the NIC's will not come; the driver's is there */
	if (request->sched_due && looked_for(tx, request) >= KTX_STAMP_WAIT_NS)
		sched_give_up(request);
	if (request->stamp_due && stamp_overdue(tx, request, number))
		stamp_give_up(tx, request);
	if (buffer_overdue(tx, request, now))
		buffer_give_up(tx, request);
}

/* Publishes the final requests, in order, and wakes the threads that wait for them. */
void ktx_done_advance(struct ktx *tx, uint64_t now)
{
	uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);
	const uint32_t before = done;
	bool wanted = false, signal = false;

	while (done != tx->pump.submitted) {
		struct ktx_request *request = ktx_request_at(tx, done);

		if (!request_final(request)) {
			request_give_up(tx, request, done, now);
			if (!request_final(request))
				break;
		}
		wanted |= wakes_tool(tx, request);
		done++;
	}
	if (done == before)
		return;
	if ((int32_t)(tx->pump.passer - done) <= 0) {
		tx->pump.passed_ns = (int32_t)(tx->pump.stamped_end - 1 - done) > 0 ? now : 0;
		tx->pump.passer = tx->pump.stamped_end - 1;
	}
	atomic_store(&tx->ring.done, done);
	const uint32_t left = atomic_load(&tx->ring.head) - done;

	if (wanted && atomic_exchange(&tx->shared.tool_waits, false))
		signal = true;
	if (left <= tx->ring.slots / 4 * 3 && atomic_load(&tx->shared.space_waits) &&
	    atomic_exchange(&tx->shared.space_waits, false))
		signal = true;
	if (!left && atomic_load(&tx->shared.drain_waits) && atomic_exchange(&tx->shared.drain_waits, false))
		signal = true;
	if (signal)
		ktx_signal(tx->report_fd);
}
