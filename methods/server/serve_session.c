/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "serve_session.h"

#include "base_limits.h"
#include "flow_ops.h"
#include "flow_spec.h"
#include "flow_tcp.h"
#include "flow_udp.h"
#include "name.h"
#include "serve_packets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	KTRXER_CONTROL_CONNECT_S = 60, /* for all the flows of a session to be connected, and then to be started */
	/* a client that says nothing for so long is gone; a full queue holds pings back for seconds */
	KTRXER_CONTROL_SILENCE_S = 30,
	KTRXER_CONTROL_AFTER_S = 60, /* between the end of the last flow and that of the session */
	KTRXER_CONTROL_LEAVE_S = 2,  /* a refusal has so long to arrive */
};

static uint64_t seconds(uint32_t s)
{
	return s * (uint64_t)KTRXER_NS_PER_S;
}

static void flows_close(struct session *s)
{
	s->opening.at_ns = KTRXER_NEVER;
	if (!s->client.ended_ns)
		s->client.ended_ns = ktrxer_now_ns();
	if (!s->flows)
		return;
	s->closing = s->flows;
	s->flows = NULL;
	flow_set_close(s->closing);
}

/* The session reads and ignores later frames: to close the socket with unread bytes would reset the connection, and the
 * reset would empty the queue that holds the refusal. */
void session_refuse(struct session *s, enum control_refusal why, uint64_t value)
{
	uint8_t *body;

	if (s->state == SESSION_LEAVING || s->state == SESSION_CLOSING)
		return;
	s->registry->counts.refused[why]++;
	s->client.refused = why;
	body = control_link_begin(&s->link, CONTROL_FIRST_MAX);
	if (body) {
		const uint32_t length = control_refuse_write(body, &(struct control_refuse){ (uint8_t)why, value });

		if (s->state == SESSION_NEW)
			control_link_send_unsealed(&s->link, CONTROL_REFUSE, length);
		else
			control_link_send(&s->link, CONTROL_REFUSE, length);
	}
	s->state = SESSION_LEAVING;
	flows_close(s);
	control_link_push(&s->link);
	shutdown(s->link.source.fd, SHUT_WR);
	s->dead_ns = ktrxer_now_ns() + seconds(KTRXER_CONTROL_LEAVE_S);
	s->timer.at_ns = s->dead_ns;
}

static void block_send(struct session *s)
{
	uint8_t *body;

	if (!s->block_used)
		return;
	body = control_link_begin(&s->link, s->block_used);
	if (body) {
		memcpy(body, s->block, s->block_used);
		control_link_send(&s->link, CONTROL_SAMPLES, s->block_used);
	}
	s->block_used = 0;
}

static void on_sample(void *context, uint32_t flow, const struct flow_sample *sample)
{
	struct session *s = context;

	if (s->block_used + FLOW_SAMPLE_MOST > CONTROL_BODY_MAX)
		block_send(s);
	/* Samples in a block count as sent, so a block begins only when the link has room for it. */
	if (!s->block_used) {
		if (control_link_waiting(&s->link) + CONTROL_BODY_MAX > KTRXER_CONTROL_SAMPLES_BYTES) {
			flow_set_missed(s->flows, flow);
			return;
		}
		s->block_ns = sample->time_ns;
		s->block_used = flow_samples_begin(s->block, s->block_ns);
	}
	s->block_used += flow_sample_write(s->block + s->block_used, s->block_ns, flow, sample, &s->history);
}

static void on_tick(void *context, uint64_t at_ns)
{
	struct session *s = context;

	(void)at_ns;
	block_send(s);
	serve_packets_send(&s->packets, &s->link);
}

static void on_packet(void *context, uint32_t flow, const struct flow_packet *packet)
{
	struct session *s = context;

	if (!serve_packets_add(&s->packets, &s->link, flow, packet))
		flow_set_missed(s->flows, flow);
}

