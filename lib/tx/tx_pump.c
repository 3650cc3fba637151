/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The pump: takes committed requests in their order, waits for the send time of each, submits it, and reaps its
 * completion. One thread at a time: the waiter thread, or the caller of ktx_pump().
 */
#include "bytes.h"
#include "tx_limits.h"
#include "tx_request.h"

#include <errno.h>
#include <string.h>

static bool queue_waits(const struct ktx *tx)
{
	return tx->engine->submit->queue;
}

/* Stamps tell when there is room. */
static bool queue_full(const struct ktx *tx)
{
	return queue_waits(tx) &&
	       tx->pump.submitted - atomic_load_explicit(&tx->ring.done, memory_order_relaxed) >= tx->queue.depth;
}

/* ------------------------------------------------------------------------------------------------------- stamps */

/* Two reads in a row differ by a tick where the clock ticks coarsely (no TSC). */
#define STAMP_GRAIN_NS 1000

static bool sched_stamps(const struct ktx *tx)
{
	return tx->engine->features(tx->state) & KTX_CAN_SCHED_STAMP;
}

/* The request of a number in [done, submitted), else NULL. The numbers run free. */
static struct ktx_request *request_waiting(const struct ktx *tx, uint32_t number)
{
	const uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);

	return number - done < tx->pump.submitted - done ? ktx_request_at(tx, number) : NULL;
}

/* NULL when no single request fits the stamp, or the stamp comes after its request was final. */
static struct ktx_request *request_of_stamp(struct ktx *tx, uint32_t key, uint64_t stamp_ns, uint32_t *request_number)
{
	uint64_t number;

	if (sched_stamps(tx)) {
		if (!ktrxer_schedmap_driver(&tx->pump.scheds, key, request_number))
			return NULL;
	} else {
		if (!ktrxer_stampmap_find(&tx->pump.stamps, key, stamp_ns,
					  ktrxer_clock_map_bound(&tx->pump.clock) + STAMP_GRAIN_NS, &number))
			return NULL;
		*request_number = (uint32_t)number;
	}
	return request_waiting(tx, *request_number);
}

/* How early a submission must begin is learned from the send times. */
static void cost_learn(struct ktx *tx, const struct ktx_request *request, uint64_t sent_ns)
{
	if (!(tx->options.flags & KTX_NO_COMPENSATION) && request->first_of_call)
		ktrxer_waiter_submitted(&tx->pump.waiter, queue_waits(tx) ? request->leave_ns : request->call_ns,
					sent_ns);
}

/* A stamp of the NIC's clock tells by its number alone whose it is, and must then be a time that can be. */
static void nic_stamp_arrived(struct ktx *tx, uint32_t key, int64_t nic_ns)
{
	uint32_t bound, number;
	struct ktx_request *request = request_of_stamp(tx, key, KTRXER_NEVER, &number);
	uint64_t sent;

	if (!request || !request->stamp_due)
		return;
	ktrxer_phc_line_mono(&tx->pump.nic_line, nic_ns, &sent, &bound);
	if (sent + bound + STAMP_GRAIN_NS < request->call_ns || sent > ktrxer_now_ns() + bound + STAMP_GRAIN_NS)
		return;
	request->sent_ns = sent;
	request->raw_ns = nic_ns;
	request->bound_ns = bound;
	request->departure = KTX_DEPARTURE_NIC;
	request->stamp_due = false;
	tx->pump.nic_seen = true;
	if (!request->sched_ns)
		cost_learn(tx, request, sent);
}

/* The time of a stamp of CLOCK_REALTIME on CLOCK_MONOTONIC; false: it cannot be true. */
static bool stamp_mono(struct ktx *tx, int64_t real_ns, uint64_t now, uint64_t *mono_ns)
{
	const uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);
	const uint64_t oldest = done == tx->pump.submitted ? 0 : ktx_request_at(tx, done)->call_ns;

	return ktrxer_clock_map_mono_checked(&tx->pump.clock, real_ns, oldest, now, mono_ns);
}

