/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which cells are final. Called by the pump. */
#include "tx_cell.h"

static bool cell_final(const struct ktx_cell *cell)
{
	return cell->status != KTX_PENDING && !cell->stamp_due && !cell->buffer_busy;
}

static bool wakes_tool(const struct ktx *tx, const struct ktx_cell *cell)
{
	return tx->options.reports == KTX_REPORT_ALL ||
	       (tx->options.reports == KTX_REPORT_FAILURES && cell->status != KTX_SENT);
}

static bool buffer_overdue(const struct ktx *tx, const struct ktx_cell *cell, uint64_t now)
{
	return cell->buffer_busy && cell->status == KTX_SENT && tx->engine->give_up && now > cell->call_ns &&
	       now - cell->call_ns >= KTX_BUFFER_WAIT_NS;
}

/* Whatever the kernel forgets, accounts close. */
static void buffer_give_up(struct ktx *tx, struct ktx_cell *cell)
{
	int rc = tx->engine->give_up(tx->state, cell);

	if (rc < 0)
		cell_end(cell, KTX_FAILED, rc);
	cell->buffer_busy = false;
}

/* Publishes what is final, in order, and wakes who waits for it. */
void ktx_done_advance(struct ktx *tx, uint64_t now)
{
	uint32_t done = atomic_load_explicit(&tx->done, memory_order_relaxed);
	const uint32_t before = done;
	bool wanted = false, signal = false;

	while (done != tx->handed) {
		struct ktx_cell *cell = ktx_cell_at(tx, done);

		if (cell->stamp_due && cell->proof == KTX_PROOF_DRIVER && (int64_t)(now - cell->sent_ns) >= KTX_NIC_WAIT_NS)
			cell->stamp_due = false; /* the NIC's will not come; the driver's is there */
		/* By when it was looked for, not by the clock: who was held up for so long has not seen yet what has come meanwhile. */
		if (cell->stamp_due && tx->harvested_ns > cell->call_ns && tx->harvested_ns - cell->call_ns >= KTX_STAMP_WAIT_NS)
			stamp_give_up(cell);
		if (buffer_overdue(tx, cell, now))
			buffer_give_up(tx, cell);
		if (!cell_final(cell))
			break;
		wanted |= wakes_tool(tx, cell);
		done++;
	}
	if (done == before)
		return;
	atomic_store(&tx->done, done);
	const uint32_t left = atomic_load(&tx->head) - done;

	if (wanted && atomic_exchange(&tx->tool_waits, false))
		signal = true;
	if (left <= tx->slots / 4 * 3 && atomic_load(&tx->space_waits) && atomic_exchange(&tx->space_waits, false))
		signal = true;
	if (!left && atomic_load(&tx->drain_waits) && atomic_exchange(&tx->drain_waits, false))
		signal = true;
	if (signal)
		ktx_signal(tx->report_fd);
}
