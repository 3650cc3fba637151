/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Inside the STAMP sender: what its two files share. */
#ifndef KTRXER_METHODS_STAMP_RUN_H
#define KTRXER_METHODS_STAMP_RUN_H

#include "stamp.h"

struct stamp_class {
	struct template frame;
	struct stamp_session *session;
	struct ktrxer_hist *rtt;
};

struct stamp {
	struct prober p;
	struct stamp_spec spec;
	struct stamp_events events;
	struct stamp_class classes[STAMP_CLASSES];
	uint8_t making; /* the DSCP and ECN byte of the frame that is being made */
	uint32_t payload_at;
	uint32_t direct_at, mac_at; /* offsets in the payload; 0: none */
	bool auth;
	struct hmac_key key, tlv_key;
	const struct hmac_key *tlv_mac_key;
	uint16_t error; /* this host's error estimate, as it is in packets */
	int64_t real_minus_mono;
	struct one_way *one_way;
	struct ktrxer_hist *far_queue, *ipdv, *ipdv_up, *ipdv_down;
	uint64_t closing_ns, give_up_ns; /* of the next closing probe, and the end of their phase */
	struct stamp_result result;
};

/* stamp_frame.c. The payload's length, its frame, and each probe in a frame. */
uint32_t stamp_payload_length(const struct stamp *stamp, uint32_t padding);
int stamp_make_frame(void *stamp, struct ktrxer_error *err);
/* Writes probe `number` of a class into a frame; returns the time that its packet carries. */
uint64_t stamp_fill(const struct stamp *stamp, uint32_t which, uint8_t *frame, uint64_t number, uint64_t at_ns);

#endif
