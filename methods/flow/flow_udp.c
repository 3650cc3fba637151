/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_udp.h"

#include "clock.h"
#include "error.h"
#include "flow_count.h"
#include "limits.h"
#include "message.h"
#include "path_find.h"
#include "name.h"
#include "traffic_model.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	PORT_TRIES = 16,
	SLOTS_LEAST = 64,
	SLOTS_MOST = 4096,
	AHEAD_PACKETS = 32, /* committed to a transmitter that the loop pumps: it may have to send them in one call */
	DUE_DRAWS = 1024,   /* packets that were never made and are counted one by one */
	LATE_FLOOR_NS = 100 * 1000,
	/* packets that the host's own queue drops are lost, not sent later: that would be another load */
	RETRY_NS = 100 * 1000,
	BATCH = 32,
	ROUNDS = 8,
	RECEIVE_BYTES = 4 << 20,
	HEADERS = 14 + 40 + 8,
};
#define AHEAD_NS (20 * (uint64_t)KTRXER_NS_PER_MS)
#define CLOCK_AGE_NS ((uint64_t)KTRXER_NS_PER_S / 10)
#define RUN_OUT_NS (100 * (uint64_t)KTRXER_NS_PER_MS) /* for what was committed before the end */

struct flow_udp {
	struct flow *flow;
	struct loop *loop;
	uint8_t tag[8];
	/* sender */
	struct loop_timer timer;
	struct loop_source events; /* of the transmitter */
	struct ktx *tx;
	struct ktx_info info;
	struct ktrxer_path path;
	struct ktrxer_frame_spec frame;
	uint32_t head; /* bytes of a frame before its payload */
	struct traffic_model model;
	uint64_t due_ns, next; /* the packet that is next: when, and its number */
	uint32_t due_payload;
	bool have_due, exhausted, pumps;
	bool crowded; /* AHEAD_PACKETS are committed, and more are due soon */
	uint64_t committed_bytes;
	struct ktx_accounts before; /* of packets before its begin: introductions */
	int network_error;
	/* receiver */
	struct flow_count count;
	struct ktrxer_addr peer;
	uint64_t last_ns, reported_ns, reported_packets;
	uint64_t overflows; /* since the first packet, of a socket that several flows share */
	uint32_t overflow_seen;
	int socket; /* that the packets come by; -1: not known */
	bool reported;
	struct ktrxer_clock_map clock; /* train: of the stamps of arrivals */
};

static int udp_new(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE])
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

static void udp_free(struct flow *flow)
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
	free(u);
	flow->udp = NULL;
}

/* ----------------------------------------------------------------------------------------------------------- sender */

uint64_t flow_udp_gap_ns(const struct flow_spec *spec)
{
	return ((uint64_t)spec->payload_min + spec->payload_max) * 4 * (uint64_t)KTRXER_NS_PER_S / spec->rate_bps;
}

static void pump(struct flow_udp *u);

static void udp_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	pump((struct flow_udp *)((char *)timer - offsetof(struct flow_udp, timer)));
}

static void udp_event(struct loop_source *source, uint32_t events)
{
	(void)events;
	pump((struct flow_udp *)((char *)source - offsetof(struct flow_udp, events)));
}

