/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How the pump ends a request. */
#ifndef KTRXER_LIB_TX_REQUEST_H
#define KTRXER_LIB_TX_REQUEST_H

#include "tx.h"

/*
 * The source is `queued` without the driver's stamp. Where that stamp is the send time, a device that has given others
 * leaves this probe untimed.
 */
static inline void stamp_give_up(const struct ktx *tx, struct ktx_request *request)
{
	request->stamp_due = false;
	request->stamp_missing = true;
	request->untimed |= request->bypasses && tx->pump.driver_seen;
}

static inline void sched_give_up(struct ktx_request *request)
{
	request->sched_due = false;
	request->untimed = true;
}

static inline void request_end(struct ktx_request *request, enum ktx_status status, int error)
{
	request->status = (uint8_t)status;
	if (error)
		request->error = error;
	request->departure = KTX_DEPARTURE_NONE;
	request->stamp_due = request->sched_due = false;
}

/* True if stamps or buffers are still out. */
static inline bool stamps_wanted(const struct ktx *tx)
{
	return atomic_load_explicit(&tx->ring.done, memory_order_relaxed) != tx->pump.submitted;
}

static inline bool cancel_due(const struct ktx *tx)
{
	return atomic_load_explicit(&tx->shared.cancel_seq, memory_order_relaxed) != tx->pump.cancel_seen;
}

#endif
