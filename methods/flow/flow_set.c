/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_set.h"

#include "limiter.h"
#include "limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

struct flow_set {
	struct flow_set_options options;
	struct loop_timer timer;
	uint32_t count, open, idle; /* added, not ended, not yet attached */
	bool started;
	uint64_t start_ns, grid_ns; /* the next sample of all */
	uint64_t *block;
	struct flow flows[];
};

static void set_due(struct loop_timer *timer, uint64_t now_ns);

int flow_set_new(struct flow_set **out, const struct flow_set_options *options)
{
	struct flow_set *set = calloc(1, sizeof *set + (size_t)options->flows * sizeof set->flows[0]);

	*out = set;
	if (!set)
		return -ENOMEM;
	set->options = *options;
	set->timer = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = set_due };
	loop_timer_add(options->loop, &set->timer);
	return 0;
}

void flow_set_free(struct flow_set *set)
{
	if (!set)
		return;
	loop_timer_remove(set->options.loop, &set->timer);
	for (uint32_t i = 0; i < set->count; i++) {
		struct flow *flow = &set->flows[i];

		flow->ops->close(flow, false);
		if (flow->ops->free)
			flow->ops->free(flow);
	}
	free(set->block);
	free(set);
}

int flow_set_add(struct flow_set *set, const struct flow_ops *ops, const struct flow_spec *spec)
{
	struct flow *flow;

	if (set->count == set->options.flows)
		return -ENOSPC;
	flow = &set->flows[set->count];
	*flow = (struct flow){ .set = set, .ops = ops, .spec = *spec, .index = set->count, .source.fd = -1, .start_ns = KTRXER_NEVER,
			       .end_ns = KTRXER_NEVER, .acked_base = UINT64_MAX };
	flow->sends = spec->down == set->options.server;
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
	return &set->flows[index];
}

