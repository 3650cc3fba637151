/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server's side of flows: which clients may request flows (control.h), and the limits of each request.
 * docs/reference/control.md has the reason of each limit.
 *
 * A client that has not proved that it has the token costs a descriptor and some hundred bytes, for a few seconds;
 * there is a fixed number of such places, and the newest client takes the oldest one's.
 */
#ifndef KTRXER_METHODS_SERVE_CONTROL_H
#define KTRXER_METHODS_SERVE_CONTROL_H

#include "control.h"
#include "loop.h"
#include "serve_registry.h"
#include "serve_udp.h"

enum {
	KTRXER_SERVE_ADDRESSES = 16,     /* --bind */
	KTRXER_CONTROL_TRUSTED_S = 3600, /* their STAMP packets may be marked so long */
};

extern const char *const control_refusal_names[CONTROL_REFUSALS];

struct serve_control;
int serve_control_new(struct serve_control **control, struct loop *loop, const struct serve_control_options *options,
		      struct ktrxer_error *err);
/* All clients get the refusal `stopping`, their flows and connections end, and `ended` is called for each. */
void serve_control_end(struct serve_control *control);
void serve_control_free(struct serve_control *control);
/* One listening TCP socket more: `passed_fd`, which serve_control closes, or with 0 one that is opened. */
int serve_control_listen(struct serve_control *control, const struct ktrxer_addr *bind, uint16_t port, int passed_fd,
			 struct ktrxer_error *err);
/* serve_udp calls it: true when the datagram belongs to a flow. */
bool serve_control_claim(void *control, const struct serve_datagram *datagram);
/* serve_udp calls it: true when a client at this address has proven the token within KTRXER_CONTROL_TRUSTED_S. */
bool serve_control_trusted(void *control, const struct ktrxer_addr *from, uint64_t now_ns);
/* The server copies the token that new clients must prove from now on. */
void serve_control_set_token(struct serve_control *control, const struct hmac_key *token);
/* Its clients, for tests. */
struct serve_registry *serve_control_registry(struct serve_control *control);
/* Connections that have not stated their purpose, at present. */
uint32_t serve_control_pending(const struct serve_control *control);
void serve_control_counts(const struct serve_control *control, struct serve_control_counts *counts);

#endif
