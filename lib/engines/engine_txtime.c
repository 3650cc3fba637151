/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Launch times of the kernel's own (SO_TXTIME, Linux 4.19): a frame is submitted ahead, with its launch time, and the
 * fq or etf queue of the device, or the NIC itself, sends it then. No thread spins, and this process need not run at
 * that moment.
 *
 * fq keeps times of CLOCK_MONOTONIC and lets nothing go early. etf keeps times of CLOCK_TAI and, without the NIC's
 * help, takes a frame out `delta` before its time, which is then when it leaves: so it gets a time that much later.
 * It drops what it cannot keep and says so in the socket's error queue, with the time that it got; hence no two
 * frames get the same time.
 */
#include "clock.h"
#include "packet_sock.h"
#include "qdisc.h"
#include "tx_limits.h"
#include "txstamp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#ifndef SO_TXTIME
#define SO_TXTIME 61
#endif
#define REPORT_ERRORS 2 /* SOF_TXTIME_REPORT_ERRORS */

enum {
	LOOK_AGAIN_NS = 100 * 1000 * 1000, /* between two looks at the device's queue */
	DEPTH_OF_ETF = 4096,               /* it has no limit of its own; a socket's buffer is full before */
};

union control {
	struct cmsghdr head;
	uint8_t room[CMSG_SPACE(sizeof(uint64_t))];
};

struct ktx_engine_state {
	struct ktx_packet_sock packet;
	struct ktrxer_device device;
	struct qdisc_launch launch;
	struct ktrxer_clock_map tai;
	union control controls[KTX_BATCH_MAX];
	struct ktx_request *requests;
	uint32_t slots;
	uint64_t *launches; /* by request: the time as the queue has it */
	uint64_t last_ns;   /* leave_ns of the frame that was taken last */
	uint64_t looked_ns; /* at the device's queue */
	bool ignored;       /* it was replaced by one that keeps no times */
	char note[128];
};

/* Finds the queue of the device, and sets the socket up for it. */
static int configure(int fd, const struct ktrxer_device *device, struct qdisc_launch *launch, struct ktrxer_error *err)
{
	struct {
		int32_t clock;
		uint32_t flags;
	} how = { .flags = REPORT_ERRORS };
	char word[64];
	int rc = ktrxer_qdisc_launch(launch, device->index, device->name, err);

	if (rc < 0)
		return rc;
	how.clock = launch->clock;
	if (setsockopt(fd, SOL_SOCKET, SO_TXTIME, &how, sizeof how) != 0) {
		rc = -errno;
		return ktrxer_fail(err, rc,
				   rc == -ENOPROTOOPT ? "launch times (SO_TXTIME) need Linux 4.19"
				   : rc == -EPERM     ? "launch times of etf need CAP_NET_ADMIN: run as root, or use fq"
						      : "SO_TXTIME: %s",
				   ktrxer_strerror(rc, word, sizeof word));
	}
	if (launch->priority &&
	    setsockopt(fd, SOL_SOCKET, SO_PRIORITY, &launch->priority, sizeof launch->priority) != 0)
		return ktrxer_fail(
			err, -errno,
			"priority %d, which leads to the queue of '%s' that keeps times, is refused: run as root",
			launch->priority, device->name);
	if (launch->offload && launch->delta_ns > KTX_QUEUE_AHEAD_NS / 2)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the etf qdisc of '%s' wants frames %u ms ahead (delta); it may be 5 ms at most",
				   device->name, launch->delta_ns / 1000000);
	return 0;
}

#define FEATURES (KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_KERNEL_WAIT)

static int txtime_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	struct qdisc_launch launch;
	struct ktrxer_error err;
	int fd = ktx_packet_socket(device, &err), rc = fd;

	if (fd >= 0) {
		rc = configure(fd, device, &launch, &err);
		info->features = FEATURES | (rc == 0 && ktrxer_txstamp_enable(fd) == 0 ? KTX_CAN_DRIVER_STAMP : 0);
		close(fd);
	}
	if (rc < 0)
		memcpy(info->reason, err.text, sizeof info->reason);
	return rc;
}

