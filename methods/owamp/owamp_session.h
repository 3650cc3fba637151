/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One session of a control connection, at the server: sender or receiver, from its request to its records. */
#ifndef KTRXER_METHODS_OWAMP_SESSION_H
#define KTRXER_METHODS_OWAMP_SESSION_H

#include "owamp_judge.h"
#include "owamp_sender.h"
#include "owamp_server.h"

struct owamp_session {
	struct loop *loop;
	int fd; /* of the test packets, connected to the client */
	bool sends, stopped;
	struct owamp_request request; /* with the ports and the identifier that are used */
	struct owamp_slot slots[OWAMP_SLOTS_MOST];
	struct owamp_sender *sender;
	struct owamp_receiver receiver;
	uint32_t next, skips;    /* of a receiver: as its sender reported */
	int64_t stopped_ns;      /* CLOCK_REALTIME */
	bool judged;             /* the receiver has the records that count */
	uint32_t decided;        /* numbers below are lost if they have no record */
	struct owamp_skip *skip; /* in their order */
};

/* The rest of the answer to a Fetch-Session. */
struct owamp_fetched_rest {
	struct owamp_session *session; /* NULL: nothing */
	struct owamp_judge judge;      /* until session->judged */
	bool head;                     /* has been written */
	uint32_t begin, end;           /* numbers of the wanted packets */
	uint32_t record, seq, skip;    /* that are looked at next */
	struct owamp_schedule schedule;
	size_t padding; /* bytes behind the records */
};

/* The most bytes before the records. */
enum {
	OWAMP_FETCHED_HEAD = OWAMP_COMMAND_BYTES + OWAMP_REQUEST_BYTES + OWAMP_SLOTS_MOST * OWAMP_SLOT_BYTES +
	OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES + 2 * OWAMP_HMAC_BYTES
};

/* The ends of the control connection. */
struct owamp_ends {
	struct ktrxer_addr client, server;
};

/*
 * Opens the socket of a requested session; nothing is sent. An enum owamp_accept: not OWAMP_OK, and there is no
 * session.
 */
uint8_t owamp_session_open(struct owamp_session *session, struct loop *loop, const struct owamp_request *request,
			   const struct owamp_slot *slots, const struct owamp_ends *ends,
			   const struct owamp_server_options *limits);
/* Mean rate of its IP packets in bit/s. */
uint64_t owamp_session_bps(const struct owamp_session *session);
int owamp_session_start(struct owamp_session *session);
/* The mean duration of all packets. */
uint64_t owamp_session_lasts_ns(const struct owamp_session *session);
void owamp_session_stop(struct owamp_session *session);
/* Has stopped, and no packet has arrived that its sender does not count (RFC 4656, 3.8). */
bool owamp_session_has_records(const struct owamp_session *session);
/*
 * Begins the answer to a Fetch-Session of this range of numbers. The receiver takes no packets from now on. 0 or
 * -ENOMEM.
 */
int owamp_session_fetch(struct owamp_session *session, uint32_t begin, uint32_t end, struct owamp_fetched_rest *rest);
/*
 * The next bytes of the answer, with some 100 us of work: from 0 to `size`, which is OWAMP_FETCHED_HEAD at least. At
 * the end there is no session.
 */
size_t owamp_fetched_next(struct owamp_fetched_rest *rest, uint8_t *to, size_t size);
void owamp_fetched_end(struct owamp_fetched_rest *rest);
void owamp_session_close(struct owamp_session *session);

#endif
