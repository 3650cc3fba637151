/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bytes.h"
#include "error.h"
#include "tcp_prober_state.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>

enum { TURN = 256 /* packets in one turn */, OPTION_END = 0, OPTION_PADDING = 1, OPTION_MSS = 2 };

#define AHEAD_NS (2 * (uint64_t)KTRXER_NS_PER_MS)      /* pairs are committed so long before their time */
#define REOPEN_NS (100 * (uint64_t)KTRXER_NS_PER_MS)   /* from the end of a connection to the next */
/* Of Linux, after a round trip. A late pair that was sent after it may reach a server that has begun to retransmit. */
#define SERVER_TIMER_NS (200 * (uint64_t)KTRXER_NS_PER_MS)
/* Receive stamps are switched on by deferred work: the first milliseconds have none or wrong ones. */
#define SETTLE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

static void fail(struct tcp_prober *p, int rc, const char *text)
{
	if (!p->result.failure.code)
		ktrxer_fail(&p->result.failure, rc, "%s", text);
}

static void commit(struct tcp_prober *p, const struct tcp_connection *c, const struct tcp_segment *s,
		   struct ktx_probe *probe)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	const uint8_t option[4] = { OPTION_MSS, sizeof option, (uint8_t)(s->mss >> 8), (uint8_t)s->mss };
	struct ktx_slot slot;
	struct ktrxer_error err = { 0 };
	int rc = ktx_reserve(p->tx, &slot);

	spec.path = &p->path;
	spec.link = p->info.link;
	spec.proto = KTRXER_TCP;
	spec.tos = p->spec.tos;
	spec.from_port = p->ports[p->places[c->place].port];
	spec.to_port = p->spec.port;
	spec.payload = s->payload;
	spec.payload_length = s->length;
	spec.tcp_sequence = s->sequence;
	spec.tcp_acknowledgement = s->flags & KTRXER_TCP_ACK ? s->acknowledgement : 0;
	spec.tcp_flags = s->flags;
	spec.tcp_window = s->window;
	if (s->mss) {
		spec.tcp_options = option;
		spec.tcp_options_length = sizeof option;
	}
	if (rc == 0)
		rc = ktrxer_frame_build(slot.frame, slot.capacity, &spec);
	if (rc < 0) {
		fail(p, rc, "a segment could not be built");
		return;
	}
	probe->length = (uint32_t)rc;
	rc = ktx_commit(p->tx, probe, &err);
	if (rc < 0)
		fail(p, rc, err.text);
}

void tcp_prober_on_send(void *context, struct tcp_connection *c, const struct tcp_segment *s, int which, uint64_t at_ns)
{
	struct tcp_prober *p = context;
	struct ktx_probe probe = { .id = UINT64_MAX };
	struct tcp_pending *pending;

	if (which != TCP_CONTROL) {
		/* Deadlines never decrease. */
		if (at_ns < p->committed_ns)
			at_ns = p->committed_ns;
		p->committed_ns = at_ns;
		probe = (struct ktx_probe){ .id = 2 * (c->number * TCP_CONNECTIONS_MAX + c->place) + (uint64_t)which,
					    .at_ns = at_ns,
					    .flags = which ? 0 : KTX_TRAIN_GOES_ON };
		pending = &p->places[c->place].pending;
		if (!which)
			*pending =
				(struct tcp_pending){ .used = true,
						      .primed_ns = c->progress_ns,
						      .sample = { .number = c->number,
								  .at_ns = at_ns,
								  .rtt_ns = { -1, -1 },
								  .from_port = p->ports[p->places[c->place].port] } };
		p->result.accounts.requested++;
	}
	commit(p, c, s, &probe);
}

static void sample_end(struct tcp_prober *p, struct tcp_pending *pending)
{
	struct tcp_sample *s = &pending->sample;

	pending->used = false;
	p->result.paired += pending->sent == 2;
	if (pending->sent != 2 ||
	    (s->sent_ns[1] > s->at_ns + p->spec.late_ns && s->sent_ns[1] > pending->primed_ns + SERVER_TIMER_NS))
		s->doubt = TCP_NO_CONCLUSION;
	if (s->doubt != TCP_NO_DOUBT) {
		p->result.doubts[s->doubt]++;
		s->result = (struct tcp_pair_result){ 0 };
	} else {
		p->result.known++;
		p->result.up[s->result.up]++;
		p->result.down[s->result.down]++;
		tcp_pair_count(p->result.totals, &s->result);
	}
	/* A segment is the answer to the probe of the same place only if the probes came in order. */
	for (int i = 0; i < 2; i++)
		if (s->doubt == TCP_NO_DOUBT && s->sent_source[i] != KTX_SENT_NONE &&
		    s->arrived_ns[i] > s->sent_ns[i] &&
		    (s->result.up == TCP_PAIR_IN_ORDER || (!i && s->result.up == TCP_PAIR_SECOND_LOST)))
			s->rtt_ns[i] = (int64_t)(s->arrived_ns[i] - s->sent_ns[i]);
	if (s->rtt_ns[0] >= 0)
		ktrxer_hist_record(p->result.rtt, s->rtt_ns[0]);
	p->events.pair(p->events.context, s);
}