static void prepare(struct ktx_engine_state *state)
{
	const struct qdisc_launch *l = &state->launch;
	struct timex timex = { 0 };

	for (int i = 0; i < KTX_BATCH_MAX; i++) {
		union control *c = &state->controls[i];

		c->head = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
					    .cmsg_type = SO_TXTIME,
					    .cmsg_len = CMSG_LEN(sizeof(uint64_t)) };
		state->packet.sock.messages[i].msg_hdr.msg_control = c->room;
		state->packet.sock.messages[i].msg_hdr.msg_controllen = sizeof c->room;
	}
	ktrxer_clock_map_init_of(&state->tai, CLOCK_TAI);
	adjtimex(&timex);
	if (l->etf && !timex.tai)
		strcpy(state->note, "CLOCK_TAI is UTC here (TAI offset 0): a leap second moves launch times; chrony or "
				    "ptp4l sets the offset");
	else if (l->slack_ns > 1000)
		snprintf(state->note, sizeof state->note,
			 "fq's timer comes up to %u us late: `tc qdisc replace dev %s root fq timer_slack 0`",
			 l->slack_ns / 1000, state->device.name);
}

static void txtime_close(struct ktx_engine_state *state)
{
	ktx_sock_close(&state->packet.sock);
	free(state->launches);
	free(state);
}

static int txtime_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	int fd, rc;

	if (!state || !(state->launches = calloc(setup->slots, sizeof *state->launches))) {
		free(state);
		return ktrxer_fail(err, -ENOMEM, "no memory for the txtime engine");
	}
	state->device = *setup->device;
	state->requests = setup->requests;
	state->slots = setup->slots;
	state->packet.sock.fd = fd = ktx_packet_socket(setup->device, err);
	rc = fd < 0 ? fd : configure(fd, setup->device, &state->launch, err);
	if (rc < 0) {
		txtime_close(state);
		return rc;
	}
	ktx_packet_sock_init(&state->packet, fd, setup->device);
	prepare(state);
	/* Drops of etf are reported in the same queue as the stamps, and only until a probe is final. */
	if (state->launch.etf ||
	    (!(setup->options->flags & KTX_NO_STAMPS) && setup->options->purpose == KTX_FOR_TIMING))
		state->packet.sock.stamps = ktrxer_txstamp_enable(fd) == 0;
	*out = state;
	return 0;
}

static uint32_t txtime_features(const struct ktx_engine_state *state)
{
	return FEATURES | (state->packet.sock.stamps ? KTX_CAN_DRIVER_STAMP : 0);
}

static void txtime_queue(const struct ktx_engine_state *state, struct ktx_queue *queue)
{
	const struct qdisc_launch *l = &state->launch;

	queue->ahead_ns =
		l->horizon_ns && l->horizon_ns / 2 < KTX_QUEUE_AHEAD_NS ? l->horizon_ns / 2 : KTX_QUEUE_AHEAD_NS;
	/* fq refuses beyond its limit for a flow, which may hold frames of others, too. */
	queue->depth = l->flow_limit ? l->flow_limit - l->flow_limit / 4 : DEPTH_OF_ETF;
}

static const char *txtime_note(const struct ktx_engine_state *state)
{
	return state->note[0] ? state->note : NULL;
}

static int txtime_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	return ktx_packet_sock_check(&state->packet, frame, length, err);
}

/* When it is to leave, on our clock: behind what is before it, and not at a time that etf would take for past. */
static uint64_t leave_time(const struct ktx_engine_state *state, uint64_t wanted, uint64_t behind, uint64_t now)
{
	const struct qdisc_launch *l = &state->launch;
	const uint64_t earliest = l->etf ? now + (l->offload ? l->delta_ns : 0) : 0;

	if (wanted <= behind)
		wanted = behind + 1;
	return wanted < earliest ? earliest : wanted;
}

