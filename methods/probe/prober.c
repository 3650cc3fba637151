/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The loop of the clients that probe one host. */
#include "prober.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

/* Arrived packets are read within about this time. Well below KTX_STAMP_WAIT_NS. */
#define LOOK_NS (50 * (uint64_t)KTRXER_NS_PER_MS)
/* The margin of a sleep: its steps, and its limits (a share of the interval: 2 % of a processor). */
#define MARGIN_STEP_NS ((uint64_t)KTRXER_NS_PER_US / 2)
#define MARGIN_MAX_NS (200 * (uint64_t)KTRXER_NS_PER_US)
enum { MARGIN_SHARE = 50, WARM_NS = 8000 };
enum { LOOK_PROBES = 8 }; /* or after so many probes: a socket's buffer holds hundreds */
/*
 * A prober with long intervals takes the stamps this long after its probe, because the probes of other processes are
 * due now.
 */
#define AFTER_SENDING_NS (3 * (uint64_t)KTRXER_NS_PER_MS)
/* It wakes so long before a probe, and sleeps again without descriptors: that sleep ends with less work. */
#define BEFORE_SENDING_NS (3 * (uint64_t)KTRXER_NS_PER_MS)
/* Receive stamps are switched on by deferred work: the first milliseconds have none or wrong ones. */
#define SETTLE_NS (10 * (uint64_t)KTRXER_NS_PER_MS)

void prober_fail(struct prober *p, int rc, const char *text)
{
	if (p->result.failure.code)
		return;
	p->result.failure.code = rc;
	snprintf(p->result.failure.text, sizeof p->result.failure.text, "%s", text);
}

static uint64_t earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Commits the probes that are due soon. Returns the time of the next commit; KTRXER_NEVER: there is none. */
static uint64_t commit_soon(struct prober *p)
{
	uint64_t now = ktrxer_now_ns();

	p->fresh_ns = KTRXER_NEVER;
	/*
	 * Several at once, and with a probe that leaves meanwhile: each wake-up that is not needed is processor time.
	 */
	if (p->unhurried && p->committed_ns > now + p->ahead_ns / 2)
		return p->committed_ns;
	while (p->result.committed < p->result.wanted) {
		if (!p->have_due && ktrxer_schedule_next(p->schedule, &p->due) < 0)
			break;
		p->have_due = true;
		if (p->due.at_ns >= p->end_ns)
			break;
		if (p->due.at_ns > (now = ktrxer_now_ns()) + p->ahead_ns)
			return p->unhurried && p->committed_ns > now ? p->committed_ns : p->due.at_ns - p->ahead_ns / 2;
		if (!p->work->commit(p->client, p->due.at_ns)) {
			if (p->result.failure.code)
				break;
			/* Reports make room, and wake this thread; so does a loss. */
			return earliest(p->work->next_loss(p->client), KTRXER_NEVER - 1);
		}
		p->result.committed++;
		p->committed_ns = p->due.at_ns;
		if (p->fresh_ns == KTRXER_NEVER)
			p->fresh_ns = p->due.at_ns;
		p->have_due = false;
	}
	return KTRXER_NEVER;
}

static uint64_t pump(struct prober *p, bool look)
{
	uint64_t pump_at = KTRXER_NEVER;

	if (!p->spec.precise && (look ? ktx_pump(p->tx, &pump_at) : ktx_pump_due(p->tx, &pump_at)) < 0)
		prober_fail(p, -ENODEV, "the device went down or is gone");
	return pump_at;
}

static void network_error(void *context, const struct ktx_network_error *error)
{
	struct prober *p = context;

	p->result.network_errors++;
	if (p->events.network_error)
		p->events.network_error(p->events.context, error);
}

static void take_network_errors(struct prober *p)
{
	struct ktx_network_error errors[8];

	for (int n; (n = ktx_network_errors(p->tx, errors, 8)) > 0;)
		for (int i = 0; i < n; i++)
			network_error(p, &errors[i]);
}

uint64_t prober_take(struct prober *p)
{
	const uint64_t pump_at = pump(p, true);

	p->work->take(p->client);
	take_network_errors(p);
	p->result.socket_drops = p->receiver.socket_drops;
	if (p->events.tick)
		p->events.tick(p->events.context);
	return pump_at;
}

