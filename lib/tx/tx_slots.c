/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tool's side of a transmitter: reserve, commit, reports, accounts. */
#include "options.h"
#include "tx.h"
#include "tx_limits.h"

#include <errno.h>
#include <net/if.h>
#include <poll.h>
#include <sys/epoll.h>
#include <time.h>

/* ------------------------------------------------------------------------------------------------------ accounts */

static void count_sent(struct ktx *tx, const struct ktx_request *request)
{
	struct ktx_accounts *sums = &tx->tool.sums;
	uint64_t sent_ns;

	sums->sent++;
	sums->bytes += request->length;
	if (request->departure == KTX_DEPARTURE_NIC)
		sums->nic++;
	else if (request->departure == KTX_DEPARTURE_DRIVER)
		sums->driver++;
	else
		sums->queued++;
	if (sums->sent == 1 || request->sent_ns < sums->first_ns)
		sums->first_ns = request->sent_ns;
	if (request->sent_ns > sums->last_ns)
		sums->last_ns = request->sent_ns;
	if (request->stamp_missing)
		sums->stamps_missing++;
	if (request->untimed)
		sums->untimed++;
	if (!request->at_ns)
		return;
	ktx_sent_time(request, &sent_ns);
	/*
	 * Against the time that was last planned: under `shift` one late probe moves all that follow, which are then on
	 * time. The one that moved them was late by as much as it moved them.
	 */
	const uint64_t shift = request->planned_ns - request->at_ns, moved = shift - tx->tool.counted_shift_ns;
	const int64_t lateness = (int64_t)(sent_ns - request->planned_ns) + (int64_t)moved;

	tx->tool.counted_shift_ns = shift;
	if (request->untimed)
		return;
	if (lateness > (int64_t)tx->options.late_ns)
		sums->late++;
	ktrxer_hist_record(tx->tool.lateness, lateness);
}

#ifndef KTRXER_SMALL
#define DROPS_LOOK_NS (100 * (uint64_t)KTRXER_NS_PER_MS)

static int drops_read(uint64_t *drops)
{
	enum { LOOPBACK = 1 /* any device: the drops are those of all */ };
	struct ktrxer_qdiscs qdiscs = { .drops = 0 };
	const int rc = ktrxer_device_qdiscs_sized(&qdiscs, sizeof qdiscs, LOOPBACK);

	*drops = qdiscs.drops;
	return rc;
}

void ktx_drops_begin(struct ktx *tx)
{
	tx->tool.drop_error = -ENOBUFS;
	tx->tool.drops_known = drops_read(&tx->tool.drops) == 0;
}

static bool link_is_down(const struct ktx *tx)
{
	const uint32_t index = tx->has_device ? tx->device.index : tx->departures[0].device;
	struct ktrxer_device device = { .running = true };
	char name[IF_NAMESIZE];

	if (if_indextoname(index, name))
		(void)ktrxer_device_get(&device, name, NULL);
	return !device.running;
}

/*
 * A full queue counts each frame that it drops. One that a filter behind the socket drops, or that a device without a
 * link does not take, has the same error number.
 */
static int drop_error(struct ktx *tx)
{
	const uint64_t now = ktrxer_now_ns();
	uint64_t drops;

	tx->tool.drops_due++;
	if (!tx->tool.drops_known || now - tx->tool.drops_looked_ns < DROPS_LOOK_NS || drops_read(&drops) < 0)
		return tx->tool.drop_error;
	tx->tool.drop_error = link_is_down(tx)                              ? -ENETDOWN
			      : drops - tx->tool.drops < tx->tool.drops_due ? -ENOSR
									    : -ENOBUFS;
	/* The drops of frames whose end is not counted yet stay for the next look. */
	tx->tool.drops += tx->tool.drops_due;
	if (tx->tool.drops + tx->ring.slots < drops)
		tx->tool.drops = drops - tx->ring.slots;
	if (tx->tool.drops > drops)
		tx->tool.drops = drops;
	tx->tool.drops_due = 0;
	tx->tool.drops_looked_ns = now;
	return tx->tool.drop_error;
}
#endif