static void on_turned(void *context)
{
	struct session *s = context;

	if (s->link.held)
		control_link_push(&s->link);
}

static void moved(struct session *s, bool sent, uint64_t bytes, uint64_t packets)
{
	if (KTRXER_SERVER_EXTRAS) {
		s->client.bytes[sent] += bytes;
		s->client.packets[sent] += packets;
	}
	s->registry->counts.bytes[sent] += bytes;
	s->registry->counts.packets[sent] += packets;
}

static void on_ended(void *context, uint32_t flow, const struct flow_end *end)
{
	struct session *s = context;
	uint8_t *body;

	moved(s, flow_set_at(s->flows, flow)->sends, end->bytes, end->packets);
	s->link.held = true; /* until on_turned(): many flows may end together */
	block_send(s);
	serve_packets_send(&s->packets, &s->link);
	body = control_link_begin(&s->link, CONTROL_FIRST_MAX);
	if (body)
		control_link_send(&s->link, CONTROL_FLOW_END, control_flow_end_write(body, flow, end));
	if (s->state == SESSION_RUNNING && flow_set_over(s->flows)) {
		s->state = SESSION_ENDED;
		s->dead_ns = ktrxer_now_ns() + seconds(KTRXER_CONTROL_AFTER_S);
	}
}

static enum control_refusal request_judge(struct session *s, uint64_t *value)
{
	const struct serve_control_options *o = &s->registry->options;
	const struct control_request *r = &s->request;
	uint64_t finest;

	*value = o->max_clients;
	if (registry_clients(s->registry) >= o->max_clients)
		return CONTROL_CLIENTS;
	*value = o->max_flows;
	if (r->flows > o->max_flows)
		return CONTROL_TOO_MANY;
	*value = o->max_ns;
	if (r->for_ns > o->max_ns || r->whole_ns > o->max_ns)
		return CONTROL_TOO_LONG;
	*value = o->max_bps;
	if (o->max_bps && r->rate_bps > o->max_bps)
		return CONTROL_TOO_FAST;
	finest = r->flows * (uint64_t)KTRXER_NS_PER_S / KTRXER_FLOW_SAMPLES_S;
	*value = finest > KTRXER_FLOW_SAMPLE_MIN_NS ? finest : KTRXER_FLOW_SAMPLE_MIN_NS;
	if (r->sample_ns < *value)
		return CONTROL_TOO_FINE;
	for (int i = 0; i < r->cc_count; i++) {
		const int rc = flow_tcp_cc(r->ccs[i]);

		*value = (uint64_t)i;
		if (rc < 0)
			return rc == -EPERM || rc == -EACCES ? CONTROL_CC_LOCKED : CONTROL_NO_CC;
	}
	return CONTROL_OK;
}

static int flows_make(struct session *s)
{
	const struct control_request *r = &s->request;
	const struct flow_set_options f = { .loop = s->registry->loop,
					    .flows = r->flows,
					    .server = true,
					    .for_ns = r->for_ns,
					    .bytes = r->bytes,
					    .sample_ns = r->sample_ns,
					    .pace_bps = s->registry->options.max_bps,
					    .sample = on_sample,
					    .ended = on_ended,
					    .tick = on_tick,
					    .turned = on_turned,
					    .packet = on_packet,
					    .context = s };

	s->block = malloc(CONTROL_BODY_MAX + FLOW_SAMPLE_MOST);
	if (!s->block || flow_history_new(&s->history, r->flows) < 0)
		return -ENOMEM;
	return flow_set_new(&s->flows, &f);
}