/*
 * A step towards the margin that three of four wake-ups keep: a sleep ends tens of microseconds late, depending on
 * the machine. A wake-up later than the largest margin found no free processor, and does not count: otherwise the
 * probers of a busy machine would spin the longest.
 */
uint64_t prober_margin(uint64_t margin_ns, uint64_t largest_ns, uint64_t late_ns)
{
	if (late_ns > largest_ns)
		return margin_ns;
	if (late_ns > margin_ns)
		return earliest(margin_ns + 3 * MARGIN_STEP_NS, largest_ns);
	return margin_ns > MARGIN_STEP_NS ? margin_ns - MARGIN_STEP_NS : margin_ns;
}

/*
 * The one of both that sends first. The prober beside is first as often as each probe of the train: on an idle path the
 * first one is slower by some microseconds.
 */
static struct prober *front(struct prober *p)
{
#ifndef KTRXER_SMALL
	if (p->beside && p->turn % (p->each + 1) == p->each)
		return p->beside;
#endif
	return p;
}

/* Spins until the send time after a sleep that ended before it. */
static void wait_exactly(struct prober *p)
{
	const uint64_t now = ktrxer_now_ns();

	if (p->exact_ns == KTRXER_NEVER)
		return;
	if (p->wake_ns && now >= p->wake_ns)
		p->margin_ns = prober_margin(p->margin_ns, p->margin_max_ns, now - p->wake_ns);
	if (now >= p->exact_ns || p->exact_ns - now > p->margin_ns)
		return;
	/* Fetch the code and the data of a submission, which are no longer in the caches after a sleep. */
	while (ktrxer_now_ns() + WARM_NS < p->exact_ns)
		;
	pump(front(p), false);
	while (ktrxer_now_ns() < p->exact_ns)
		;
}

#ifndef KTRXER_SMALL
static void unwatch(struct prober *p)
{
	if (p->events_source.fd >= 0)
		loop_unwatch(p->leader->loop, &p->events_source);
	if (p->reply_source.fd >= 0)
		loop_unwatch(p->leader->loop, &p->reply_source);
}

/* One that has ended reads what still arrives until the other one has ended. */
static uint64_t step_one(struct prober *p)
{
	uint64_t next = 0;

	p->exact_ns = KTRXER_NEVER;
	if (!p->done)
		next = p->step(p);
	else if (!p->result.failure.code)
		prober_take(p);
	if (!next && p->result.failure.code)
		unwatch(p);
	p->done = !next;
	return next ? next : KTRXER_NEVER;
}

/* Each engine compensates by its own time for the cost of its send calls, so one may be due later than the other. */
static void pump_within(struct prober *p, uint64_t margin_ns)
{
	const uint64_t at = pump(p, false), now = ktrxer_now_ns();

	if (at <= now || at - now > margin_ns)
		return;
	while (ktrxer_now_ns() < at)
		;
	pump(p, false);
}

static uint64_t step_both(struct prober *p)
{
	struct prober *const other = p->beside, *const first = front(p);
	const bool due = p->exact_ns <= ktrxer_now_ns();
	uint64_t next;

	/* Both send before either of them takes answers. */
	if (due) {
		pump_within(first, p->margin_max_ns);
		pump_within(first == p ? other : p, p->margin_max_ns);
		p->turn++;
	}
	other->sends = p->sends;
	other->blind = p->blind;
	next = step_one(p);
	next = earliest(next, step_one(other));
	p->exact_ns = earliest(p->exact_ns, other->exact_ns);
	return p->done && other->done ? 0 : next;
}
#endif

/* The time of the next round; 0: there is none. */
static uint64_t round_of(struct prober *p)
{
	uint64_t next;

#ifndef KTRXER_SMALL
	if (p->beside)
		return step_both(p);
#endif
	p->exact_ns = KTRXER_NEVER;
	next = p->step(p);
	p->done = !next;
	return next;
}

