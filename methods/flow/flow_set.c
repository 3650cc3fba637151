/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_set.h"

#include "base_limits.h"
#include "limiter.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct flow_set {
	struct flow_set_options options;
	struct loop_timer timer;
	uint32_t count, open, idle; /* added, not ended, not yet attached */
	uint32_t same[2][2];        /* flows of a direction, of TCP and of UDP */
	bool started, stopping, closing;
	bool again;                 /* something has changed behind the walk over the flows */
	uint8_t walk;               /* enum walk */
	uint32_t at;                /* the flow that the walk looks at next */
	uint32_t grid_missed;       /* times of the grid that have passed without a sample */
	uint64_t next_ns;           /* the earliest due time that the walk has found */
	uint64_t start_ns, grid_ns; /* the next sample of all */
	uint64_t *block;
	uint64_t waited_ns, waited_at_ns; /* run delay of the thread, as read last */
	struct flow_set_cut cut;
	struct flow *blocks[]; /* FLOWS_BLOCK flows each: to clear thousands at once takes milliseconds */
};

enum { FLOWS_BLOCK = 256 };

static struct flow *flow_of(const struct flow_set *set, uint32_t index)
{
	return &set->blocks[index / FLOWS_BLOCK][index % FLOWS_BLOCK];
}

/* A turn over all flows is three walks in this order. A walk whose share of the loop
 * is used goes on in the loop's next turn. */
enum walk { WALK_LAST_SAMPLES = 0, WALK_TURNS, WALK_SAMPLES };

static void set_due(struct loop_timer *timer, uint64_t now_ns);

/* A turn over all flows, as soon as the loop is free for it. */
static void turn_soon(struct flow_set *set)
{
	set->again = true;
	set->timer.at_ns = 0;
}

int flow_set_new(struct flow_set **out, const struct flow_set_options *options)
{
	const size_t blocks = (size_t)options->flows / FLOWS_BLOCK + 1;
	struct flow_set *set = calloc(1, sizeof *set + blocks * sizeof set->blocks[0]);

	*out = set;
	if (!set)
		return -ENOMEM;
	set->options = *options;
	set->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = set_due };
	loop_timer_add(options->loop, &set->timer);
	return 0;
}

/* A flow that flow_set_close() ends has no end of its own; its bytes count all the same. */
static void flow_cut_off(struct flow *flow)
{
	struct flow_sample sample = { .values = { 0 } };

	if (KTRXER_SERVER_EXTRAS && flow->set->closing && flow->state >= FLOW_GOING && flow->state != FLOW_OVER &&
	    !flow->end.reason) {
		flow->ops->sample(flow, &sample);
		flow->set->cut.bytes[flow->sends] += sample.bytes;
		if (flow->spec.udp)
			flow->set->cut.packets[flow->sends] += sample.values[FLOW_PACKETS];
		flow->state = FLOW_OVER;
	}
	flow->ops->close(flow, false);
}

static void flow_drop(struct flow *flow)
{
	flow_cut_off(flow);
	if (flow->ops->free)
		flow->ops->free(flow);
}

void flow_set_close(struct flow_set *set)
{
	set->closing = true;
	set->at = 0;
	set->timer.at_ns = 0;
}

const struct flow_set_cut *flow_set_close_now(struct flow_set *set)
{
	while (set->at < set->count)
		flow_drop(flow_of(set, set->at++));
	return &set->cut;
}

bool flow_set_closed(const struct flow_set *set)
{
	return set->closing && set->at == set->count;
}

void flow_set_free(struct flow_set *set)
{
	if (!set)
		return;
	loop_timer_remove(set->options.loop, &set->timer);
	for (uint32_t i = set->closing ? set->at : 0; i < set->count; i++)
		flow_drop(flow_of(set, i));
	for (uint32_t i = 0; i < set->count; i += FLOWS_BLOCK)
		free(set->blocks[i / FLOWS_BLOCK]);
	free(set->block);
	free(set);
}

