/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace.h"

#include "error.h"
#include "loop.h"
#include "path_find.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
	PROBES = 0xfffe, /* numbers whose low 16 bits differ (trace_probe.c) */
	JOBS_MAX = 8192,
	SLOTS = 1024,
	TURN = 256, /* packets in one turn, so that a flood of packets does not delay the timers */
};

#define AHEAD_NS (2 * (uint64_t)KTRXER_NS_PER_MS)      /* from the commit of a probe to its scheduled time */
#define WAIT_MIN_NS (200 * (uint64_t)KTRXER_NS_PER_MS) /* for an answer, where another try follows */
#define RTT_ROOM_NS (20 * (uint64_t)KTRXER_NS_PER_MS)
/* The kernel enables receive stamps by deferred work: packets of the first milliseconds have none or wrong ones. */
#define SETTLE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

/*
 * Between two probes to a hop that may limit its answers: Linux sends one error a second to a host, after the first six
 * (icmp_ratelimit). Few hops answer so seldom, and most of these have one or two probes in doubt.
 */
#define DOUBT_NS (11 * (uint64_t)KTRXER_NS_PER_S / 10)
enum { DOUBT_ROUNDS = 32 };

enum { ORIGIN_ICMP = 2, ORIGIN_ICMPV6 = 3 }; /* SO_EE_ORIGIN_* */
enum probe_state { FREE, COMMITTED, SENT, UNSENT };

/* A probe, from its commit until its number is used again. */
struct probe {
	struct trace_sample sample;
	uint32_t job;
	uint32_t round; /* the job is of this round */
	uint8_t state;
	bool answered;
};

/* One task of the search: to get an answer from a hop on a flow. */
struct job {
	struct trace_want want;
	uint32_t tries, repetition;
	uint64_t at_ns;    /* not sent before */
	uint64_t until_ns; /* end of the present try; 0: the job waits to be sent */
	bool done;
};

struct trace {
	struct trace_spec spec;
	struct trace_probe probe;
	struct trace_graph *graph;
	struct ktx *tx;
	struct krx *rx;
	struct ktx_info info;
	struct privilege_left privileges;
	struct trace_events events;
	struct trace_result result;
	struct probe *probes;
	uint32_t number; /* of the next probe */
	struct trace_sample *samples;
	size_t sample_count, sample_room;
	struct trace_want *wants;
	struct job *jobs;
	uint32_t *queue; /* jobs to send, oldest first: a ring of JOBS_MAX */
	uint32_t queued, queue_at;
	uint32_t job_count, open; /* of this round */
	uint32_t round, doubt_rounds;
	uint8_t stage;
	uint32_t rounds, repetition; /* of trace_repeat(): their number, and the next one */
	uint64_t interval_ns;
	uint64_t send_ns;   /* when the next probe may leave */
	uint64_t check_ns;  /* no try ends before */
	uint64_t linger_ns; /* the end of the wait for late answers; 0: it has not begun */
	uint64_t rtt_max_ns;
	bool by_socket;                  /* the host's socket sends and gets the ICMP errors; rx is NULL */
	bool silent[TRACE_HOPS_MAX + 1]; /* a probe of the hop had no answer within the time-out */
	uint8_t first_route;
	struct loop *loop;
	struct loop_timer timer;
	struct loop_source tx_source, rx_source;
};

static void fail(struct trace *t, int rc, const char *text)
{
	if (!t->result.failure.code)
		ktrxer_fail(&t->result.failure, rc, "%s", text);
}

/* ------------------------------------------------------------------------------------------------------------- jobs */

static void job_end(struct trace *t, struct job *job)
{
	job->done = true;
	t->open--;
}

static void enqueue(struct trace *t, uint32_t job)
{
	t->queue[(t->queue_at + t->queued++) % JOBS_MAX] = job;
}

static void job_start(struct trace *t, struct trace_want want, uint64_t at_ns)
{
	t->jobs[t->job_count] = (struct job){ .want = want, .at_ns = at_ns, .repetition = t->repetition };
	enqueue(t, t->job_count++);
	t->open++;
}