static void count_one(struct ktx *tx, struct ktx_request *request)
{
	tx->tool.sums.tries += request->tries;
	if (request->restarts)
		tx->tool.counted_shift_ns = 0;
	switch (request->status) {
	case KTX_SENT:
		count_sent(tx, request);
		break;
	case KTX_FAILED:
#ifndef KTRXER_SMALL
		if (request->error == -ENOBUFS)
			request->error = drop_error(tx);
#endif
		tx->tool.sums.failed++;
		tx->tool.sums.last_error = request->error;
		break;
	case KTX_SKIPPED:
		tx->tool.sums.skipped++;
		tx->tool.sums.late++;
		break;
	default:
		tx->tool.sums.cancelled++;
		break;
	}
}

static void ktx_count(struct ktx *tx)
{
	/*
	 * Sequentially consistent, since it is also the look after reports_arm(): an acquire alone may be done before
	 * that store (ARM's ldapr).
	 */
	const uint32_t done = atomic_load(&tx->ring.done);

	while (tx->tool.counted != done)
		count_one(tx, ktx_request_at(tx, tx->tool.counted++));
}

/* Where frames have no stamps, the device's statistics may show that some were not sent. */
static uint64_t uncounted(const struct ktx *tx, uint64_t queued)
{
	uint64_t packets;

	if (!tx->engine->device_sent || tx->engine->device_sent(tx->state, &packets) < 0)
		return 0;
	return queued > packets ? queued - packets : 0;
}

void ktx_accounts_sized(struct ktx *tx, struct ktx_accounts *to, size_t size)
{
	struct ktx_accounts now = { 0 };

	if (!to)
		return;
	if (tx) {
		ktx_count(tx);
		now = tx->tool.sums;
		ktx_stream_count(tx, &now);
		now.pending = now.requested - now.sent - now.failed - now.skipped - now.cancelled;
		now.uncounted = uncounted(tx, now.queued);
	}
	ktrxer_result_write(to, size, &now, sizeof now);
}

struct ktrxer_hist *ktx_lateness(struct ktx *tx)
{
	struct ktrxer_hist *copy = tx ? ktrxer_hist_new() : NULL;

	if (!copy)
		return NULL;
	ktx_count(tx);
	ktrxer_hist_merge(copy, tx->tool.lateness);
	return copy;
}

/* ------------------------------------------------------------------------------------------------------- reports */

static bool report_wanted(const struct ktx *tx, const struct ktx_request *request)
{
	return tx->options.reports == KTX_REPORT_ALL ||
	       (tx->options.reports == KTX_REPORT_FAILURES && request->status != KTX_SENT);
}

/* Frees the slots whose reports are not wanted, up to the first one whose report is. */
static void reap_unwanted(struct ktx *tx)
{
	ktx_count(tx);
	while (tx->tool.reaped != tx->tool.counted && !report_wanted(tx, ktx_request_at(tx, tx->tool.reaped)))
		tx->tool.reaped++;
}

static int64_t own_queue(const struct ktx_request *request, enum ktx_sent_source source, uint64_t sent_ns)
{
	const uint64_t driver = request->driver_ns                        ? request->driver_ns
				: request->departure == KTX_DEPARTURE_NIC ? request->sent_ns
									  : 0;

	return request->bypasses || source == KTX_SENT_NONE || driver < sent_ns ? -1 : (int64_t)(driver - sent_ns);
}

static struct ktx_report report_of(const struct ktx_request *request)
{
	const bool sent = request->status == KTX_SENT;
	uint64_t sent_ns = 0;
	const enum ktx_sent_source source = sent ? ktx_sent_time(request, &sent_ns) : KTX_SENT_NONE;

	return (struct ktx_report){
		.id = request->id,
		.at_ns = request->at_ns,
		.planned_ns = request->planned_ns,
		.sent_ns = sent_ns,
		.departure_ns = sent && request->departure >= KTX_DEPARTURE_DRIVER ? request->sent_ns : 0,
		.own_queue_ns = sent ? own_queue(request, source, sent_ns) : -1,
		.sent_source = (uint8_t)source,
		.bound_ns = request->bound_ns,
		.tries = request->tries,
		.status = request->status,
		.departure_source = request->departure,
		.error = request->error,
		.raw_ns = request->raw_ns,
	};
}

/* The pump signals report_fd from here on for each final request: the caller must look once more after this. */
static void reports_arm(struct ktx *tx)
{
	ktx_signal_clear(tx->report_fd);
	atomic_store(&tx->shared.tool_waits, true);
}

