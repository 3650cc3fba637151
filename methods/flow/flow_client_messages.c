/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client of flows: the messages of the server, and the reports of the flows at this end. */
#include "flow_client_state.h"

#include "error.h"
#include "flow_ops.h"
#include "flow_packets.h"
#include "flow_spec.h"
#include "flow_tcp.h"

#include <errno.h>

enum { PINGS = 8, LAST_PINGS = 4 };
/*
 * TCP repeats a lost segment after 0.2, 0.4, ... 12.8 s, and the first one (SYN) after 1, 3, 7, 15 s before Linux 6.5:
 * at a loss of 30 % in each direction, one of some thousand exchanges takes longer than ANSWER_NS.
 */
#define ANSWER_NS (30 * (uint64_t)KTRXER_NS_PER_S)
#define UDP_NS (3 * (uint64_t)KTRXER_NS_PER_S) /* a registration is repeated each 100 ms */

static void on_sample(void *context, uint32_t flow, const struct flow_sample *sample)
{
	struct flow_client *c = context;

	if (c->options.sample)
		c->options.sample(c->options.context, flow, sample, NULL);
}

static void on_packet(void *context, uint32_t flow, const struct flow_packet *packet)
{
	struct flow_client *c = context;

	c->options.packet(c->options.context, flow, false, packet);
}

static void on_tick(void *context, uint64_t at_ns)
{
	struct flow_client *c = context;

	if (c->options.tick)
		c->options.tick(c->options.context, at_ns);
}

/*
 * A receiver of UDP cannot know by itself when all is there, one of TCP not whether an end before its time is what we
 * planned.
 */
static void sent_report(struct flow_client *c, uint32_t flow, const struct flow_end *end)
{
	uint8_t *body;

	if (c->specs[flow].down || c->link_gone || !(body = control_link_begin(&c->link, CONTROL_FIRST_MAX)))
		return;
	control_link_send(&c->link, CONTROL_FLOW_END, control_flow_end_write(body, flow, end));
}

static void on_ended(void *context, uint32_t flow, const struct flow_end *end)
{
	struct flow_client *c = context;

	c->options.ended(c->options.context, flow, false, end);
	sent_report(c, flow, end);
	if (!flow_set_over(c->flows) || c->state != CLIENT_RUNNING)
		return;
	c->state = CLIENT_DRAINING;
	c->over_ns = ktrxer_now_ns();
	c->deadline_ns = c->over_ns + (c->link_gone ? 0 : FLOW_CLIENT_SILENCE_NS);
	c->timer.at_ns = 0; /* goes on from there: the set is in the middle of its own work */
}

static uint64_t ours(struct flow_client *c, uint64_t theirs_ns)
{
	if (!c->lived_ns || theirs_ns - c->lived_ns > (uint64_t)KTRXER_NS_PER_MS) {
		c->lived_ns = theirs_ns;
		c->live_ns = clock_offset_at(c->clock, CLOCK_OFFSET_OPEN,
					     theirs_ns - (uint64_t)c->result.clock.offset_ns, &c->live_bound_ns);
	}
	return theirs_ns - (uint64_t)c->live_ns;
}

static void udp_is_blocked(struct flow_client *c)
{
	char host[KTRXER_ADDR_TEXT];

	ktrxer_fail(&c->result.error,
		    -ECOMM, /* nothing else fails with it, so the reason has an identifier of its own */
		    "%s: no datagram from here gets through to UDP port %u; a firewall on the way lets TCP pass "
		    "alone, or another host answers there",
		    ktrxer_addr_format(&c->options.to, host), c->options.port);
	flow_client_fail(c);
}