/*
 * The wait is short where another try follows, and at a hop where a whole wait has ended without an answer, so that
 * silent routers cost little. A late answer to an earlier try counts as well.
 */
static uint64_t wait_of(const struct trace *t, const struct job *job)
{
	const uint64_t likely = 4 * t->rtt_max_ns + RTT_ROOM_NS;
	uint64_t wait = likely > WAIT_MIN_NS ? likely : WAIT_MIN_NS;
	const bool last = job->tries >= t->spec.tries && !t->silent[job->want.hop];

	return last || t->stage != TRACE_SEARCH || wait > t->spec.timeout_ns ? t->spec.timeout_ns : wait;
}

static void graph_answer(struct trace *t, struct trace_want want, const struct ktrxer_addr *from, enum trace_end end)
{
	int rc;

	if (t->stage != TRACE_SEARCH)
		return;
	rc = trace_graph_answer(t->graph, want, from, end);
	if (rc == -ENOMEM)
		fail(t, rc, "no memory for the routes");
}

static void give_up(struct trace *t, uint64_t now)
{
	t->check_ns = KTRXER_NEVER;
	for (uint32_t i = 0; i < t->job_count; i++) {
		struct job *job = &t->jobs[i];

		if (job->done || !job->until_ns)
			continue;
		if (now < job->until_ns) {
			if (job->until_ns < t->check_ns)
				t->check_ns = job->until_ns;
			continue;
		}
		job->until_ns = 0;
		if (job->tries < t->spec.tries && t->stage == TRACE_SEARCH) {
			enqueue(t, i);
			continue;
		}
		t->result.unanswered++;
		t->silent[job->want.hop] = true;
		graph_answer(t, job->want, NULL, TRACE_GOES_ON);
		job_end(t, job);
	}
}

/* ---------------------------------------------------------------------------------------------------------- sending */

static int send_one(struct trace *t, struct job *job, uint32_t index, uint64_t at_ns)
{
	struct probe *probe = &t->probes[t->number % PROBES];
	const struct trace_sent sent = { t->number, job->want };
	struct ktx_probe request = { .id = t->number, .at_ns = at_ns };
	struct ktx_slot slot;
	struct ktrxer_error err;
	int rc = ktx_reserve(t->tx, &slot);

	if (rc < 0)
		return rc;
	rc = trace_probe_build(&t->probe, slot.frame, slot.capacity, &sent);
	if (rc < 0) {
		fail(t, rc, "the probe could not be built");
		return rc;
	}
	request.length = (uint32_t)rc;
	rc = ktx_commit(t->tx, &request, &err);
	if (rc < 0) {
		fail(t, rc, err.text);
		return rc;
	}
	*probe = (struct probe){
		.sample = { .sent = sent, .stage = t->stage, .repetition = job->repetition, .own_queue_ns = -1 },
		.job = index,
		.round = t->round,
		.state = COMMITTED,
	};
	t->number++;
	t->result.hops[job->want.hop].sent++;
	job->tries++;
	job->until_ns = at_ns + wait_of(t, job);
	if (job->until_ns < t->check_ns)
		t->check_ns = job->until_ns;
	return 0;
}

static void send_due(struct trace *t, uint64_t now)
{
	if (t->send_ns < now)
		t->send_ns = now;
	while (t->queued && !t->result.failure.code) {
		const uint32_t index = t->queue[t->queue_at];
		struct job *job = &t->jobs[index];

		if (t->send_ns < job->at_ns)
			t->send_ns = job->at_ns;
		if (t->send_ns > now + AHEAD_NS)
			return;
		if (!job->done && send_one(t, job, index, t->send_ns) < 0)
			return;
		if (!job->done)
			t->send_ns += t->spec.gap_ns;
		t->queue_at = (t->queue_at + 1) % JOBS_MAX;
		t->queued--;
	}
}

/* ---------------------------------------------------------------------------------------------------------- answers */

