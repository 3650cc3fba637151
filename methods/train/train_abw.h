/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The steps of abw.h, each as one session of trains. */
#ifndef KTRXER_METHODS_TRAIN_ABW_H
#define KTRXER_METHODS_TRAIN_ABW_H

#include "abw.h"
#include "train_session.h"

struct train_abw {
	struct abw abw;
	uint32_t sessions;
	uint32_t remote_missing; /* flows whose end the server did not report */
	struct ktx_info info;    /* as of struct train_session */
	struct ktrxer_qdiscs qdiscs;
	bool stopped;
	uint64_t lasted_ns; /* of all sessions */
	double load_bit_s;  /* of the probes on average, while the direction was measured */
	double load_share;  /* of the capacity; 0: not known */
	void (*step)(void *context, const struct abw_plan *plan, const struct train_session *session); /* after each */
	void *context;
};

/*
 * Runs abw->abw, which abw_begin() has prepared, in one direction to its end. `head`: bytes of the headers before
 * the payload of a packet. `session`: the server and the sender; this function fills its specs, flows and trains. 0,
 * or a negative errno with a text. abw_end() in any case.
 */
int train_abw_run(struct train_abw *abw, const struct train_session_options *session, bool down, uint32_t head,
		  struct ktrxer_error *err);

#endif
