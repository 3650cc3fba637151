/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "mda.h"
#include "trace_same_flow.h"
#include "trace_state.h"

#include <errno.h>
#include <sys/epoll.h>

#define AHEAD_NS (2 * (uint64_t)KTRXER_NS_PER_MS)      /* from the commit of a probe to its scheduled time */
/* The kernel enables receive stamps by deferred work: packets of the first milliseconds have none or wrong ones. */
#define SETTLE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

/*
 * Probes to a hop that may limit its answers have this distance: Linux sends one error a second to a host, after the
 * first six (icmp_ratelimit).
 */
#define DOUBT_NS (102 * (uint64_t)KTRXER_NS_PER_S / 100)
enum { LINUX_BURST = 6 };
/* A next hop that never answers is tested for with this share, if it is larger than that of the search. */
#define SILENT_SHARE 0.25

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static int send_one(struct trace *t, struct trace_job *job, uint32_t index, uint64_t at_ns)
{
	struct trace_pending *probe = &t->probes[t->number % TRACE_PROBES];
	const struct trace_sent sent = { t->number, job->want };
	struct ktx_probe request = { .id = t->number, .at_ns = at_ns };
	struct ktx_slot slot;
	struct ktrxer_error err;
	int rc = ktx_reserve(t->tx, &slot);

	if (rc < 0)
		return rc;
	rc = trace_probe_build(&t->probe, slot.frame, slot.capacity, &sent);
	if (rc < 0) {
		trace_fail(t, rc, "the probe could not be built");
		return rc;
	}
	request.length = (uint32_t)rc;
	rc = ktx_commit(t->tx, &request, &err);
	if (rc < 0) {
		trace_fail(t, rc, err.text);
		return rc;
	}
	*probe = (struct trace_pending){
		.sample = { .sent = sent, .stage = t->stage, .repetition = job->repetition, .own_queue_ns = -1 },
		.job = index,
		.round = t->round,
		.state = COMMITTED,
	};
	t->number++;
	t->last_ns = at_ns;
	t->result.hops[job->want.hop].sent++;
	job->tries++;
	job->until_ns = at_ns + trace_job_wait_ns(t, job);
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
		struct trace_job *job = &t->jobs[index];

		if (t->send_ns < job->at_ns)
			t->send_ns = job->at_ns;
		if (t->send_ns > now + AHEAD_NS)
			return;
		if (!job->done && send_one(t, job, index, t->send_ns) < 0)
			return;
		if (!job->done)
			t->send_ns += t->spec.gap_ns;
		t->queue_at = (t->queue_at + 1) % TRACE_JOBS_MAX;
		t->queued--;
	}
}

/*
 * Such probes are sent again for the time in which Linux answers so many flows that a next hop without any answer is
 * excluded. One that answers is found without this repetition, since its own limit has room for its first answers.
 */
static bool doubts_end(const struct trace *t, uint64_t now)
{
	const uint8_t hops = trace_graph_hops(t->graph);
	const double share = t->spec.share > SILENT_SHARE ? t->spec.share : SILENT_SHARE;
	const uint32_t flows = mda_share_probes(1, share, t->spec.failure / (hops ? hops : 1));

	return now > t->result.begin_ns + (flows > LINUX_BURST ? flows - LINUX_BURST : 0) * (uint64_t)KTRXER_NS_PER_S;
}

/* Probes in doubt come first: nodes that do not exist would need probes of their own. */
static bool search_round(struct trace *t, uint64_t now)
{
	int n;

	if (doubts_end(t, now)) {
		t->result.in_doubt = trace_graph_leave_doubts(t->graph);
		if (t->result.in_doubt)
			return false;
	} else if ((n = trace_graph_doubts(t->graph, t->wants, TRACE_JOBS_MAX)) > 0) {
		for (int i = 0; i < n; i++) {
			trace_job_start(t, t->wants[i], now + DOUBT_NS);
			t->jobs[i].tries = t->spec.tries - 1;
		}
		return true;
	}
	n = trace_graph_want(t->graph, t->wants, TRACE_JOBS_MAX);
	for (int i = 0; i < n; i++)
		trace_job_start(t, t->wants[i], 0);
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
	for (; t->repetition < t->rounds && t->job_count + t->first_route <= TRACE_JOBS_MAX;
	     t->repetition++, now += t->interval_ns)
		for (uint8_t hop = 1; hop <= t->first_route; hop++)
			if (has_address(t, hop))
				trace_job_start(t, (struct trace_want){ hop, 0 }, now);
	return t->job_count > 0;
}

