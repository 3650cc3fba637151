/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_register.h"

#include <errno.h>
#include <stdlib.h>

#define AGAIN_NS (100 * (uint64_t)KTRXER_NS_PER_MS)
/* A NAT keeps the mapping of a flow down while datagrams go up: RFC 4787 forbids fewer than 120 s, some have 30 s. */
#define KEEP_NS (10 * (uint64_t)KTRXER_NS_PER_S)
#define SILENT_NS (250 * (uint64_t)KTRXER_NS_PER_MS)

struct flow_register {
	struct flow_register_options options;
	struct loop_timer timer;
	bool known;       /* the server has them all */
	uint64_t kept_ns; /* when the flows down called the last time, with or without a silence */
	uint16_t ports[]; /* of each flow at the server; 0: none */
};

/*
 * While flows run, those down repeat their datagrams: a NAT keeps its mapping, and after a change of the mapping the
 * server sends to the new port.
 */
static bool calls_now(const struct flow_register *r, const struct flow *flow, uint64_t now_ns)
{
	return !r->known || (!flow->sends && flow->state == FLOW_GOING &&
			     (now_ns >= r->kept_ns + KEEP_NS || flow_udp_is_silent(flow, now_ns, SILENT_NS)));
}

static void call_all(struct flow_register *r, uint64_t now_ns)
{
	const struct flow_register_options *o = &r->options;

	for (uint32_t i = 0; i < flow_set_count(o->flows); i++) {
		struct flow *flow = flow_set_flow(o->flows, i);
		struct control_preface p = {
			.kind = CONTROL_DATAGRAM, .version = CONTROL_VERSION, .session = o->session, .flow = i
		};
		uint8_t bytes[CONTROL_PREFACE];

		if (!flow->spec.udp || !flow->udp || !calls_now(r, flow, now_ns))
			continue;
		control_cookie(o->keys, p.session, i, p.cookie);
		control_preface_write(bytes, &p);
		if (flow->sends) {
			flow_udp_introduce(flow, bytes);
			continue;
		}
		flow_udp_call(flow, o->route.to_port, bytes);
		/* A packet from this port lets the flow through firewalls. */
		if (r->ports[i])
			flow_udp_call(flow, r->ports[i], bytes);
	}
}

static void register_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow_register *r = (struct flow_register *)((char *)timer - offsetof(struct flow_register, timer));

	call_all(r, now_ns);
	if (now_ns >= r->kept_ns + KEEP_NS)
		r->kept_ns = now_ns;
	timer->at_ns = now_ns + (r->known ? SILENT_NS : AGAIN_NS);
}

static int open_one(struct flow_register *r, struct flow *flow, struct ktrxer_error *err)
{
	const struct flow_udp_route *route = &r->options.route;
	uint8_t cookie[CONTROL_COOKIE];
	uint16_t port;
	int rc;

	control_cookie(r->options.keys, r->options.session, flow->index, cookie);
	rc = flow->sends ? flow_udp_open_sender(flow, cookie, route, &port, err)
			 : flow_udp_open_receiver(flow, cookie, route, err);
	if (rc == 0)
		flow_set_attach_udp(r->options.flows, flow->index);
	return rc;
}

int flow_register_new(struct flow_register **out, const struct flow_register_options *o, uint32_t *flow,
		      struct ktrxer_error *err)
{
	const uint32_t count = flow_set_count(o->flows);
	struct flow_register *r;
	uint32_t some = 0;

	*out = NULL;
	for (uint32_t i = 0; i < count; i++)
		some += flow_set_at(o->flows, i)->spec.udp;
	if (!some)
		return -ENODATA;
	r = calloc(1, sizeof *r + count * sizeof r->ports[0]);
	if (!r)
		return -ENOMEM;
	*out = r;
	r->options = *o;
	r->timer = (struct loop_timer){ .at_ns = 0, .due = register_due };
	loop_timer_add(o->loop, &r->timer);
	for (int i = 0; i < o->port_count; i++)
		if (o->ports[i].flow < count)
			r->ports[o->ports[i].flow] = o->ports[i].port;
	r->options.ports = NULL;
	for (*flow = 0; *flow < count; ++*flow) {
		struct flow *one = flow_set_flow(o->flows, *flow);
		int rc = one->spec.udp ? open_one(r, one, err) : 0;

		if (rc < 0)
			return rc;
	}
	return 0;
}

void flow_register_done(struct flow_register *r)
{
	if (r)
		r->known = true;
}

void flow_register_free(struct flow_register *r)
{
	if (!r)
		return;
	loop_timer_remove(r->options.loop, &r->timer);
	free(r);
}