static int tx_open(struct flow_udp *u, const struct flow_udp_route *route, struct ktrxer_error *err)
{
	const struct flow_spec *spec = &u->flow->spec;
	const char *engine = route->engine ? route->engine : "udp";
	const bool by_stack = ktx_engine_by_stack(engine, u->path.needs_stack);
	const uint64_t gap_ns = flow_udp_gap_ns(spec) ? flow_udp_gap_ns(spec) : 1;
	const bool train = spec->model == FLOW_TRAIN;
	struct ktx_options t = KTX_OPTIONS_INIT;
	int rc;

	t.device = route->device || !by_stack || u->path.to.scope_id ? u->path.device.name : NULL;
	t.engine = engine;
	t.wait = route->precise ? KTX_WAIT_SPIN : KTX_WAIT_SLEEP;
	/*
	 * No stamps but for trains: a slot would wait for its own, and a full queue would slow the flow down. On time
	 * is to the kernel on time.
	 */
	t.flags = (train ? KTX_NO_SCHED : KTX_NO_STAMPS) | (route->precise ? 0 : KTX_CALLER_PUMPS | KTX_NO_LOCK);
	t.retry_ns = RETRY_NS;
	t.late_ns = gap_ns / 10 > LATE_FLOOR_NS ? gap_ns / 10 : LATE_FLOOR_NS; /* as the verdict has it */
	t.reports = train ? KTX_REPORT_ALL : KTX_REPORT_NONE;
	t.cpu = route->cpu;
	t.slots = SLOTS_LEAST;
	t.frame_size = HEADERS + (spec->payload_max > CONTROL_PREFACE ? spec->payload_max : CONTROL_PREFACE);
	u->pumps = !route->precise;
	while (t.slots < (u->pumps && !train ? 2 * AHEAD_PACKETS : SLOTS_MOST) &&
	       (t.slots * gap_ns < 2 * AHEAD_NS || t.slots < 2 * spec->train) &&
	       2 * (uint64_t)t.slots * t.frame_size * flow_set_options(u->flow->set)->flows <= KTRXER_FLOW_UDP_BYTES)
		t.slots *= 2;
	rc = ktx_open(&u->tx, &t, err);
	if (rc < 0)
		return rc;
	ktx_info(u->tx, &u->info);
	if (!(u->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	if (u->path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "whole frames from this host to itself are dropped by its kernel as forged: use the "
				   "engine udp");
	return path_find(&u->path, route->device, &route->from, &route->to, true, err);
}

static int port_find(struct flow_udp *u, struct ktrxer_error *err)
{
	const uint32_t payload = u->flow->spec.payload_max;
	uint8_t *frame = malloc(HEADERS + payload);
	int rc = -EADDRINUSE, length;

	if (!frame)
		return ktrxer_fail(err, -ENOMEM, "no memory for a packet");
	u->frame = (struct ktrxer_frame_spec)KTRXER_FRAME_SPEC_INIT;
	u->frame.path = &u->path;
	u->frame.proto = KTRXER_UDP;
	u->frame.tos = u->flow->spec.tos;
	u->frame.link = u->info.link;
	for (int tries = 0; tries < PORT_TRIES && rc == -EADDRINUSE; tries++) {
		uint16_t random;

		if (getrandom(&random, sizeof random, 0) != sizeof random) {
			rc = ktrxer_fail(err, -EIO, "no random numbers from the kernel");
			break;
		}
		u->frame.from_port = (uint16_t)(49152u | random);
		u->frame.to_port = u->frame.to_port ? u->frame.to_port : 9;
		u->frame.payload = NULL;
		u->frame.payload_length = payload;
		length = ktrxer_frame_build(frame, HEADERS + payload, &u->frame);
		if (length == -EMSGSIZE)
			rc = ktrxer_fail(err, length,
					 "a payload of %u bytes makes a packet larger than the MTU of %u on '%s'; give "
					 "a smaller payload",
					 payload, u->path.mtu, u->path.device.name);
		else
			rc = length < 0 ? ktrxer_fail(err, length, "no packet fits this route")
					: ktx_check(u->tx, frame, (uint32_t)length, err);
	}
	free(frame);
	return rc;
}

int flow_udp_open_sender(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE], const struct flow_udp_route *route,
			 uint16_t *port, struct ktrxer_error *err)
{
	struct flow_udp *u;
	uint8_t seed[16];
	int rc = udp_new(flow, cookie);

	if (rc < 0)
		return ktrxer_fail(err, rc, "no memory for a UDP flow");
	u = flow->udp;
	if (!flow_set_block(flow->set))
		return ktrxer_fail(err, -ENOMEM, "no memory for a UDP flow");
	if (getrandom(seed, sizeof seed, 0) != sizeof seed)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	if ((rc = traffic_model_begin(&u->model, &flow->spec, seed)) < 0)
		return ktrxer_fail(err, rc, "no memory for the traffic model of a UDP flow");
	if ((rc = path_find(&u->path, route->device, &route->from, &route->to, false, err)) < 0 ||
	    (rc = tx_open(u, route, err)) < 0)
		return rc;
	u->timer.due = udp_due;
	loop_timer_add(u->loop, &u->timer);
	if ((rc = port_find(u, err)) < 0)
		return rc;
	u->head = (uint32_t)ktrxer_frame_header_length(&u->frame);
	u->frame.to_port = route->to_port;
	*port = u->frame.from_port;
	u->events = (struct loop_source){ .fd = ktx_fd(u->tx), .ready = udp_event };
	rc = loop_watch(u->loop, &u->events, EPOLLIN);
	if (rc < 0)
		u->events.fd = -1;
	return rc < 0 ? ktrxer_fail(err, rc, "the event loop does not take a transmitter") : 0;
}

void flow_udp_aim(struct flow *flow, const struct ktrxer_addr *to, uint16_t to_port)
{
	flow->udp->path.to = *to;
	flow->udp->frame.to_port = to_port;
}

int flow_udp_introduce(struct flow *flow, const uint8_t preface[CONTROL_PREFACE])
{
	struct flow_udp *u = flow->udp;
	struct ktx_probe probe = { .at_ns = 0 };
	struct ktrxer_error err;
	struct ktx_slot slot;
	int length;

	if (ktx_reserve(u->tx, &slot) < 0)
		return -EAGAIN;
	u->frame.payload = preface;
	u->frame.payload_length = CONTROL_PREFACE;
	length = ktrxer_frame_build(slot.frame, slot.capacity, &u->frame);
	if (length < 0)
		return length;
	probe.length = (uint32_t)length;
	length = ktx_commit(u->tx, &probe, &err);
	pump(u);
	return length;
}

/*
 * Both packets of a pair leave by one system call: less time between them, and less of the processor's. Not where a
 * limit of bytes may end the flow between them, and not for longer trains, for which the ring may have no room at once.
 */
static uint32_t pair_goes_on(const struct flow_udp *u)
{
	const struct flow_spec *spec = &u->flow->spec;
	const bool goes_on = spec->train == 2 && !spec->train_gap_ns && u->model.of_train == 1 &&
			     !flow_set_options(u->flow->set)->bytes;

	return goes_on ? KTX_TRAIN_GOES_ON : 0;
}

/* False: no room now, or it cannot be sent at all. */
static bool commit(struct flow_udp *u)
{
	struct ktx_probe probe = { .id = u->next, .at_ns = u->due_ns, .flags = pair_goes_on(u) };
	struct ktrxer_error err = { 0 };
	struct ktx_slot slot;
	uint8_t *payload;
	int length;

	if (ktx_reserve(u->tx, &slot) < 0)
		return false;
	payload = slot.frame + u->head;
	memcpy(payload, u->tag, sizeof u->tag);
	store_be64(payload + 8, u->next);
	store_be64(payload + 16, u->due_ns);
	memcpy(payload + FLOW_PACKET_HEAD, flow_set_block(u->flow->set) + FLOW_PACKET_HEAD,
	       u->due_payload - FLOW_PACKET_HEAD);
	u->frame.payload = payload;
	u->frame.payload_length = u->due_payload;
	length = ktrxer_frame_build(slot.frame, slot.capacity, &u->frame);
	if (length < 0) {
		err.code = length;
	} else {
		probe.length = (uint32_t)length;
		ktx_commit(u->tx, &probe, &err);
	}
	if (err.code) {
		flow_finish(u->flow, FLOW_BROKEN, err.code);
		return false;
	}
	u->next++;
	u->committed_bytes += u->due_payload;
	u->have_due = false;
	return true;
}

static uint64_t pending(const struct flow_udp *u)
{
	struct ktx_accounts a;

	ktx_accounts(u->tx, &a);
	return a.pending;
}

/* Returns when there is more to commit; KTRXER_NEVER: that was all. */
static uint64_t commit_soon(struct flow_udp *u)
{
	const uint64_t most = flow_set_options(u->flow->set)->bytes;
	const uint64_t ahead = u->pumps ? pending(u) : 0;
	uint64_t room = !u->pumps ? UINT64_MAX : ahead < AHEAD_PACKETS ? AHEAD_PACKETS - ahead : 0;

	u->crowded = false;
	while (!u->exhausted && u->flow->state == FLOW_GOING) {
		if (!u->have_due)
			u->due_ns = u->flow->start_ns + traffic_model_next(&u->model, &u->due_payload);
		u->have_due = true;
		if (u->due_ns >= u->flow->end_ns || (most && u->committed_bytes >= most)) {
			u->exhausted = true;
			break;
		}
		if (u->due_ns > ktrxer_now_ns() + AHEAD_NS)
			return u->due_ns - AHEAD_NS / 2;
		u->crowded = !room--;
		if (u->crowded)
			break;
		if (!commit(u))
			return ktrxer_now_ns() + KTRXER_NS_PER_MS;
	}
	return KTRXER_NEVER;
}

/* True: there were some. */
static bool network_errors_take(struct flow_udp *u)
{
	struct ktx_network_error errors[4];
	bool any = false;

	for (int n; (n = ktx_network_errors(u->tx, errors, 4)) > 0; any = true)
		for (int i = 0; i < n;
		     i++) /* a host's kernel sends the ICMP message for its missing neighbour itself */
			u->network_error = errors[i].error == EHOSTUNREACH &&
							   ktrxer_addr_equal(&errors[i].reporter, &u->path.source)
						   ? FLOW_ERRNO_NEIGHBOUR
						   : errors[i].error;
	return any;
}

static void packet_say(const struct flow_udp *u, enum flow_packet_kind kind, uint64_t number, uint64_t time_ns)
{
	const struct flow_set_options *o = flow_set_options(u->flow->set);

	o->packet(o->context, u->flow->index, &(struct flow_packet){ number, time_ns, (uint8_t)kind });
}

/*
 * Send times of a train's packets; the introductions have no scheduled time. Other flows have no reports, but
 * ktx_reports() also clears the descriptor of the transmitter, which a network error makes readable.
 */
static void reports_take(struct flow_udp *u)
{
	struct ktx_report reports[BATCH];

	for (int n; (n = ktx_reports(u->tx, reports, BATCH)) > 0;)
		for (int i = 0; i < n; i++)
			if (reports[i].at_ns && reports[i].status == KTX_SENT)
				packet_say(u, reports[i].departure_ns ? FLOW_PACKET_SENT : FLOW_PACKET_COMMITTED,
					   reports[i].id,
					   reports[i].departure_ns ? reports[i].departure_ns : reports[i].sent_ns);
}

static void pump(struct flow_udp *u)
{
	struct flow *flow = u->flow;
	uint64_t next_ns = commit_soon(u), pump_ns = KTRXER_NEVER;

	if (u->pumps && ktx_pump(u->tx, &pump_ns) < 0 && flow->state == FLOW_GOING) {
		flow_finish(flow, FLOW_BROKEN, -ENODEV);
		return;
	}
	if (network_errors_take(u) || u->flow->spec.model == FLOW_TRAIN)
		reports_take(u);
	if (u->crowded && pending(u) < AHEAD_PACKETS)
		next_ns = 0;
	if (flow->state == FLOW_GOING && u->exhausted && flow->end_ns == KTRXER_NEVER) {
		if (!pending(u)) {
			flow_finish(flow, FLOW_PLANNED, 0);
			return;
		}
		next_ns = ktrxer_now_ns() + KTRXER_NS_PER_MS;
	}
	u->timer.at_ns = next_ns < pump_ns ? next_ns : pump_ns;
}

struct ktrxer_hist *flow_udp_lateness(const struct flow *flow, struct ktx_accounts *accounts)
{
	const struct flow_udp *u = flow->udp;

	memset(accounts, 0, sizeof *accounts);
	if (!u || !u->tx)
		return NULL;
	ktx_accounts(u->tx, accounts);
	return ktx_lateness(u->tx);
}

bool flow_udp_engine(const struct flow *flow, struct ktx_info *info, struct ktrxer_qdiscs *qdiscs)
{
	const struct flow_udp *u = flow->udp;

	if (!u || !u->tx)
		return false;
	*info = u->info;
	return ktrxer_device_qdiscs(qdiscs, &u->path.device) == 0;
}

/* --------------------------------------------------------------------------------------------------------- receiver */

bool flow_udp_packet(struct flow *flow, const uint8_t *data, uint32_t length, uint8_t tos, uint64_t now_ns,
		     int64_t real_ns)
{
	struct flow_udp *u = flow->udp;
	struct bytes b = bytes_of(data, length < FLOW_PACKET_HEAD ? length : FLOW_PACKET_HEAD);
	const uint8_t *tag = bytes_take(&b, sizeof u->tag);
	const uint64_t number = bytes_be64(&b);

	bytes_be64(&b);
	if (!b.ok || !secret_equal(tag, u->tag, sizeof u->tag))
		return false;
	if (flow->end.reason)
		return true;
	flow_count_packet(&u->count, number, length, tos);
	u->last_ns = now_ns;
	if (flow->spec.model == FLOW_TRAIN && real_ns) {
		ktrxer_clock_map_refresh(&u->clock, now_ns, CLOCK_AGE_NS);
		packet_say(u, FLOW_PACKET_ARRIVED, number, ktrxer_clock_map_mono(&u->clock, real_ns));
	}
	if (u->reported && u->count.packets >= u->reported_packets && flow->state == FLOW_GOING)
		flow_finish(flow, FLOW_PLANNED, 0);
	return true;
}

static void received(struct flow *flow, struct msghdr *message, uint32_t length, const union ktrxer_name *from)
{
	struct flow_udp *u = flow->udp;
	struct ktrxer_message m;
	struct ktrxer_addr addr;

	ktrxer_name_read(from, &addr);
	addr.scope_id = u->peer.scope_id;
	if (!ktrxer_addr_equal(&addr, &u->peer))
		return;
	ktrxer_message_read(&m, message);
	flow_udp_packet(flow, message->msg_iov->iov_base, length, m.tos, ktrxer_now_ns(), m.real_ns);
}

static void udp_ready(struct loop_source *source, uint32_t events)
{
	struct flow *flow = (struct flow *)source;
	_Alignas(struct cmsghdr) char control[BATCH][KTRXER_MESSAGE_CONTROL];
	uint8_t data[BATCH][FLOW_PACKET_HEAD];
	struct mmsghdr messages[BATCH];
	struct iovec vectors[BATCH];
	union ktrxer_name from[BATCH];

	(void)events;
	for (int round = 0; round < ROUNDS && flow->source.fd >= 0; round++) {
		int n;

		for (int i = 0; i < BATCH; i++) {
			vectors[i] = (struct iovec){ data[i], sizeof data[i] };
			messages[i].msg_hdr = (struct msghdr){ .msg_name = &from[i],
							       .msg_namelen = sizeof from[i],
							       .msg_iov = &vectors[i],
							       .msg_iovlen = 1,
							       .msg_control = control[i],
							       .msg_controllen = sizeof control[i] };
		}
		/* MSG_TRUNC: the length is that of the packet; only its head is read. */
		n = recvmmsg(source->fd, messages, BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
		if (n <= 0)
			return;
		for (int i = 0; i < n; i++)
			received(flow, &messages[i].msg_hdr, messages[i].msg_len, &from[i]);
		if (n < BATCH)
			return;
	}
}

int flow_udp_open_receiver(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE], const struct flow_udp_route *route,
			   struct ktrxer_error *err)
{
	const int room = RECEIVE_BYTES;
	struct ktrxer_addr any = { .family = route->to.family };
	union ktrxer_name name;
	socklen_t length = ktrxer_name_make(&name, route->from.family ? &route->from : &any, 0);
	int rc = udp_new(flow, cookie), fd;

	if (rc < 0)
		return ktrxer_fail(err, rc, "no memory for a UDP flow");
	fd = socket(route->to.family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || bind(fd, &name.sa, length) != 0) {
		rc = -errno;
		if (fd >= 0)
			close(fd);
		return ktrxer_fail(err, rc, "UDP socket: %m");
	}
	ktrxer_message_enable(fd, route->to.family);
	if (flow->spec.model == FLOW_TRAIN)
		ktrxer_rxstamp_enable(fd);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	flow->udp->peer = route->to;
	flow->udp->socket = fd;
	flow->source = (struct loop_source){ .fd = fd, .ready = udp_ready };
	return loop_watch(flow->udp->loop, &flow->source, EPOLLIN);
}

int flow_udp_open_counter(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE])
{
	return udp_new(flow, cookie);
}

