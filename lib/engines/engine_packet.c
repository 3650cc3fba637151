/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AF_PACKET past the qdisc: any frame, on every Linux device. A packet socket bound to protocol 0 has no hook in the
 * receive path; PACKET_QDISC_BYPASS (3.14) hands each frame straight to the driver.
 */
#include "engine.h"
#include "packet_sock.h"
#include "txstamp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ktx_engine_state {
	struct ktx_packet_sock packet;
};

static int packet_bypass(int fd)
{
	const int on = 1;

	return setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof on) == 0 ? 0 : -errno;
}

static int packet_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	struct ktrxer_error err;
	int fd;

	if (!device) {
		snprintf(info->reason, sizeof info->reason, "needs a device: name one (`ip link` lists them)");
		return -ENODEV;
	}
	fd = ktx_packet_socket(device, &err);
	if (fd < 0) {
		memcpy(info->reason, err.text, sizeof info->reason);
		return fd;
	}
	info->features = KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN;
	if (packet_bypass(fd) == 0)
		info->features |= KTX_CAN_BYPASS;
	if (ktrxer_txstamp_enable(fd) == 0)
		info->features |= KTX_CAN_DRIVER_STAMP;
	close(fd);
	return 0;
}

static int packet_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	int fd, rc;

	if (!state)
		return ktrxer_fail(err, -ENOMEM, "no memory for the packet engine");
	fd = ktx_packet_socket(setup->device, err);
	if (fd < 0) {
		rc = fd;
		goto free_state;
	}
	ktx_packet_sock_init(&state->packet, fd, setup->device);
	rc = packet_bypass(fd);
	if (rc < 0) {
		ktrxer_fail(err, rc, "PACKET_QDISC_BYPASS is refused: the packet engine needs Linux 3.14");
		goto close_socket;
	}
	if (!(setup->options->flags & KTX_NO_STAMPS) && setup->options->purpose == KTX_FOR_TIMING)
		state->packet.sock.stamps = ktrxer_txstamp_enable(fd) == 0;
	*out = state;
	return 0;

close_socket:
	ktx_sock_close(&state->packet.sock);
free_state:
	free(state);
	return rc;
}

static void packet_close(struct ktx_engine_state *state)
{
	ktx_sock_close(&state->packet.sock);
	free(state);
}

static uint32_t packet_features(const struct ktx_engine_state *state)
{
	return KTX_CAN_WHOLE_FRAME | KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_BYPASS |
	       (state->packet.sock.stamps ? KTX_CAN_DRIVER_STAMP : 0);
}

static int packet_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	return ktx_packet_sock_check(&state->packet, frame, length, err);
}

static int packet_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	return ktx_sock_send(&state->packet.sock, ktx_packet_sock_fill(&state->packet, requests, count));
}

static void packet_warm(struct ktx_engine_state *state)
{
	ktx_sock_warm(&state->packet.sock);
}

static int packet_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	return state->packet.sock.stamps ? ktrxer_txstamp_reap(state->packet.sock.fd, completions) : 0;
}

static void packet_restart_stamps(struct ktx_engine_state *state)
{
	ktrxer_txstamp_restart(state->packet.sock.fd);
}

static int packet_event_fd(const struct ktx_engine_state *state)
{
	return state->packet.sock.stamps ? state->packet.sock.fd : -1;
}

static const struct ktx_submit_ops packet_submit = {
	.send = packet_send,
	.warm = packet_warm,
	.reap = packet_reap,
	.restart_stamps = packet_restart_stamps,
};

const struct ktx_engine ktx_engine_packet = {
	.name = "packet",
	.summary = "AF_PACKET past the qdisc: any frame, on every Linux device",
	.submit = &packet_submit,
	.can = KTX_CAN_SEND_TIME,
	.nic_stamps = true,
	.rank_timing = 50,
	.rank_rate = 40,
	.why_timing = "no routing, netfilter or qdisc between the send time and the driver",
	.why_rate = "no routing, netfilter or qdisc on the way",
	.probe = packet_probe,
	.open = packet_open,
	.close = packet_close,
	.features = packet_features,
	.check = packet_check,
	.event_fd = packet_event_fd,
};