/* The first packet scheduler of stacked devices (VLAN, bridge, tunnel) counts. */
static void sched_arrived(void *context, uint32_t key, int64_t real_ns, uint32_t device, const struct ktrxer_addr *from)
{
	struct ktx *tx = context;
	struct ktx_request *request;
	uint64_t entered;
	uint32_t number;

	if (!sched_stamps(tx)) {
		ktx_path_stamp(tx, key, device, from);
		return;
	}
	if (!stamp_mono(tx, real_ns, ktrxer_now_ns(), &entered) ||
	    !ktrxer_schedmap_sched(&tx->pump.scheds, key, entered,
				   ktrxer_clock_map_bound(&tx->pump.clock) + STAMP_GRAIN_NS, &number))
		return;
	request = request_waiting(tx, number);
	if (!request || !request->sched_due)
		return;
	request->sched_due = false;
	request->sched_ns = entered;
	request->bound_ns = ktrxer_clock_map_bound(&tx->pump.clock);
	cost_learn(tx, request, entered);
	ktx_departure_count(tx, device, from);
}

static void driver_stamped(struct ktx *tx, uint32_t number)
{
	const uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);

	if ((int32_t)(number + 1 - tx->pump.stamped_end) > 0 ||
	    tx->pump.submitted - tx->pump.stamped_end > tx->ring.slots)
		tx->pump.stamped_end = number + 1;
	if (number != done && !tx->pump.passed_ns) {
		tx->pump.passer = number;
		tx->pump.passed_ns = ktrxer_now_ns();
	}
}

static void stamp_arrived(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source,
			  bool nic_clock)
{
	struct ktx *tx = context;
	const uint64_t now = ktrxer_now_ns();
	struct ktx_request *request;
	uint64_t sent;
	uint32_t number;
	bool credible;

	if (nic_clock) {
		nic_stamp_arrived(tx, key, real_ns);
		return;
	}
	tx->pump.driver_seen = true;
	credible = stamp_mono(tx, real_ns, now, &sent);
	/* Near a step of CLOCK_REALTIME the time proves nothing about whose stamp it is. */
	request = request_of_stamp(tx, key,
				   !credible || ktrxer_clock_map_stepped(&tx->pump.clock, now) ? KTRXER_NEVER : sent,
				   &number);
	if (!request || !request->stamp_due)
		return;
	driver_stamped(tx, number);
	if (!credible) {
		stamp_give_up(tx, request);
		return;
	}
	request->sent_ns = request->driver_ns = sent;
	request->raw_ns = real_ns;
	request->bound_ns = ktrxer_clock_map_bound(&tx->pump.clock);
	request->departure = (uint8_t)source;
	request->stamp_due = phc_sampler_on(&tx->nic);
	if (!tx->pump.nic_seen && !request->sched_ns)
		cost_learn(tx, request, sent);
	if (queue_waits(tx) && sent + KTX_QUEUE_EARLY_NS < request->leave_ns)
		tx->engine->submit->left_early(tx->state);
}

/* A queue that waits may drop requests. */
static void drop_arrived(void *context, struct ktx_request *request, int error)
{
	(void)context;
	if (request->status == KTX_SENT && request->stamp_due)
		request_end(request, KTX_FAILED, error);
}

static void refusal_arrived(void *context, const struct ktx_network_error *error)
{
	struct ktx *tx = context;
	const uint32_t in = atomic_load_explicit(&tx->shared.errors_in, memory_order_relaxed);

	if (in - atomic_load_explicit(&tx->shared.errors_out, memory_order_acquire) == KTX_NETWORK_ERRORS)
		return;
	tx->shared.errors[in % KTX_NETWORK_ERRORS] = *error;
	atomic_store_explicit(&tx->shared.errors_in, in + 1, memory_order_release);
	ktx_signal(tx->report_fd);
}

static bool device_lost(int rc)
{
	return rc == -ENETDOWN || rc == -ENODEV || rc == -ENXIO;
}

