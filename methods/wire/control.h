/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A client requests flows of a server by this protocol: prefaces, keys, frames and their contents
 * (docs/reference/control.md). Nothing here has a socket or a clock; every byte that came from the other end is read
 * through lib/base/bytes.h. A connection begins with a preface of 32 bytes from the client; a control connection's
 * holds a nonce, and the server answers with its own. The keys of one connection come from the token and both nonces:
 * the token itself never crosses the wire, and a recording of one connection is worth nothing on another. Each later
 * frame carries a HMAC over its number and its bytes. It authenticates; it does not hide.
 */
#ifndef KTRXER_METHODS_CONTROL_H
#define KTRXER_METHODS_CONTROL_H

#include "bytes.h"
#include "flow_spec.h"
#include "sha256.h"

enum {
	CONTROL_VERSION = 1,
	CONTROL_PREFACE = 32,
	CONTROL_NONCE = 24,
	CONTROL_COOKIE = 16,
	CONTROL_HEAD = 4, /* of a frame: type, 24 bits of length */
	CONTROL_MAC = 16,
	CONTROL_FIRST_MAX = 512, /* body of the one frame that is read before its sender is known */
	CONTROL_BODY_MAX = 16384,
	CONTROL_CCS = 16,      /* congestion controls that a request may name */
	CONTROL_RECORD = 40,   /* a flow in CONTROL_FLOWS */
	CONTROL_RECORDS = 256, /* of them in one frame */
};

enum control_kind {
	CONTROL_CLIENT = 'C',   /* a control connection; nonce */
	CONTROL_SERVER = 'S',   /* the answer; nonce */
	CONTROL_DATA = 'D',     /* a flow's own connection; session, flow, cookie */
	CONTROL_DATAGRAM = 'U', /* the same as a datagram: registers where it comes from */
};

struct control_preface {
	uint8_t kind, version;
	uint8_t nonce[CONTROL_NONCE];
	uint32_t session, flow;
	uint8_t cookie[CONTROL_COOKIE];
};

void control_preface_write(uint8_t out[CONTROL_PREFACE], const struct control_preface *preface);
/* -EPROTO: something else. The version is not judged here. */
int control_preface_read(struct control_preface *preface, const void *data, size_t length);

struct control_keys {
	struct hmac_key to_server, to_client, cookies;
	uint64_t sent, received; /* frames so far */
	bool server;             /* whose side this is */
};

void control_keys_derive(struct control_keys *keys, const struct hmac_key *token, const uint8_t client[CONTROL_PREFACE],
			 const uint8_t server[CONTROL_PREFACE], bool is_server);
void control_cookie(const struct control_keys *keys, uint32_t session, uint32_t flow, uint8_t cookie[CONTROL_COOKIE]);

enum control_type {
	CONTROL_REQUEST = 1, /* client: all that it requests */
	CONTROL_GRANT,       /* server: it may, within these limits */
	CONTROL_FLOWS,       /* client: each flow */
	CONTROL_PLANNED,     /* server: all are taken note of; connect them */
	CONTROL_READY,       /* server: all are connected */
	CONTROL_PING,        /* client */
	CONTROL_PONG,        /* server */
	CONTROL_START,       /* client: at this time of the server's clock */
	CONTROL_STOP,        /* client: now */
	CONTROL_SAMPLES,     /* server */
	CONTROL_FLOW_END,    /* server: the last of one flow */
	CONTROL_BYE,         /* either: the last frame */
	CONTROL_REFUSE,      /* server: no, and why. The one frame that may come without a good HMAC */
	CONTROL_PACKETS,     /* server: packets of trains (flow_packets.h) */
};

struct control_frame {
	uint8_t type;
	bool sealed; /* its HMAC is right */
	const uint8_t *body;
	uint32_t length;
};

/* Head and HMAC around a body that lies at out + CONTROL_HEAD; returns the whole length. */
uint32_t control_seal(struct control_keys *keys, uint8_t *out, uint8_t type, uint32_t length);
/*
 * The same with a HMAC of zeros: a refusal to a peer that has not proven the token. A real one would let that peer try
 * tokens off line.
 */
uint32_t control_seal_none(uint8_t *out, uint8_t type, uint32_t length);
/*
 * The first frame of what has come: 1, and how many bytes it takes; 0: more must come; -EMSGSIZE: longer than `most`;
 * -EBADMSG: a wrong HMAC (never for CONTROL_REFUSE).
 */
