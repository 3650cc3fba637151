/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sessions of the reflector. */
#ifndef KTRXER_METHODS_REFLECTOR_SESSION_H
#define KTRXER_METHODS_REFLECTOR_SESSION_H

#include "reflector_arrival.h"
#include "sequence_set.h"

enum {
	KTRXER_REFLECTOR_SESSIONS = 4096, /* 4.8 MiB, of which idle places take none; a power of two */
	/* stamps of answers that no follow-up has reported yet: many when a queue of this host drains */
	KTRXER_REFLECTOR_LEFT = 64,
	KTRXER_REFLECTOR_SEQUENCES = 256, /* of a session, in which copies of requests are found: a power of two */
	KTRXER_REFLECTOR_GROUPS = 4096,   /* prefixes, by hash, whose sessions are counted; a power of two */
};

enum {
	REFLECTOR_STAMPED = 64,
};

struct reflector_session {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port, ssid;
	uint16_t group; /* of its prefix, in `counts` of the table */
	bool used;
	uint8_t serial;                    /* of this place: a stamp for the one before is not taken for ours */
	uint32_t received, sent, last_seq; /* last_seq: of the last request */
	uint32_t next_seq, copies; /* the highest sequence number answered + 1; requests that were answered before */
	bool copies_unknown;       /* a request was further behind than `answered` reaches */
	uint64_t began_ns, seen_ns, bytes;
	uint64_t reported_ns;                               /* seen_ns at the last report; 0: none */
	uint64_t answered[KTRXER_REFLECTOR_SEQUENCES / 64]; /* sequence numbers: sequence_set.h */
	uint64_t stamped; /* of the last REFLECTOR_STAMPED answers: those that had their stamp; sequence_set.h */
	uint32_t next_stamped;
	/* Stamps of answers that no later answer has carried yet: the oldest first, a ring from left_first on. */
	uint32_t left_first, left_count;
	struct reflector_left {
		int64_t real_ns;
		uint32_t seq;
		uint8_t method; /* enum stamp_method */
	} left[KTRXER_REFLECTOR_LEFT];
};

/* A request of `length` bytes is answered. */
void reflector_session_count(struct reflector_session *session, uint32_t seq, uint32_t length);

/*
 * The stamp of an answer, for one of the next ones to carry. The oldest is replaced when there is no room. The first
 * stamp of an answer counts: a bridge behind the host's own device (a container's) passes the packet to a second
 * device, and the kernel stamps it there, too.
 */
void reflector_session_left(struct reflector_session *session, const struct reflector_left *left);
/* Returns the oldest session that was not reported yet; false: none. */
bool reflector_session_report(struct reflector_session *session, struct reflector_left *left);

struct reflector_sessions {
	uint64_t secret, made, refused, evicted;
	void (*ended)(void *context, const struct reflector_client *client); /* NULL: no call */
	void *context;
	uint32_t reviewed;                        /* the place that reflector_sessions_review() looks at next */
	uint64_t swept_ns;                        /* when the sessions that are over were last looked for */
	uint16_t counts[KTRXER_REFLECTOR_GROUPS]; /* used sessions of each group of prefixes */
	struct reflector_session table[KTRXER_REFLECTOR_SESSIONS];
};

/*
 * The session of this packet, made if need be; NULL: no room. A sender that starts again on the same port, at 0, gets a
 * new one.
 */
struct reflector_session *reflector_session_of(struct reflector_sessions *sessions,
					       const struct reflector_arrival *arrival, uint16_t ssid, uint32_t seq);
/* Ends the sessions that are over among the next `places` of the table; with `all` also the others. */
void reflector_sessions_review(struct reflector_sessions *sessions, int places, bool all, uint64_t now_ns);
/* A name for it that does not outlive it. */
uint32_t reflector_session_name(const struct reflector_sessions *sessions, const struct reflector_session *session);
struct reflector_session *reflector_session_by_name(struct reflector_sessions *sessions, uint32_t name);

#endif
