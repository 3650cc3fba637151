/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_client.h"

#include "error.h"
#include "flow_connect.h"
#include "flow_ops.h"
#include "flow_packets.h"
#include "flow_register.h"
#include "flow_tcp.h"
#include "limits.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

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

enum { PINGS = 8, LAST_PINGS = 4 };
/*
 * TCP repeats a lost segment after 0.2, 0.4, ... 12.8 s, and the first one (SYN) after 1, 3, 7, 15 s before Linux 6.5:
 * at a loss of 30 % in each direction, one of some thousand exchanges takes longer than ANSWER_NS.
 */
#define ANSWER_NS (30 * (uint64_t)KTRXER_NS_PER_S)
#define SYN_NS (16 * (uint64_t)KTRXER_NS_PER_S)
#define UDP_NS (3 * (uint64_t)KTRXER_NS_PER_S) /* a registration is repeated each 100 ms */
#define SILENCE_NS (5 * (uint64_t)KTRXER_NS_PER_S) /* of a server whose final counts are awaited */
#define TIMING_NS ((uint64_t)KTRXER_NS_PER_S) /* for all exchanges of clocks after the first one */
#define AHEAD_NS (20 * (uint64_t)KTRXER_NS_PER_MS)
/* TCP repeats a lost last segment after two round trips and 200 ms (RFC 8985, section 7.2). */
#define REPEAT_NS (200 * (uint64_t)KTRXER_NS_PER_MS)

struct flow_client {
	struct control_link link; /* first */
	struct flow_client_options options;
	struct flow_client_result result;
	struct hmac_key token;
	uint8_t preface[CONTROL_PREFACE];
	uint8_t state;
	bool stopping, link_gone;
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

static int describe(const struct flow_client *c, struct ktrxer_error *err, const struct flow_failure *failure)
{
	return c->options.describe(err, &c->options, failure);
}

static void describe_gone(struct flow_client *c, int error, bool greeted)
{
	describe(c, &c->result.error,
		 &(struct flow_failure){ .kind = FLOW_LINK_GONE, .error = error, .greeted = greeted });
}

static void client_done(struct flow_client *c)
{
	if (c->state == CLIENT_DONE)
		return;
	c->state = CLIENT_DONE;
	c->timer.at_ns = KTRXER_NEVER;
	clock_offset_settle(c->clock);
	clock_offset_result(c->clock, CLOCK_OFFSET_OPEN, &c->result.clock);
	c->result.clock_bound_ns =
		clock_offset_line_bound(c->clock, CLOCK_OFFSET_OPEN, c->result.start_ns, c->result.clock.to_ns);
	c->result.remote_missing = c->flows && c->result.started ? c->options.request.flows - c->heard_count : 0;
	c->options.done(c->options.context);
}

static void state_set(struct flow_client *c, enum client_state state, uint64_t limit_ns)
{
	c->state = (uint8_t)state;
	c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + limit_ns;
}

static void client_fail(struct flow_client *c)
{
	if (c->flows)
		flow_set_stop(c->flows);
	client_done(c);
}

/* ----------------------------------------------------------------------------------------------------------- clocks */

static void ping(struct flow_client *c)
{
	uint8_t *body = control_link_begin(&c->link, CONTROL_FIRST_MAX);
	const uint64_t now_ns = ktrxer_now_ns();

	/* Before the load the path has no queue: clock samples from now on serve for the whole load. */
	c->ping_ns = now_ns + (uint64_t)KTRXER_NS_PER_S / (now_ns < c->result.start_ns ? 4 : 1);
	if (body)
		control_link_send(&c->link, CONTROL_PING, control_time_write(body, now_ns));
}

static int64_t offset_at(const struct flow_client *c, uint64_t at_ns)
{
	return clock_offset_line(&c->result.clock, at_ns);
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

static void end_when_reported(struct flow_client *c)
{
	if (c->state != CLIENT_DRAINING || c->heard_count < c->options.request.flows)
		return;
	if (c->link_gone || c->stopping) {
		client_done(c);
		return;
	}
	state_set(c, CLIENT_FINAL_SYNC, TIMING_NS);
	c->pongs = 0;
	ping(c);
}

static void start(struct flow_client *c)
{
	const uint64_t now_ns = ktrxer_now_ns(), requested = c->options.start_ns,
		       soonest = now_ns + c->result.rtt_ns + AHEAD_NS;
	/* Without a time of its own the start has time for one repetition. */
	const uint64_t at_ns = requested > soonest ? requested
			       : requested         ? soonest
						   : soonest + 2 * c->result.rtt_ns + REPEAT_NS;
	uint8_t *body = control_link_begin(&c->link, CONTROL_FIRST_MAX);

	if (body)
		control_link_send(&c->link, CONTROL_START,
				  control_time_write(body, at_ns + (uint64_t)offset_at(c, at_ns)));
	c->repeats = flow_tcp_repeats(c->link.source.fd);
	c->state = CLIENT_RUNNING;
	c->result.started = true;
	c->result.start_ns = at_ns;
	c->deadline_ns = KTRXER_NEVER;
	c->timer.at_ns = c->ping_ns;
	if (c->options.started)
		c->options.started(c->options.context, at_ns, requested && at_ns > requested ? at_ns - requested : 0);
	flow_set_start(c->flows, at_ns);
}

static void udp_is_blocked(struct flow_client *c)
{
	char host[KTRXER_ADDR_TEXT];

	ktrxer_fail(&c->result.error, -ETIMEDOUT,
		    "%s: no datagram from here gets through to UDP port %u; a firewall on the way lets TCP pass alone",
		    ktrxer_addr_format(&c->options.to, host), c->options.port);
	client_fail(c);
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
	/* TCP repeats a lost segment after 0.2, 0.6 and 1.4 s: one exchange can take longer than TIMING_NS. */
	if (!c->pongs++ && c->state == CLIENT_TIMING)
		c->deadline_ns = c->timer.at_ns = now_ns + TIMING_NS;
	if (c->state == CLIENT_TIMING && c->pongs >= PINGS)
		start(c);
	else if (c->state == CLIENT_FINAL_SYNC && c->pongs >= LAST_PINGS)
		client_done(c);
	else if (c->state == CLIENT_TIMING || c->state == CLIENT_FINAL_SYNC)
		ping(c);
}

/* ----------------------------------------------------------------------------------------------- what our flows say */

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
	c->deadline_ns = c->over_ns + (c->link_gone ? 0 : SILENCE_NS);
	c->timer.at_ns = 0; /* goes on from there: the set is in the middle of its own work */
}

/* --------------------------------------------------------------------------------------------- what the server says */

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