void tcp_prober_on_done(void *context, struct tcp_connection *c, const struct tcp_pair_done *done)
{
	struct tcp_prober *p = context;
	struct tcp_pending *pending = &p->places[c->place].pending;

	if (!pending->used || pending->sample.number != c->number)
		return;
	pending->sample.result = done->result;
	pending->sample.doubt = (uint8_t)done->doubt;
	pending->sample.answers = done->answers;
	pending->sample.sequence = done->sequence;
	pending->sample.elicited = done->elicited;
	memcpy(pending->sample.arrived_ns, done->arrived_ns, sizeof done->arrived_ns);
	pending->ended = true;
	if (done->doubt == TCP_NO_DOUBT)
		p->fruitless = 0;
	if (pending->reports == 2)
		sample_end(p, pending);
}

static void count_report(struct tcp_prober *p, const struct ktx_report *r)
{
	struct ktx_accounts *a = &p->result.accounts;

	if (r->status != KTX_SENT) {
		a->failed += r->status == KTX_FAILED;
		a->skipped += r->status == KTX_SKIPPED;
		a->late += r->status == KTX_SKIPPED;
		a->cancelled += r->status == KTX_CANCELLED;
		if (r->status == KTX_FAILED)
			a->last_error = r->error;
		return;
	}
	a->sent++;
	a->nic += r->departure_source == KTX_DEPARTURE_NIC;
	a->driver += r->departure_source == KTX_DEPARTURE_DRIVER;
	a->queued += r->departure_source == KTX_DEPARTURE_QUEUED;
	if (r->sent_source != KTX_SENT_NONE) {
		ktrxer_hist_record(p->result.lateness, (int64_t)(r->sent_ns - r->at_ns));
		a->late += r->sent_ns > r->at_ns + p->spec.late_ns;
	} else {
		a->untimed++;
	}
}

static void take_reports(struct tcp_prober *p)
{
	struct ktx_report reports[32];
	int n;

	while ((n = ktx_reports(p->tx, reports, 32)) > 0)
		for (int i = 0; i < n; i++) {
			const uint64_t pair = reports[i].id / 2;
			struct tcp_pending *pending = &p->places[pair % TCP_CONNECTIONS_MAX].pending;
			const int which = (int)(reports[i].id % 2);

			if (reports[i].id == UINT64_MAX)
				continue;
			count_report(p, &reports[i]);
			if (!pending->used || pending->sample.number != pair / TCP_CONNECTIONS_MAX)
				continue;
			pending->reports++;
			pending->sent += reports[i].status == KTX_SENT;
			pending->sample.sent_ns[which] = reports[i].sent_ns;
			pending->sample.sent_source[which] = reports[i].sent_source;
			if (which && !pending->ended && reports[i].sent_source != KTX_SENT_NONE)
				tcp_connection_sent(&p->places[pair % TCP_CONNECTIONS_MAX].connection,
						    reports[i].sent_ns);
			if (pending->reports == 2 && pending->ended)
				sample_end(p, pending);
		}
}

static uint16_t mss_of(const uint8_t *tcp, uint32_t length)
{
	struct bytes b = bytes_of(tcp, length);

	bytes_skip(&b, TCP_HEADER);
	while (bytes_left(&b)) {
		const uint8_t kind = bytes_u8(&b);
		uint8_t size;

		if (kind == OPTION_END)
			break;
		if (kind == OPTION_PADDING)
			continue;
		size = bytes_u8(&b);
		if (size < 2)
			break;
		if (kind == OPTION_MSS && size == 4)
			return bytes_be16(&b);
		bytes_skip(&b, size - 2u);
	}
	return 0;
}

