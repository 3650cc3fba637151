/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The reflector's memory of who it talks to. */
#ifndef KTRXER_METHODS_REFLECTOR_SESSION_H
#define KTRXER_METHODS_REFLECTOR_SESSION_H

#include "limits.h"
#include "reflector_arrival.h"

struct reflector_session {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port, ssid;
	bool used;
	uint8_t serial;       /* of this place: a stamp for the one before is not taken for ours */
	uint8_t left_method;  /* enum stamp_method; 0: nothing known yet */
	uint32_t received, sent;
	uint32_t left_seq;    /* the last answer whose time of leaving is known */
	int64_t left_real_ns;
	uint64_t seen_ns;
};

struct reflector_sessions {
	uint64_t secret, made, refused;
	struct reflector_session table[KTRXER_REFLECTOR_SESSIONS];
};

/* The session of this packet, made if need be; NULL: no room. */
struct reflector_session *reflector_session_of(struct reflector_sessions *sessions, const struct reflector_arrival *arrival,
					       uint16_t ssid);
/* A name for it that does not outlive it. */
uint32_t reflector_session_name(const struct reflector_sessions *sessions, const struct reflector_session *session);
struct reflector_session *reflector_session_by_name(struct reflector_sessions *sessions, uint32_t name);

#endif
