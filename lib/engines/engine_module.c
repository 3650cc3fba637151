/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * ktrxer.ko, by /dev/ktx: the kernel keeps the time and calls the driver's transmit function itself. Frames lie in
 * slots that the module maps; committing them is one system call, and for timing there is none after it. For rate the
 * pump's own calls send. <linux/ktrxer.h> says how this is spoken.
 */
#include "engine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ktrxer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define AGAIN_NS KTRXER_NS_PER_MS /* between two looks at what ends because the device is lost */

struct ktx_engine_state {
	int fd;
	uint8_t *map;
	struct ktrxer_tx_setup setup;
	struct ktrxer_tx_ring *ring;
	struct ktrxer_tx_slot *slots;
	const struct ktrxer_tx_report *reports;
	struct ktx_request *requests;
	uint32_t mask;
	uint32_t cancelled; /* passed on: requests before it */
	enum ktrxer_link link;
	bool for_rate;
	int lost; /* negative errno: nothing goes any more */
};

static int module_file(struct ktrxer_error *err)
{
	struct ktrxer_version version;
	int fd = open("/dev/ktx", O_RDWR | O_CLOEXEC), rc = -errno;
	if (fd < 0 && (rc == -ENOENT || rc == -ENXIO || rc == -ENODEV))
		return ktrxer_fail(
			err, rc,
			"the kernel module is not loaded: `modprobe ktrxer` (docs/howto/module.md: how to build it)");
	if (fd < 0 && (rc == -EACCES || rc == -EPERM))
		return ktrxer_fail(err, rc, "/dev/ktx needs CAP_NET_RAW and the right to open it: run as root");
	if (fd < 0)
		return ktrxer_fail(err, rc, "/dev/ktx: %m");
	if (ioctl(fd, KTRXER_IOC_VERSION, &version) == 0 && version.magic == KTRXER_MAGIC &&
	    version.version == KTRXER_UAPI_VERSION)
		return fd;
	close(fd);
	return ktrxer_fail(
		err, -EPROTO,
		"the kernel module speaks another version than this program: load the one that belongs to it");
}

static int module_setup(int fd, struct ktrxer_tx_setup *setup, const struct ktrxer_device *device,
			struct ktrxer_error *err)
{
	int rc;

	setup->size = sizeof *setup;
	setup->ifindex = device->index;
	setup->clock = CLOCK_MONOTONIC;
	if (ioctl(fd, KTRXER_TX_SETUP, setup) == 0)
		return 0;
	rc = -errno;
	if (rc == -ENODEV)
		return ktrxer_fail(err, rc, "device '%s' is gone", device->name);
	if (rc == -ENETDOWN)
		return ktrxer_fail(err, rc, "device '%s' is down: `ip link set %s up`", device->name, device->name);
	if (rc == -EPERM)
		return ktrxer_fail(err, rc,
				   "the kernel module refuses timers for '%s': they need CAP_NET_RAW on the host, not "
				   "only in a user namespace",
				   device->name);
	if (rc == -EINVAL && setup->cpu != KTRXER_TX_ANY_CPU)
		return ktrxer_fail(err, rc,
				   "the kernel module refuses processor %u: it is not online or not among "
				   "those that this process may use",
				   setup->cpu);
	if (rc == -EINVAL && setup->queue != KTRXER_TX_ANY_QUEUE)
		return ktrxer_fail(err, rc, "device '%s' has no transmit queue %u", device->name, setup->queue);
	if (rc == -ENOMEM)
		return ktrxer_fail(err, rc,
				   "no kernel memory for %u slots of %u bytes: use fewer slots, or raise the "
				   "limit of locked memory (ulimit -l)",
				   setup->slots, setup->frame_size);
	return ktrxer_fail(err, rc, "the kernel module refuses '%s': %m", device->name);
}

#define FEATURES                                                                                       \
	(KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_DRIVER_STAMP | \
	 KTX_CAN_KERNEL_WAIT | KTX_CAN_MAPPED | KTX_CAN_BYPASS)

