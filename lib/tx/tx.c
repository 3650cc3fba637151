/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Opening and closing a transmitter, and its description (ktx_info). */
#include "tx.h"

#include "options.h"
#include "tx_limits.h"
#include "txstamp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

static uint32_t round_up_power(uint32_t n)
{
	uint32_t p = 2;

	while (p < n)
		p <<= 1;
	return p;
}

#define KTX_FLAGS_KNOWN                                                                              \
	((uint32_t)(KTX_CALLER_PUMPS | KTX_NO_REALTIME | KTX_NO_LOCK | KTX_NO_STAMPS | KTX_NO_COMPENSATION | \
		    KTX_NO_SCHED))

static int options_check(const struct ktx_options *o, struct ktrxer_error *err)
{
	if (o->slots > KTX_SLOTS_MAX)
		return ktrxer_fail(err, -EINVAL, "%u slots: at most %d", o->slots, KTX_SLOTS_MAX);
	if (o->frame_size > KTX_FRAME_MAX)
		return ktrxer_fail(err, -EMSGSIZE, "frames of %u bytes: at most %d", o->frame_size, KTX_FRAME_MAX);
	if ((unsigned)o->purpose > KTX_FOR_RATE || (unsigned)o->wait > KTX_WAIT_SLEEP ||
	    (unsigned)o->late > KTX_LATE_SHIFT || (unsigned)o->reports > KTX_REPORT_NONE ||
	    (unsigned)o->send_time > KTX_SEND_TIME_UNIX)
		return ktrxer_fail(err, -EINVAL,
				   "purpose %d, wait %d, late %d, reports %d or send time %d of the transmitter is "
				   "unknown to this version",
				   (int)o->purpose, (int)o->wait, (int)o->late, (int)o->reports, (int)o->send_time);
	if (o->send_time && o->send_time_at > KTX_FRAME_MAX)
		return ktrxer_fail(err, -EINVAL, "a time field %u bytes into the packet: at most %d", o->send_time_at,
				   KTX_FRAME_MAX);
	if (o->flags & ~KTX_FLAGS_KNOWN)
		return ktrxer_fail(err, -EINVAL, "flags 0x%x of the transmitter: this version does not know 0x%x",
				   o->flags, o->flags & ~KTX_FLAGS_KNOWN);
	return 0;
}

#define FOR_EVER_NS ((uint64_t)INT64_MAX / 2)

static int options_take(struct ktx *tx, const struct ktx_options *options, struct ktrxer_error *err)
{
	int rc;

	if (!options)
		return ktrxer_fail(err, -EINVAL, "a transmitter needs options: begin with KTX_OPTIONS_INIT");
	rc = ktrxer_options_copy(&tx->options, sizeof tx->options, options, options->size,
				 offsetof(struct ktx_options, cpu) + sizeof options->cpu, "ktx_options", err);
	if (rc < 0)
		return rc;
	if (!tx->options.slots)
		tx->options.slots = KTX_SLOTS_DEFAULT;
	if (!tx->options.late_ns)
		tx->options.late_ns = KTX_LATE_DEFAULT_NS;
	if (!tx->options.retry_ns)
		tx->options.retry_ns = KTX_RETRY_DEFAULT_NS;
	/* "Never" is asked for by the largest number; sums with the time must not wrap, nor the sign of a lateness. */
	if (tx->options.late_ns > FOR_EVER_NS)
		tx->options.late_ns = FOR_EVER_NS;
	if (tx->options.retry_ns > FOR_EVER_NS)
		tx->options.retry_ns = FOR_EVER_NS;
	return options_check(&tx->options, err);
}

static int engine_pick(struct ktx *tx, struct ktrxer_error *err)
{
	const char *wanted = tx->options.engine;
	struct ktx_engine_info info = { 0 };

	tx->chosen = ktx_engine_is_auto(wanted);
	if (tx->chosen) {
		tx->engine = ktx_engine_choose(tx->engines, tx->has_device ? &tx->device : NULL, &tx->options,
					       tx->frame_size, NULL, tx->reason, err);
		return tx->engine ? 0 : -EOPNOTSUPP;
	}
	tx->engine = ktx_engine_find(tx->engines, wanted);
	if (!tx->engine) {
		char list[128] = "auto";

		for (int i = 0; tx->engines[i]; i++) {
			strncat(list, ", ", sizeof list - strlen(list) - 1);
			strncat(list, tx->engines[i]->name, sizeof list - strlen(list) - 1);
		}
		return ktrxer_fail(err, -EINVAL, "engine '%.32s': there is no such engine; there are %s", wanted, list);
	}
	if (tx->options.send_time && !(tx->engine->can & KTX_CAN_SEND_TIME))
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the %s engine cannot write the send time into frames: use the udp, raw or packet "
				   "engine",
				   wanted);
	if (ktx_engine_needs_device(tx->engine) && !tx->has_device)
		return ktrxer_fail(err, -ENODEV, "the %s engine needs a device: name one (`ip link` lists them)",
				   wanted);
	if (tx->options.queue) { /* a probe would try the first one; opening tells */
		strcpy(tx->reason, "no automatic choice");
		return 0;
	}
	if (tx->engine->probe(tx->has_device ? &tx->device : NULL, &info) < 0)
		return ktrxer_fail(err, -EOPNOTSUPP, "the %s engine does not work here: %s", wanted, info.reason);
	strcpy(tx->reason, "no automatic choice");
	return 0;
}