static bool slot_free(struct ktx *tx)
{
	if (tx->tool.written - tx->tool.reaped < tx->ring.slots)
		return true;
	reap_unwanted(tx);
	return tx->tool.written - tx->tool.reaped < tx->ring.slots;
}

int ktx_reports_sized(struct ktx *tx, struct ktx_report *reports, size_t size, int max)
{
	int n = 0;

	if (!tx || max < 0 || !size || (max && !reports))
		return -EINVAL;
	for (bool armed = false;;) {
		reap_unwanted(tx);
		while (n < max && tx->tool.reaped != tx->tool.counted) {
			const struct ktx_report report = report_of(ktx_request_at(tx, tx->tool.reaped++));

			ktrxer_result_write((uint8_t *)reports + (size_t)n++ * size, size, &report, sizeof report);
			reap_unwanted(tx);
		}
		if (n || armed || !max)
			break;
		/* None: ask to be woken, then look once more, since one may have come in between. */
		reports_arm(tx);
		armed = true;
	}
	/*
	 * Reading freed slots, and reports_arm() cleared the signal for that: a caller that got -EAGAIN must be woken.
	 */
	if (tx->tool.shortage && slot_free(tx))
		ktx_signal(tx->report_fd);
	return n;
}

/* ----------------------------------------------------------------------------------------------- reserve and commit */

static void head_publish(struct ktx *tx)
{
	if (tx->tool.written == atomic_load_explicit(&tx->ring.head, memory_order_relaxed))
		return;
	if (tx->engine->kernel)
		tx->engine->kernel->publish(tx->state, atomic_load_explicit(&tx->ring.head, memory_order_relaxed),
					    tx->tool.written);
	if (tx->options.flags & KTX_CALLER_PUMPS) {
		/*
		 * No thread sleeps: no barrier, which would wait until each frame that was just written reaches the
		 * cache.
		 */
		atomic_store_explicit(&tx->ring.head, tx->tool.written, memory_order_release);
	} else {
		/*
		 * Sequentially consistent on both sides: either the pump sees the new head or we see that it is idle.
		 */
		atomic_store(&tx->ring.head, tx->tool.written);
		if (atomic_load(&tx->shared.idle) && atomic_exchange(&tx->shared.idle, false))
			ktx_signal(tx->wake_fd);
	}
	if (tx->engine->kernel && tx->engine->kernel->go)
		tx->engine->kernel->go(tx->state, tx->tool.written);
}

static bool slot_await(struct ktx *tx)
{
	/* A train longer than the ring goes in pieces rather than not at all. */
	head_publish(tx);
	reports_arm(tx);
	atomic_store(&tx->shared.space_waits, true);
	if (slot_free(tx))
		return true;
	if (tx->tool.reaped != tx->tool.counted)
		ktx_signal(tx->report_fd); /* reports are there, and reading them makes room */
	tx->tool.shortage = true;
	return false;
}

struct ktx_request *ktx_request_reserve(struct ktx *tx)
{
	if (!tx->tool.reserved && !slot_free(tx) && !slot_await(tx))
		return NULL;
	tx->tool.shortage = false;
	tx->tool.reserved = true;
	return ktx_request_at(tx, tx->tool.written);
}

int ktx_reserve_sized(struct ktx *tx, struct ktx_slot *to, size_t size)
{
	const struct ktx_request *request;
	struct ktx_slot slot;

	if (!tx || !to || !size)
		return -EINVAL;
	request = ktx_request_reserve(tx);
	if (!request)
		return -EAGAIN;
	slot = (struct ktx_slot){ .frame = request->frame,
				  .capacity = tx->frame_size,
				  .index = tx->tool.written & tx->ring.mask };
	ktrxer_result_write(to, size, &slot, sizeof slot);
	return 0;
}

/* Where the time field of a frame ends; 0: there is none. */
static uint32_t time_end(const struct ktx *tx)
{
	return tx->options.send_time ? tx->time_at + sizeof(uint64_t) : 0;
}

