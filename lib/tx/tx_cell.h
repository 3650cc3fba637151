/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the pump ends a cell. */
#ifndef KTRXER_LIB_TX_CELL_H
#define KTRXER_LIB_TX_CELL_H

#include "tx.h"

/* Without the driver's stamp the proof is `queued`. Where that stamp is the send time, a device that has given others leaves this probe untimed. */
static inline void stamp_give_up(const struct ktx *tx, struct ktx_cell *cell)
{
	cell->stamp_due = false;
	cell->stamp_missing = true;
	cell->untimed |= cell->bypasses && tx->pump.driver_seen;
}

static inline void sched_give_up(struct ktx_cell *cell)
{
	cell->sched_due = false;
	cell->untimed = true;
}

static inline void cell_end(struct ktx_cell *cell, enum ktx_status status, int error)
{
	cell->status = (uint8_t)status;
	if (error)
		cell->error = error;
	cell->proof = KTX_PROOF_NONE;
	cell->stamp_due = cell->sched_due = false;
}

/* Are stamps or buffers still out? */
static inline bool stamps_wanted(const struct ktx *tx)
{
	return atomic_load_explicit(&tx->ring.done, memory_order_relaxed) != tx->pump.handed;
}

static inline bool cancel_due(const struct ktx *tx)
{
	return atomic_load_explicit(&tx->shared.cancel_seq, memory_order_relaxed) != tx->pump.cancel_seen;
}

#endif