static void on_request(struct session *s, const struct control_frame *frame)
{
	struct control_grant grant = { .session = s->id };
	enum control_refusal why;
	uint64_t value;
	uint8_t *body;

	if (frame->type != CONTROL_REQUEST || control_request_read(&s->request, frame) < 0) {
		session_refuse(s, CONTROL_MALFORMED, 0);
		return;
	}
	s->client.proven = true;
	registry_trust(s->registry, &s->client.from, ktrxer_now_ns());
	why = request_judge(s, &value);
	if (why != CONTROL_OK || flows_make(s) < 0) {
		session_refuse(s, why != CONTROL_OK ? why : CONTROL_NO_MEMORY, value);
		return;
	}
	grant.max_ns = s->registry->options.max_ns;
	grant.pace_bps = s->registry->options.max_bps;
	s->state = SESSION_GRANTED;
	s->dead_ns = ktrxer_now_ns() + seconds(KTRXER_CONTROL_CONNECT_S);
	s->link.most = CONTROL_BODY_MAX;
	/* Beyond the samples there is always room for the end of each flow. */
	s->link.out_limit = KTRXER_CONTROL_SAMPLES_BYTES + 8 * CONTROL_FIRST_MAX + s->request.flows * 128;
	s->registry->counts.sessions++;
	body = control_link_begin(&s->link, CONTROL_FIRST_MAX);
	if (body)
		control_link_send(&s->link, CONTROL_GRANT, control_grant_write(body, &grant));
}

static void ready_if_attached(struct session *s)
{
	if (s->state != SESSION_PLANNED || !flow_set_attached(s->flows))
		return;
	s->state = SESSION_READY;
	control_link_say(&s->link, CONTROL_READY);
}

/* The sum of the bit rates in each direction: TCP flows are paced to the limit, UDP flows are not. */
static enum control_refusal udp_judge(struct session *s, const struct flow_spec *spec, uint64_t *value)
{
	const uint64_t most = s->registry->options.max_bps;

	s->rates[spec->down] += spec->rate_bps;
	*value = most;
	if (most && s->rates[spec->down] > most)
		return CONTROL_TOO_FAST;
	if (s->rates[spec->down] > INT64_MAX)
		return CONTROL_MALFORMED;
	*value = KTRXER_FLOW_UDP_MAX;
	return ++s->udp_flows > KTRXER_FLOW_UDP_MAX ? CONTROL_TOO_MANY : CONTROL_OK;
}

static enum control_refusal flows_add(struct session *s, const struct flow_spec *specs, int count, uint64_t *value)
{
	for (int i = 0; i < count; i++) {
		enum control_refusal why = specs[i].udp ? udp_judge(s, &specs[i], value) : CONTROL_OK;
		int rc;

		if (why != CONTROL_OK)
			return why;
		s->client.flows[specs[i].down][specs[i].udp]++;
		*value = specs[i].tos >> 2;
		if (!(s->registry->options.dscp_granted >> (specs[i].tos >> 2) & 1))
			return CONTROL_NO_DSCP;
		rc = flow_set_add(s->flows, flow_ops_of(&specs[i]), &specs[i]);
		if (rc < 0)
			return rc == -ENOMEM ? CONTROL_NO_MEMORY : CONTROL_MALFORMED;
	}
	return CONTROL_OK;
}

/* With the device, if the address is of one link. */
static void address_here(const struct session *s, struct ktrxer_addr *addr)
{
	union ktrxer_name name = { 0 };
	socklen_t length = sizeof name;

	memset(addr, 0, sizeof *addr);
	if (getsockname(s->link.source.fd, &name.sa, &length) == 0)
		ktrxer_name_read(&name, addr);
}

static int udp_open(struct session *s, struct flow *flow)
{
	struct flow_udp_route route = { .to = s->client.from, .to_port = 9, .cpu = -1 };
	uint8_t cookie[CONTROL_COOKIE];
	struct ktrxer_error err;

	control_cookie(&s->link.keys, s->id, flow->index, cookie);
	if (!flow->sends)
		return flow_udp_open_counter(flow, cookie);
	address_here(s, &route.from);
	route.to.scope_id = route.from.scope_id;
	s->ports[s->port_count].flow = flow->index;
	return flow_udp_open_sender(flow, cookie, &route, &s->ports[s->port_count++].port, &err);
}