	describe(c, &why, &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = error });
	ktrxer_fail(&c->result.error, error, "flow %u of %u could not be connected: %s", flow, c->options.request.flows,
		    why.text);
	client_fail(c);
}

static void flows_announce(struct flow_client *c)
{
	const uint32_t count = c->options.request.flows;

	for (uint32_t first = 0; first < count; first += CONTROL_RECORDS) {
		const uint32_t some = count - first < CONTROL_RECORDS ? count - first : CONTROL_RECORDS;
		uint8_t *body = control_link_begin(&c->link, CONTROL_BODY_MAX);

		if (!body) {
			ktrxer_fail(&c->result.error, -ENOBUFS, "no memory to describe %u flows to the server", count);
			client_fail(c);
			return;
		}
		control_link_send(&c->link, CONTROL_FLOWS, control_flows_write(body, first, some, c->specs + first));
	}
	state_set(c, CLIENT_TELLING, ANSWER_NS);
}

static void on_grant(struct flow_client *c, const struct control_frame *frame)
{
	const struct flow_client_options *o = &c->options;
	struct control_grant grant;
	struct flow_set_options f = { .loop = o->loop,
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
		describe_gone(c, -EPROTO, false);
		client_fail(c);
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
		client_fail(c);
		return;
	}
	flows_announce(c);
}

