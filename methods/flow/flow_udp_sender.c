/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The sender of a UDP flow: its transmitter, and the packets of its traffic model. */
#include "flow_udp_state.h"

#include "error.h"
#include "flow_witness.h"
#include "path_find.h"
#include "path_witness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

enum { KTRXER_FLOW_UDP_BYTES = 64 << 20 /* of the packets that all these transmitters hold ready */ };

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
	HEADERS = 14 + 40 + 8,
};
#define MOVED_NS (5 * (uint64_t)KTRXER_NS_PER_S) /* errors of packets to the flow's last port arrive within it */
#define AHEAD_NS (20 * (uint64_t)KTRXER_NS_PER_MS)

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
	u->slots = t.slots;
	u->due_times = calloc(t.slots, sizeof *u->due_times);
	if (!u->due_times)
		return ktrxer_fail(err, -ENOMEM, "no memory for a UDP flow");
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
	int rc = flow_udp_new(flow, cookie);

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
	struct flow_udp *u = flow->udp;

	if (flow->state == FLOW_GOING && u->frame.to_port != to_port) {
		flow->end.moves++;
		u->moved_ns = ktrxer_now_ns();
		u->network_error = 0;
	}
	u->path.to = *to;
	u->frame.to_port = to_port;
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
	/* Before the commit, because a thread of its own sends at once; the next turn ends it then. */
	u->watched = ktx_reply_fd(u->tx) >= 0;
	if (u->watched)
		flow_witness_begin(flow, ktx_reply_fd(u->tx));
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
	u->due_times[u->next++ % u->slots] = u->due_ns;
	u->committed_bytes += u->due_payload;
	u->have_due = false;
	return true;
}

uint64_t flow_udp_pending(const struct flow_udp *u)
{
	struct ktx_accounts a;

	ktx_accounts(u->tx, &a);
	return a.pending;
}

/* Returns the time of the next commit; KTRXER_NEVER: there is none. */
static uint64_t commit_soon(struct flow_udp *u)
{
	const uint64_t most = flow_set_options(u->flow->set)->bytes;
	const uint64_t ahead = u->pumps ? flow_udp_pending(u) : 0;
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
		for (int i = 0; i < n; i++) {
			/* of a packet to the port that the NAT does not map any more */
			if (u->moved_ns && errors[i].when_ns < u->moved_ns + MOVED_NS)
				continue;
			/* a host's kernel sends the ICMP message for its missing neighbour itself */
			u->network_error = errors[i].error == EHOSTUNREACH &&
							   ktrxer_addr_equal(&errors[i].reporter, &u->path.source)
						   ? FLOW_ERRNO_NEIGHBOUR
						   : errors[i].error;
		}
	return any;
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
				flow_udp_say_packet(u,
						    reports[i].departure_ns ? FLOW_PACKET_SENT : FLOW_PACKET_COMMITTED,
						    reports[i].id,
						    reports[i].departure_ns ? reports[i].departure_ns
									    : reports[i].sent_ns);
}

static void pump(struct flow_udp *u)
{
	struct flow *flow = u->flow;
	uint64_t next_ns = commit_soon(u), pump_ns = KTRXER_NEVER;
	const int fd = ktx_reply_fd(u->tx);
	const bool watch = fd >= 0 && !u->watched && flow->stamp_due && flow_udp_pending(u);

	if (watch)
		flow_witness_begin(flow, fd);
	if (u->pumps && ktx_pump(u->tx, &pump_ns) < 0 && flow->state == FLOW_GOING) {
		flow_finish(flow, FLOW_BROKEN, -ENODEV);
		return;
	}
	/* A thread of its own sends until the next turn. */
	if (u->watched || (watch && u->pumps))
		flow_witness_end(flow, fd);
	u->watched = watch && !u->pumps;
	if (network_errors_take(u) || u->flow->spec.model == FLOW_TRAIN)
		reports_take(u);
	if (u->crowded && flow_udp_pending(u) < AHEAD_PACKETS)
		next_ns = 0;
	if (flow->state == FLOW_GOING && u->exhausted && flow->end_ns == KTRXER_NEVER) {
		if (!flow_udp_pending(u)) {
			flow_finish(flow, FLOW_PLANNED, 0);
			return;
		}
		next_ns = ktrxer_now_ns() + KTRXER_NS_PER_MS;
	}
	u->timer.at_ns = next_ns < pump_ns ? next_ns : pump_ns;
}

void flow_udp_begin(struct flow *flow)
{
	struct flow_udp *u = flow->udp;

	if (!flow->sends)
		return;
	ktx_accounts(u->tx, &u->before);
	pump(u);
}

void flow_udp_stop(struct flow *flow)
{
	struct flow_udp *u = flow->udp;

	if (!u || !u->tx)
		return;
	u->exhausted = true;
	ktx_cancel(u->tx);
	if (network_errors_take(u) || u->flow->spec.model == FLOW_TRAIN)
		reports_take(u);
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
 * Counts include packets that a busy machine never made. DUE_DRAWS of them are counted exactly. A peer may request more
 * packets than any host can make or count (24 bytes at 2^63 bit/s); the rest is the mean of the model.
 */
void flow_udp_account(struct flow *flow, struct flow_end *end)
{
	const uint64_t most = flow_set_options(flow->set)->bytes,
		       until_ns = flow->end_ns < end->time_ns ? flow->end_ns : end->time_ns;
	struct flow_udp *u = flow->udp;
	struct ktx_accounts a;

	ktx_accounts(u->tx, &a);
	end->late_packets = a.late - u->before.late;
	end->due_packets = u->next;
	/* Packets are committed before their time: a stop can come between. */
	while (end->due_packets && u->next - end->due_packets < u->slots &&
	       u->due_times[(end->due_packets - 1) % u->slots] >= until_ns)
		end->due_packets--;
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

struct ktrxer_hist *flow_udp_lateness(const struct flow *flow, struct ktx_accounts *accounts)
{
	const struct flow_udp *u = flow->udp;

	memset(accounts, 0, sizeof *accounts);
	if (!u || !u->tx)
		return NULL;
	ktx_accounts(u->tx, accounts);
	return ktx_lateness(u->tx);
}

void flow_udp_witness(const struct flow *flow, struct path_witness *witness)
{
	const struct flow_udp *u = flow->udp;
	struct ktx_accounts a;

	if (!u || !u->tx)
		return;
	ktx_accounts(u->tx, &a);
	path_witness_sent(witness, u->tx, &u->path, a.sent);
}

bool flow_udp_engine(const struct flow *flow, struct ktx_info *info, struct ktrxer_qdiscs *qdiscs)
{
	const struct flow_udp *u = flow->udp;

	if (!u || !u->tx)
		return false;
	*info = u->info;
	return ktrxer_device_qdiscs(qdiscs, &u->path.device) == 0;
}