static void sample_end(struct trace *t, struct probe *probe)
{
	struct trace_sample *s = &probe->sample;

	s->rtt_ns = (int64_t)(s->received_ns - s->sent_ns);
	/* A step of a clock, or a stamp that is missing: the answer counts, its time does not. */
	if (s->rtt_ns < 0 || s->sent_source == KTX_SENT_NONE)
		s->rtt_ns = -1;
	else if ((uint64_t)s->rtt_ns > t->rtt_max_ns && (uint64_t)s->rtt_ns <= t->spec.timeout_ns)
		t->rtt_max_ns = (uint64_t)s->rtt_ns;
	if (t->sample_count == t->sample_room) {
		const size_t room = t->sample_room ? 2 * t->sample_room : 1024;
		struct trace_sample *samples = realloc(t->samples, room * sizeof *samples);

		if (!samples) {
			fail(t, -ENOMEM, "no memory for the answers");
			return;
		}
		t->samples = samples;
		t->sample_room = room;
	}
	t->samples[t->sample_count++] = *s;
	t->events.answer(t->events.context, s);
}

static void take_reports(struct trace *t)
{
	struct ktx_report reports[32];
	int n;

	while ((n = ktx_reports(t->tx, reports, 32)) > 0)
		for (int i = 0; i < n; i++) {
			struct probe *probe = &t->probes[reports[i].id % PROBES];

			if (probe->state != COMMITTED || probe->sample.sent.number != reports[i].id)
				continue;
			if (reports[i].status != KTX_SENT) {
				probe->state = UNSENT;
				/* A probe is cancelled when an answer to an earlier try of the same job ended the
				 * search. */
				if (reports[i].status == KTX_FAILED) {
					t->result.failed++;
					t->result.failed_error = reports[i].error;
				}
				continue;
			}
			probe->state = SENT;
			probe->sample.sent_ns = reports[i].sent_ns;
			probe->sample.sent_source = reports[i].sent_source;
			probe->sample.own_queue_ns = reports[i].own_queue_ns;
			t->result.sent++;
			if (probe->answered)
				sample_end(t, probe);
		}
}

enum trace_end trace_end_of(const struct trace_reply *reply, const struct ktrxer_addr *to)
{
	const bool six = to->family == AF_INET6;
	struct ktrxer_addr plain = *to;

	plain.scope_id = 0;
	if (reply->kind == TRACE_TIME_EXCEEDED)
		return TRACE_GOES_ON;
	if (reply->kind != TRACE_DESTINATION_UNREACHABLE)
		return TRACE_ARRIVED;
	/* The port or the protocol is unreachable: an answer of the destination. From another address, a firewall has
	 * sent it. */
	return (reply->code == (six ? 4 : 3) || (!six && reply->code == 2)) && ktrxer_addr_equal(&reply->from, &plain)
		       ? TRACE_ARRIVED
		       : TRACE_UNREACHABLE;
}

/* A reply that fits a probe by its number. */
static void answer(struct trace *t, struct probe *probe, const struct trace_reply *reply, uint64_t received_ns,
		   uint8_t source, const struct trace_changes *changes)
{
	struct trace_sample *s = &probe->sample;

	if (probe->answered) {
		t->result.duplicates++;
		return;
	}
	probe->answered = true;
	if (probe->round != t->round || t->jobs[probe->job].done) {
		t->result.late++;
		t->result.too_late += probe->state == SENT && received_ns > s->sent_ns + t->spec.timeout_ns;
		return;
	}
	s->from = reply->from;
	s->received_ns = received_ns;
	s->source = source;
	s->kind = (uint8_t)reply->kind;
	s->type = reply->type;
	s->code = reply->code;
	s->ttl = reply->ttl;
	s->quoted_ttl = reply->quote.ttl;
	s->quoted_tos = reply->quote.tos;
	s->changes = *changes;
	s->label_count = reply->label_count;
	memcpy(s->labels, reply->labels, sizeof s->labels);
	t->result.answered++;
	t->result.user_stamped += source == KTRXER_STAMP_USER;
	t->result.hops[s->sent.want.hop].answered++;
	graph_answer(t, s->sent.want, &reply->from, trace_end_of(reply, &t->spec.to));
	job_end(t, &t->jobs[probe->job]);
	if (probe->state == SENT)
		sample_end(t, probe);
}