int flow_set_add(struct flow_set *set, const struct flow_ops *ops, const struct flow_spec *spec)
{
	struct flow **block = &set->blocks[set->count / FLOWS_BLOCK], *flow;

	if (set->count == set->options.flows)
		return -ENOSPC;
	if (set->count % FLOWS_BLOCK == 0)
		*block = malloc(FLOWS_BLOCK * sizeof *flow);
	if (!*block)
		return -ENOMEM;
	flow = flow_of(set, set->count);
	*flow = (struct flow){ .set = set,
			       .ops = ops,
			       .spec = *spec,
			       .index = set->count,
			       .source.fd = -1,
			       .start_ns = KTRXER_NEVER,
			       .end_ns = KTRXER_NEVER,
			       .grid_ns = KTRXER_NEVER,
			       .acked_base = UINT64_MAX };
	flow->sends = spec->down == set->options.server;
	set->same[spec->down][spec->udp]++;
	set->count++;
	set->open++;
	set->idle++;
	return 0;
}

uint32_t flow_set_count(const struct flow_set *set)
{
	return set->count;
}

const struct flow *flow_set_at(const struct flow_set *set, uint32_t index)
{
	return flow_of(set, index);
}

struct flow *flow_set_flow(struct flow_set *set, uint32_t index)
{
	return flow_of(set, index);
}

const struct flow_set_options *flow_set_options(const struct flow_set *set)
{
	return &set->options;
}

bool flow_set_attached(const struct flow_set *set)
{
	return !set->idle;
}

bool flow_set_over(const struct flow_set *set)
{
	return !set->open;
}

/* A few flows fill a link each in long strokes; of many, none must wait long for its turn, nor the samples for all. */
int flow_set_rounds(const struct flow_set *set)
{
	return set->open <= 4 ? 8 : set->open <= 32 ? 2 : 1;
}

const uint8_t *flow_set_block(struct flow_set *set)
{
	uint64_t seed = 0x9e3779b97f4a7c15ULL;

	if (set->block)
		return (const uint8_t *)set->block;
	set->block = malloc(FLOW_BLOCK);
	if (!set->block)
		return NULL;
	(void)!getrandom(&seed, sizeof seed, GRND_NONBLOCK);
	for (size_t i = 0; i < FLOW_BLOCK / sizeof *set->block; i++)
		set->block[i] = limiter_mix(seed += 0x9e3779b97f4a7c15ULL);
	return (const uint8_t *)set->block;
}

static uint64_t pace_of(const struct flow_set *set, const struct flow *flow)
{
	return set->options.pace_bps ? set->options.pace_bps / set->same[flow->spec.down][flow->spec.udp] + 1 : 0;
}

static void no_longer_idle(struct flow_set *set, struct flow *flow)
{
	if (flow->state == FLOW_IDLE)
		set->idle--;
	flow->state = FLOW_ATTACHED;
}

int flow_set_attach(struct flow_set *set, uint32_t index, int fd, uint64_t acked_base)
{
	struct flow *flow = flow_of(set, index);
	int rc;

	if (flow->state != FLOW_IDLE || !flow->ops->attach)
		return -EALREADY;
	if (flow->sends && !flow_set_block(set))
		return -ENOMEM;
	rc = flow->ops->attach(flow, fd, pace_of(set, flow));
	if (rc < 0)
		return rc;
	flow->source.fd = fd;
	flow->acked_base = acked_base;
	no_longer_idle(set, flow);
	flow->ops->begin(flow);
	return 0;
}

enum { SAMPLE_TRIES = 4, SAMPLE_SPAN_NS = 500 * 1000 };

/*
 * A count belongs to a time. When this thread lost its processor between the two, the sample is taken again; a count
 * whose time is not known within SAMPLE_SPAN_NS is no sample, because a sum over it would be wrong. `time_ns` 0: now.
 * `needed`: the first and the last one of a flow. Returns the time of the count; 0: there is no sample.
 */