struct flow *flow_set_flow(struct flow_set *set, uint32_t index)
{
	return &set->flows[index];
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

/* ------------------------------------------------------------------------------------------------- beginning and end */

static uint64_t pace_of(const struct flow_set *set, const struct flow *flow)
{
	uint64_t same = 0;

	if (!set->options.pace_bps)
		return 0;
	for (uint32_t i = 0; i < set->count; i++)
		same += set->flows[i].spec.down == flow->spec.down && set->flows[i].ops == flow->ops;
	return set->options.pace_bps / (same ? same : 1) + 1;
}

static void no_longer_idle(struct flow_set *set, struct flow *flow)
{
	if (flow->state == FLOW_IDLE)
		set->idle--;
	flow->state = FLOW_ATTACHED;
}

int flow_set_attach(struct flow_set *set, uint32_t index, int fd, uint64_t acked_base)
{
	struct flow *flow = &set->flows[index];
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
 * A count belongs to a time. When this thread lost its processor between the two, the sample is taken again; a count whose time is not known within
 * SAMPLE_SPAN_NS is no sample, because a sum over it would be wrong. `time_ns` 0: now. `needed`: the first and the last one of a flow. Returns the
 * time of the sample; 0: there is none.
 */
static uint64_t sample_take(struct flow *flow, uint64_t time_ns, bool needed)
{
	const struct flow_set_options *o = &flow->set->options;
	/* A second try would not be of the beginning any more. */
	const int tries = flow->sampled ? SAMPLE_TRIES : 1;
	struct flow_sample sample;
	uint64_t span_ns = SAMPLE_SPAN_NS + 1;

	needed |= !flow->sampled;
	for (int i = 0; i < tries && span_ns > SAMPLE_SPAN_NS; i++) {
		const uint64_t from_ns = ktrxer_now_ns();

		sample = (struct flow_sample){ .time_ns = from_ns };
		flow->ops->sample(flow, &sample);
		span_ns = ktrxer_now_ns() - from_ns;
		sample.time_ns += span_ns / 2;
	}
	flow->sampled = true;
	if (span_ns > SAMPLE_SPAN_NS && !needed) {
		flow->missed++;
		return 0;
	}
	if (time_ns)
		sample.time_ns = time_ns;
	o->sample(o->context, flow->index, &sample);
	flow->end.bytes = sample.bytes;
	if (sample.kind == FLOW_UDP)
		flow->end.packets = sample.values[FLOW_PACKETS];
	return sample.time_ns;
}

/* Closes what is open, or lets it run out. */
static void release(struct flow *flow, bool gently, bool settles)
{
	struct flow_set *set = flow->set;

	if (settles && flow->source.fd >= 0) {
		flow->state = FLOW_SETTLING;
		flow->settle_ns = ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_SETTLE_S * KTRXER_NS_PER_S;
		flow->ops->settle(flow);
		set->timer.at_ns = 0; /* worked out anew */
		return;
	}
	flow->ops->close(flow, gently);
	flow->state = FLOW_OVER;
}

/* Once: of many flows that end together all are sampled first, and then let go. */
static void last_sample(struct flow *flow, enum flow_reason reason)
{
	if (flow->end.time_ns)
		return;
	if (flow->ops->stop)
		flow->ops->stop(flow);
	flow->end.time_ns = sample_take(flow, flow->ops->last_ns && !flow->sends && reason == FLOW_PLANNED ? flow->ops->last_ns(flow) : 0, true);
}

void flow_finish(struct flow *flow, enum flow_reason reason, int error)
{
	struct flow_set *set = flow->set;
	const struct flow_set_options *o = &set->options;
	const bool was_going = flow->state == FLOW_GOING || flow->state == FLOW_SETTLING;
	const bool gently = !error && (flow->state == FLOW_SETTLING || !flow->sends);
	/* A receiver whose time is over lets the sender end first: to close now would look like a fault to it. */
	const bool settles = reason == FLOW_PLANNED && !flow->sends && flow->end_ns != KTRXER_NEVER && flow->ops->settle &&
			     flow->state == FLOW_GOING && !(o->bytes && flow->bytes == o->bytes);

	if (flow->end.reason) { /* it had only to settle */
		release(flow, gently, false);
		return;
	}
	no_longer_idle(set, flow);
	if (was_going)
		last_sample(flow, reason);
	else if (!flow->end.time_ns)
		flow->end.time_ns = ktrxer_now_ns();
	flow->end.reason = (uint8_t)reason;
	flow->end.error = (uint8_t)flow_error_of(error ? error : flow->ops->error ? flow->ops->error(flow) : 0);
	flow->end.missed = flow->missed;
	flow->end.due_packets = flow->end.late_packets = UINT64_MAX;
	if (was_going && flow->sends && flow->ops->account)
		flow->ops->account(flow, &flow->end);
	if (was_going)
		flow->state = FLOW_GOING;
	release(flow, gently, settles);
	set->open--;
	set->timer.at_ns = 0; /* a turn follows, soon if this is none */
	o->ended(o->context, flow->index, &flow->end);
}

void flow_cut(struct flow *flow, int error)
{
	last_sample(flow, FLOW_CLOSED);
	flow->ops->close(flow, true);
	flow->state = FLOW_CUT;
	flow->cut_error = error;
	flow->settle_ns = flow->told ? 0 : ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_WORD_S * KTRXER_NS_PER_S;
	flow->set->timer.at_ns = 0;
}

static void cut_judge(struct flow *flow)
{
	if (flow->told == FLOW_PLANNED)
		flow_finish(flow, FLOW_PLANNED, 0);
	else
		flow_finish(flow, flow->cut_error ? FLOW_BROKEN : FLOW_CLOSED, flow->cut_error);
}

void flow_set_attach_udp(struct flow_set *set, uint32_t index)
{
	no_longer_idle(set, &set->flows[index]);
}

void flow_set_told(struct flow_set *set, uint32_t index, const struct flow_end *end)
{
	struct flow *flow = &set->flows[index];
	const uint64_t soon = ktrxer_now_ns() + (uint64_t)KTRXER_FLOW_TOLD_MS * KTRXER_NS_PER_MS;

	set->timer.at_ns = 0;
	if (flow->ops->told && !flow->sends) {
		flow->ops->told(flow, end);
		return;
	}
	flow->told = end->reason;
	if (flow->state == FLOW_CUT)
		flow->settle_ns = 0;
	/* What it sent last is on its way; then nothing more comes. */
	if (end->reason != FLOW_PLANNED || !flow->sends) {
		if (flow->end_ns > soon)
			flow->end_ns = soon;
	}
}

void flow_set_missed(struct flow_set *set, uint32_t index)
{
	set->flows[index].missed++;
}

void flow_set_stop(struct flow_set *set)
{
	for (uint32_t i = 0; i < set->count; i++)
		if (set->flows[i].state == FLOW_CUT)
			cut_judge(&set->flows[i]);
		else if (!set->flows[i].end.reason)
			flow_finish(&set->flows[i], FLOW_STOPPED, 0);
}

/* -------------------------------------------------------------------------------------------------------------- time */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void flow_begin(struct flow *flow)
{
	flow->state = FLOW_GOING;
	flow->ops->begin(flow);
}

static uint64_t end_of(struct flow *flow, uint64_t now_ns)
{
	return flow->ops->end_ns ? flow->ops->end_ns(flow, now_ns) : flow->end_ns;
}

static bool ends_now(struct flow *flow, uint64_t now_ns)
{
	return (flow->state == FLOW_GOING || flow->state == FLOW_SETTLING) && !flow->end.reason && end_of(flow, now_ns) <= now_ns;
}

/* What is due of one flow; returns when the next thing is. */
static uint64_t flow_turn(struct flow *flow, uint64_t now_ns)
{
	if (flow->state == FLOW_ATTACHED && flow->start_ns <= now_ns)
		flow_begin(flow);
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

static void sample_all(struct flow_set *set, uint64_t now_ns)
{
	const struct flow_set_options *o = &set->options;
	const uint64_t at_ns = set->grid_ns, missed = (now_ns - at_ns) / o->sample_ns;

	for (uint32_t i = 0; i < set->count; i++) {
		struct flow *flow = &set->flows[i];

		if (flow->end.reason || (flow->state != FLOW_GOING && flow->state != FLOW_SETTLING))
			continue;
		/* A receiver that only waits for what is late: its time is over, and its last word is to come. */
		if (flow->ops->end_ns && flow->end_ns <= at_ns)
			continue;
		flow->missed += (uint32_t)missed;
		sample_take(flow, 0, false);
	}
	set->grid_ns += (missed + 1) * o->sample_ns;
	if (o->tick)
		o->tick(o->context, at_ns);
}

static void set_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct flow_set *set = (struct flow_set *)((char *)timer - offsetof(struct flow_set, timer));
	uint64_t next = KTRXER_NEVER;

	if (!set->started)
		return;
	for (uint32_t i = 0; i < set->count; i++)
		if (ends_now(&set->flows[i], now_ns))
			last_sample(&set->flows[i], FLOW_PLANNED);
	for (uint32_t i = 0; i < set->count; i++)
		next = earlier(next, flow_turn(&set->flows[i], now_ns));
	if (set->open && set->grid_ns <= now_ns)
		sample_all(set, now_ns);
	timer->at_ns = set->open ? earlier(next, set->grid_ns) : next;
	if (set->options.turned)
		set->options.turned(set->options.context);
}

void flow_set_start(struct flow_set *set, uint64_t at_ns)
{
	set->started = true;
	set->start_ns = set->grid_ns = at_ns;
	for (uint32_t i = 0; i < set->count; i++) {
		struct flow *flow = &set->flows[i];

		flow->start_ns = at_ns + flow->spec.start_ns;
		flow->end_ns = set->options.for_ns ? flow->start_ns + set->options.for_ns : KTRXER_NEVER;
	}
	set->timer.at_ns = at_ns;
}