static void reap(struct ktx *tx)
{
	const struct ktx_completions to = { .stamp = stamp_arrived,
					    .sched = sched_arrived,
					    .refusal = refusal_arrived,
					    .failed = drop_arrived,
					    .context = tx };
	uint64_t now = ktrxer_now_ns();
	int rc;

	ktrxer_clock_map_refresh(&tx->pump.clock, now, KTRXER_NS_PER_MS);
	if (phc_sampler_on(&tx->nic))
		ktrxer_phc_sampler_line(&tx->nic, &tx->pump.nic_line, &tx->pump.nic_version);
	rc = tx->engine->submit->reap(tx->state, &to);
	tx->pump.reaped_ns = now;
	if (device_lost(rc))
		ktx_dead(tx, rc);
	if (ktrxer_stampmap_wants_reset(&tx->pump.stamps) && tx->engine->submit->restart_stamps) {
		tx->engine->submit->restart_stamps(tx->state);
		ktrxer_stampmap_reset(&tx->pump.stamps, ktrxer_now_ns());
	}
	ktx_done_advance(tx, ktrxer_now_ns());
}

/* --------------------------------------------------------------------------------------------- ends without sending */

static void cancel_take(struct ktx *tx)
{
	tx->pump.cancel_seen = atomic_load(&tx->shared.cancel_seq);
	const uint32_t to = atomic_load(&tx->shared.cancel_to);

	while (tx->pump.submitted != to && (int32_t)(to - tx->pump.submitted) > 0)
		request_end(ktx_request_at(tx, tx->pump.submitted++), KTX_CANCELLED, 0);
	tx->pump.first_call_ns = 0;
	tx->pump.in_train = false;
}

/* ---------------------------------------------------------------------------------------------------- submission */

static bool worth_retrying(int rc)
{
	return rc == -ENOBUFS || rc == -EAGAIN || rc == -ENOMEM || rc == -EINTR || rc == -EBUSY;
}

#define BACKOFF_FIRST_NS 2000
#define BACKOFF_MOST_NS 100000

/* The device is full: more time at each retry, never past their end. */
static void back_off(struct ktx *tx, uint64_t now)
{
	if (now + tx->pump.backoff_ns > tx->pump.retry_until_ns && tx->pump.retry_until_ns > now)
		tx->pump.backoff_ns = tx->pump.retry_until_ns - now;
	tx->pump.retry_at_ns = now + tx->pump.backoff_ns;
	tx->pump.backoff_ns = tx->pump.backoff_ns < BACKOFF_MOST_NS / 2 ? tx->pump.backoff_ns * 2 : BACKOFF_MOST_NS;
}

/* A datagram was refused: it may have used a number of the stamps up. */
static void stamps_refused(struct ktx *tx)
{
	if (sched_stamps(tx))
		ktrxer_schedmap_refused(&tx->pump.scheds);
	else
		ktrxer_stampmap_ambiguous(&tx->pump.stamps);
}

/* The first request was refused. It stays where it is (to be tried again) or ends as failed. */
static void refused(struct ktx *tx, int rc, uint64_t call)
{
	struct ktx_request *request = ktx_request_at(tx, tx->pump.submitted);
	uint64_t now = ktrxer_now_ns();

	request->tries++;
	stamps_refused(tx);
	if (device_lost(rc))
		ktx_dead(tx, rc);
	if (worth_retrying(rc)) {
		if (!tx->pump.first_call_ns) {
			tx->pump.first_call_ns = call;
			/*
			 * A device that refuses for long (no carrier) gets half the time with each probe, or a schedule
			 * would never end.
			 */
			tx->pump.retry_until_ns =
				call + (tx->pump.expired < 63 ? tx->options.retry_ns >> tx->pump.expired : 0);
			tx->pump.backoff_ns = BACKOFF_FIRST_NS;
		}
		if (now < tx->pump.retry_until_ns) {
			back_off(tx, now);
			return;
		}
		tx->pump.expired++;
	}
	request_end(request, KTX_FAILED, rc);
	tx->pump.submitted++;
	tx->pump.first_call_ns = 0;
	tx->pump.in_train = false;
}

