/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The common state of a server's clients: limits, counts, the list of their sessions, and the flow of each address and
 * port.
 */
#ifndef KTRXER_METHODS_SERVE_REGISTRY_H
#define KTRXER_METHODS_SERVE_REGISTRY_H

#include "control.h"
#include "loop.h"

enum { KTRXER_CONTROL_TRUSTED = 64 /* addresses whose clients have proven the token */ };

struct session;

/* The account of a control connection, after its end. */
struct serve_client {
	struct ktrxer_addr from;
	uint64_t began_ns, ended_ns;
	uint32_t flows[2][2];          /* [down][UDP]; asked for, whether they ran or not */
	uint64_t bytes[2], packets[2]; /* [0] received, [1] sent; packets of UDP */
	enum control_refusal refused;  /* CONTROL_OK: it was not */
	bool proven;                   /* its client has the token */
	bool lost;                     /* gone before its flows had ended and without a farewell */
};

struct serve_control_options {
	const struct hmac_key *token;    /* copied */
	uint32_t max_clients, max_flows; /* clients at once; flows of one */
	uint64_t max_ns, max_bps;        /* of one client; max_bps 0: no limit */
	uint64_t secret;                 /* random */
	uint64_t dscp_granted;           /* bit n: flows may carry DSCP n */
	/* Each control connection, when all of it has ended. NULL: no call. */
	void (*ended)(void *context, const struct serve_client *client);
	void *context;
};

struct serve_control_counts {
	uint64_t connections;          /* of all kinds */
	uint64_t sessions;             /* that were granted */
	uint64_t flows;                /* that began */
	uint64_t bytes[2], packets[2]; /* of flows that have ended: [0] received, [1] sent; packets of UDP */
	uint64_t refused[CONTROL_REFUSALS];
	uint64_t displaced;       /* pending connections that made room for newer ones */
	uint64_t slow;            /* pending connections that did not state their purpose in time */
	uint64_t protocol_errors; /* another protocol, or a cookie that is not right */
	uint64_t lost_clients;    /* whose connection ended during a session */
};

struct peer {
	struct peer *next, *next_tag; /* of the same hash: of the address and port, of the tag */
	uint64_t tag;
	struct ktrxer_addr addr;
	uint16_t port;
	struct session *session;
	uint32_t flow;
};

enum { SERVE_PEERS = 256 };

struct trusted_address {
	struct ktrxer_addr addr;
	uint64_t until_ns;
};

struct serve_registry {
	struct loop *loop;
	struct serve_control_options options;
	struct serve_control_counts counts;
	struct session *sessions;
	struct peer *peers[SERVE_PEERS], *tags[SERVE_PEERS];
	struct trusted_address trusted[KTRXER_CONTROL_TRUSTED];
	uint32_t next_id;
};

void registry_add(struct serve_registry *registry, struct session *session); /* gives it its number */
void registry_remove(struct serve_registry *registry, struct session *session);
struct session *registry_session(struct serve_registry *registry, uint32_t id);
uint32_t registry_clients(const struct serve_registry *registry); /* that have shown the token */
/* A client at this address has proven the token now. The oldest one makes room. */
void registry_trust(struct serve_registry *registry, const struct ktrxer_addr *addr, uint64_t now_ns);
bool registry_trusted(const struct serve_registry *registry, const struct ktrxer_addr *addr, uint64_t now_ns);
/* Packets from this address and port belong to this flow, whose packets have this tag. 0 or -ENOMEM. */
int registry_peer_add(struct serve_registry *registry, struct session *session, uint32_t flow, uint64_t tag,
		      const struct ktrxer_addr *from, uint16_t port);
/* The same flow has another address or port. */
void registry_peer_move(struct serve_registry *registry, struct peer *peer, const struct ktrxer_addr *from,
			uint16_t port);
void registry_peers_forget(struct serve_registry *registry, const struct session *session);
/* Lists the peers that may have this tag, by next_tag. */
struct peer *registry_tagged(struct serve_registry *registry, uint64_t tag);
/* Lists the peers that may be meant. */
const struct peer *registry_peers(struct serve_registry *registry, const struct ktrxer_addr *addr, uint16_t port);

#endif