static int module_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	struct ktrxer_tx_setup setup = { .slots = 2,
					 .frame_size = 64,
					 .timer = KTRXER_TX_TIMER_SOFTIRQ,
					 .queue = KTRXER_TX_ANY_QUEUE,
					 .cpu = KTRXER_TX_ANY_CPU };
	struct ktrxer_error err = { 0 };
	int fd = module_file(&err), rc = fd;

	if (fd >= 0) {
		rc = module_setup(fd, &setup, device, &err);
		close(fd);
	}
	info->features = FEATURES;
	if (rc < 0)
		memcpy(info->reason, err.text, sizeof info->reason);
	return rc;
}

static int module_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	const struct ktx_options *o = setup->options;
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	int rc;

	if (!state)
		return ktrxer_fail(err, -ENOMEM, "no memory for the module engine");
	state->for_rate = o->purpose == KTX_FOR_RATE;
	state->requests = setup->requests;
	state->mask = setup->slots - 1;
	state->link = setup->link;
	state->setup = (struct ktrxer_tx_setup){
		.slots = setup->slots,
		.frame_size = setup->frame_size,
		.flags = o->flags & KTX_NO_COMPENSATION ? KTRXER_TX_NO_COMPENSATION : 0,
		.late = o->late,
		.late_ns = o->late_ns,
		.timer = state->for_rate ? KTRXER_TX_TIMER_NONE : KTRXER_TX_TIMER_AUTO,
		.queue = o->queue ? o->queue : KTRXER_TX_ANY_QUEUE,
		.cpu = o->cpu < 0 ? KTRXER_TX_ANY_CPU : (uint32_t)o->cpu,
		.retry_ns = o->retry_ns < 10 * (uint64_t)KTRXER_NS_PER_S ? o->retry_ns : 10 * (uint64_t)KTRXER_NS_PER_S,
	};
	rc = state->fd = module_file(err);
	if (rc < 0)
		goto free_state;
	rc = module_setup(state->fd, &state->setup, setup->device, err);
	if (rc < 0)
		goto close_file;
	state->map = mmap(NULL, state->setup.map_size, PROT_READ | PROT_WRITE, MAP_SHARED, state->fd,
			  (off_t)state->setup.map_offset);
	if (state->map == MAP_FAILED) {
		rc = ktrxer_fail(err, -errno, "no room to map %u slots", setup->slots);
		goto close_file;
	}
	state->ring = (void *)state->map;
	state->slots = (void *)(state->map + state->setup.slots_offset);
	state->reports = (void *)(state->map + state->setup.reports_offset);
	*out = state;
	return 0;

close_file:
	close(state->fd);
free_state:
	free(state);
	return rc;
}

static void module_close(struct ktx_engine_state *state)
{
	munmap(state->map, state->setup.map_size);
	close(state->fd);
	free(state);
}

static uint32_t module_features(const struct ktx_engine_state *state)
{
	(void)state;
	return FEATURES;
}

static uint8_t *module_memory(struct ktx_engine_state *state, uint32_t slot)
{
	return state->map + state->setup.frames_offset + (size_t)slot * state->setup.frame_stride;
}

static int module_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	if (state->link == KTRXER_LINK_ETHERNET || (length && (frame[0] >> 4 == 4 || frame[0] >> 4 == 6)))
		return 0;
	return ktrxer_fail(err, -EBADMSG,
			   "this link carries IP packets without a link header; this is neither IPv4 nor IPv6");
}

static int module_kick(struct ktx_engine_state *state, struct ktrxer_tx_kick *kick)
{
	kick->size = sizeof *kick;
	return ioctl(state->fd, KTRXER_TX_KICK, kick) == 0 ? 0 : -errno;
}

static void module_publish(struct ktx_engine_state *state, uint32_t from, uint32_t to)
{
	for (uint32_t number = from; number != to; number++) {
		const struct ktx_request *request = &state->requests[number & state->mask];
		struct ktrxer_tx_slot *slot = &state->slots[number & state->mask];

		slot->at_ns = request->at_ns;
		slot->length = request->length;
		slot->flags = request->flags & KTX_TRAIN_GOES_ON ? KTRXER_TX_TRAIN : 0;
	}
}