int control_open(struct control_keys *keys, const uint8_t *data, size_t have, uint32_t most,
		 struct control_frame *frame, uint32_t *taken);

struct control_request {
	uint32_t flows;
	uint64_t for_ns;   /* of one flow; 0: until its bytes are through */
	uint64_t bytes;    /* of one flow; 0: until its time is over */
	uint64_t whole_ns; /* from the first start to the last end; 0: not known */
	uint64_t sample_ns;
	uint64_t rate_bps; /* of all flows together, in the direction that asks for more; 0: as fast as they get */
	uint8_t cc_count;
	char ccs[CONTROL_CCS][FLOW_CC_MAX];
};

struct control_grant {
	uint32_t session;
	uint64_t max_ns;   /* nothing lasts longer */
	uint64_t pace_bps; /* of all TCP flows of one direction together; 0: no limit */
};

enum control_refusal {
	CONTROL_OK = 0,
	CONTROL_NO_TOKEN,   /* wrong token */
	CONTROL_NO_VERSION, /* value: the only one spoken */
	CONTROL_MALFORMED,  /* or out of turn */
	CONTROL_CLIENTS,    /* value: so many may be served at once */
	CONTROL_TOO_MANY,   /* value: flows */
	CONTROL_TOO_LONG,   /* value: nanoseconds */
	CONTROL_TOO_FAST,   /* value: bit/s */
	CONTROL_TOO_FINE,   /* value: the shortest interval of samples, in nanoseconds */
	CONTROL_NO_MEMORY,
	CONTROL_NO_CC,     /* value: which of those named is not there */
	CONTROL_CC_LOCKED, /* value: which of those named is not allowed to it */
	CONTROL_NO_DSCP,   /* value: the DSCP that is not granted */
	CONTROL_SILENT,    /* nothing arrived for value nanoseconds */
	CONTROL_NO_FAMILY, /* what a UDP flow down needs could not be opened; value: errno's word, see flow_error */
	CONTROL_STOPPING,  /* the server ends */
	/* UDP flows down are requested from another address than that of the control connection */
	CONTROL_OTHER_ADDRESS,
	CONTROL_REFUSALS,
};

struct control_refuse {
	uint8_t why;
	uint64_t value;
};

struct control_pong {
	uint64_t t1_ns, t2_ns, t3_ns; /* t1 as it came */
};

/* Each writes a body and returns its length; `out` has CONTROL_BODY_MAX bytes (the request: CONTROL_FIRST_MAX). */
uint32_t control_request_write(uint8_t *out, const struct control_request *request);
uint32_t control_grant_write(uint8_t *out, const struct control_grant *grant);
uint32_t control_refuse_write(uint8_t *out, const struct control_refuse *refuse);
uint32_t control_pong_write(uint8_t *out, const struct control_pong *pong);
uint32_t control_flows_write(uint8_t *out, uint32_t first, uint32_t count, const struct flow_spec *specs);
uint32_t control_flow_end_write(uint8_t *out, uint32_t flow, const struct flow_end *end);
uint32_t control_time_write(uint8_t *out, uint64_t ns); /* PING, START */

/* 0 or -EPROTO. A longer body is from a later version: its rest is left alone. */
int control_request_read(struct control_request *request, const struct control_frame *frame);
int control_grant_read(struct control_grant *grant, const struct control_frame *frame);
int control_refuse_read(struct control_refuse *refuse, const struct control_frame *frame);
int control_pong_read(struct control_pong *pong, const struct control_frame *frame);
/*
 * Returns the number of records, CONTROL_RECORDS at most, or -EPROTO. Each is checked to be possible. `ccs` names are
 * the request's.
 */
int control_flows_read(struct flow_spec *specs, uint32_t *first, const struct control_frame *frame,
		       const struct control_request *request);
int control_flow_end_read(uint32_t *flow, struct flow_end *end, const struct control_frame *frame);
int control_time_read(uint64_t *ns, const struct control_frame *frame);

/* UDP flows that the server sends: the ports that they come from, in CONTROL_PLANNED. */
struct control_port {
	uint32_t flow;
	uint16_t port;
};
uint32_t control_ports_write(uint8_t *out, uint32_t count, const struct control_port *ports);
int control_ports_read(struct control_port *ports, uint32_t most, const struct control_frame *frame);

#endif
