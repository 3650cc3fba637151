/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the pump ends a cell. */
#ifndef KTRXER_LIB_TX_CELL_H
#define KTRXER_LIB_TX_CELL_H

#include "tx.h"

/* A stamp that has not come after 100 ms will not, and one that cannot be tells nothing: the proof is the kernel's word alone then. */
static inline void stamp_give_up(struct ktx_cell *cell)
{
	cell->stamp_due = false;
	cell->stamp_missing = true;
}

static inline void cell_end(struct ktx_cell *cell, enum ktx_status status, int error)
{
	cell->status = (uint8_t)status;
	if (error)
		cell->error = error;
	cell->proof = KTX_PROOF_NONE;
	cell->stamp_due = false;
}

/* Are stamps or buffers still out? */
static inline bool stamps_wanted(const struct ktx *tx)
{
	return atomic_load_explicit(&tx->done, memory_order_relaxed) != tx->handed;
}

#endif