static uint64_t sample_take(struct flow *flow, uint64_t time_ns, bool needed)
{
	const struct flow_set_options *o = &flow->set->options;
	/* A second try would not be of the beginning any more. */
	const int tries = flow->sampled_ns ? SAMPLE_TRIES : 1;
	struct flow_sample sample;
	uint64_t span_ns = SAMPLE_SPAN_NS + 1;

	needed |= !flow->sampled_ns;
	for (int i = 0; i < tries && span_ns > SAMPLE_SPAN_NS; i++) {
		const uint64_t from_ns = ktrxer_now_ns();

		sample = (struct flow_sample){ .time_ns = from_ns };
		flow->ops->sample(flow, &sample);
		span_ns = ktrxer_now_ns() - from_ns;
		sample.time_ns += span_ns / 2;
	}
	if (span_ns > SAMPLE_SPAN_NS && !needed) {
		flow->missed++;
		return 0;
	}
	if (!time_ns)
		time_ns = sample.time_ns;
	/* The last packet may have come before a sample that was taken late. */
	sample.time_ns = flow->sampled_ns = time_ns > flow->sampled_ns ? time_ns : flow->sampled_ns;
	o->sample(o->context, flow->index, &sample);
	flow->end.bytes = sample.bytes;
	if (sample.kind == FLOW_UDP)
		flow->end.packets = sample.values[FLOW_PACKETS];
	return time_ns;
}

/* Closes what is open, or lets it run out. */
static void release(struct flow *flow, bool gently, bool settles)
{
	struct flow_set *set = flow->set;

	if (settles && flow->source.fd >= 0) {
		flow->state = FLOW_SETTLING;
		flow->settle_ns = ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_SETTLE_S * KTRXER_NS_PER_S;
		flow->ops->settle(flow);
		turn_soon(set);
		return;
	}
	flow->ops->close(flow, gently);
	flow->state = FLOW_OVER;
}

/* Many flows begin and end at one time: one read is enough for them. */
#define WAITED_AGE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

/*
 * Returns how long this thread was ready and had no processor (Documentation/scheduler/sched-stats.rst); UINT64_MAX:
 * not known.
 */
static uint64_t run_delay(struct flow_set *set, uint64_t now_ns)
{
	char text[64] = "", *second;
	int fd;

	if (set->waited_at_ns && now_ns - set->waited_at_ns < WAITED_AGE_NS)
		return set->waited_ns;
	fd = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	set->waited_at_ns = now_ns;
	set->waited_ns = UINT64_MAX;
	if (fd < 0)
		return UINT64_MAX;
	if (read(fd, text, sizeof text - 1) > 0 && (second = strchr(text, ' ')))
		set->waited_ns = strtoull(second, NULL, 10);
	close(fd);
	return set->waited_ns;
}

static uint32_t waited_share(struct flow *flow)
{
	const uint64_t now = ktrxer_now_ns(), waited = run_delay(flow->set, now);

	if (waited == UINT64_MAX || flow->began_waited_ns > waited || now <= flow->began_ns)
		return UINT32_MAX;
	return (uint32_t)((waited - flow->began_waited_ns) / ((now - flow->began_ns) / 1000 + 1));
}

/* The time of the last packet, of a receiver that knows it; otherwise 0. */
static uint64_t last_ns(const struct flow *flow)
{
	return flow->ops->last_ns && !flow->sends ? flow->ops->last_ns(flow) : 0;
}

/* Sample all flows that end together once, and then close them. */
static void last_sample(struct flow *flow, enum flow_reason reason)
{
	if (flow->end.time_ns)
		return;
	flow->end.waited = waited_share(flow);
	if (flow->ops->stop)
		flow->ops->stop(flow);
	flow->end.time_ns = sample_take(flow, reason == FLOW_PLANNED ? last_ns(flow) : 0, true);
}

void flow_finish(struct flow *flow, enum flow_reason reason, int error)
{
	struct flow_set *set = flow->set;
	const struct flow_set_options *o = &set->options;
	const bool was_going = flow->state == FLOW_GOING || flow->state == FLOW_SETTLING;
	const bool gently = !error && (flow->state == FLOW_SETTLING || !flow->sends);
	/* A receiver whose time is over lets the sender end first: to close now would look like a fault to it. */
	const bool settles = reason == FLOW_PLANNED && !flow->sends && flow->end_ns != KTRXER_NEVER &&
			     flow->ops->settle && flow->state == FLOW_GOING && !(o->bytes && flow->bytes == o->bytes);

	if (set->closing) { /* its turn to be dropped comes soon */
		flow_cut_off(flow);
		return;
	}
	if (flow->end.reason) { /* it had only to settle */
		release(flow, gently, false);
		return;
	}
	no_longer_idle(set, flow);
	if (was_going)
		last_sample(flow, reason);
	else if (!flow->end.time_ns) {
		flow->end.time_ns = ktrxer_now_ns();
		flow->end.waited = UINT32_MAX;
	}
	flow->end.reason = (uint8_t)reason;
	flow->end.error = (uint8_t)flow_error_of(error ? error : flow->ops->error ? flow->ops->error(flow) : 0);
	flow->end.missed = flow->missed;
	flow->end.due_packets = flow->end.late_packets = UINT64_MAX;
	flow->end.idle = UINT32_MAX;
	if (!flow->end.ecn_seen)
		flow->end.ce_segments = UINT32_MAX;
	if (was_going && flow->sends && flow->ops->account)
		flow->ops->account(flow, &flow->end);
	if (was_going)
		flow->state = FLOW_GOING;
	release(flow, gently, settles);
	set->open--;
	turn_soon(set);
	o->ended(o->context, flow->index, &flow->end);
}