static void take_packet(struct tcp_prober *p, const struct krx_packet *packet)
{
	struct ktrxer_frame_view view;
	struct tcp_segment s;

	if (ktrxer_frame_read(&view, packet->data, packet->length, packet->link) < 0 || view.proto != KTRXER_TCP)
		return;
	s = (struct tcp_segment){ .sequence = view.tcp_sequence,
				  .acknowledgement = view.tcp_acknowledgement,
				  .window = view.tcp_window,
				  .flags = view.tcp_flags,
				  .payload = packet->data + view.payload,
				  .length = view.payload_length };
	if (view.tcp_flags & KTRXER_TCP_SYN)
		s.mss = mss_of(packet->data + view.transport, view.payload - view.transport);
	for (uint32_t i = 0; i < p->spec.connections; i++)
		if (p->places[i].connection.phase != TCP_CLOSED && p->ports[p->places[i].port] == view.to_port) {
			p->result.user_stamped += packet->source == KTRXER_STAMP_USER;
			path_witness_arrived(&p->result.path, packet->device);
			tcp_connection_receive(&p->places[i].connection, &s, packet->mono_ns);
			return;
		}
}

static void take_packets(struct tcp_prober *p)
{
	struct krx_packet packet;
	int rc = 0;

	/* Another device than that of the route may go away. */
	for (int r = p->receiver_count - 1; r >= 0; r--)
		for (int i = 0; i < TURN && (rc = krx_next(p->receivers[r].krx, &packet)) > 0; i++)
			take_packet(p, &packet);
	if (rc < 0)
		fail(p, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

static void open_connection(struct tcp_prober *p, struct tcp_place *place, uint64_t now)
{
	bool used[TCP_PORTS] = { false };
	uint32_t first;

	for (uint32_t i = 0; i < p->spec.connections; i++)
		used[p->places[i].port] = true;
	do
		p->next_port = (p->next_port + 1) % TCP_PORTS;
	while (used[p->next_port]);
	place->port = p->next_port;
	if (getrandom(&first, sizeof first, 0) != sizeof first) {
		fail(p, -EIO, "no random numbers from the kernel");
		return;
	}
	p->result.opened++;
	tcp_connection_open(&place->connection, first, now);
}

static void connection_ended(struct tcp_prober *p, struct tcp_place *place, uint64_t now)
{
	struct tcp_connection *c = &place->connection;
	bool heard = p->started, final;

	/* On a path that loses much, one connection may lose all its SYN segments. */
	for (uint32_t i = 0; i < p->spec.connections; i++)
		heard |= p->places[i].connection.phase > TCP_OPENING;
	final = c->end == TCP_NOT_HTTP || c->end == TCP_HTTP_STATUS || c->end == TCP_SMALL_WINDOW ||
		((c->end == TCP_REFUSED || c->end == TCP_NO_ANSWER) && !heard);
	p->result.ends[c->end]++;
	if (place->planned)
		p->result.unprimed++;
	place->planned = false;
	if (!c->pairs)
		p->fruitless++;
	if ((final || p->fruitless >= TCP_FRUITLESS) && p->result.end == TCP_NOT_ENDED) {
		p->result.end = c->end;
		p->result.response = c->response;
		p->result.peer_window = c->peer_window;
		p->result.peer_mss = c->peer_mss;
	}
	c->end = TCP_NOT_ENDED;
	place->open_ns = now + REOPEN_NS;
}

static void look_after(struct tcp_prober *p, struct tcp_place *place, uint64_t now)
{
	struct tcp_connection *c = &place->connection;

	if (c->phase != TCP_CLOSED && now >= c->timer_ns)
		tcp_connection_tick(c, now);
	/* The requests wait at the server, whose receive buffer is full. */
	if (c->phase == TCP_READY && c->peer_window < 4 * p->request_length)
		tcp_connection_close(c, TCP_CLOSED_HERE);
	if (c->phase == TCP_CLOSED && c->end != TCP_NOT_ENDED)
		connection_ended(p, place, now);
	if (c->phase == TCP_CLOSED && !p->closing && p->result.end == TCP_NOT_ENDED && now >= place->open_ns)
		open_connection(p, place, now);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int schedule_open(struct tcp_prober *p)
{
	struct ktrxer_schedule_options s = KTRXER_SCHEDULE_OPTIONS_INIT;

	s.kind = p->spec.poisson ? KTRXER_SCHEDULE_POISSON : KTRXER_SCHEDULE_PERIODIC;
	s.start_ns = p->start_ns;
	s.gap_num = p->spec.interval_ns;
	if (getrandom(s.seed, sizeof s.seed, 0) != sizeof s.seed)
		return -EIO;
	return ktrxer_schedule_new(&p->schedule, &s, NULL);
}

/* The longest of all connections, but for those whose round trip may be that of a retransmission. */
static uint64_t lead_longest(const struct tcp_prober *p)
{
	uint64_t longest[2] = { 0, 0 };

	for (uint32_t i = 0; i < p->spec.connections; i++) {
		const struct tcp_connection *c = &p->places[i].connection;
		const uint64_t own = tcp_connection_lead_ns(c);

		if (own > longest[c->rtt_sure])
			longest[c->rtt_sure] = own;
	}
	return longest[longest[1] != 0];
}

/* The schedule begins when each connection is ready, so that none of the first pairs is left out. */
static void start(struct tcp_prober *p, uint64_t now)
{
	uint64_t lead;

	for (uint32_t i = 0; i < p->spec.connections; i++)
		if (p->places[i].connection.phase != TCP_READY)
			return;
	lead = lead_longest(p);
	p->started = true;
	if (p->start_ns < now + lead + 2 * AHEAD_NS)
		p->start_ns = now + lead + 2 * AHEAD_NS;
	if (schedule_open(p) < 0)
		fail(p, -ENOMEM, "the schedule could not be made");
}

static struct tcp_place *ready_place(struct tcp_prober *p)
{
	struct tcp_place *best = NULL;

	/*
	 * Choose the connection that was used longest ago. One that the server's data made ready again may have a
	 * planned pair.
	 */
	for (uint32_t i = 0; i < p->spec.connections; i++) {
		struct tcp_place *place = &p->places[i];

		if (place->connection.phase == TCP_READY && !place->planned && (!best || place->at_ns < best->at_ns))
			best = place;
	}
	return best;
}

/* Opens windows for the pairs that are soon due. Returns when the next one is. */
static uint64_t prime_soon(struct tcp_prober *p, uint64_t now)
{
	uint64_t early_ns;

	if (!p->started || p->closing)
		return KTRXER_NEVER;
	early_ns = lead_longest(p) + AHEAD_NS;
	while (!p->spec.count || p->result.planned < p->spec.count) {
		struct tcp_place *place;

		if (!p->have_due && ktrxer_schedule_next(p->schedule, &p->due) < 0)
			break;
		p->have_due = true;
		if (p->due.at_ns > now + early_ns)
			return p->due.at_ns - early_ns;
		p->have_due = false;
		p->result.planned++;
		place = ready_place(p);
		if (!place) {
			p->result.busy++;
			continue;
		}
		place->planned = true;
		place->at_ns = p->due.at_ns;
		place->connection.number = p->due.index;
		tcp_connection_prime(&place->connection, now);
	}
	return KTRXER_NEVER;
}

/* The planned pairs whose time has come, the earliest first. Returns when the next one has. */
static uint64_t send_due(struct tcp_prober *p, uint64_t now)
{
	for (;;) {
		struct tcp_place *first = NULL;

		for (uint32_t i = 0; i < p->spec.connections; i++)
			if (p->places[i].planned && (!first || p->places[i].at_ns < first->at_ns))
				first = &p->places[i];
		if (!first)
			return KTRXER_NEVER;
		if (first->at_ns > now + AHEAD_NS)
			return first->at_ns - AHEAD_NS;
		first->planned = false;
		if (first->connection.phase == TCP_PRIMED) {
			tcp_connection_probe(&first->connection, first->at_ns);
		} else {
			p->result.unprimed++;
			if (first->connection.phase == TCP_PRIMING)
				tcp_connection_skip(&first->connection, now);
		}
	}
}

static bool is_over(const struct tcp_prober *p)
{
	if (p->result.failure.code || p->result.end != TCP_NOT_ENDED)
		return true;
	if (!p->started || !p->spec.count || p->result.planned < p->spec.count)
		return false;
	for (uint32_t i = 0; i < p->spec.connections; i++)
		if (p->places[i].planned || p->places[i].connection.phase == TCP_PROBING)
			return false;
	return true;
}

static void turn(struct loop_timer *timer, uint64_t now)
{
	struct tcp_prober *p = (struct tcp_prober *)((char *)timer - offsetof(struct tcp_prober, timer));
	uint64_t next = now + KTRXER_NS_PER_S, pump_ns = KTRXER_NEVER;

	take_reports(p);
	take_packets(p);
	for (uint32_t i = 0; i < p->spec.connections; i++)
		look_after(p, &p->places[i], now);
	if (!p->started)
		start(p, now);
	next = earlier(next, prime_soon(p, now));
	next = earlier(next, send_due(p, now));
	for (uint32_t i = 0; i < p->spec.connections; i++) {
		const struct tcp_place *place = &p->places[i];

		next = earlier(next,
			       place->connection.phase == TCP_CLOSED ? place->open_ns : place->connection.timer_ns);
	}
	if (!p->spec.precise && ktx_pump(p->tx, &pump_ns) < 0)
		fail(p, -ENODEV, "the device went down or is gone");
	if (is_over(p)) {
		loop_stop(p->loop);
		return;
	}
	timer->at_ns = earlier(next, pump_ns);
}

static void wake_tx(struct loop_source *source, uint32_t events)
{
	(void)events;
	((struct tcp_prober *)((char *)source - offsetof(struct tcp_prober, tx_source)))->timer.at_ns = 0;
}

/* The receiver of a device that is gone stays readable. */
static void wake_rx(struct loop_source *source, uint32_t events)
{
	struct tcp_prober *p = ((struct tcp_receiver *)source)->prober;

	if (events & (EPOLLERR | EPOLLHUP) && source != &p->receivers[0].source)
		loop_unwatch(p->loop, source);
	p->timer.at_ns = 0;
}

static void end_run(struct tcp_prober *p)
{
	struct krx_stats stats = { 0 };
	struct ktx_accounts a;

	p->closing = true;
	p->result.stopped = !is_over(p);
	ktx_cancel(p->tx);
	for (uint32_t i = 0; i < p->spec.connections; i++) {
		p->result.unprimed += p->places[i].planned;
		p->places[i].planned = false;
		tcp_connection_close(&p->places[i].connection, TCP_CLOSED_HERE);
	}
	ktx_drain(p->tx, ktrxer_now_ns() + KTRXER_NS_PER_S / 10);
	take_reports(p);
	for (int i = 0; i < TCP_CONNECTIONS_MAX; i++)
		if (p->places[i].pending.used && p->places[i].pending.ended)
			sample_end(p, &p->places[i].pending);
	for (int r = 0; r < p->receiver_count; r++)
		if (krx_stats(p->receivers[r].krx, &stats, NULL, 0) == 0)
			p->result.receiver_drops += stats.lost;
	p->result.end_ns = ktrxer_now_ns();
	ktx_accounts(p->tx, &a);
	path_witness_end(&p->result.path, &(struct path_claim){ .path = &p->path,
								.device = p->spec.device,
								.from = &p->spec.from,
								.tx = p->tx,
								.sent = a.sent });
}

void tcp_prober_run(struct tcp_prober *p, uint64_t start_ns, int stop_fd, const struct tcp_prober_events *events)
{
	int rc;

	p->events = *events;
	p->start_ns = start_ns;
	p->result.begin_ns = ktrxer_now_ns();
	(void)ktrxer_device_qdiscs(&p->result.qdiscs, &p->path.device);
	p->timer = (struct loop_timer){ .at_ns = p->result.begin_ns + SETTLE_NS, .due = turn };
	p->tx_source = (struct loop_source){ .fd = ktx_fd(p->tx), .ready = wake_tx };
	loop_timer_add(p->loop, &p->timer);
	rc = loop_watch(p->loop, &p->tx_source, EPOLLIN);
	for (int r = 0; r < p->receiver_count && rc == 0; r++) {
		p->receivers[r].prober = p;
		p->receivers[r].source = (struct loop_source){ .fd = krx_fd(p->receivers[r].krx), .ready = wake_rx };
		rc = loop_watch(p->loop, &p->receivers[r].source, EPOLLIN);
	}
	if (rc < 0 || (rc = loop_run(p->loop, stop_fd)) < 0)
		fail(p, rc, "the event loop failed");
	loop_timer_remove(p->loop, &p->timer);
	end_run(p);
	loop_unwatch(p->loop, &p->tx_source);
	for (int r = 0; r < p->receiver_count; r++)
		loop_unwatch(p->loop, &p->receivers[r].source);
}

const struct tcp_prober_result *tcp_prober_result_of(const struct tcp_prober *p)
{
	return &p->result;
}

const struct ktrxer_path *tcp_prober_path_of(const struct tcp_prober *p)
{
	return &p->path;
}

const struct privilege_left *tcp_prober_privileges_of(const struct tcp_prober *p)
{
	return &p->privileges;
}

const struct ktx_info *tcp_prober_info_of(const struct tcp_prober *p)
{
	return &p->info;
}

const char *tcp_prober_backend_of(const struct tcp_prober *p)
{
	return p->backend;
}

uint32_t tcp_prober_payload_of(const struct tcp_prober *p)
{
	return p->request_length;
}