void flow_udp_call(struct flow *flow, uint16_t to_port, const uint8_t preface[CONTROL_PREFACE])
{
	union ktrxer_name name;
	const socklen_t length = ktrxer_name_make(&name, &flow->udp->peer, to_port);

	(void)!sendto(flow->source.fd, preface, CONTROL_PREFACE, MSG_DONTWAIT, &name.sa, length);
}

void flow_udp_shared(struct flow *flow, int fd, uint64_t overflows)
{
	struct flow_udp *u = flow->udp;

	if (u->socket >= 0)
		return;
	u->socket = fd;
	u->overflow_seen = (uint32_t)overflows;
}

/* ------------------------------------------------------------------------------------------------------- operations */

static void udp_begin(struct flow *flow)
{
	struct flow_udp *u = flow->udp;

	if (!flow->sends)
		return;
	ktx_accounts(u->tx, &u->before);
	pump(u);
}

static void udp_stop(struct flow *flow)
{
	struct flow_udp *u = flow->udp;

	if (!u || !u->tx)
		return;
	u->exhausted = true;
	ktx_cancel(u->tx);
	if (network_errors_take(u) || u->flow->spec.model == FLOW_TRAIN)
		reports_take(u);
}

static void udp_sample(struct flow *flow, struct flow_sample *s)
{
	struct flow_udp *u = flow->udp;

	s->kind = FLOW_UDP;
	for (int i = 0; i < FLOW_UDP_VALUES; i++)
		s->values[i] = UINT64_MAX;
	if (flow->sends) {
		struct ktx_accounts a;

		ktx_accounts(u->tx, &a);
		s->values[FLOW_PACKETS] = a.sent - u->before.sent;
		s->bytes = a.bytes - u->before.bytes - s->values[FLOW_PACKETS] * u->head;
		return;
	}
	s->bytes = u->count.bytes;
	s->values[FLOW_PACKETS] = u->count.packets;
	s->values[FLOW_ECT0] = u->count.ect0;
	s->values[FLOW_ECT1] = u->count.ect1;
	s->values[FLOW_CE] = u->count.ce;
	s->values[FLOW_UDP_LOST] = flow_count_lost(&u->count, u->reported_packets);
	s->values[FLOW_REORDERED] = u->count.reordered;
	s->values[FLOW_DUPLICATES] = u->count.duplicates;
	if (u->socket < 0)
		return;
	ktrxer_socket_drops(u->socket, &u->overflow_seen, &u->overflows);
	s->values[FLOW_OVERFLOWS] = u->overflows;
}