/* Returns KTRXER_NEVER where the sum would be later. */
static uint64_t planned_time(const struct ktx *tx, const struct ktx_request *request)
{
	return request->at_ns > KTRXER_NEVER - tx->pump.shift_ns ? KTRXER_NEVER : request->at_ns + tx->pump.shift_ns;
}

static uint64_t compensation_of(const struct ktx *tx)
{
	return tx->options.flags & KTX_NO_COMPENSATION ? 0 : (uint64_t)tx->pump.waiter.compensation_ns;
}

/*
 * The time that the queue gets. The first of a train has the time of all: it alone shows the cost of the path through
 * the queue.
 */
static void leave_plan(struct ktx *tx, struct ktx_request *request, bool in_train)
{
	const uint64_t planned = planned_time(tx, request), early = compensation_of(tx);

	request->first_of_call = request->at_ns && !in_train;
	request->leave_ns = request->first_of_call && planned > early ? planned - early : 0;
}

/* The time is written at each try, because a frame that was rejected leaves later than planned. */
static void times_write(const struct ktx *tx, struct ktx_request *const *batch, uint32_t count)
{
	const uint64_t field = ktrxer_time_field(ktrxer_real_now_ns(), tx->options.send_time);

	for (uint32_t i = 0; i < count; i++) {
		store_be64(batch[i]->frame + tx->time_at, field);
		if (!tx->engine->submit->checksums)
			(void)ktrxer_frame_checksum(batch[i]->frame, batch[i]->length, tx->link);
	}
}

static void submit_batch(struct ktx *tx, uint32_t count)
{
	struct ktx_request *batch[KTX_BATCH_MAX];
	const uint32_t features = tx->engine->features(tx->state);
	const bool stamps = features & (KTX_CAN_DRIVER_STAMP | KTX_CAN_NIC_STAMP), waits = queue_waits(tx);
	uint64_t call, after;
	int n;

	for (uint32_t i = 0; i < count; i++) {
		batch[i] = ktx_request_at(tx, tx->pump.submitted + i);
		if (waits)
			leave_plan(tx, batch[i], i ? batch[i - 1]->flags & KTX_TRAIN_GOES_ON : tx->pump.in_train);
	}
	call = ktrxer_now_ns();
	if (tx->options.send_time)
		times_write(tx, batch, count);
	n = tx->engine->submit->send(tx->state, batch, (int)count);
	if (n <= 0) {
		refused(tx, n, call);
		return;
	}
	after = ktrxer_now_ns();
	tx->pump.last_call_ns = call;
	tx->pump.first_call_ns = 0;
	tx->pump.expired = 0;
	for (int i = 0; i < n; i++) {
		struct ktx_request *request = batch[i];

		request->call_ns = call;
		request->sent_ns = after;
		request->tries++;
		request->status = KTX_SENT;
		request->departure = KTX_DEPARTURE_QUEUED;
		request->stamp_due = stamps;
		request->sched_due = features & KTX_CAN_SCHED_STAMP;
		request->bypasses = features & KTX_CAN_BYPASS || waits;
		if (!waits)
			request->first_of_call = i == 0;
		else if (request->leave_ns > after)
			request->sent_ns = request->leave_ns;
		if (tx->pump.shift_ns && request->at_ns) /* the first one's says so already */
			request->planned_ns = planned_time(tx, request);
	}
	if (features & KTX_CAN_SCHED_STAMP)
		ktrxer_schedmap_sent(&tx->pump.scheds, tx->pump.submitted, (uint32_t)n, call, after);
	else
		for (int i = 0; stamps && i < n; i++)
			ktrxer_stampmap_sent(&tx->pump.stamps, tx->pump.submitted + (uint32_t)i, call);
	/* The one after the last that went was tried, too. */
	if (n < (int)count)
		stamps_refused(tx);
	tx->pump.in_train = batch[n - 1]->flags & KTX_TRAIN_GOES_ON;
	tx->pump.submitted += (uint32_t)n;
	/*
	 * The stamps are read in batches, some milliseconds later. A step of the clock is known to lie between two of
	 * these samples.
	 */
	if (stamps)
		ktrxer_clock_map_refresh(&tx->pump.clock, after, KTRXER_NS_PER_MS);
}

