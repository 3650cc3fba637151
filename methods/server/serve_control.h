/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server's side of flows: who may ask (control.h), what he gets, and what nobody gets. docs/control.md says what each
 * limit is for.
 *
 * Whoever has not shown that he knows the token costs a descriptor and some hundred bytes, for a few seconds; there is a
 * fixed number of such places, and the newest comer takes the oldest one's.
 */
#ifndef KTRXER_METHODS_SERVE_CONTROL_H
#define KTRXER_METHODS_SERVE_CONTROL_H

#include "control.h"
#include "serve.h"
#include "serve_udp.h"

struct serve_control_options {
	const struct hmac_key *token; /* copied */
	uint32_t max_clients, max_flows; /* clients at once; flows of one */
	uint64_t max_ns, max_bps;     /* of one client; max_bps 0: no limit */
	uint64_t secret;              /* random */
	uint64_t dscp_granted;        /* bit n: flows may carry DSCP n */
};

struct serve_control_counts {
	uint64_t connections;      /* of all kinds */
	uint64_t sessions;         /* that were granted */
	uint64_t flows;            /* that began */
	uint64_t bytes_in, bytes_out; /* of flows that ended */
	uint64_t packets_in, packets_out; /* UDP */
	uint64_t refused[CONTROL_REFUSALS];
	uint64_t displaced;        /* strangers who made room for newer ones */
	uint64_t slow;             /* strangers who did not say what they want in time */
	uint64_t strange;          /* who spoke something else, or showed a cookie that is not right */
	uint64_t lost_clients;     /* gone in the middle of it */
};
extern const char *const control_refusal_names[CONTROL_REFUSALS];

struct serve_control;
int serve_control_new(struct serve_control **control, struct serve *serve, const struct serve_control_options *options, struct ktrxer_error *err);
/* All clients are told that it stops, and their flows end. */
void serve_control_end(struct serve_control *control);
void serve_control_free(struct serve_control *control);
/* One listening TCP socket more. */
int serve_control_listen(struct serve_control *control, const struct ktrxer_addr *bind, uint16_t port, struct ktrxer_error *err);
/* For serve_udp: true when the datagram belongs to a flow. */
bool serve_control_claim(void *control, const struct serve_datagram *datagram);
void serve_control_counts(const struct serve_control *control, struct serve_control_counts *counts);

#endif
