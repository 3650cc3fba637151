/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client of flows, as its own files use it. */
#ifndef KTRXER_METHODS_FLOW_CLIENT_STATE_H
#define KTRXER_METHODS_FLOW_CLIENT_STATE_H

#include "control_link.h"
#include "flow_client.h"
#include "flow_connect.h"
#include "flow_register.h"

enum client_state {
	CLIENT_GREETING = 0, /* the server's preface is awaited */
	CLIENT_ASKING,       /* its grant */
	CLIENT_TELLING,      /* that it has noted all flows */
	CLIENT_CONNECTING,   /* that all are connected */
	CLIENT_TIMING,       /* how far apart the clocks are */
	CLIENT_RUNNING,
	CLIENT_DRAINING,   /* the client's flows have ended; the server's results are missing */
	CLIENT_FINAL_SYNC, /* of the clocks */
	CLIENT_DONE,
};

#define FLOW_CLIENT_SILENCE_NS (5 * (uint64_t)KTRXER_NS_PER_S) /* of a server whose final counts are awaited */
#define FLOW_CLIENT_TIMING_NS ((uint64_t)KTRXER_NS_PER_S) /* for all exchanges of clocks after the first one */

struct flow_client {
	struct control_link link; /* first */
	struct flow_client_options options;
	struct flow_client_result result;
	struct hmac_key token;
	uint8_t preface[CONTROL_PREFACE];
	uint8_t state;
	bool stopping, link_gone, waits_on;
	uint32_t session;
	struct flow_spec *specs;
	struct flow_set *flows;
	struct flow_history history;
	bool *heard; /* flows of which the server has said how they ended */
	uint32_t heard_count;
	struct flow_connect *connect;
	struct flow_register *registers;
	struct clock_offset *clock;
	struct loop_timer timer;
	uint64_t deadline_ns;             /* of what this state awaits */
	uint64_t ping_ns;                 /* when the next one is due */
	uint64_t lived_ns, live_bound_ns; /* what `live_ns` is of: many flows are sampled at one time */
	int64_t live_ns;
	uint32_t pongs;
	uint64_t over_ns; /* when our flows had ended */
	uint32_t repeats; /* segments of the control connection that were repeated before the start */
	bool seen;        /* a sample of the server */
};

int flow_client_describe(const struct flow_client *c, struct ktrxer_error *err, const struct flow_failure *failure);
void flow_client_describe_gone(struct flow_client *c, int error, bool greeted);
void flow_client_state_set(struct flow_client *c, enum client_state state, uint64_t limit_ns);
void flow_client_ping(struct flow_client *c);
void flow_client_start(struct flow_client *c);
void flow_client_end_when_reported(struct flow_client *c);
void flow_client_done(struct flow_client *c);
void flow_client_fail(struct flow_client *c); /* done, and the flows are stopped */

/* flow_client_messages.c. Of the control connection. */
bool flow_client_on_preface(struct control_link *link, const uint8_t bytes[CONTROL_PREFACE]);
bool flow_client_on_frame(struct control_link *link, const struct control_frame *frame);
void flow_client_on_closed(struct control_link *link, int error);

#endif