/* True if a request of this time may go now. */
static bool goes_along(const struct ktx *tx, uint64_t planned, uint64_t now)
{
	if (queue_waits(tx)) /* those of the past are for the late policy, one by one */
		return planned > now && planned - now <= tx->queue.ahead_ns;
	return tx->options.purpose == KTX_FOR_RATE && planned <= now;
}

/*
 * How many may go with one call: the rest of the train, or all that have no time, or, for rate, all whose time has
 * come.
 */
static uint32_t batch_size(const struct ktx *tx, uint32_t head, uint64_t now)
{
	const uint32_t out = tx->pump.submitted - atomic_load_explicit(&tx->ring.done, memory_order_relaxed);
	uint32_t most = head - tx->pump.submitted < KTX_BATCH_MAX ? head - tx->pump.submitted : KTX_BATCH_MAX, n = 1;
	const struct ktx_request *before = ktx_request_at(tx, tx->pump.submitted), *request;

	if (queue_waits(tx) && most > tx->queue.depth - out)
		most = tx->queue.depth - out;

	for (; n < most; n++, before = request) {
		request = ktx_request_at(tx, tx->pump.submitted + n);
		if (request->restarts)
			break;
		if (before->flags & KTX_TRAIN_GOES_ON)
			continue;
		if (request->at_ns ? !goes_along(tx, planned_time(tx, request), now) : before->at_ns)
			break;
	}
	return n;
}

/* --------------------------------------------------------------------------------------------------------- due */

enum due { DUE_NOW, DUE_LATER, DUE_GONE };

static uint64_t start_of(const struct ktx *tx, const struct ktx_request *request)
{
	const uint64_t early = queue_waits(tx) ? tx->queue.ahead_ns : compensation_of(tx),
		       planned = planned_time(tx, request);

	return planned > early ? planned - early : 0;
}

/*
 * When to come back for a request that starts at `start`. A thread that spins wakes up before it, by the margin of its
 * wake-ups; from then on it is to come back at once.
 */
static uint64_t come_back(struct ktx *tx, uint64_t now, uint64_t start)
{
	const uint64_t margin = tx->pump.waiter.margin_ns;

	if (queue_waits(tx) || tx->options.wait != KTX_WAIT_SPIN || tx->options.purpose != KTX_FOR_TIMING)
		return start;
	tx->pump.spin_to_ns = start;
	return start - now > margin ? start - margin : now;
}

/* DUE_GONE: it is skipped. */
static enum due late_policy(struct ktx *tx, struct ktx_request *request, uint64_t planned, uint64_t now)
{
	/*
	 * A train that has begun goes on: what its own length costs is not for the late policy to tear it apart, or to
	 * shift by.
	 */
	if (tx->pump.in_train || now <= planned || now - planned <= tx->options.late_ns)
		return DUE_NOW;
	if (tx->options.late == KTX_LATE_SKIP) {
		request_end(request, KTX_SKIPPED, 0);
		tx->pump.submitted++;
		return DUE_GONE;
	}
	if (tx->options.late == KTX_LATE_SHIFT) {
		tx->pump.shift_ns += now - planned;
		request->planned_ns = request->at_ns + tx->pump.shift_ns;
	}
	return DUE_NOW;
}

/*
 * The next request's time and now. DUE_LATER: *next_ns is when to look again. DUE_GONE: the late policy
 * ended it; look at the next one.
 */
static enum due request_due(struct ktx *tx, struct ktx_request *request, uint64_t *next_ns)
{
	const uint64_t now = ktrxer_now_ns();
	uint64_t planned, start;