static void frame_size_choose(struct ktx *tx)
{
	tx->frame_min = tx->link == KTRXER_LINK_ETHERNET ? 14 : 1;
	tx->frame_size = tx->options.frame_size;
	if (!tx->frame_size)
		tx->frame_size = (tx->has_device ? tx->device.mtu : 1500) + (tx->link == KTRXER_LINK_ETHERNET ? 14 : 0);
	if (tx->frame_size > KTX_FRAME_MAX)
		tx->frame_size = KTX_FRAME_MAX; /* loopback: 65536 + 14 */
}

/* An engine that was named, on a device whose MTU it cannot fill: shorter frames than that are all it is asked for. */
static int frame_size_fit(struct ktx *tx, struct ktrxer_error *err)
{
	if (!tx->engine->frame_max || tx->frame_size <= tx->engine->frame_max)
		return 0;
	if (tx->options.frame_size)
		return ktrxer_fail(err, -EMSGSIZE,
				   "frames of %u bytes: the %s engine sends up to %u; the packet engine sends them",
				   tx->frame_size, tx->engine->name, tx->engine->frame_max);
	tx->frame_size = tx->engine->frame_max;
	return 0;
}

/* Zero, and nothing of it resident before it is used. */
static void *pages_get(size_t size)
{
	void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return pages == MAP_FAILED ? NULL : pages;
}

static uint32_t stride_of(const struct ktx *tx)
{
	return (tx->frame_size + KTX_LINE - 1) / KTX_LINE * KTX_LINE;
}