/* Why a frame is refused whatever is in it; the engine has not seen it. */
static int refusal(const struct ktx *tx, uint32_t length, struct ktrxer_error *err)
{
	const int dead = atomic_load(&tx->shared.dead);

	if (dead == -ESHUTDOWN)
		return ktrxer_fail(err, dead, "%s", tx->engine->why_ended);
	if (dead)
		return ktrxer_fail(err, dead, "device '%s' %s", tx->device.name,
				   dead == -ENETDOWN ? "went down" : "is gone");
	if (length >= 1 && length <= tx->frame_size && length < time_end(tx))
		return ktrxer_fail(err, -EMSGSIZE, "a frame of %u bytes ends before its time field, which ends at %u",
				   length, time_end(tx));
	if (length < 1 || length > tx->frame_size)
		return ktrxer_fail(err, -EMSGSIZE, "a frame of %u bytes: between 1 and %u (MTU %u%s)", length,
				   tx->frame_size, tx->has_device ? tx->device.mtu : 1500,
				   tx->link == KTRXER_LINK_ETHERNET ? " and 14 of link header" : "");
	return ktrxer_fail(err, -EBADMSG, "a frame of %u bytes has no whole link header (14)", length);
}

static int frame_check(struct ktx *tx, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	if (atomic_load_explicit(&tx->shared.dead, memory_order_relaxed) || length < tx->frame_min ||
	    length < time_end(tx) || length > tx->frame_size)
		return refusal(tx, length, err);
	return tx->engine->check(tx->state, frame, length, err);
}

int ktx_check(struct ktx *tx, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	if (!tx || !frame)
		return ktrxer_fail(err, -EINVAL, "ktx_check: no transmitter or no frame (NULL)");
	return frame_check(tx, frame, length, err);
}

static int commit_check(struct ktx *tx, const struct ktx_probe *probe, struct ktrxer_error *err)
{
	if (!tx || !probe)
		return ktrxer_fail(err, -EINVAL, "ktx_commit: no transmitter or no probe (NULL)");
	if (probe->flags & ~(uint32_t)KTX_TRAIN_GOES_ON)
		return ktrxer_fail(err, -EINVAL, "flags 0x%x of a probe: this version does not know 0x%x", probe->flags,
				   probe->flags & ~(uint32_t)KTX_TRAIN_GOES_ON);
	if (!tx->tool.reserved)
		return ktrxer_fail(err, -EINVAL, "nothing is reserved: ktx_reserve() first");
	if (probe->at_ns && probe->at_ns < tx->tool.last_at_ns)
		return ktrxer_fail(err, -EINVAL,
				   "a deadline %llu ns before the one committed last: deadlines never decrease",
				   (unsigned long long)(tx->tool.last_at_ns - probe->at_ns));
	return 0;
}

/* Engines that make their socket with the first frame have no descriptor before it. */
static void event_add(struct ktx *tx)
{
	struct epoll_event event = { .events = tx->engine->kernel ? EPOLLIN : 0 }; /* EPOLLERR is always told */
	const int fd = tx->engine->event_fd(tx->state);

	tx->tool.event_due = fd < 0 || epoll_ctl(tx->poll_fd, EPOLL_CTL_ADD, fd, &event) != 0;
}

/*
 * Field by field, all but `frame`. The id goes through a register of its own: as one wide load with what lies beside
 * it, it would have to wait until the caller's two stores are in the cache.
 */
static void request_begin(struct ktx_request *request, const struct ktx_probe *probe)
{
	const uint64_t id = *(const volatile uint64_t *)&probe->id;

	request->length = probe->length;
	request->flags = (uint16_t)probe->flags;
	request->id = id;
	request->at_ns = probe->at_ns;
	request->call_ns = request->sent_ns = 0;
	request->tries = 0;
	request->status = KTX_PENDING;
	request->departure = KTX_DEPARTURE_NONE;
	request->stamp_due = request->stamp_missing = request->first_of_call = request->buffer_busy = false;
	request->sched_due = request->untimed = request->bypasses = false;
	/* Looked at and left alone, the second line stays where it is. */
	if (request->planned_ns != probe->at_ns)
		request->planned_ns = probe->at_ns;
	if ((uint64_t)request->raw_ns | request->bound_ns | (uint32_t)request->error | request->sched_ns |
	    request->leave_ns) {
		request->leave_ns = request->sched_ns = request->driver_ns = 0;
		request->raw_ns = 0;
		request->bound_ns = 0;
		request->error = 0;
	}
}

int ktx_request_commit(struct ktx *tx, struct ktx_request *request, const struct ktx_probe *probe,
		       struct ktrxer_error *err)
{
	int rc = frame_check(tx, request->frame, probe->length, err);

