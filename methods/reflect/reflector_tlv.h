/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The TLVs of a request become those of its answer, in place and at the same length (RFC 8972, section 4). */
#ifndef KTRXER_METHODS_REFLECTOR_TLV_H
#define KTRXER_METHODS_REFLECTOR_TLV_H

#include "reflector_session.h"
#include "stamp_packet.h"

struct reflector_tlv_context {
	const struct reflector_arrival *arrival;
	struct reflector_session *session; /* NULL: stateless */
	const struct hmac_key *key;        /* NULL: none */
	bool auth, ptp, synchronised;
	uint64_t dscp_granted;
	int64_t adjusted_from_ns; /* adjustments of the clock count from this one */
	uint32_t rate, refused;   /* the limit, and the requests beyond it so far */
	uint8_t tos;              /* in: of the answer so far; out: as a class-of-service TLV may have made it */
	bool follow;              /* out: follow-up telemetry was asked for */
	bool integrity_bad;       /* out */
};

/*
 * `request_seq`: the HMAC of the request is over its own sequence number, that of the answer over the answer's; the
 * base packet at `packet` is the answer's already.
 */
void reflector_tlvs(uint8_t *packet, uint32_t length, uint32_t request_seq, struct reflector_tlv_context *context);

#endif
