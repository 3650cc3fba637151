/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client's TCP flows are connected here, some at a time; each shows the cookie that its session gives it. */
#ifndef KTRXER_METHODS_FLOW_CONNECT_H
#define KTRXER_METHODS_FLOW_CONNECT_H

#include "control.h"
#include "flow_set.h"

struct flow_connect_options {
	struct loop *loop;
	struct ktrxer_addr to, from;
	uint16_t port;
	struct flow_set *flows;
	const struct control_keys *keys;
	uint32_t session;
	void (*connected)(void *context, uint32_t flow, int fd);
	void (*failed)(void *context, uint32_t flow, int error); /* nothing more is connected then */
	void *context;
};

struct flow_connect;
int flow_connect_new(struct flow_connect **connect, const struct flow_connect_options *options);
void flow_connect_free(struct flow_connect *connect);

/* Begins to connect; `spec` NULL: not a flow's. Negative: and the errno in *error. */
int flow_connect_socket(const struct ktrxer_addr *to, const struct ktrxer_addr *from, uint16_t port,
			const struct flow_spec *spec, int *error);
bool flow_connect_established(int fd);

#endif