static void round_due(struct loop_timer *timer, uint64_t now_ns)
{
	struct prober *p = (struct prober *)((char *)timer - offsetof(struct prober, timer));
	uint64_t next, span;
	bool exact;

	wait_exactly(p);
	p->sends = !p->unhurried && p->exact_ns <= ktrxer_now_ns();
	next = round_of(p);
	if (!next) {
		loop_stop(p->loop);
		return;
	}
	now_ns = ktrxer_now_ns();
	exact = p->exact_ns == next;
	if (exact)
		next -= p->margin_ns;
	span = next > now_ns ? next - now_ns : 0;
	p->wake_ns = span ? next : 0;
	p->blind = p->unhurried && span <= LOOK_NS / 2;
	if (p->sends)
		span = earliest(span, AFTER_SENDING_NS);
	if (p->blind || p->sends)
		loop_wait_blind(p->loop);
#ifndef KTRXER_SMALL
	if (exact && !p->unhurried && span > BEFORE_SENDING_NS + AFTER_SENDING_NS) {
		span -= BEFORE_SENDING_NS;
		p->wake_ns = 0;
	} else if (exact && !p->unhurried && span) {
		loop_sleep(p->loop);
	}
#endif
	/* A second at most: only this limit ends a wait that a defect made endless. */
	timer->at_ns = now_ns + earliest(span, KTRXER_NS_PER_S);
}

/* One round takes from both; it comes right after the sources have been looked at. */
static void wake(struct prober *p)
{
	p->leader->timer.at_ns = p->leader->wake_ns = 0;
}

static void events_ready(struct loop_source *source, uint32_t events)
{
	(void)events;
	wake((struct prober *)((char *)source - offsetof(struct prober, events_source)));
}

static void reply_ready(struct loop_source *source, uint32_t events)
{
	(void)events;
	wake((struct prober *)((char *)source - offsetof(struct prober, reply_source)));
}

static int watch_sources(struct prober *p, struct prober *leader)
{
	int rc = 0;

	p->leader = leader;
	p->receiver.error = network_error;
	p->receiver.context = p;
	p->events_source = (struct loop_source){ .fd = ktx_fd(p->tx), .ready = events_ready };
	p->reply_source = (struct loop_source){ .fd = p->receiver.fd, .ready = reply_ready };
	if (p->events_source.fd >= 0)
		rc = loop_watch(leader->loop, &p->events_source, EPOLLIN);
	if (rc == 0 && p->reply_source.fd >= 0)
		rc = loop_watch(leader->loop, &p->reply_source, EPOLLIN);
	return rc;
}

static int watch(struct prober *p)
{
	int rc = loop_new(&p->loop);

	p->timer.due = round_due;
	if (rc == 0)
		rc = watch_sources(p, p);
#ifndef KTRXER_SMALL
	if (rc == 0 && p->beside)
		rc = watch_sources(p->beside, p);
#endif
	if (rc == 0)
		loop_timer_add(p->loop, &p->timer);
	return rc;
}

bool prober_loop(struct prober *p, int stop_fd, uint64_t (*step)(struct prober *p))
{
	int rc;

	p->step = step;
	p->done = false;
	p->timer.at_ns = p->wake_ns = 0;
	p->exact_ns = KTRXER_NEVER;
	p->margin_max_ns = earliest(p->spec.interval_ns / MARGIN_SHARE, MARGIN_MAX_NS);
	p->margin_ns = p->margin_max_ns / 2;
	rc = loop_run(p->loop, stop_fd);
	p->result.receiver_drops = reply_receiver_drops(&p->receiver);
	if (rc < 0)
		prober_fail(p, rc, "the event loop failed");
	return rc < 0 || p->done;
}

/* Look once for several probes: each system call that finds one packet, or none, costs as much as the probe. */
static bool time_to_look(struct prober *p)
{
	const uint64_t now = ktrxer_now_ns();

	if (p->sends)
		return false;
	if (p->blind && now - p->looked_ns < LOOK_NS / 2 && p->result.committed - p->looked < LOOK_PROBES &&
	    p->work->next_loss(p->client) > now)
		return false;
	p->looked_ns = now;
	p->looked = p->result.committed;
	return true;
}