static void take_reply(struct trace *t, const struct krx_packet *packet)
{
	struct trace_changes changes;
	struct trace_reply reply;
	struct probe *probe;
	uint32_t number;
	bool whole;

	if (!trace_reply_parse(&reply, packet->data, packet->length, packet->link) ||
	    !trace_probe_number(&t->probe, &reply, &number, &whole)) {
		t->result.foreign++;
		return;
	}
	probe = &t->probes[number % PROBES];
	if (probe->state == FREE || (whole && probe->sample.sent.number != number) ||
	    !trace_probe_fits(&t->probe, &reply, &probe->sample.sent, &changes)) {
		t->result.foreign++;
		return;
	}
	answer(t, probe, &reply, packet->mono_ns, packet->source, &changes);
}

/* Without privileges: the kernel returns ICMP errors, with the payload of the probe, to the socket that sent it. It
 * gives them no arrival stamp. */
static void take_errors(struct trace *t)
{
	struct ktx_network_error errors[16];
	int n;

	while (!t->rx && (n = ktx_network_errors(t->tx, errors, 16)) > 0)
		for (int i = 0; i < n; i++) {
			const struct ktx_network_error *e = &errors[i];
			const bool six = e->origin == ORIGIN_ICMPV6;
			struct trace_reply reply = {
				.from = e->reporter, .type = e->type, .code = e->code, .quote = { .tos = t->spec.tos }
			};
			struct probe *probe;
			uint32_t number;

			if (e->origin != ORIGIN_ICMP && !six)
				continue;
			reply.kind = e->type == (six ? 3 : 11) ? TRACE_TIME_EXCEEDED : TRACE_DESTINATION_UNREACHABLE;
			if (!trace_probe_returned(&t->probe, e->quoted, e->quoted_length, &number)) {
				t->result.foreign++;
				continue;
			}
			probe = &t->probes[number % PROBES];
			if (probe->state != FREE && probe->sample.sent.number == number)
				answer(t, probe, &reply, e->when_ns, KTRXER_STAMP_USER, &(struct trace_changes){ 0 });
		}
}