	if (rc < 0)
		return rc;
	request_begin(request, probe);
	request->restarts = tx->tool.restarts;
	tx->tool.restarts = false;
	if (probe->at_ns)
		tx->tool.last_at_ns = probe->at_ns;
	tx->tool.reserved = false;
	tx->tool.written++;
	tx->tool.sums.requested++;
	if (tx->tool.event_due)
		event_add(tx);
	if (!(probe->flags & KTX_TRAIN_GOES_ON))
		head_publish(tx);
	return 0;
}

int ktx_commit(struct ktx *tx, const struct ktx_probe *probe, struct ktrxer_error *err)
{
	const int rc = commit_check(tx, probe, err);

	return rc < 0 ? rc : ktx_request_commit(tx, ktx_request_at(tx, tx->tool.written), probe, err);
}

/* ------------------------------------------------------------------------------------------------ drain and cancel */

void ktx_cancel(struct ktx *tx)
{
	if (!tx)
		return;
	head_publish(tx);
	ktx_stream_stop(tx);
	atomic_store(&tx->shared.cancel_to, tx->tool.written);
	atomic_fetch_add(&tx->shared.cancel_seq, 1);
	ktx_signal(tx->wake_fd);
	tx->tool.restarts = true;
	tx->tool.last_at_ns = 0; /* nothing later waits any more: else what was promised for in an hour would close the
				    time until then */
	if (tx->options.flags & KTX_CALLER_PUMPS) {
		uint64_t next;

		ktx_pump_once(tx, &next);
	}
}

static int pump(struct ktx *tx, uint64_t *next_ns, bool look)
{
	if (!tx || !next_ns || !(tx->options.flags & KTX_CALLER_PUMPS))
		return -EINVAL;
	head_publish(tx);
	tx->pump.look = look;
	tx->pump.unlooked = !look;
	return ktx_pump_once(tx, next_ns);
}

int ktx_pump(struct ktx *tx, uint64_t *next_ns)
{
	return pump(tx, next_ns, true);
}

int ktx_pump_due(struct ktx *tx, uint64_t *next_ns)
{
	return pump(tx, next_ns, false);
}

static void wait_until(int fd, uint64_t now, uint64_t until)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };
	struct timespec span = { 0 };

	if (until > now)
		span = ktrxer_span(until - now);
	ppoll(&poll_fd, 1, until == KTRXER_NEVER ? NULL : &span, NULL);
}

int ktx_drain(struct ktx *tx, uint64_t until_ns)
{
	int rc;

	if (!tx)
		return -EINVAL;
	head_publish(tx);
	for (;;) {
		uint64_t next = KTRXER_NEVER, now;

		reports_arm(tx);
		atomic_store(&tx->shared.drain_waits, true);
		if (tx->options.flags & KTX_CALLER_PUMPS)
			ktx_pump_once(tx, &next);
		now = ktrxer_now_ns();
		rc = atomic_load(&tx->ring.done) == atomic_load(&tx->ring.head) && !ktx_stream_running(tx) ? 0
		     : now >= until_ns                                                                     ? -ETIMEDOUT
													   : -EAGAIN;
		if (rc != -EAGAIN)
			break;
		wait_until(tx->poll_fd, now, next < until_ns ? next : until_ns);
	}
	/* The tool's own poll may need the event that reports_arm() cleared. */
	if (rc < 0 && !until_ns) {
		reap_unwanted(tx);
		if (tx->tool.reaped != tx->tool.counted || (tx->tool.shortage && slot_free(tx)))
			ktx_signal(tx->report_fd);
		return rc;
	}
	atomic_store(&tx->shared.drain_waits, false);
	ktx_signal(tx->report_fd);
	return rc;
}

int ktx_network_errors_sized(struct ktx *tx, struct ktx_network_error *errors, size_t size, int max)
{
	uint32_t in, out;
	int n = 0;

	if (!tx || max < 0 || !size || (max && !errors))
		return -EINVAL;
	in = atomic_load_explicit(&tx->shared.errors_in, memory_order_acquire);
	out = atomic_load_explicit(&tx->shared.errors_out, memory_order_relaxed);
	for (; n < max && out != in; n++, out++)
		ktrxer_result_write((uint8_t *)errors + (size_t)n * size, size,
				    &tx->shared.errors[out % KTX_NETWORK_ERRORS], sizeof *errors);
	atomic_store_explicit(&tx->shared.errors_out, out, memory_order_release);
	return n;
}