/*
 * So long after `from_ns`, or after the last packet if that came later; KTRXER_FLOW_QUEUE_S after `from_ns` at the
 * latest.
 */
static uint64_t quiet_ns(const struct flow_udp *u, uint64_t from_ns, uint64_t silence_ns)
{
	const uint64_t silent_ns = (u->last_ns > from_ns ? u->last_ns : from_ns) + silence_ns;
	const uint64_t last_ns = from_ns + KTRXER_FLOW_QUEUE_S * (uint64_t)KTRXER_NS_PER_S;

	return silent_ns < last_ns ? silent_ns : last_ns;
}

static uint64_t udp_end_ns(struct flow *flow, uint64_t now_ns)
{
	struct flow_udp *u = flow->udp;

	if (flow->sends) {
		if (flow->end_ns > now_ns || now_ns >= flow->end_ns + RUN_OUT_NS)
			return flow->end_ns;
		/* Packets that a busy machine could not commit in time belong to the flow, too. */
		if (!u->exhausted)
			u->timer.at_ns = 0;
		return u->exhausted && !pending(u) ? flow->end_ns : now_ns + KTRXER_NS_PER_MS;
	}
	/*
	 * The last packets may still wait in a queue, for seconds, and are not lost: as long as packets arrive, more
	 * may come. The sender reports how many there were.
	 */
	if (u->reported)
		return u->count.packets >= u->reported_packets
			       ? 0
			       : quiet_ns(u, u->reported_ns, KTRXER_FLOW_REPORTED_MS / 2 * (uint64_t)KTRXER_NS_PER_MS);
	return flow->end_ns == KTRXER_NEVER
		       ? KTRXER_NEVER
		       : quiet_ns(u, flow->end_ns, KTRXER_FLOW_SETTLE_S * (uint64_t)KTRXER_NS_PER_S);
}

