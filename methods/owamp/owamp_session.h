/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One session of a control connection, at the server: sender or receiver, from its request to its records. */
#ifndef KTRXER_METHODS_OWAMP_SESSION_H
#define KTRXER_METHODS_OWAMP_SESSION_H

#include "owamp_receiver.h"
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
	uint32_t next, skips; /* of a receiver: as its sender reported */
	struct owamp_skip *skip;
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
int owamp_session_start(struct owamp_session *session);
/* The mean duration of all packets. */
uint64_t owamp_session_lasts_ns(const struct owamp_session *session);
void owamp_session_stop(struct owamp_session *session);
/* Bytes of the answer to a Fetch-Session of this range of numbers; `to` NULL: their number alone. */
size_t owamp_session_fetch(const struct owamp_session *session, uint32_t begin, uint32_t end, uint8_t *to);
void owamp_session_close(struct owamp_session *session);

#endif