static void on_pong(struct flow_client *c, const struct control_frame *frame)
{
	const uint64_t now_ns = ktrxer_now_ns();
	struct clock_exchange exchange;
	struct control_pong p;

	if (control_pong_read(&p, frame) < 0 || p.t1_ns > now_ns || p.t3_ns < p.t2_ns)
		return;
	/* TCP delivers in order: UDP_NS after the first registration the server was not ready. */
	if (c->state == CLIENT_CONNECTING) {
		udp_is_blocked(c);
		return;
	}
	exchange = (struct clock_exchange){
		.t1_ns = p.t1_ns, .t2_ns = (int64_t)p.t2_ns, .t3_ns = (int64_t)p.t3_ns, .t4_ns = now_ns
	};
	if (clock_offset_add(c->clock, &exchange) == CLOCK_OFFSET_STEPPED)
		c->result.clock_steps++;
	clock_offset_result(c->clock, CLOCK_OFFSET_OPEN, &c->result.clock);
	c->lived_ns = 0;
	if (!c->result.rtt_ns || now_ns - p.t1_ns < c->result.rtt_ns)
		c->result.rtt_ns = now_ns - p.t1_ns;
	/* TCP repeats a lost segment after 0.2, 0.6 and 1.4 s: one exchange can take longer than this time. */
	if (!c->pongs++ && c->state == CLIENT_TIMING)
		c->deadline_ns = c->timer.at_ns = now_ns + FLOW_CLIENT_TIMING_NS;
	if (c->state == CLIENT_TIMING && c->pongs >= PINGS)
		flow_client_start(c);
	else if (c->state == CLIENT_FINAL_SYNC && c->pongs >= LAST_PINGS)
		flow_client_done(c);
	else if (c->state == CLIENT_TIMING || c->state == CLIENT_FINAL_SYNC)
		flow_client_ping(c);
}

static void on_connected(void *context, uint32_t flow, int fd)
{
	struct flow_client *c = context;

	if (c->options.connected)
		c->options.connected(c->options.context, flow, fd);
}

static void on_connect_failed(void *context, uint32_t flow, int error)
{
	struct flow_client *c = context;
	struct ktrxer_error why;

	flow_client_describe(c, &why, &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = error });
	ktrxer_fail(&c->result.error, error, "flow %u of %u could not be connected: %s", flow, c->options.request.flows,
		    why.text);
	flow_client_fail(c);
}

static void flows_announce(struct flow_client *c)
{
	const uint32_t count = c->options.request.flows;

	for (uint32_t first = 0; first < count; first += CONTROL_RECORDS) {
		const uint32_t some = count - first < CONTROL_RECORDS ? count - first : CONTROL_RECORDS;
		uint8_t *body = control_link_begin(&c->link, CONTROL_BODY_MAX);

		if (!body) {
			ktrxer_fail(&c->result.error, -ENOBUFS, "no memory to describe %u flows to the server", count);
			flow_client_fail(c);
			return;
		}
		control_link_send(&c->link, CONTROL_FLOWS, control_flows_write(body, first, some, c->specs + first));
	}
	flow_client_state_set(c, CLIENT_TELLING, ANSWER_NS);
}

static void on_grant(struct flow_client *c, const struct control_frame *frame)
{
	const struct flow_client_options *o = &c->options;
	struct control_grant grant;
	struct flow_set_options f = { .loop = o->loop,
				      .witness = o->witness,
				      .flows = o->request.flows,
				      .for_ns = o->request.for_ns,
				      .bytes = o->request.bytes,
				      .sample_ns = o->request.sample_ns,
				      .sample = on_sample,
				      .ended = on_ended,
				      .tick = on_tick,
				      .packet = on_packet,
				      .context = c };
	int rc;

	if (control_grant_read(&grant, frame) < 0) {
		flow_client_describe_gone(c, -EPROTO, false);
		flow_client_fail(c);
		return;
	}
	c->session = grant.session;
	c->result.granted = true;
	c->result.pace_bps = f.pace_bps = grant.pace_bps;
	c->link.most = CONTROL_BODY_MAX;
	rc = flow_set_new(&c->flows, &f);
	for (uint32_t i = 0; i < f.flows && rc == 0; i++)
		rc = flow_set_add(c->flows, flow_ops_of(&c->specs[i]), &c->specs[i]);
	if (rc < 0) {
		ktrxer_fail(&c->result.error, rc, "no memory for %u flows", f.flows);
		flow_client_fail(c);
		return;
	}
	flows_announce(c);
}

