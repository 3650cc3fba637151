/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A STAMP session, as its own files use it. */
#ifndef KTRXER_METHODS_STAMP_SESSION_STATE_H
#define KTRXER_METHODS_STAMP_SESSION_STATE_H

#include "stamp_losses.h"
#include "stamp_packet.h"
#include "stamp_session.h"

enum state { FREE, COMMITTED, WAITING, DONE, LOST, UNSENT };

struct stamp_entry {
	uint64_t number, time; /* time: as the packet said */
	uint8_t state;
	bool has_reply, held; /* held: both stamps are here, T3 may still get better */
	bool unplaced;        /* if it is lost, the reflector's counts do not cover it */
	uint64_t released_ns; /* when it is no longer held */
	struct stamp_place reflector;
	struct stamp_sample sample;
};

struct stamp_session {
	struct stamp_session_options options;
	struct hmac_key auth_key, tlv_key;
	struct stamp_entry *entries;
	uint32_t mask;
	uint64_t begin, end;     /* numbers that may still wait */
	uint64_t held_begin;     /* the oldest that may be held */
	uint64_t answered_t1_ns; /* the latest send time of a probe that has its answer */
	/* the highest number answered + 1: hundreds behind it may be committed ahead of their time */
	uint64_t replied_end;
	uint64_t close_from;
	struct stamp_losses losses;
	uint64_t answered_end; /* highest measured number answered + 1 */
	uint64_t closing_answered;
	bool last_valid, limits_seen;
	struct stamp_limits limits; /* the last that the reflector reported */
	struct stamp_sample last;
	struct stamp_session_counts counts;
};

struct stamp_entry *stamp_session_entry(const struct stamp_session *s, uint64_t number); /* NULL: none of this number */
bool stamp_session_is_measured(const struct stamp_session *s, uint64_t number);
/* Both ways in are through: the stamp of leaving and the answer. */
void stamp_session_complete(struct stamp_session *s, struct stamp_entry *e);

#endif