static bool udp_open(struct flow_client *c, const struct control_frame *frame)
{
	const struct flow_client_options *o = &c->options;
	struct control_port ports[KTRXER_FLOW_UDP_MOST];
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
	r.port_count = control_ports_read(ports, KTRXER_FLOW_UDP_MOST, frame);
	rc = flow_register_new(&c->registers, &r, &flow, &why);
	if (rc == 0 || rc == -ENODATA)
		return true;
	ktrxer_fail(&c->result.error, rc, "flow %u: %s", flow, why.text);
	client_fail(c);
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

	state_set(c, CLIENT_CONNECTING, ANSWER_NS);
	if (!udp_open(c, frame))
		return;
	if (c->registers)
		c->ping_ns = c->timer.at_ns = ktrxer_now_ns() + UDP_NS;
	if (flow_connect_new(&c->connect, &f) < 0) {
		ktrxer_fail(&c->result.error, -ENOMEM, "no memory for connections");
		client_fail(c);
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
	c->options.ended(c->options.context, flow, true, &end);
	flow_set_reported(c->flows, flow, &end);
	end_when_reported(c);
}

static void on_refuse(struct flow_client *c, const struct control_frame *frame)
{
	struct control_refuse refuse;

	if (control_refuse_read(&refuse, frame) < 0)
		refuse = (struct control_refuse){ .why = CONTROL_MALFORMED };
	/* Without its HMAC it counts only as long as the connection is pending. */
	if (!frame->sealed && c->state > CLIENT_ASKING)
		refuse.why = CONTROL_MALFORMED;
	describe(c, &c->result.error, &(struct flow_failure){ .kind = FLOW_REFUSED_BY_SERVER, .refuse = refuse });
	c->result.server_gone = true;
	client_fail(c);
}

static bool on_frame(struct control_link *link, const struct control_frame *frame)
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
		state_set(c, CLIENT_TIMING, ANSWER_NS);
		ping(c);
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

static bool on_preface(struct control_link *link, const uint8_t bytes[CONTROL_PREFACE])
{
	struct flow_client *c = (struct flow_client *)link;
	struct control_preface theirs;
	uint8_t *body;

	if (control_preface_read(&theirs, bytes, CONTROL_PREFACE) < 0 || theirs.kind != CONTROL_SERVER) {
		describe_gone(c, -EPROTO, false);
		c->link_gone = true;
		client_fail(c);
		return false;
	}
	control_keys_derive(&link->keys, &c->token, c->preface, bytes, false);
	link->keyed = true;
	body = control_link_begin(link, CONTROL_FIRST_MAX);
	if (body)
		control_link_send(link, CONTROL_REQUEST, control_request_write(body, &c->options.request));
	state_set(c, CLIENT_ASKING, ANSWER_NS);
	return true;
}

static void on_closed(struct control_link *link, int error)
{
	struct flow_client *c = (struct flow_client *)link;

	loop_unwatch(c->options.loop, &link->source);
	c->link_gone = true;
	if (c->state == CLIENT_DONE)
		return;
	if (c->state == CLIENT_FINAL_SYNC) {
		client_done(c);
		return;
	}
	c->result.server_gone = true;
	if (c->state == CLIENT_GREETING &&
	    (error == -ECONNREFUSED || error == -ETIMEDOUT || error == -EHOSTUNREACH || error == -ENETUNREACH))
		describe(c, &c->result.error, &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = error });
	else
		describe_gone(c, error, c->state > CLIENT_GREETING);
	/* The flows' own connections break with it; each reports that itself, if it has the time. */
	if (c->state == CLIENT_RUNNING)
		c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + 200 * (uint64_t)KTRXER_NS_PER_MS;
	else
		client_fail(c);
}

/* ------------------------------------------------------------------------------------------------------------- time */

static void too_long(struct flow_client *c)
{
	static const char *const awaited[] = {
		[CLIENT_GREETING] = "it took the connection and then said nothing; is it `ktrxer serve`?",
		[CLIENT_ASKING] = "it did not answer the request",
		[CLIENT_TELLING] = "it did not take note of the flows",
		[CLIENT_CONNECTING] = "it did not find all flows connected",
		[CLIENT_TIMING] = "it did not answer the exchange of clocks",
	};
	char host[KTRXER_ADDR_TEXT];

	switch (c->state) {
	case CLIENT_TIMING:
		if (c->pongs) {
			start(c);
			return;
		}
		break;
	case CLIENT_RUNNING:
		client_fail(c); /* the server is gone */
		return;
	case CLIENT_DRAINING:
		/* A full queue on the path delays its messages; while any arrive, wait for the rest. */
		if (!c->link_gone && !c->stopping && ktrxer_now_ns() - c->link.heard_ns < SILENCE_NS &&
		    ktrxer_now_ns() - c->over_ns < 3 * SILENCE_NS) {
			c->deadline_ns = c->link.heard_ns + SILENCE_NS;
			return;
		}
		client_done(c);
		return;
	case CLIENT_FINAL_SYNC:
	case CLIENT_DONE:
		client_done(c);
		return;
	default:
		break;
	}
	if (c->state == CLIENT_GREETING && !flow_connect_established(c->link.source.fd))
		describe(c, &c->result.error,
			 &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = -ETIMEDOUT });
	else
		ktrxer_fail(&c->result.error, -ETIMEDOUT, "%s port %u: %s", ktrxer_addr_format(&c->options.to, host),
			    c->options.port, awaited[c->state]);
	client_fail(c);
}