static bool udp_open(struct flow_client *c, const struct control_frame *frame)
{
	const struct flow_client_options *o = &c->options;
	struct control_port ports[KTRXER_FLOW_UDP_MAX];
	struct flow_register_options r = { .loop = o->loop,
					   .route = { .from = o->from,
						      .to = o->to,
						      .to_port = o->port,
						      .device = o->device,
						      .engine = o->engine,
						      .precise = o->precise,
						      .cpu = o->cpu },
					   .flows = c->flows,
					   .keys = &c->link.keys,
					   .session = c->session };
	struct ktrxer_error why = { .text = "no memory" };
	uint32_t flow;
	int rc;

	r.ports = ports;
	r.port_count = control_ports_read(ports, KTRXER_FLOW_UDP_MAX, frame);
	rc = flow_register_new(&c->registers, &r, &flow, &why);
	if (rc == 0 || rc == -ENODATA)
		return true;
	ktrxer_fail(&c->result.error, rc, "flow %u: %s", flow, why.text);
	flow_client_fail(c);
	return false;
}

static void on_planned(struct flow_client *c, const struct control_frame *frame)
{
	struct flow_connect_options f = { .loop = c->options.loop,
					  .to = c->options.to,
					  .from = c->options.from,
					  .port = c->options.port,
					  .flows = c->flows,
					  .keys = &c->link.keys,
					  .session = c->session,
					  .connected = on_connected,
					  .failed = on_connect_failed,
					  .context = c };

	flow_client_state_set(c, CLIENT_CONNECTING, ANSWER_NS);
	if (!udp_open(c, frame))
		return;
	if (c->registers)
		c->ping_ns = c->timer.at_ns = ktrxer_now_ns() + UDP_NS;
	if (flow_connect_new(&c->connect, &f) < 0) {
		ktrxer_fail(&c->result.error, -ENOMEM, "no memory for connections");
		flow_client_fail(c);
	}
}

/* The server takes the first sample of a flow when it begins the flow. */
static void first_seen(struct flow_client *c, uint64_t began_ns)
{
	c->seen = true;
	c->result.start_repeated = flow_tcp_repeats(c->link.source.fd) > c->repeats;
	if (began_ns > c->result.start_ns + c->live_bound_ns)
		c->result.begun_late_ns = began_ns - c->result.start_ns - c->live_bound_ns;
}

static void on_samples(struct flow_client *c, const struct control_frame *frame)
{
	struct flow_sample sample;
	struct bytes block;
	uint64_t base_ns;
	uint32_t flow;

	if (flow_samples_open(&block, frame->body, frame->length, &base_ns) < 0)
		return;
	while (flow_sample_read(&block, base_ns, &flow, &sample, &c->history) > 0) {
		struct flow_origin origin = { .remote_ns = sample.time_ns };

		sample.time_ns = ours(c, origin.remote_ns);
		origin.bound_ns = c->live_bound_ns;
		if (!c->seen)
			first_seen(c, sample.time_ns - c->specs[flow].start_ns);
		if (c->options.sample)
			c->options.sample(c->options.context, flow, &sample, &origin);
	}
}

static void on_packets(struct flow_client *c, const struct control_frame *frame)
{
	struct bytes block = bytes_of(frame->body, frame->length);
	struct flow_packets before = { 0 };
	struct flow_packet packet;
	uint32_t flow;

	while (flow_packet_read(&block, c->options.request.flows, &flow, &packet, &before) > 0)
		if (c->specs[flow].model == FLOW_TRAIN)
			c->options.packet(c->options.context, flow, true, &packet);
}

static void on_flow_end(struct flow_client *c, const struct control_frame *frame)
{
	struct flow_end end;
	uint32_t flow;

	if (control_flow_end_read(&flow, &end, frame) < 0 || flow >= c->options.request.flows || c->heard[flow])
		return;
	c->heard[flow] = true;
	c->heard_count++;
	end.time_ns = ours(c, end.time_ns);
	end.first_ns = end.first_ns ? ours(c, end.first_ns) : 0;
	end.ce_first_ns = end.ce_first_ns ? ours(c, end.ce_first_ns) : 0;
	c->options.ended(c->options.context, flow, true, &end);
	flow_set_reported(c->flows, flow, &end);
	flow_client_end_when_reported(c);
}