static int rings_make(struct ktx *tx, struct ktrxer_error *err)
{
	tx->ring.slots = round_up_power(tx->options.slots);
	tx->ring.mask = tx->ring.slots - 1;
	if (__builtin_mul_overflow((size_t)stride_of(tx), (size_t)tx->ring.slots, &tx->memory_size))
		return ktrxer_fail(err, -ENOMEM, "%u slots of %u bytes are more than this machine can address",
				   tx->ring.slots, tx->frame_size);
	tx->ring.requests = pages_get(tx->ring.slots * sizeof *tx->ring.requests);
	tx->tool.lateness = ktrxer_hist_new();
	if (!tx->ring.requests || !tx->tool.lateness || ktrxer_stampmap_init(&tx->pump.stamps, tx->ring.slots, 0) < 0 ||
	    ktrxer_schedmap_init(&tx->pump.scheds,
				 tx->ring.slots < KTX_SCHED_WAITING ? tx->ring.slots : KTX_SCHED_WAITING) < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u slots", tx->ring.slots);
	return 0;
}

/* After the engine is open: its own memory, or ours. */
static int memory_make(struct ktx *tx, struct ktrxer_error *err)
{
	if (tx->engine->memory && tx->engine->memory(tx->state, 0)) {
		for (uint32_t i = 0; i < tx->ring.slots; i++)
			tx->ring.requests[i].frame = tx->engine->memory(tx->state, i);
		return 0;
	}
	tx->memory = pages_get(tx->memory_size);
	if (!tx->memory)
		return ktrxer_fail(err, -ENOMEM, "no memory for %u frames of %u bytes", tx->ring.slots, tx->frame_size);
	for (uint32_t i = 0; i < tx->ring.slots; i++)
		tx->ring.requests[i].frame = tx->memory + (size_t)i * stride_of(tx);
	return 0;
}

/*
 * A page stays once it is there; the tool's own writing brings it there, before the deadline. Slots never used cost
 * nothing.
 */
static bool lock_pages(void *at, size_t size)
{
	return mlock2(at, size, MLOCK_ONFAULT) == 0 || (errno != EPERM && errno != ENOMEM && mlock(at, size) == 0);
}

/* A page fault between the deadline and the submission costs tens of microseconds. */
static void memory_lock(struct ktx *tx)
{
	if (tx->options.flags & KTX_NO_LOCK)
		return;
	tx->pump.waiter.locked = lock_pages(tx->ring.requests, tx->ring.slots * sizeof *tx->ring.requests) &&
				 (!tx->memory || lock_pages(tx->memory, tx->memory_size));
	if (!tx->pump.waiter.locked)
		ktrxer_waiter_note(&tx->pump.waiter,
				   "memory is not locked (%zu KiB): a probe is late when its page is not there; "
				   "CAP_IPC_LOCK or `ulimit -l` allows it",
				   tx->memory_size / 1024);
}

static int descriptors_make(struct ktx *tx, struct ktrxer_error *err)
{
	struct epoll_event event = { .events = EPOLLIN };

	tx->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	tx->report_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	tx->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (tx->wake_fd < 0 || tx->report_fd < 0 || tx->poll_fd < 0 ||
	    epoll_ctl(tx->poll_fd, EPOLL_CTL_ADD, tx->report_fd, &event) != 0)
		return ktrxer_fail(err, -errno, "no file descriptors left for a transmitter");
	return 0;
}

/*
 * An engine that opens with a probe's few slots may fail with all requested ones (limit of locked memory): then `auto`
 * takes the next best.
 */
static int engine_open(struct ktx *tx, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktrxer_error why = { 0 };
	const struct ktx_engine *next = NULL;
	int rc = tx->engine->open(&tx->state, setup, &why);

	if (rc < 0 && tx->chosen) {
		next = ktx_engine_choose(tx->engines, setup->device, &tx->options, tx->frame_size, tx->engine,
					 tx->reason, &why);
		if (next && next != tx->engine) {
			tx->engine = next;
			rc = next->open(&tx->state, setup, &why);
		}
	}
	tx->options.engine = tx->engine->name;
	if (rc < 0)
		return ktrxer_fail(err, rc, "%s", why.text);
	if (tx->engine->submit && tx->engine->submit->queue)
		tx->engine->submit->queue(tx->state, &tx->queue);
	if (tx->engine->note && tx->engine->note(tx->state))
		ktrxer_waiter_note(&tx->pump.waiter, "%s", tx->engine->note(tx->state));
	return 0;
}

static bool stamps_requested(const struct ktx *tx)
{
	return tx->options.purpose == KTX_FOR_TIMING && !(tx->options.flags & KTX_NO_STAMPS);
}

/* Where the NIC has stamps of its own, and this process may switch them on, they are the times on the wire. */
static void nic_open(struct ktx *tx)
{
	int fd, rc;

	if (!tx->engine->nic_stamps || !tx->has_device || !stamps_requested(tx))
		return;
	fd = tx->engine->event_fd(tx->state);
	if (fd < 0)
		return;
	rc = ktrxer_phc_sampler_open(&tx->nic, tx->device.name, tx->device.index);
	if (rc == -EPERM || rc == -EACCES)
		ktrxer_waiter_note(
			&tx->pump.waiter,
			"the NIC's own stamps need CAP_NET_ADMIN and its clock (/dev/ptp*): the driver's are taken");
	if (rc < 0)
		return;
	if (ktrxer_txstamp_add_nic(fd) < 0)
		ktrxer_phc_sampler_close(&tx->nic);
	else
		ktrxer_phc_sampler_line(&tx->nic, &tx->pump.nic_line, &tx->pump.nic_version);
}

static uint32_t features_of(const struct ktx *tx)
{
	return tx->engine->can | tx->engine->features(tx->state) | (phc_sampler_on(&tx->nic) ? KTX_CAN_NIC_STAMP : 0);
}

int ktx_open_of(struct ktx **out, const struct ktx_engine *const *list, const struct ktx_options *options,
		struct ktrxer_error *err)
{
	struct ktx_engine_setup setup;
	struct ktx *tx;
	int rc;

	if (!out)
		return ktrxer_fail(err, -EINVAL, "ktx_open: no place for the transmitter (NULL)");
	*out = NULL;
	tx = aligned_alloc(KTX_LINE, sizeof *tx);
	if (!tx)
		return ktrxer_fail(err, -ENOMEM, "no memory for a transmitter");
	memset(tx, 0, sizeof *tx);
	tx->wake_fd = tx->report_fd = tx->poll_fd = -1;
	ktrxer_phc_sampler_init(&tx->nic);
	tx->engines = list;
	ktrxer_waiter_init(&tx->pump.waiter);
	rc = options_take(tx, options, err);
	if (rc < 0)
		goto fail;
	tx->link = KTRXER_LINK_RAW_IP;
	if (tx->options.device && *tx->options.device) {
		rc = ktrxer_device_get(&tx->device, tx->options.device, err);
		if (rc < 0)
			goto fail;
		if (!tx->device.up) {
			rc = ktrxer_fail(err, -ENETDOWN, "device '%s' is down: `ip link set %s up`", tx->device.name,
					 tx->device.name);
			goto fail;
		}
		tx->has_device = true;
		tx->link = tx->device.link;
	}
	/* The caller's strings may go away. */
	tx->options.device = tx->has_device ? tx->device.name : NULL;
	tx->time_at = tx->options.send_time_at + (tx->link == KTRXER_LINK_ETHERNET ? 14 : 0);
	frame_size_choose(tx);
	if ((rc = engine_pick(tx, err)) < 0 || (rc = frame_size_fit(tx, err)) < 0 || (rc = rings_make(tx, err)) < 0)
		goto fail;
	setup = (struct ktx_engine_setup){ .options = &tx->options,
					   .device = tx->has_device ? &tx->device : NULL,
					   .link = tx->link,
					   .frame_size = tx->frame_size,
					   .slots = tx->ring.slots,
					   .requests = tx->ring.requests };
	if ((rc = engine_open(tx, &setup, err)) < 0)
		goto fail;
	if ((rc = memory_make(tx, err)) < 0 || (rc = descriptors_make(tx, err)) < 0)
		goto fail;
	if (tx->options.purpose == KTX_FOR_TIMING)
		memory_lock(tx);
	ktrxer_clock_map_init(&tx->pump.clock);
	nic_open(tx);
#ifndef KTRXER_SMALL
	ktx_drops_begin(tx);
#endif
	atomic_store(&tx->shared.tool_waits, true);
	tx->tool.event_due = tx->options.flags & KTX_CALLER_PUMPS;
	if (!(tx->options.flags & KTX_CALLER_PUMPS) && (rc = ktx_thread_start(tx, err)) < 0)
		goto fail;
	*out = tx;
	return 0;

fail:
	ktx_close(tx);
	return rc;
}

void ktx_close(struct ktx *tx)
{
	if (!tx)
		return;
	ktx_thread_stop(tx);
	if (tx->state)
		tx->engine->close(tx->state);
	ktrxer_phc_sampler_close(&tx->nic);
	ktrxer_waiter_close(&tx->pump.waiter);
	if (tx->poll_fd >= 0)
		close(tx->poll_fd);
	if (tx->report_fd >= 0)
		close(tx->report_fd);
	if (tx->wake_fd >= 0)
		close(tx->wake_fd);
	if (tx->memory)
		munmap(tx->memory, tx->memory_size);
	ktrxer_hist_free(tx->tool.lateness);
	ktrxer_stampmap_free(&tx->pump.stamps);
	ktrxer_schedmap_free(&tx->pump.scheds);
	if (tx->ring.requests)
		munmap(tx->ring.requests, tx->ring.slots * sizeof *tx->ring.requests);
	free(tx);
}

static enum ktx_departure_source best_departure(const struct ktx *tx)
{
	uint32_t features = features_of(tx);

	return features & KTX_CAN_NIC_STAMP                              ? KTX_DEPARTURE_NIC
	       : features & KTX_CAN_DRIVER_STAMP && stamps_requested(tx) ? KTX_DEPARTURE_DRIVER
									 : KTX_DEPARTURE_QUEUED;
}

/* Called by the tool's thread while the pump's thread works: of the waiter only what that thread shows. */
static struct ktx_info info_of(const struct ktx *tx)
{
	const struct ktrxer_waiter *waiter = &tx->pump.waiter;
	struct ktx_info info = {
		.engine = tx->engine->name,
		.reason = tx->reason,
		.chosen = tx->chosen,
		.link = tx->link,
		.frame_size = tx->frame_size,
		.slots = tx->ring.slots,
		.best_departure = best_departure(tx),
		.realtime = atomic_load_explicit(&waiter->shown.realtime, memory_order_relaxed),
		.locked = waiter->locked,
		.cpu = tx->options.cpu,
		.timer_slack_ns = waiter->timer_slack_ns,
		.features = features_of(tx),
		.wakeup_margin_ns = atomic_load_explicit(&waiter->shown.margin_ns, memory_order_relaxed),
		.compensation_ns = tx->options.flags & KTX_NO_COMPENSATION
					   ? 0
					   : atomic_load_explicit(&waiter->shown.compensation_ns, memory_order_relaxed),
	};
	memcpy(info.notes, waiter->notes, atomic_load_explicit(&waiter->shown.notes_length, memory_order_acquire));
	return info;
}

void ktx_info_sized(const struct ktx *tx, struct ktx_info *to, size_t size)
{
	struct ktx_info info = { .engine = "", .reason = "", .cpu = -1 };

	if (!to)
		return;
	if (tx)
		info = info_of(tx);
	ktrxer_result_write(to, size, &info, sizeof info);
}

int ktx_fd(const struct ktx *tx)
{
	return tx ? tx->poll_fd : -EINVAL;
}

int ktx_reply_fd(const struct ktx *tx)
{
	int fd;

	if (!tx)
		return -EINVAL;
	fd = tx->engine->reply_fd ? tx->engine->reply_fd(tx->state) : -1;
	return fd >= 0 ? fd : -EOPNOTSUPP;
}
