/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_COMPLETIONS_H
#define KTRXER_LIB_COMPLETIONS_H

#include <ktrxer.h>

struct ktx_request;

/* Calls for the completions that an engine reaps: a stamp, by the number of its datagram (OPT_ID). */
struct ktx_completions {
	void (*stamp)(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source, bool nic_clock);
	/*
	 * The packet scheduler's stamp comes first; may be NULL. `device`: index, and `from`: source address with which
	 * the packet entered it (ktrxer_txstamp_add_path()); 0 and family 0: not reported.
	 */
	void (*sched)(void *context, uint32_t key, int64_t real_ns, uint32_t device, const struct ktrxer_addr *from);
	void (*refusal)(void *context, const struct ktx_network_error *error);
	/*
	 * A queue that keeps the times has dropped a frame. The socket reports the launch time of the frame, the engine
	 * reports the request.
	 */
	void (*dropped)(void *context, uint64_t launch, int error);
	void (*failed)(void *context, struct ktx_request *request, int error);
	void *context;
};

#endif
