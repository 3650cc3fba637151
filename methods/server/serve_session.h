/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One client of the server: from its preface to its last frame. serve_registry.h holds them all. */
#ifndef KTRXER_METHODS_SERVE_SESSION_H
#define KTRXER_METHODS_SERVE_SESSION_H

#include "control_link.h"
#include "flow_sample.h"
#include "flow_set.h"
#include "serve_packets.h"
#include "serve_registry.h"

enum session_state {
	SESSION_NEW = 0,   /* keys are made, but has he the token? */
	SESSION_GRANTED,   /* he has; his flows are being told */
	SESSION_PLANNED,   /* they are being connected */
	SESSION_READY,
	SESSION_RUNNING,
	SESSION_ENDED,     /* all flows have; he may still ask for the time */
	SESSION_LEAVING,   /* he was refused; the refusal is on its way */
};

struct session {
	struct control_link link; /* first */
	struct serve_registry *registry;
	struct session *next;
	struct loop_timer timer; /* the end of patience */
	uint8_t state;
	uint32_t id;
	uint64_t dead_ns;         /* it ends then, whatever happens */
	struct control_request request;
	struct flow_set *flows;
	struct flow_history history;
	struct ktrxer_addr peer;
	uint8_t *block;           /* samples on their way */
	uint32_t block_used;
	uint64_t block_ns;
	struct serve_packets packets;
};

/* Takes over `fd`. The keys come of both prefaces. */
int session_new(struct session **session, struct serve_registry *registry, int fd, const struct ktrxer_addr *peer,
		const uint8_t client[CONTROL_PREFACE], const struct hmac_key *token);
/* Once it is in the list, and has its number: its client may speak. May end it. */
void session_greet(struct session *session, uint8_t version);
/* Ends it with all its flows, takes it out of the registry, and frees it. */
void session_forget(struct session *session);
/* A connection that has shown this cookie: 0, then `fd` is the session's; else a negative errno. */
int session_attach(struct session *session, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE], int fd);
/* A datagram that has shown this cookie: its flow is the one that comes from there. 1: known already. Else a negative errno. */
int session_register(struct session *session, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE], const struct ktrxer_addr *from,
		     uint16_t port);
/* A last word; the connection ends. */
void session_refuse(struct session *session, enum control_refusal why, uint64_t value);

#endif