static uint64_t udp_last_ns(const struct flow *flow)
{
	const struct flow_udp *u = flow->udp;

	if (flow->end_ns == KTRXER_NEVER)
		return u->last_ns;
	return u->last_ns > flow->end_ns ? u->last_ns : flow->end_ns;
}

static void udp_reported(struct flow *flow, const struct flow_end *end)
{
	struct flow_udp *u = flow->udp;

	if (!u || flow->sends || u->reported)
		return;
	u->reported = true;
	u->reported_ns = ktrxer_now_ns();
	u->reported_packets = end->packets;
}

/* So many packets the model has in this time, by its means. */
static uint64_t mean_packets(const struct flow_spec *spec, uint64_t span_ns)
{
	const double talks = (double)TRAFFIC_TALK_NS / (double)(TRAFFIC_TALK_NS + TRAFFIC_PAUSE_NS);
	const double bits = (double)span_ns * 1e-9 * (double)spec->rate_bps * (spec->model == FLOW_VOIP ? talks : 1);
	const double packets = bits / (4.0 * (spec->payload_min + spec->payload_max));

	return packets < 1e18 ? (uint64_t)packets : (uint64_t)1e18;
}

/*
 * With those packets that a busy machine never made. DUE_DRAWS of them are counted exactly. A peer may request more
 * packets than any host can make or count (24 bytes at 2^63 bit/s); the rest is what the model has on average.
 */
