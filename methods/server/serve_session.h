/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One client of the server: from its preface to its last frame. serve_registry.h holds them all. */
#ifndef KTRXER_METHODS_SERVE_SESSION_H
#define KTRXER_METHODS_SERVE_SESSION_H

#include "control_link.h"
#include "flow_sample.h"
#include "flow_set.h"
#include "flow_spec.h"
#include "serve_packets.h"
#include "serve_registry.h"

enum {
	KTRXER_CONTROL_HELLO_S = 16, /* and so long they may take for it: TCP repeats after 1, 2, 4 and 8 s */
	KTRXER_FLOW_SAMPLE_MIN_NS = 1000 * 1000,
	KTRXER_FLOW_SAMPLES_S = 50000, /* samples a second of all flows of a client */
};

enum session_state {
	SESSION_NEW = 0, /* keys are derived; no frame has shown yet that the client has the token */
	SESSION_GRANTED, /* the client has the token, and sends the list of its flows */
	SESSION_PLANNED, /* the flows are being connected */
	SESSION_READY,
	SESSION_RUNNING,
	SESSION_ENDED,   /* all flows have ended; the client may still read the clock (CONTROL_PING) */
	SESSION_LEAVING, /* the client was refused; the refusal is being sent */
	SESSION_CLOSING, /* the client is gone; the flows are closed in shares */
};

struct session {
	struct control_link link; /* first */
	struct serve_registry *registry;
	struct session *next;
	struct loop_timer timer; /* the next check of the time limits */
	uint8_t state;
	uint32_t id;
	uint64_t dead_ns; /* the session ends at this time at the latest */
	struct control_request request;
	struct flow_set *flows;
	struct flow_set *closing;  /* flows of a session that is over */
	struct loop_timer opening; /* UDP flows are opened one in each turn of the loop */
	uint32_t opened;           /* the next flow to open */
	uint64_t rates[2];         /* bit/s of UDP flows, by direction */
	uint32_t udp_flows, port_count;
	struct control_port ports[KTRXER_FLOW_UDP_MAX]; /* of UDP flows that the server sends */
	struct flow_history history;
	struct serve_client client;
	uint8_t *block; /* samples that are not yet sent */
	uint32_t block_used;
	uint64_t block_ns;
	struct serve_packets packets;
};

/* Takes over `fd`. The keys are derived from both prefaces. */
int session_new(struct session **session, struct serve_registry *registry, int fd, const struct ktrxer_addr *peer,
		const uint8_t client[CONTROL_PREFACE], const struct hmac_key *token);
/* Checks the version of the client, once the session is in the registry and has its number. May end the session. */
void session_greet(struct session *session, uint8_t version);
/* Ends the session. It is freed at once, or when its flows are closed: thousands take some turns of the loop. */
void session_forget(struct session *session);
/* Takes the session out of the registry and frees it. */
void session_free(struct session *session);
/* Attaches a connection that has sent this cookie to a flow: 0, then `fd` is the session's; else a negative errno. */
int session_attach(struct session *session, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE], int fd);
/*
 * Registers the source of a datagram with this cookie as the peer of a flow. 1: it was registered before. Else a
 * negative errno.
 */
int session_register(struct session *session, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE],
		     const struct ktrxer_addr *from, uint16_t port);
/* Sends a refusal and ends the connection. */
void session_refuse(struct session *session, enum control_refusal why, uint64_t value);

#endif
