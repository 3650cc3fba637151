/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The jobs of a round of a trace: each ends with an answer, or when its tries are over. */
#include "trace_state.h"

#include "error.h"

#include <errno.h>

#define WAIT_MIN_NS (200 * (uint64_t)KTRXER_NS_PER_MS) /* for an answer, where another try follows */
#define LAST_MIN_NS ((uint64_t)KTRXER_NS_PER_S)        /* for the answer to the last try, after a first silence */
#define RTT_ROOM_NS (20 * (uint64_t)KTRXER_NS_PER_MS)

void trace_fail(struct trace *t, int rc, const char *text)
{
	if (!t->result.failure.code)
		ktrxer_fail(&t->result.failure, rc, "%s", text);
}

void trace_job_end(struct trace *t, struct trace_job *job)
{
	job->done = true;
	t->open--;
}

static void enqueue(struct trace *t, uint32_t job)
{
	t->queue[(t->queue_at + t->queued++) % TRACE_JOBS_MAX] = job;
}

void trace_job_start(struct trace *t, struct trace_want want, uint64_t at_ns)
{
	t->jobs[t->job_count] = (struct trace_job){ .want = want, .at_ns = at_ns, .repetition = t->repetition };
	enqueue(t, t->job_count++);
	t->open++;
}

/* A hop that has not answered the first flow, and no other: the further flows are its further tries. */
static bool is_silent(const struct trace *t, const struct trace_job *job)
{
	return t->silent[job->want.hop] && !t->result.hops[job->want.hop].answered;
}

/* Round trips have no further tries, which would be of another time. */
static bool tries_again(const struct trace *t)
{
	return t->stage == TRACE_SEARCH || t->stage == TRACE_SAME_FLOW;
}

/*
 * The wait is short where another try follows, and at a hop where a whole wait has ended without an answer, so that
 * silent routers cost little. A late answer to an earlier try counts as well. The first silence of a hop
 * without any answer lasts the whole time-out, because the round trip of a satellite is not known before; later ones
 * follow the longest round trip.
 */
uint64_t trace_job_wait_ns(const struct trace *t, const struct trace_job *job)
{
	const uint64_t likely = t->rtt_max_ns + t->rtt_max_ns / 4 + RTT_ROOM_NS, most = t->spec.timeout_ns;
	const bool last = !tries_again(t) || (job->tries >= t->spec.tries && !t->silent[job->want.hop]);
	const uint64_t least = last || is_silent(t, job) ? LAST_MIN_NS : WAIT_MIN_NS,
		       wait = likely > least ? likely : least;

	return (last && !t->result.unanswered && !t->result.hops[job->want.hop].answered) || wait > most ? most : wait;
}

void trace_graph_take(struct trace *t, struct trace_want want, const struct ktrxer_addr *from, enum trace_end end)
{
	int rc;

	if (t->stage != TRACE_SEARCH)
		return;
	rc = trace_graph_answer(t->graph, want, from, end);
	if (rc == -ENOMEM)
		trace_fail(t, rc, "no memory for the routes");
}

void trace_give_up(struct trace *t, uint64_t now)
{
	t->check_ns = KTRXER_NEVER;
	for (uint32_t i = 0; i < t->job_count; i++) {
		struct trace_job *job = &t->jobs[i];

		if (job->done || !job->until_ns)
			continue;
		if (now < job->until_ns) {
			if (job->until_ns < t->check_ns)
				t->check_ns = job->until_ns;
			continue;
		}
		job->until_ns = 0;
		if (job->tries < t->spec.tries && tries_again(t) && !is_silent(t, job)) {
			enqueue(t, i);
			continue;
		}
		t->result.unanswered++;
		t->silent[job->want.hop] = true;
		trace_graph_take(t, job->want, NULL, TRACE_GOES_ON);
		trace_job_end(t, job);
	}
}