static void planned(struct session *s)
{
	uint8_t *body = control_link_begin(&s->link, CONTROL_FIRST_MAX);

	s->state = SESSION_PLANNED;
	if (body)
		control_link_send(&s->link, CONTROL_PLANNED, control_ports_write(body, s->port_count, s->ports));
	ready_if_attached(s);
}

/* Opens one transmitter in each turn of the loop, because that takes some hundred microseconds. */
static void opening_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct session *s = (struct session *)((char *)timer - offsetof(struct session, opening));

	(void)now_ns;
	while (s->udp_flows) {
		struct flow *flow = flow_set_flow(s->flows, s->opened++);
		int rc = flow->spec.udp ? udp_open(s, flow) : 0;

		if (rc < 0) {
			session_refuse(s, CONTROL_NO_FAMILY, flow_error_of(rc));
			return;
		}
		s->udp_flows -= flow->spec.udp;
		if (flow->spec.udp || loop_share_used(s->registry->loop))
			break;
	}
	if (s->udp_flows)
		timer->at_ns = 0;
	else
		planned(s);
}

static void on_flows(struct session *s, const struct control_frame *frame)
{
	struct flow_spec specs[CONTROL_RECORDS];
	enum control_refusal why = CONTROL_MALFORMED;
	uint64_t value = 0;
	uint32_t first;
	int count = control_flows_read(specs, &first, frame, &s->request);

	if (count > 0 && first == flow_set_count(s->flows))
		why = flows_add(s, specs, count, &value);
	if (why != CONTROL_OK)
		session_refuse(s, why, value);
	else if (flow_set_count(s->flows) == s->request.flows)
		s->opening.at_ns = 0;
}

/* The client has ended a flow up: the frame has the reason, and for UDP the number of packets sent. */
static void on_flow_end(struct session *s, const struct control_frame *frame)
{
	struct flow_end end;
	uint32_t flow;

	if (control_flow_end_read(&flow, &end, frame) < 0 || flow >= flow_set_count(s->flows))
		return;
	if (s->state == SESSION_RUNNING && !flow_set_at(s->flows, flow)->sends)
		flow_set_reported(s->flows, flow, &end);
}

static void on_ping(struct session *s, const struct control_frame *frame)
{
	struct control_pong pong = { .t2_ns = ktrxer_now_ns() };
	uint8_t *body = control_link_begin(&s->link, CONTROL_FIRST_MAX);

	if (control_time_read(&pong.t1_ns, frame) < 0 || !body)
		return;
	pong.t3_ns = ktrxer_now_ns();
	control_link_send(&s->link, CONTROL_PONG, control_pong_write(body, &pong));
}

static void on_start(struct session *s, const struct control_frame *frame)
{
	const uint64_t now_ns = ktrxer_now_ns(), most = seconds(KTRXER_CONTROL_CONNECT_S);
	uint64_t at_ns, whole = s->registry->options.max_ns;

	if (s->state != SESSION_READY || control_time_read(&at_ns, frame) < 0 || at_ns > now_ns + most ||
	    at_ns + most < now_ns) {
		session_refuse(s, CONTROL_MALFORMED, 0);
		return;
	}
	if (s->request.whole_ns && s->request.whole_ns < whole)
		whole = s->request.whole_ns;
	s->state = SESSION_RUNNING;
	s->dead_ns = at_ns + whole + seconds(KTRXER_CONTROL_AFTER_S);
	s->registry->counts.flows += s->request.flows;
	flow_set_start(s->flows, at_ns);
}