static bool same_flow_round(struct trace *t)
{
	const int n = t->repetition ? 0 : trace_same_flow_want(t->graph, t->spec.failure, t->wants, TRACE_JOBS_MAX);

	for (int i = 0; i < n; i++)
		trace_job_start(t, t->wants[i], 0);
	t->repetition = 1;
	return n > 0;
}

static bool next_round(struct trace *t, uint64_t now)
{
	t->job_count = t->open = 0;
	t->round++;
	t->check_ns = KTRXER_NEVER;
	return t->stage == TRACE_SEARCH      ? search_round(t, now)
	       : t->stage == TRACE_SAME_FLOW ? same_flow_round(t)
					     : repeat_rounds(t, now);
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

/* A search that did not reach the destination waits a whole time-out for the answers to its last probes. */
static bool lingers(struct trace *t, uint64_t now)
{
	if (t->stage != TRACE_SEARCH || t->result.failure.code || is_arrived(t))
		return false;
	if (!t->linger_ns)
		t->linger_ns = t->last_ns + t->spec.timeout_ns;
	return now < t->linger_ns;
}

static void turn(struct loop_timer *timer, uint64_t now)
{
	struct trace *t = (struct trace *)((char *)timer - offsetof(struct trace, timer));
	uint64_t pump_ns = KTRXER_NEVER, next;

	trace_take_reports(t);
	trace_take_replies(t);
	if (now >= t->check_ns)
		trace_give_up(t, now);
	if ((!t->open && (t->linger_ns || !next_round(t, now))) || t->result.failure.code) {
		if (lingers(t, now))
			timer->at_ns = t->linger_ns;
		else
			loop_stop(t->loop);
		return;
	}
	send_due(t, now);
	if (ktx_pump(t->tx, &pump_ns) < 0)
		trace_fail(t, -ENODEV, "the device went down or is gone");
	trace_take_errors(t);
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
		trace_fail(t, rc, "the event loop does not take the descriptors of the probes");
		goto out;
	}
	if (!next_round(t, ktrxer_now_ns()))
		goto out;
	loop_timer_add(t->loop, &t->timer);
	rc = loop_run(t->loop, stop_fd);
	if (rc < 0)
		trace_fail(t, rc, "the event loop failed");
	loop_timer_remove(t->loop, &t->timer);
	t->result.stopped |= t->open && !t->result.failure.code;
	/* Get the send times that answered probes still lack. */
	ktx_cancel(t->tx);
	ktx_drain(t->tx, ktrxer_now_ns() + KTRXER_NS_PER_S / 10);
	trace_take_reports(t);
	path_witness_end(&t->result.path, &(struct path_claim){ .path = &t->probe.path,
								.device = t->spec.device,
								.from = &t->spec.from,
								.tx = t->tx,
								.sent = t->result.sent });
out:
	if (t->rx && krx_stats(t->rx, &stats, NULL, 0) == 0)
		t->result.receiver_drops = stats.lost;
	loop_unwatch(t->loop, &t->tx_source);
	if (t->rx)
		loop_unwatch(t->loop, &t->rx_source);
	t->queued = t->queue_at = 0;
	t->result.end_ns = ktrxer_now_ns();
}

static void run_stage(struct trace *t, enum trace_stage stage, int stop_fd)
{
	if (t->result.failure.code || t->result.stopped || !t->first_route)
		return;
	t->linger_ns = 0;
	t->stage = (uint8_t)stage;
	t->repetition = 0;
	run(t, stop_fd);
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
	if (t->spec.failure > 0)
		run_stage(t, TRACE_SAME_FLOW, stop_fd);
}

void trace_repeat(struct trace *t, enum trace_stage stage, uint32_t rounds, uint64_t interval_ns, int stop_fd)
{
	t->rounds = rounds;
	t->interval_ns = interval_ns;
	run_stage(t, stage, stop_fd);
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