	if (tx->pump.first_call_ns) {
		*next_ns = tx->pump.retry_at_ns;
		return now < tx->pump.retry_at_ns ? DUE_LATER : DUE_NOW;
	}
	if (request->restarts)
		tx->pump.shift_ns = 0;
	if (queue_full(tx))
		return DUE_LATER;
	if (!request->at_ns)
		return DUE_NOW;
	planned = planned_time(tx, request);
	start = start_of(tx, request);
	if (request->planned_ns != planned)
		request->planned_ns = planned;
	if (now < start) {
		*next_ns = come_back(tx, now, start);
		return DUE_LATER;
	}
	return late_policy(tx, request, planned, now);
}

/* Stamps are collected while there is time for it, and in any case before too many wait. */
#define REAP_SLACK_NS 15000
#define REAP_MOST 256

static void reap_if_time(struct ktx *tx, uint32_t head)
{
	uint32_t waiting = tx->pump.submitted - atomic_load_explicit(&tx->ring.done, memory_order_relaxed);

	if (!waiting && !tx->pump.look)
		return;
	if (waiting < REAP_MOST && waiting < tx->ring.slots / 2 && tx->pump.submitted != head && !queue_full(tx)) {
		const struct ktx_request *request = ktx_request_at(tx, tx->pump.submitted);

		if (tx->pump.unlooked)
			return;
		if (request->at_ns && start_of(tx, request) < ktrxer_now_ns() + REAP_SLACK_NS)
			return;
	}
	tx->pump.look = false;
	reap(tx);
}

void ktx_pump_start(struct ktx *tx)
{
	struct ktx_request *request = ktx_request_at(tx, tx->pump.submitted);
	const uint64_t now = ktrxer_now_ns();

	if (late_policy(tx, request, planned_time(tx, request), now) == DUE_NOW)
		submit_batch(tx, batch_size(tx, atomic_load(&tx->ring.head), now));
}

static void pump_user(struct ktx *tx, uint64_t *next_ns)
{
	for (;;) {
		enum due due = DUE_GONE;
		uint32_t head;

		if (cancel_due(tx))
			cancel_take(tx);
		/*
		 * After the cancellation, which may reach past the head of before: nothing is submitted behind the
		 * head.
		 */
		head = atomic_load(&tx->ring.head);
		reap_if_time(tx, head);
		tx->pump.starved = tx->pump.submitted == head;
		if (tx->pump.starved)
			break;
		due = request_due(tx, ktx_request_at(tx, tx->pump.submitted), next_ns);
		if (due == DUE_LATER)
			break;
		if (due == DUE_NOW)
			submit_batch(tx, batch_size(tx, head, ktrxer_now_ns()));
		ktx_done_advance(tx, ktrxer_now_ns());
	}
	ktx_done_advance(tx, ktrxer_now_ns());
	/*
	 * Stamps or buffers that are still out: come back for them, at the latest when the oldest stamp is given up. A
	 * pass that was not to look for them would find the same request again at once.
	 */
	if (stamps_wanted(tx) && !tx->pump.unlooked) {
		uint32_t done = atomic_load_explicit(&tx->ring.done, memory_order_relaxed);
		uint64_t now = ktrxer_now_ns(), give_up = ktx_request_at(tx, done)->call_ns + KTX_STAMP_WAIT_NS;

		if (give_up <= now)
			give_up = now + KTX_STAMP_WAIT_NS / 2;
		if (phc_sampler_on(&tx->nic))
			give_up = ktrxer_now_ns() + KTX_NIC_WAIT_NS;
		if (tx->engine->reap_ns)
			give_up = ktrxer_now_ns() + tx->engine->reap_ns;
		if (give_up < *next_ns)
			*next_ns = give_up;
	}
}

int ktx_pump_once(struct ktx *tx, uint64_t *next_ns)
{
	*next_ns = KTRXER_NEVER;
	tx->pump.spin_to_ns = 0;
	if (tx->engine->kernel)
		ktx_pump_kernel(tx, next_ns);
	else
		pump_user(tx, next_ns);
	ktrxer_waiter_show(&tx->pump.waiter);
	return atomic_load(&tx->shared.dead);
}
