/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client's UDP flows are opened here, and made known to the server: their cookies go out from where the flows will
 * be, again and again, until the server says that it has them all.
 */
#ifndef KTRXER_METHODS_FLOW_REGISTER_H
#define KTRXER_METHODS_FLOW_REGISTER_H

#include "control.h"
#include "flow_set.h"
#include "flow_udp.h"

struct flow_register_options {
	struct loop *loop;
	struct flow_udp_route route; /* to the server */
	struct flow_set *flows;
	const struct control_keys *keys;
	uint32_t session;
	const struct control_port *ports; /* that flows down come from; needed by this call alone */
	int port_count;
};

struct flow_register;
/* -ENODATA: no flow is UDP, and nothing is made. Another errno: `flow` is the one that could not be opened. */
int flow_register_new(struct flow_register **reg, const struct flow_register_options *options, uint32_t *flow,
		      struct ktrxer_error *err);
/* The server has them. */
void flow_register_done(struct flow_register *reg);
void flow_register_free(struct flow_register *reg);

#endif