void flow_cut(struct flow *flow, int error)
{
	if (flow->set->closing) {
		flow_cut_off(flow);
		return;
	}
	last_sample(flow, FLOW_CLOSED);
	flow->ops->close(flow, true);
	flow->state = FLOW_CUT;
	flow->cut_error = error;
	flow->settle_ns = flow->reported ? 0 : ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_WORD_S * KTRXER_NS_PER_S;
	turn_soon(flow->set);
}

static void cut_judge(struct flow *flow)
{
	if (flow->reported == FLOW_PLANNED)
		flow_finish(flow, FLOW_PLANNED, 0);
	else
		flow_finish(flow, flow->cut_error ? FLOW_BROKEN : FLOW_CLOSED, flow->cut_error);
}

void flow_set_attach_udp(struct flow_set *set, uint32_t index)
{
	no_longer_idle(set, flow_of(set, index));
}

void flow_set_reported(struct flow_set *set, uint32_t index, const struct flow_end *end)
{
	struct flow *flow = flow_of(set, index);
	const uint64_t soon = ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_REPORTED_MS * KTRXER_NS_PER_MS;

	turn_soon(set);
	if (flow->ops->reported && !flow->sends) {
		flow->ops->reported(flow, end);
		return;
	}
	flow->reported = end->reason;
	if (flow->state == FLOW_CUT)
		flow->settle_ns = 0;
	/* The last bytes that it sent are on their way; then nothing more comes. */
	if (end->reason != FLOW_PLANNED || !flow->sends) {
		if (flow->end_ns > soon)
			flow->end_ns = soon;
	}
}

void flow_set_missed(struct flow_set *set, uint32_t index)
{
	flow_of(set, index)->missed++;
}

static void flow_stop(struct flow *flow)
{
	if (flow->state == FLOW_CUT)
		cut_judge(flow);
	else if (!flow->end.reason)
		flow_finish(flow, FLOW_STOPPED, 0);
}

void flow_set_stop(struct flow_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		flow_stop(flow_of(set, i));
}