static void udp_account(struct flow *flow, struct flow_end *end)
{
	const uint64_t most = flow_set_options(flow->set)->bytes,
		       until_ns = flow->end_ns < end->time_ns ? flow->end_ns : end->time_ns;
	struct flow_udp *u = flow->udp;
	struct ktx_accounts a;

	ktx_accounts(u->tx, &a);
	end->late_packets = a.late - u->before.late;
	end->due_packets = u->next;
	for (uint64_t bytes = u->committed_bytes, draws = 0; !most || bytes < most; end->due_packets++, draws++) {
		if (!u->have_due)
			u->due_ns = flow->start_ns + traffic_model_next(&u->model, &u->due_payload);
		u->have_due = false;
		if (u->due_ns >= until_ns)
			break;
		if (draws == DUE_DRAWS) {
			const uint64_t by_time = mean_packets(&flow->spec, until_ns - u->due_ns);
			const uint64_t by_bytes = most ? (most - bytes) / flow->spec.payload_min + 1 : UINT64_MAX;

			end->due_packets += by_time < by_bytes ? by_time : by_bytes;
			break;
		}
		bytes += u->due_payload;
	}
}

static int udp_error(const struct flow *flow)
{
	return flow->udp ? flow->udp->network_error : 0;
}

/* A receiver's own socket; a sender's is its transmitter's. */
static void udp_close(struct flow *flow, bool gently)
{
	(void)gently;
	if (flow->source.fd < 0)
		return;
	loop_unwatch(flow->udp->loop, &flow->source);
	close(flow->source.fd);
	flow->source.fd = -1;
}

const struct flow_ops flow_udp_ops = {
	.begin = udp_begin,
	.sample = udp_sample,
	.end_ns = udp_end_ns,
	.stop = udp_stop,
	.last_ns = udp_last_ns,
	.reported = udp_reported,
	.account = udp_account,
	.error = udp_error,
	.close = udp_close,
	.free = udp_free,
};