/* False: the session has ended. */
static bool on_frame(struct control_link *link, const struct control_frame *frame)
{
	struct session *s = (struct session *)link;

	if (s->state == SESSION_LEAVING)
		return true;
	if (s->state == SESSION_NEW) {
		on_request(s, frame);
		return true;
	}
	switch (frame->type) {
	case CONTROL_FLOWS:
		if (s->state == SESSION_GRANTED)
			on_flows(s, frame);
		else
			session_refuse(s, CONTROL_MALFORMED, 0);
		return true;
	case CONTROL_PING:
		on_ping(s, frame);
		return true;
	case CONTROL_START:
		on_start(s, frame);
		return true;
	case CONTROL_FLOW_END:
		on_flow_end(s, frame);
		return true;
	case CONTROL_STOP:
		if (s->state == SESSION_RUNNING)
			flow_set_stop_soon(s->flows);
		return true;
	case CONTROL_BYE:
		session_forget(s);
		return false;
	default:
		session_refuse(s, CONTROL_MALFORMED, 0);
		return true;
	}
}

static void on_closed(struct control_link *link, int error)
{
	struct session *s = (struct session *)link;

	if (s->state != SESSION_LEAVING && (error == -EBADMSG || error == -EMSGSIZE)) {
		session_refuse(s, error == -EBADMSG && s->state == SESSION_NEW ? CONTROL_NO_TOKEN : CONTROL_MALFORMED,
			       0);
		return;
	}
	/*
	 * The client left without CONTROL_BYE. It is lost in SESSION_ENDED too, because the connections of its flows
	 * may have broken, and ended the flows, a moment earlier.
	 */
	s->client.lost = s->state >= SESSION_PLANNED && s->state <= SESSION_ENDED;
	s->registry->counts.lost_clients += s->client.lost;
	session_forget(s);
}

static void session_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct session *s = (struct session *)((char *)timer - offsetof(struct session, timer));
	const uint64_t silence = seconds(KTRXER_CONTROL_SILENCE_S);

	if (s->state == SESSION_CLOSING) {
		if (flow_set_closed(s->closing))
			session_free(s);
		else
			timer->at_ns = now_ns + KTRXER_NS_PER_MS;
		return;
	}
	if (s->state == SESSION_LEAVING || (s->state == SESSION_NEW && now_ns >= s->dead_ns)) {
		s->registry->counts.slow += s->state == SESSION_NEW;
		session_forget(s);
		return;
	}
	timer->at_ns = now_ns + seconds(1);
	if (now_ns >= s->dead_ns)
		session_refuse(s, CONTROL_TOO_LONG, s->registry->options.max_ns);
	else if (now_ns >= s->link.heard_ns + silence)
		session_refuse(s, CONTROL_SILENT, silence);
}

int session_attach(struct session *s, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE], int fd)
{
	uint8_t right[CONTROL_COOKIE];
	int rc;

	if (s->state != SESSION_PLANNED || flow >= flow_set_count(s->flows))
		return -EPROTO;
	control_cookie(&s->link.keys, s->id, flow, right);
	if (!secret_equal(right, cookie, sizeof right))
		return -EPERM;
	rc = flow_set_attach(s->flows, flow, fd, flow_tcp_acked(fd));
	if (rc < 0)
		return rc;
	ready_if_attached(s);
	return 0;
}

/* Compare without the scope: packets of one link-local address may arrive by different devices. */
static bool same_host(const struct ktrxer_addr *a, const struct ktrxer_addr *b)
{
	struct ktrxer_addr one = *a, other = *b;

	one.scope_id = other.scope_id = 0;
	return ktrxer_addr_equal(&one, &other);
}

