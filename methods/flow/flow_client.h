/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client's side of flows: asks a server, connects each flow, agrees on a start, runs its ends and reads reports of
 * the others, all in one loop of loop.h. The owner gets results by calls, remote times already on our clock.
 */
#ifndef KTRXER_METHODS_FLOW_CLIENT_H
#define KTRXER_METHODS_FLOW_CLIENT_H

#include "clock_offset.h"
#include "control_link.h"
#include "flow_sample.h"
#include "flow_set.h"
#include "path_witness.h"

/* A sample's time as the server had it, and what its conversion may err, as was known when it came. */
struct flow_origin {
	uint64_t remote_ns, bound_ns;
};

enum flow_failure_kind {
	FLOW_REFUSED_BY_SERVER, /* `refuse` has the reason */
	FLOW_NOT_CONNECTED,     /* a TCP connection to it failed with `error` */
	FLOW_LINK_GONE,         /* the control connection ended with `error`; 0: the server closed it */
};
struct flow_failure {
	enum flow_failure_kind kind;
	int error;    /* negative errno */
	bool greeted; /* the other end has identified itself as a server of flows */
	struct control_refuse refuse;
};

struct flow_client_options {
	struct loop *loop;
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	const struct hmac_key *token; /* copied */
	const char *device, *engine;  /* of UDP senders; NULL: the route's, udp */
	bool precise;
	int cpu;
	const struct flow_spec *specs; /* request.flows of them; copied */
	struct control_request request;
	uint64_t start_ns; /* 0: as soon as all is ready */
	/*
	 * Gets departures of flows up, and of the first packets of flows down, and arrivals of UDP flows down; the
	 * caller compares them (path_witness_end). NULL: not wanted.
	 */
	struct path_witness *witness;
	/*
	 * Events. sample, connected and started may be NULL. `origin` NULL: taken here. Else by the server, and
	 * sample->time_ns is on our clock.
	 */
	void (*sample)(void *context, uint32_t flow, const struct flow_sample *sample,
		       const struct flow_origin *origin);
	void (*connected)(void *context, uint32_t flow, int fd);
	void (*started)(void *context, uint64_t start_ns,
			uint64_t late_ns); /* all are; late_ns: after start_ns was asked for */
	/* end->time_ns on our clock. */
	void (*ended)(void *context, uint32_t flow, bool remote, const struct flow_end *end);
	/* FLOW_TRAIN needs it. `remote`: the server's stamp, packet->time_ns is on its clock. */
	void (*packet)(void *context, uint32_t flow, bool remote, const struct flow_packet *packet);
	void (*tick)(void *context, uint64_t at_ns);
	void (*done)(void *context); /* nothing more comes */
	/* Describes a failure in `err`, and returns its code: what to do about it depends on the program's options. */
	int (*describe)(struct ktrxer_error *err, const struct flow_client_options *options,
			const struct flow_failure *failure);
	void *context;
};

struct flow_client_result {
	bool granted, started;
	bool server_gone;          /* the control connection broke; `error` says how */
	uint32_t remote_missing;   /* flows of which the server never said how they ended */
	struct ktrxer_error error; /* code 0: none */
	uint64_t start_ns, pace_bps;
	uint64_t begun_late_ns; /* the server began the flows at least so long after start_ns */
	bool start_repeated;    /* TCP repeated a segment of the control connection before the server's first sample */
	struct clock_offset_result clock; /* offset of the server's CLOCK_MONOTONIC */
	uint64_t clock_bound_ns;          /* uncertainty of its line, from the start to the end of the flows */
	uint32_t clock_steps;             /* that clock does not step: another host answers, or it was suspended */
	uint64_t rtt_ns;                  /* the shortest exchange over the control connection */
	bool control_known;               /* the control connection's traffic is: bytes of IP packets */
	uint64_t control_up_bytes, control_down_bytes;
};

struct flow_client;
int flow_client_new(struct flow_client **client, const struct flow_client_options *options, struct ktrxer_error *err);
void flow_client_free(struct flow_client *client);
/* Ends all flows; `done` follows within seconds. */
void flow_client_stop(struct flow_client *client);
void flow_client_result(const struct flow_client *client, struct flow_client_result *result);
/* Adds the departures of the transmitters to options.witness. Once, after the end. */
void flow_client_witness(const struct flow_client *client);
/* The books of a UDP sender here, and how late it was: see flow_udp.h. NULL: it is none. */
struct ktrxer_hist *flow_client_lateness(const struct flow_client *client, uint32_t flow,
					 struct ktx_accounts *accounts);
/* Its engine, and the qdiscs of its device. False: it is none. */
bool flow_client_engine(const struct flow_client *client, uint32_t flow, struct ktx_info *info,
			struct ktrxer_qdiscs *qdiscs);

#endif