void flow_set_stop_soon(struct flow_set *set)
{
	set->stopping = true;
	turn_soon(set);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void flow_sample(struct flow *flow)
{
	const struct flow_set *set = flow->set;
	uint64_t time_ns = 0;

	if (flow->end.reason || (flow->state != FLOW_GOING && flow->state != FLOW_SETTLING))
		return;
	if (flow->grid_ns == set->grid_ns)
		return;
	/* A receiver whose time is over gets what waited in queues: the count is of the time of the last packet. */
	if (flow->end_ns <= set->grid_ns) {
		time_ns = last_ns(flow);
		if (time_ns <= flow->sampled_ns)
			return;
		/* By its delay, its time is not over. */
		if (time_ns > set->grid_ns)
			time_ns = 0;
	}
	flow->grid_ns = set->grid_ns;
	flow->missed += set->grid_missed;
	sample_take(flow, time_ns, false);
}

/* The sample that is due now is taken before anything can arrive. */
static void flow_begin(struct flow *flow, uint64_t now_ns)
{
	flow->state = FLOW_GOING;
	flow->began_ns = ktrxer_now_ns();
	flow->began_waited_ns = run_delay(flow->set, flow->began_ns);
	flow->ops->begin(flow);
	if (flow->set->grid_ns <= now_ns)
		flow_sample(flow);
}

static uint64_t end_of(struct flow *flow, uint64_t now_ns)
{
	return flow->ops->end_ns ? flow->ops->end_ns(flow, now_ns) : flow->end_ns;
}

static bool ends_now(struct flow *flow, uint64_t now_ns)
{
	return (flow->state == FLOW_GOING || flow->state == FLOW_SETTLING) && !flow->end.reason &&
	       end_of(flow, now_ns) <= now_ns;
}

/* Does the due work of one flow; returns the time of the next. */
static uint64_t flow_turn(struct flow *flow, uint64_t now_ns)
{
	if (flow->set->stopping)
		flow_stop(flow);
	if (flow->state == FLOW_ATTACHED && flow->start_ns <= now_ns)
		flow_begin(flow, now_ns);
	if (ends_now(flow, now_ns))
		flow_finish(flow, FLOW_PLANNED, 0);
	if (flow->state == FLOW_SETTLING && flow->end.reason && flow->settle_ns <= now_ns)
		release(flow, false, false);
	if (flow->state == FLOW_CUT && flow->settle_ns <= now_ns)
		cut_judge(flow);
	switch (flow->state) {
	case FLOW_ATTACHED:
		return flow->start_ns;
	case FLOW_GOING:
		return end_of(flow, now_ns);
	case FLOW_SETTLING:
		return flow->end.reason ? flow->settle_ns : flow->end_ns;
	case FLOW_CUT:
		return flow->settle_ns;
	default:
		return KTRXER_NEVER;
	}
}

static void walk_step(struct flow_set *set, struct flow *flow, uint64_t now_ns)
{
	const bool again = set->again;

	if (set->walk == WALK_SAMPLES) {
		flow_sample(flow);
	} else if (set->walk == WALK_TURNS) {
		set->next_ns = earlier(set->next_ns, flow_turn(flow, now_ns));
		set->again = again; /* its answer contains the flow's last changes */
	} else if (ends_now(flow, now_ns)) {
		last_sample(flow, FLOW_PLANNED);
	}
}

/* The walk is over; begins the next one. False: that was the last one of the turn. */
static bool walk_next(struct flow_set *set, uint64_t now_ns)
{
	const struct flow_set_options *o = &set->options;

	set->at = 0;
	if (set->walk == WALK_LAST_SAMPLES) {
		set->walk = WALK_TURNS;
		set->next_ns = KTRXER_NEVER;
		set->again = false;
		return true;
	}
	if (set->walk == WALK_TURNS && set->open && set->grid_ns <= now_ns) {
		set->walk = WALK_SAMPLES;
		set->grid_missed = (uint32_t)((now_ns - set->grid_ns) / o->sample_ns);
		return true;
	}
	if (set->walk == WALK_SAMPLES) {
		const uint64_t at_ns = set->grid_ns;

		set->grid_ns += (set->grid_missed + 1ULL) * o->sample_ns;
		if (o->tick)
			o->tick(o->context, at_ns);
	}
	set->walk = WALK_LAST_SAMPLES;
	return false;
}

static void set_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow_set *set = (struct flow_set *)((char *)timer - offsetof(struct flow_set, timer));
	const struct loop *loop = set->options.loop;
	bool used = false;

	if (set->closing) {
		while (set->at < set->count && !used) {
			flow_drop(flow_of(set, set->at++));
			used = loop_share_used(loop);
		}
		timer->at_ns = set->at < set->count ? 0 : KTRXER_NEVER;
		return;
	}
	if (!set->started)
		return;
	do {
		while (set->at < set->count && !used) {
			walk_step(set, flow_of(set, set->at++), now_ns);
			used = loop_share_used(loop);
		}
	} while (!used && walk_next(set, now_ns));
	if (used || set->again)
		timer->at_ns = 0;
	else
		timer->at_ns = set->open ? earlier(set->next_ns, set->grid_ns) : set->next_ns;
	if (set->options.turned)
		set->options.turned(set->options.context);
}

void flow_set_start(struct flow_set *set, uint64_t at_ns)
{
	set->started = true;
	set->start_ns = set->grid_ns = at_ns;
	for (uint32_t i = 0; i < set->count; i++) {
		struct flow *flow = flow_of(set, i);

		flow->start_ns = at_ns + flow->spec.start_ns;
		flow->end_ns = set->options.for_ns ? flow->start_ns + set->options.for_ns : KTRXER_NEVER;
	}
	set->timer.at_ns = at_ns;
}