static void client_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow_client *c = (struct flow_client *)((char *)timer - offsetof(struct flow_client, timer));
	bool pings;

	if (c->state == CLIENT_DRAINING)
		end_when_reported(c);
	if (c->deadline_ns <= now_ns)
		too_long(c);
	if (c->state == CLIENT_DONE)
		return;
	pings = !c->link_gone && (c->state == CLIENT_RUNNING || c->state == CLIENT_DRAINING ||
				  (c->state == CLIENT_CONNECTING && c->registers));
	if (pings && c->ping_ns <= now_ns)
		ping(c);
	timer->at_ns = pings && c->ping_ns < c->deadline_ns ? c->ping_ns : c->deadline_ns;
}

void flow_client_stop(struct flow_client *c)
{
	if (c->state == CLIENT_DONE)
		return;
	c->stopping = true;
	if (!c->result.started || c->link_gone) {
		client_fail(c);
		return;
	}
	control_link_say(&c->link, CONTROL_STOP);
	flow_set_stop(c->flows);
	if (c->state == CLIENT_RUNNING) /* none was running any more */
		c->state = CLIENT_DRAINING;
	c->deadline_ns = c->timer.at_ns = ktrxer_now_ns() + 2 * (uint64_t)KTRXER_NS_PER_S;
	end_when_reported(c);
}

/* ------------------------------------------------------------------------------------------------ beginning and end */

int flow_client_new(struct flow_client **out, const struct flow_client_options *o, struct ktrxer_error *err)
{
	struct flow_client *c = calloc(1, sizeof *c);
	const uint32_t count = o->request.flows;
	struct control_preface mine = { .kind = CONTROL_CLIENT, .version = CONTROL_VERSION };
	int rc = -ENOMEM, fd;

	*out = c;
	if (!c)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u flows", count);
	c->link.source.fd = -1;
	c->options = *o;
	c->token = *o->token;
	c->specs = calloc(count, sizeof *c->specs);
	c->heard = calloc(count, sizeof *c->heard);
	c->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = client_due };
	loop_timer_add(o->loop, &c->timer);
	if (!c->specs || !c->heard || flow_history_new(&c->history, count) < 0 || clock_offset_new(&c->clock) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u flows", count);
	memcpy(c->specs, o->specs, count * sizeof *c->specs);
	c->options.specs = c->specs;
	if (getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	control_preface_write(c->preface, &mine);
	fd = flow_connect_socket(&o->to, &o->from, o->port, NULL, &rc);
	if (fd < 0)
		return describe(c, err, &(struct flow_failure){ .kind = FLOW_NOT_CONNECTED, .error = rc });
	c->link.preface = on_preface;
	c->link.frame = on_frame;
	c->link.closed = on_closed;
	c->link.out_limit = count / CONTROL_RECORDS * CONTROL_BODY_MAX + 4 * CONTROL_BODY_MAX;
	rc = control_link_open(&c->link, o->loop, fd);
	if (rc == 0)
		rc = control_link_bytes(&c->link, c->preface, sizeof c->preface);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop does not take a socket");
	state_set(c, CLIENT_GREETING, SYN_NS);
	return 0;
}

void flow_client_free(struct flow_client *c)
{
	if (!c)
		return;
	if (c->link.keyed && c->link.source.fd >= 0 && !c->link_gone)
		control_link_say(&c->link, CONTROL_BYE);
	flow_connect_free(c->connect);
	flow_register_free(c->registers);
	flow_set_free(c->flows);
	control_link_close(&c->link);
	loop_timer_remove(c->options.loop, &c->timer);
	flow_history_free(&c->history);
	clock_offset_free(c->clock);
	secret_forget(&c->token, sizeof c->token);
	free(c->specs);
	free(c->heard);
	free(c);
}

void flow_client_result(const struct flow_client *c, struct flow_client_result *result)
{
	*result = c->result;
	result->control_known = c->link.source.fd >= 0 && flow_tcp_traffic(c->link.source.fd, &result->control_up_bytes,
									   &result->control_down_bytes);
}

struct ktrxer_hist *flow_client_lateness(const struct flow_client *c, uint32_t flow, struct ktx_accounts *accounts)
{
	return flow_udp_lateness(flow_set_at(c->flows, flow), accounts);
}

bool flow_client_engine(const struct flow_client *c, uint32_t flow, struct ktx_info *info, struct ktrxer_qdiscs *q)
{
	return flow_udp_engine(flow_set_at(c->flows, flow), info, q);
}