static uint64_t send_step(struct prober *p)
{
	/* Send the due probes first. */
	uint64_t pump_at = time_to_look(p) ? prober_take(p) : pump(p, false), commit_at = commit_soon(p);
	const bool no_more = commit_at == KTRXER_NEVER &&
			     (p->result.committed == p->result.wanted || (p->have_due && p->due.at_ns >= p->end_ns));

	if (p->fresh_ns < pump_at)
		pump_at = pump(p, false);
	if (p->result.failure.code || (no_more && p->work->ended(p->client)))
		return 0;
	p->exact_ns = pump_at;
	return earliest(earliest(commit_at, pump_at), p->work->next_loss(p->client));
}

static int start(struct prober *p, uint64_t start_ns, struct ktrxer_error *err)
{
	(void)ktrxer_device_qdiscs(&p->result.qdiscs, &p->path.device);
	p->start_ns = start_ns ? start_ns : ktrxer_now_ns() + SETTLE_NS;
	p->end_ns = p->spec.for_ns ? p->start_ns + p->spec.for_ns : KTRXER_NEVER;
	return prober_schedule(p, err);
}

static void finish(struct prober *p)
{
	ktx_cancel(p->tx);
	ktx_drain(p->tx, ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS);
	prober_take(p);
	p->result.lateness = ktx_lateness(p->tx);
	ktx_accounts(p->tx, &p->result.accounts);
	path_witness_end(&p->result.path, &(struct path_claim){ .path = &p->path,
								.device = p->spec.device,
								.from = &p->spec.from,
								.tx = p->tx,
								.sent = p->result.accounts.sent });
	if (p->result.wanted != UINT64_MAX) {
		const uint64_t never = (p->result.wanted - p->result.committed) * p->each - p->part;

		p->result.accounts.requested += never;
		p->result.accounts.cancelled += never;
	}
}

#ifndef KTRXER_SMALL
void prober_join(struct prober *leader, struct prober *p, const struct probe_events *events)
{
	leader->beside = p;
	p->leader = leader;
	p->events = *events;
	p->step = send_step;
	memcpy(p->seed, leader->seed, sizeof p->seed); /* equal random intervals */
}

/* The prober beside has no part in the further rounds of its leader, after the loop. */
static void part(struct prober *leader)
{
	struct prober *p = leader->beside;

	if (!p)
		return;
	leader->beside = NULL;
	if (leader->loop)
		unwatch(p);
	p->result.stopped = !p->done;
	p->result.receiver_drops = reply_receiver_drops(&p->receiver);
	finish(p);
}
#endif

void prober_run(struct prober *p, uint64_t start_ns, int stop_fd, const struct probe_events *events)
{
	struct ktrxer_error err;
	int rc;

	p->events = *events;
	rc = start(p, start_ns, &err);
#ifndef KTRXER_SMALL
	if (rc == 0 && p->beside)
		rc = start(p->beside, p->start_ns, &err);
#endif
	if (rc < 0)
		prober_fail(p, err.code, err.text);
	else if ((rc = watch(p)) < 0)
		prober_fail(p, rc, "the event loop does not take a socket");
	else
		p->result.stopped = !prober_loop(p, stop_fd, send_step);
#ifndef KTRXER_SMALL
	if (rc < 0 && p->beside)
		prober_fail(p->beside, rc, p->result.failure.text);
	part(p);
#endif
	finish(p);
}

bool prober_record(struct prober *p, int64_t rtt_ns, int64_t own_queue_ns, uint8_t sent_source, uint8_t arrival_source)
{
	if (sent_source == KTX_SENT_NONE || !arrival_source) {
		p->result.unstamped++;
		return false;
	}
	/* An answer before its probe: one of the stamps is wrong. */
	if (rtt_ns < 0) {
		p->result.contradictions++;
		return false;
	}
	ktrxer_hist_record(p->result.rtt, rtt_ns);
	if (own_queue_ns >= 0)
		ktrxer_hist_record(p->result.own_queue, own_queue_ns);
	p->result.arrivals[arrival_source]++;
	p->result.user_sent += sent_source == KTX_SENT_USER;
	return true;
}