static void take_replies(struct trace *t)
{
	struct krx_packet packet;
	int rc = 0;

	for (int i = 0; t->rx && i < TURN && (rc = krx_next(t->rx, &packet)) > 0; i++)
		take_reply(t, &packet);
	if (rc < 0)
		fail(t, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* Probes in doubt come first: nodes that do not exist would need probes of their own. */
static bool search_round(struct trace *t, uint64_t now)
{
	int n;

	if (t->doubt_rounds == DOUBT_ROUNDS) {
		t->result.in_doubt = trace_graph_leave_doubts(t->graph);
		if (t->result.in_doubt)
			return false;
	} else if ((n = trace_graph_doubts(t->graph, t->wants, JOBS_MAX)) > 0) {
		t->doubt_rounds++;
		for (int i = 0; i < n; i++) {
			job_start(t, t->wants[i], now + DOUBT_NS);
			t->jobs[i].tries = t->spec.tries - 1;
		}
		return true;
	}
	n = trace_graph_want(t->graph, t->wants, JOBS_MAX);
	for (int i = 0; i < n; i++)
		job_start(t, t->wants[i], 0);
	return n > 0;
}

/* The first flow has met a router, or the destination, at this hop, and its address is known. */
static bool has_address(const struct trace *t, uint8_t hop)
{
	const int index = trace_graph_node_of(t->graph, hop, 0);
	uint32_t count;

	return index >= 0 && trace_graph_nodes(t->graph, hop, &count)[index].addr.family;
}

/* Starts as many rounds at once as there is room for, so that a hop without answers does not delay the next round. */
static bool repeat_rounds(struct trace *t, uint64_t now)
{
	for (; t->repetition < t->rounds && t->job_count + t->first_route <= JOBS_MAX;
	     t->repetition++, now += t->interval_ns)
		for (uint8_t hop = 1; hop <= t->first_route; hop++)
			if (has_address(t, hop))
				job_start(t, (struct trace_want){ hop, 0 }, now);
	return t->job_count > 0;
}

static bool next_round(struct trace *t, uint64_t now)
{
	t->job_count = t->open = 0;
	t->round++;
	t->check_ns = KTRXER_NEVER;
	return t->stage == TRACE_SEARCH ? search_round(t, now) : repeat_rounds(t, now);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static bool is_arrived(const struct trace *t)
{
	for (uint8_t hop = 1; hop <= trace_graph_hops(t->graph); hop++) {
		uint32_t count;
		const struct trace_node *nodes = trace_graph_nodes(t->graph, hop, &count);

		for (uint32_t i = 0; i < count; i++)
			if (nodes[i].end == TRACE_ARRIVED)
				return true;
	}
	return false;
}

/* A search that did not reach the destination waits one more time-out for late answers. */
static bool lingers(struct trace *t, uint64_t now)
{
	if (t->stage != TRACE_SEARCH || t->result.failure.code || is_arrived(t))
		return false;
	if (!t->linger_ns)
		t->linger_ns = now + t->spec.timeout_ns;
	return now < t->linger_ns;
}

static void turn(struct loop_timer *timer, uint64_t now)
{
	struct trace *t = (struct trace *)((char *)timer - offsetof(struct trace, timer));
	uint64_t pump_ns = KTRXER_NEVER, next;

	take_reports(t);
	take_replies(t);
	if (now >= t->check_ns)
		give_up(t, now);
	if ((!t->open && (t->linger_ns || !next_round(t, now))) || t->result.failure.code) {
		if (lingers(t, now))
			timer->at_ns = t->linger_ns;
		else
			loop_stop(t->loop);
		return;
	}
	send_due(t, now);
	if (ktx_pump(t->tx, &pump_ns) < 0)
		fail(t, -ENODEV, "the device went down or is gone");
	take_errors(t);
	next = earlier(pump_ns, t->check_ns);
	if (t->queued)
		next = earlier(next, t->send_ns > AHEAD_NS / 2 ? t->send_ns - AHEAD_NS / 2 : 0);
	if (!t->open || t->result.failure.code)
		next = now;
	timer->at_ns = earlier(next, now + (uint64_t)KTRXER_NS_PER_S);
}

static void wake_tx(struct loop_source *source, uint32_t events)
{
	struct trace *t = (struct trace *)((char *)source - offsetof(struct trace, tx_source));

	(void)events;
	t->timer.at_ns = 0;
}

static void wake_rx(struct loop_source *source, uint32_t events)
{
	struct trace *t = (struct trace *)((char *)source - offsetof(struct trace, rx_source));

	(void)events;
	t->timer.at_ns = 0;
}

static void run(struct trace *t, int stop_fd)
{
	struct krx_stats stats = { 0 };
	int rc;

	t->timer = (struct loop_timer){ .at_ns = 0, .due = turn };
	t->tx_source = (struct loop_source){ .fd = ktx_fd(t->tx), .ready = wake_tx };
	t->rx_source = (struct loop_source){ .fd = t->rx ? krx_fd(t->rx) : -1, .ready = wake_rx };
	if ((rc = loop_watch(t->loop, &t->tx_source, EPOLLIN)) < 0 ||
	    (t->rx && (rc = loop_watch(t->loop, &t->rx_source, EPOLLIN)) < 0)) {
		fail(t, rc, "the event loop does not take the descriptors of the probes");
		goto out;
	}
	if (!next_round(t, ktrxer_now_ns()))
		goto out;
	loop_timer_add(t->loop, &t->timer);
	rc = loop_run(t->loop, stop_fd);
	if (rc < 0)
		fail(t, rc, "the event loop failed");
	loop_timer_remove(t->loop, &t->timer);
	t->result.stopped |= t->open && !t->result.failure.code;
	/* Get the send times that answered probes still lack. */
	ktx_cancel(t->tx);
	ktx_drain(t->tx, ktrxer_now_ns() + KTRXER_NS_PER_S / 10);
	take_reports(t);
out:
	if (t->rx && krx_stats(t->rx, &stats, NULL, 0) == 0)
		t->result.receiver_drops = stats.lost;
	loop_unwatch(t->loop, &t->tx_source);
	if (t->rx)
		loop_unwatch(t->loop, &t->rx_source);
	t->queued = t->queue_at = 0;
	t->result.end_ns = ktrxer_now_ns();
}

void trace_search(struct trace *t, int stop_fd, const struct trace_events *events)
{
	t->events = *events;
	t->stage = TRACE_SEARCH;
	t->result.begin_ns = ktrxer_now_ns();
	(void)ktrxer_device_qdiscs(&t->result.qdiscs, &t->probe.path.device);
	t->send_ns = t->result.begin_ns + SETTLE_NS;
	run(t, stop_fd);
	for (uint8_t hop = 1; hop <= t->spec.hops_max; hop++)
		if (has_address(t, hop))
			t->first_route = hop;
}

void trace_repeat(struct trace *t, enum trace_stage stage, uint32_t rounds, uint64_t interval_ns, int stop_fd)
{
	if (t->result.failure.code || t->result.stopped || !t->first_route)
		return;
	t->linger_ns = 0;
	t->stage = (uint8_t)stage;
	t->rounds = rounds;
	t->repetition = 0;
	t->interval_ns = interval_ns;
	run(t, stop_fd);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static int open_tx(struct trace *t, struct ktrxer_error *err)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const struct trace_spec *s = &t->spec;
	int rc = path_find(&t->probe.path, s->device, &s->from, &s->to, false, err);

	if (rc < 0)
		return rc;
	if (t->probe.path.needs_stack)
		return ktrxer_fail(err, -EOPNOTSUPP, "the destination is this host itself: there is no route to trace");
	if (t->spec.device || !ktx_engine_by_stack(t->spec.engine, false))
		options.device = t->probe.path.device.name;
	options.engine = t->spec.engine;
	options.wait = KTX_WAIT_SLEEP;
	options.flags = KTX_CALLER_PUMPS | KTX_NO_LOCK;
	options.slots = SLOTS;
	options.frame_size = TRACE_FRAME_MAX;
	if ((rc = ktx_open(&t->tx, &options, err)) < 0)
		return rc;
	ktx_info(t->tx, &t->info);
	t->probe.link = t->info.link;
	t->by_socket = t->probe.no_ip_id = t->info.features & KTX_CAN_REPLY_FD;
	if (t->by_socket && (t->spec.proto != KTRXER_UDP || t->spec.failure > 0))
		return ktrxer_fail(err, -EINVAL, "the engine %s has one socket: it sends one flow of UDP, on one route",
				   t->info.engine);
	if (!(t->info.features & KTX_CAN_WHOLE_FRAME))
		return 0;
	return path_find(&t->probe.path, s->device, &s->from, &s->to, true, err);
}

static int open_rx(struct trace *t, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	const uint8_t bits = t->spec.to.family == AF_INET6 ? 128 : 32;
	struct krx_rule rules[2] = { { .op = KRX_CAPTURE,
				       .proto = t->spec.to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP,
				       .to_prefix = bits },
				     { .op = KRX_CAPTURE,
				       .proto = KTRXER_TCP,
				       .from_prefix = bits,
				       .to_prefix = bits,
				       .from_port = t->spec.port } };

	rules[0].to = rules[1].to = t->probe.path.source;
	rules[1].from = t->spec.to;
	/* Packets do not contain a scope. */
	rules[0].to.scope_id = rules[1].to.scope_id = rules[1].from.scope_id = 0;
	/* All devices, because an answer may arrive by another one. */
	return krx_open(&t->rx, &options, rules, t->probe.proto == KTRXER_TCP ? 2 : 1, err);
}

static int make_identity(struct trace *t, struct ktrxer_error *err)
{
	struct {
		uint8_t secret[6];
		uint16_t icmp_id, base;
		uint32_t tcp_base;
	} random;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return ktrxer_fail(err, -EIO, "no random numbers from the kernel");
	memcpy(t->probe.secret, random.secret, sizeof random.secret);
	t->probe.icmp_id = random.icmp_id;
	t->probe.tcp_base = random.tcp_base;
	t->probe.flow_base =
		(uint16_t)(TRACE_FLOW_BASE_MIN + random.base % (TRACE_FLOW_BASE_MAX - TRACE_FLOW_BASE_MIN));
	t->probe.proto = t->spec.proto == KTRXER_ICMP && t->spec.to.family == AF_INET6 ? KTRXER_ICMPV6 : t->spec.proto;
	t->probe.port = t->spec.port;
	t->probe.tos = t->spec.tos;
	return 0;
}

static int check_frame(struct trace *t, struct ktrxer_error *err)
{
	const struct trace_sent first = { .want = { .hop = 1 } };
	uint8_t frame[TRACE_FRAME_MAX];
	int rc = trace_probe_build(&t->probe, frame, sizeof frame, &first);

	return rc < 0 ? ktrxer_fail(err, rc, "the probe could not be built: %m")
		      : ktx_check(t->tx, frame, (uint32_t)rc, err);
}

int trace_new(struct trace **out, const struct trace_spec *spec, struct ktrxer_error *err)
{
	const struct trace_graph_options graph = { .hops_max = spec->hops_max,
						   .silent_max = spec->silent_max,
						   .failure = spec->failure };
	struct trace *t = calloc(1, sizeof *t);
	int rc;

	*out = t;
	if (!t)
		return ktrxer_fail(err, -ENOMEM, "no memory for a trace");
	t->spec = *spec;
	t->probes = calloc(PROBES, sizeof *t->probes);
	t->wants = calloc(JOBS_MAX, sizeof *t->wants);
	t->jobs = calloc(JOBS_MAX, sizeof *t->jobs);
	t->queue = calloc(JOBS_MAX, sizeof *t->queue);
	if (!t->probes || !t->wants || !t->jobs || !t->queue)
		return ktrxer_fail(err, -ENOMEM, "no memory for the probes");
	rc = trace_graph_new(&t->graph, &graph);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the search could not be prepared: %m");
	rc = loop_new(&t->loop);
	if (rc < 0)
		return ktrxer_fail(err, rc, "the event loop could not be opened: %m");
	if ((rc = make_identity(t, err)) < 0 || (rc = open_tx(t, err)) < 0 ||
	    (!t->by_socket && (rc = open_rx(t, err)) < 0) || (rc = check_frame(t, err)) < 0)
		return rc;
	return spec->keep_privileges ? 0 : privilege_drop(&t->privileges, err);
}

void trace_free(struct trace *t)
{
	if (!t)
		return;
	loop_free(t->loop);
	krx_close(t->rx);
	ktx_close(t->tx);
	trace_graph_free(t->graph);
	free(t->probes);
	free(t->samples);
	free(t->wants);
	free(t->jobs);
	free(t->queue);
	free(t);
}

uint64_t trace_round_ns(const struct trace *t)
{
	return t->first_route * t->spec.gap_ns;
}

struct loop *trace_loop_of(const struct trace *t)
{
	return t->loop;
}

const struct trace_graph *trace_graph_of(const struct trace *t)
{
	return t->graph;
}

const struct trace_result *trace_result_of(const struct trace *t)
{
	return &t->result;
}

const struct ktrxer_path *trace_path_of(const struct trace *t)
{
	return &t->probe.path;
}

const struct ktx_info *trace_info_of(const struct trace *t)
{
	return &t->info;
}

const struct privilege_left *trace_privileges_of(const struct trace *t)
{
	return &t->privileges;
}

const struct trace_sample *trace_samples(const struct trace *t, size_t *count)
{
	*count = t->sample_count;
	return t->samples;
}

uint8_t trace_first_route(const struct trace *t)
{
	return t->first_route;
}