static uint64_t queue_time(const struct ktx_engine_state *state, uint64_t leave)
{
	const struct qdisc_launch *l = &state->launch;

	return l->etf ? leave + (uint64_t)ktrxer_clock_map_offset(&state->tai) + (l->offload ? 0 : l->delta_ns) : leave;
}

static int txtime_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	const uint64_t now = ktrxer_now_ns();
	uint64_t last = state->last_ns;
	int n;

	if (state->ignored)
		return -EOPNOTSUPP;
	if (state->launch.etf)
		ktrxer_clock_map_refresh(&state->tai, now, 100000);
	count = ktx_packet_sock_fill(&state->packet, requests, count);
	for (int i = 0; i < count; i++) {
		uint64_t *mine = &state->launches[requests[i] - state->requests];

		last = requests[i]->leave_ns = leave_time(state, requests[i]->leave_ns, last, now);
		*mine = queue_time(state, last);
		memcpy(CMSG_DATA(&state->controls[i].head), mine, sizeof *mine);
	}
	n = ktx_sock_send(&state->packet.sock, count);
	if (n > 0)
		state->last_ns = requests[n - 1]->leave_ns;
	return n;
}

/* The queue may have been replaced: one that keeps times has its own clock and delta, any other sends at once. */
static void look_again(struct ktx_engine_state *state)
{
	struct qdisc_launch launch;
	const uint64_t now = ktrxer_now_ns();

	if (state->looked_ns && now - state->looked_ns < LOOK_AGAIN_NS)
		return;
	state->looked_ns = now;
	if (configure(state->packet.sock.fd, &state->device, &launch, NULL) < 0)
		state->ignored = true;
	else
		state->launch = launch;
}

struct passing {
	struct ktx_engine_state *state;
	const struct ktx_completions *to;
};

static void pass_stamp(void *context, uint32_t key, int64_t real_ns, enum ktx_departure_source source, bool nic_clock)
{
	const struct passing *p = context;

	p->to->stamp(p->to->context, key, real_ns, source, nic_clock);
}

static void pass_drop(void *context, uint64_t launch, int error)
{
	const struct passing *p = context;

	for (uint32_t i = 0; i < p->state->slots; i++)
		if (p->state->launches[i] == launch)
			p->to->failed(p->to->context, &p->state->requests[i], error);
	if (error == -EINVAL)
		look_again(p->state);
}

static int txtime_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	struct passing passing = { .state = state, .to = completions };
	const struct ktx_completions own = { .stamp = pass_stamp, .dropped = pass_drop, .context = &passing };

	return state->packet.sock.stamps ? ktrxer_txstamp_reap(state->packet.sock.fd, &own) : 0;
}

static void txtime_restart_stamps(struct ktx_engine_state *state)
{
	ktrxer_txstamp_restart(state->packet.sock.fd);
}

static int txtime_event_fd(const struct ktx_engine_state *state)
{
	return state->packet.sock.stamps ? state->packet.sock.fd : -1;
}

static const struct ktx_submit_ops txtime_submit = {
	.send = txtime_send,
	.reap = txtime_reap,
	.restart_stamps = txtime_restart_stamps,
	.queue = txtime_queue,
	.left_early = look_again,
};

const struct ktx_engine ktx_engine_txtime = {
	.name = "txtime",
	.summary = "the kernel's own launch times: the fq or etf qdisc, or the NIC, keeps the time",
	.submit = &txtime_submit,
	.nic_stamps = true,
	.rank_timing = 15, /* exact, but behind a queue that others fill, too: only if it is named */
	.rank_rate = 5,
	.why_timing = "the device's qdisc keeps the time",
	.why_rate = "nothing faster works",
	.probe = txtime_probe,
	.open = txtime_open,
	.close = txtime_close,
	.features = txtime_features,
	.check = txtime_check,
	.note = txtime_note,
	.event_fd = txtime_event_fd,
};
