/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_udp_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int flow_udp_new(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE])
{
	struct flow_udp *u = calloc(1, sizeof *u);

	if (!u)
		return -ENOMEM;
	u->flow = flow;
	u->socket = -1;
	u->loop = flow_set_options(flow->set)->loop;
	u->events.fd = -1;
	u->timer.at_ns = KTRXER_NEVER;
	ktrxer_clock_map_init(&u->clock);
	memcpy(u->tag, cookie, sizeof u->tag);
	flow->udp = u;
	return 0;
}

void flow_udp_free(struct flow *flow)
{
	struct flow_udp *u = flow->udp;

	if (!u)
		return;
	if (u->tx) {
		loop_timer_remove(u->loop, &u->timer);
		if (u->events.fd >= 0)
			loop_unwatch(u->loop, &u->events);
		ktx_close(u->tx);
	}
	traffic_model_end(&u->model);
	free(u->due_times);
	free(u);
	flow->udp = NULL;
}

void flow_udp_say_packet(const struct flow_udp *u, enum flow_packet_kind kind, uint64_t number, uint64_t time_ns)
{
	const struct flow_set_options *o = flow_set_options(u->flow->set);

	o->packet(o->context, u->flow->index, &(struct flow_packet){ number, time_ns, (uint8_t)kind });
}