static void on_refuse(struct flow_client *c, const struct control_frame *frame)
{
	struct control_refuse refuse;

	if (control_refuse_read(&refuse, frame) < 0)
		refuse = (struct control_refuse){ .why = CONTROL_MALFORMED };
	/* A frame without its HMAC counts only as long as the connection is pending. */
	if (!frame->sealed && c->state > CLIENT_ASKING)
		refuse.why = CONTROL_MALFORMED;
	flow_client_describe(c, &c->result.error,
			     &(struct flow_failure){ .kind = FLOW_REFUSED_BY_SERVER, .refuse = refuse });
	c->result.server_gone = true;
	flow_client_fail(c);
}

bool flow_client_on_frame(struct control_link *link, const struct control_frame *frame)
{
	struct flow_client *c = (struct flow_client *)link;

	if (c->state == CLIENT_DONE)
		return true;
	switch (frame->type) {
	case CONTROL_REFUSE:
		on_refuse(c, frame);
		break;
	case CONTROL_GRANT:
		if (c->state == CLIENT_ASKING)
			on_grant(c, frame);
		break;
	case CONTROL_PLANNED:
		if (c->state == CLIENT_TELLING)
			on_planned(c, frame);
		break;
	case CONTROL_READY:
		if (c->state != CLIENT_CONNECTING)
			break;
		flow_register_done(c->registers);
		flow_client_state_set(c, CLIENT_TIMING, ANSWER_NS);
		flow_client_ping(c);
		break;
	case CONTROL_PONG:
		on_pong(c, frame);
		break;
	case CONTROL_SAMPLES:
		if (c->result.started)
			on_samples(c, frame);
		break;
	case CONTROL_PACKETS:
		if (c->result.started)
			on_packets(c, frame);
		break;
	case CONTROL_FLOW_END:
		if (c->result.started)
			on_flow_end(c, frame);
		break;
	default: /* of a later version */
		break;
	}
	return true;
}

bool flow_client_on_preface(struct control_link *link, const uint8_t bytes[CONTROL_PREFACE])
{
	struct flow_client *c = (struct flow_client *)link;
	struct control_preface theirs;
	uint8_t *body;

	if (control_preface_read(&theirs, bytes, CONTROL_PREFACE) < 0 || theirs.kind != CONTROL_SERVER) {
		flow_client_describe_gone(c, -EPROTO, false);
		c->link_gone = true;
		flow_client_fail(c);
		return false;
	}
	control_keys_derive(&link->keys, &c->token, c->preface, bytes, false);
	link->keyed = true;
	body = control_link_begin(link, CONTROL_FIRST_MAX);
	if (body)
		control_link_send(link, CONTROL_REQUEST, control_request_write(body, &c->options.request));
	flow_client_state_set(c, CLIENT_ASKING, ANSWER_NS);
	return true;
}

void flow_client_on_closed(struct control_link *link, int error)
{
	struct flow_client *c = (struct flow_client *)link;

	loop_unwatch(c->options.loop, &link->source);
	c->link_gone = true;
	if (c->state == CLIENT_DONE)
		return;
	if (c->state == CLIENT_FINAL_SYNC) {
		flow_client_done(c);
		return;
	}
	c->result.server_gone = true;
	if (c->state == CLIENT_GREETING &&
	    (error == -ECONNREFUSED || error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH))
		flow_client_describe(c, &c->result.error,
				     &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = error });
	else
		flow_client_describe_gone(c, error, c->state > CLIENT_GREETING);
	/* The flows' own connections break with it; each reports that itself, if it has the time. */
	if (c->state == CLIENT_RUNNING)
		c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + 200 * (uint64_t)KTRXER_NS_PER_MS;
	else
		flow_client_fail(c);
}
