/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which cells are final. Called by the pump. */
#include "tx_cell.h"

static bool cell_final(const struct ktx_cell *cell)
{
	return cell->status != KTX_PENDING && !cell->stamp_due && !cell->sched_due && !cell->buffer_busy;
}

static bool wakes_tool(const struct ktx *tx, const struct ktx_cell *cell)
{
	return tx->options.reports == KTX_REPORT_ALL ||
	       (tx->options.reports == KTX_REPORT_FAILURES && cell->status != KTX_SENT);
}

/* For so long has the error queue been read since the cell was handed over: a pump that was descheduled has not yet read stamps that have arrived. */
static uint64_t looked_for(const struct ktx *tx, const struct ktx_cell *cell)
{
	return tx->pump.harvested_ns > cell->call_ns ? tx->pump.harvested_ns - cell->call_ns : 0;
}

/*
 * Give the driver's stamp up? A packet that has entered the packet scheduler waits in this host's own queue, or the queue has dropped it. The
 * stamp of a later packet says that it was dropped, or overtaken. Slots that run out must not make the next probes late.
 */
static bool stamp_overdue(const struct ktx *tx, const struct ktx_cell *cell, uint32_t number)
{
	const uint64_t waited = looked_for(tx, cell);

	if (waited < KTX_STAMP_WAIT_NS || cell->proof >= KTX_PROOF_DRIVER)
		return false;
	if (!tx->pump.driver_seen || !cell->sched_ns || waited >= KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S)
		return true;
	if (tx->pump.passed_ns && (int32_t)(tx->pump.passer - number) > 0 && tx->pump.harvested_ns > tx->pump.passed_ns &&
	    tx->pump.harvested_ns - tx->pump.passed_ns >= KTX_STAMP_WAIT_NS)
		return true;
	return atomic_load_explicit(&tx->ring.head, memory_order_relaxed) - number > tx->ring.slots / 2;
}

static bool buffer_overdue(const struct ktx *tx, const struct ktx_cell *cell, uint64_t now)
{
	return cell->buffer_busy && cell->status == KTX_SENT && tx->engine->submit->give_up && now > cell->call_ns &&
	       now - cell->call_ns >= KTX_BUFFER_WAIT_NS;
}

/* Whatever the kernel forgets, accounts close. */
static void buffer_give_up(struct ktx *tx, struct ktx_cell *cell)
{
	int rc = tx->engine->submit->give_up(tx->state, cell);

	if (rc < 0)
		cell_end(cell, KTX_FAILED, rc);
	cell->buffer_busy = false;
}

/* Publishes what is final, in order, and wakes who waits for it. */
void ktx_done_advance(struct ktx *tx, uint64_t now)
{
	uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);
	const uint32_t before = done;
	bool wanted = false, signal = false;

	while (done != tx->pump.handed) {
		struct ktx_cell *cell = ktx_cell_at(tx, done);

		if (cell->stamp_due && cell->proof == KTX_PROOF_DRIVER && (int64_t)(now - cell->sent_ns) >= KTX_NIC_WAIT_NS)
			cell->stamp_due = false; /* the NIC's will not come; the driver's is there */
		if (cell->sched_due && looked_for(tx, cell) >= KTX_STAMP_WAIT_NS)
			sched_give_up(cell);
		if (cell->stamp_due && stamp_overdue(tx, cell, done))
			stamp_give_up(tx, cell);
		if (buffer_overdue(tx, cell, now))
			buffer_give_up(tx, cell);
		if (!cell_final(cell))
			break;
		wanted |= wakes_tool(tx, cell);
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
	if (left <= tx->ring.slots / 4 * 3 && atomic_load(&tx->shared.space_waits) && atomic_exchange(&tx->shared.space_waits, false))
		signal = true;
	if (!left && atomic_load(&tx->shared.drain_waits) && atomic_exchange(&tx->shared.drain_waits, false))
		signal = true;
	if (signal)
		ktx_signal(tx->report_fd);
}