static void module_go(struct ktx_engine_state *state, uint32_t to)
{
	struct ktrxer_tx_kick kick = { 0 };

	__atomic_store_n(&state->ring->head, to, __ATOMIC_RELEASE);
	if (!state->for_rate)
		module_kick(state, &kick); /* an error is in the ring, and the pump finds it there */
}

static uint32_t tail_of(const struct ktx_engine_state *state)
{
	return __atomic_load_n(&state->ring->tail, __ATOMIC_ACQUIRE);
}

static int module_update(struct ktx_engine_state *state, const struct ktx_work *work, uint64_t *next_ns)
{
	struct ktrxer_tx_kick kick = { 0 };
	uint32_t error;

	kick.cancel = work->cancel_to != work->done && work->cancel_to != state->cancelled;
	kick.cancel_to = state->cancelled = work->cancel_to;
	if (kick.cancel || ((state->for_rate || state->lost) && tail_of(state) != work->head)) {
		/* A cancellation is too early while the pump has submitted requests that module_go() has not sent. */
		if (module_kick(state, &kick) == -EINVAL && kick.cancel) {
			state->cancelled = work->done;
			*next_ns = work->now_ns + AGAIN_NS;
		}
		if (state->for_rate && kick.next_ns < *next_ns)
			*next_ns = kick.next_ns;
	}
	error = __atomic_load_n(&state->ring->error, __ATOMIC_RELAXED);
	if (error)
		state->lost = -(int)error;
	/* Lost, it has no descriptor that could tell. */
	if (tail_of(state) != work->done && (state->for_rate || state->lost))
		*next_ns = work->now_ns;
	else if (state->lost && work->head != work->done)
		*next_ns = work->now_ns + AGAIN_NS;
	return state->lost;
}

static void request_ended(struct ktx_request *request, const struct ktrxer_tx_report *report)
{
	request->status = KTX_FAILED;
	request->departure = KTX_DEPARTURE_NONE;
	request->bound_ns = 0;
	request->tries = report->tries;
	if (request->planned_ns != report->planned_ns)
		request->planned_ns = report->planned_ns;
	switch (report->status) {
	case KTRXER_TX_SENT:
		request->status = KTX_SENT;
		request->departure = KTX_DEPARTURE_DRIVER;
		request->sent_ns = request->call_ns = report->sent_ns;
		request->raw_ns = (int64_t)report->sent_ns;
		return;
	case KTRXER_TX_SKIPPED:
		request->status = KTX_SKIPPED;
		return;
	case KTRXER_TX_CANCELLED:
		request->status = KTX_CANCELLED;
		return;
	default:
		request->error = report->error;
	}
}

static uint32_t module_collect(struct ktx_engine_state *state, const struct ktx_work *work)
{
	const uint32_t tail = tail_of(state);
	uint32_t number = work->done;

	for (; number != work->head && number != tail; number++)
		request_ended(&state->requests[number & state->mask], &state->reports[number & state->mask]);
	__atomic_store_n(&state->ring->seen, number, __ATOMIC_RELEASE);
	return number - work->done;
}

/*
 * Only this process's own calls change anything in rate mode; and a lost device is a permanent error, which would wake
 * the caller for ever.
 */
static int module_event_fd(const struct ktx_engine_state *state)
{
	return state->for_rate || state->lost ? -1 : state->fd;
}

static const struct ktx_kernel_ops module_kernel = {
	.publish = module_publish,
	.go = module_go,
	.update = module_update,
	.collect = module_collect,
};

const struct ktx_engine ktx_engine_module = {
	.name = "module",
	.summary = "ktrxer.ko: the kernel keeps the time and calls the driver itself",
	.kernel = &module_kernel,
	.rank_timing = 90,
	.rank_rate = 70, /* 1.2 to 2 times xsk in copy mode on the lab's devices; where that has zero copy, live works
			    and comes first */
	.why_timing = "the kernel module keeps the time and calls the driver itself",
	.why_rate = "the kernel module calls the driver itself, many frames at a time",
	.probe = module_probe,
	.open = module_open,
	.close = module_close,
	.features = module_features,
	.memory = module_memory,
	.check = module_check,
	.event_fd = module_event_fd,
};