int session_register(struct session *s, uint32_t flow, const uint8_t cookie[CONTROL_COOKIE],
		     const struct ktrxer_addr *from, uint16_t port)
{
	uint8_t right[CONTROL_COOKIE];
	struct flow *f;

	if (!s->flows || flow >= flow_set_count(s->flows))
		return -EPROTO;
	control_cookie(&s->link.keys, s->id, flow, right);
	if (!secret_equal(right, cookie, sizeof right))
		return -EPERM;
	f = flow_set_flow(s->flows, flow);
	if (!f->spec.udp || !f->udp)
		return -EPROTO;
	if (f->state != FLOW_IDLE) {
		/* The client repeats its datagram: until the answer arrives, and where no packets arrive any more. */
		if (f->sends && f->state == FLOW_GOING && same_host(from, &s->client.from))
			flow_udp_aim(f, from, port);
		return 1;
	}
	/*
	 * The source address of a datagram can be forged. The control connection has proven that its client receives at
	 * its address.
	 */
	if (f->sends && !same_host(from, &s->client.from)) {
		session_refuse(s, CONTROL_OTHER_ADDRESS, 0);
		return -EACCES;
	}
	if (f->sends)
		flow_udp_aim(f, from, port);
	else if (registry_peer_add(s->registry, s, flow, load_be64(right), from, port) < 0)
		return -ENOMEM;
	flow_set_attach_udp(s->flows, flow);
	ready_if_attached(s);
	return 0;
}

int session_new(struct session **out, struct serve_registry *registry, int fd, const struct ktrxer_addr *peer,
		const uint8_t client[CONTROL_PREFACE], const struct hmac_key *token)
{
	struct session *s = calloc(1, sizeof *s);
	struct control_preface mine = { .kind = CONTROL_SERVER, .version = CONTROL_VERSION };
	uint8_t answer[CONTROL_PREFACE];
	int rc;

	*out = NULL;
	if (!s || getrandom(mine.nonce, sizeof mine.nonce, 0) != sizeof mine.nonce) {
		free(s);
		close(fd);
		return -ENOMEM;
	}
	s->registry = registry;
	s->client = (struct serve_client){ .from = *peer, .began_ns = ktrxer_now_ns() };
	s->link.frame = on_frame;
	s->link.closed = on_closed;
	rc = control_link_open(&s->link, registry->loop, fd);
	if (rc < 0) {
		free(s);
		return rc;
	}
	control_preface_write(answer, &mine);
	control_keys_derive(&s->link.keys, token, client, answer, true);
	s->link.keyed = true;
	s->dead_ns = ktrxer_now_ns() + seconds(KTRXER_CONTROL_HELLO_S);
	s->timer = (struct loop_timer){ .at_ns = s->dead_ns, .due = session_due };
	s->opening = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = opening_due };
	loop_timer_add(registry->loop, &s->timer);
	loop_timer_add(registry->loop, &s->opening);
	control_link_bytes(&s->link, answer, sizeof answer);
	*out = s;
	return 0;
}

void session_greet(struct session *s, uint8_t version)
{
	if (version != CONTROL_VERSION)
		session_refuse(s, CONTROL_NO_VERSION, CONTROL_VERSION);
}

void session_forget(struct session *s)
{
	flows_close(s);
	if (!s->closing || flow_set_closed(s->closing)) {
		session_free(s);
		return;
	}
	s->state = SESSION_CLOSING;
	s->timer.at_ns = 0;
	registry_peers_forget(s->registry, s);
	control_link_close(&s->link);
}

/* Counts the bytes and packets of flows that were cut off, too. */
static void client_ended(struct session *s)
{
	const struct serve_control_options *o = &s->registry->options;

	flows_close(s);
	if (KTRXER_SERVER_EXTRAS && s->closing) {
		const struct flow_set_cut *cut = flow_set_close_now(s->closing);

		for (int sent = 0; sent < 2; sent++)
			moved(s, sent, cut->bytes[sent], cut->packets[sent]);
	}
	if (KTRXER_SERVER_EXTRAS && o->ended)
		o->ended(o->context, &s->client);
}

void session_free(struct session *s)
{
	client_ended(s);
	registry_remove(s->registry, s);
	loop_timer_remove(s->registry->loop, &s->timer);
	loop_timer_remove(s->registry->loop, &s->opening);
	flow_set_free(s->closing);
	flow_history_free(&s->history);
	control_link_close(&s->link);
	free(s->block);
	free(s->packets.block);
	free(s);
}
