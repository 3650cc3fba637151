/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Raw IP sockets with the header included: any IP packet, but the host's routing, netfilter and qdisc come first, and
 * they choose the link header. The baseline of the papers.
 */
#include "bytes.h"
#include "engine.h"
#include "name.h"
#include "send_room.h"
#include "sock.h"
#include "host_stack.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct ktx_engine_state {
	struct ktx_sock sock; /* of the version in use */
	int spare_fd;         /* of the other one, until the first frame has chosen */
	uint8_t version;      /* 0 until then; one transmitter, one series of stamps, one version */
	struct ktx_options options;
	bool want_stamps;
	enum ktrxer_link link;
	uint8_t device_mac[6];
	uint32_t scope;
	struct ktrxer_addr source; /* of the first frame; family 0 until then */
	bool mixed;                /* frames have several sources */
	union ktx_stack_address to[KTX_BATCH_MAX];
};

static int raw_socket(int family, const struct ktrxer_device *device, struct ktrxer_error *err)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW), rc;
	const int on = 1;
	if (fd < 0) {
		rc = -errno;
		if (rc == -EPERM || rc == -EACCES)
			return ktrxer_fail(err, rc, "raw sockets need CAP_NET_RAW: run as root");
		if (rc == -EAFNOSUPPORT)
			return ktrxer_fail(err, rc, "this kernel has no IPv%c", family == AF_INET6 ? '6' : '4');
		return ktrxer_fail(err, rc, "raw socket: %m");
	}
	/* IPPROTO_RAW means "header included" by itself; without this ENOBUFS of the queue would be kept from us. */
	if (family == AF_INET)
		(void)!setsockopt(fd, SOL_IP, IP_RECVERR, &on, sizeof on);
	else
		(void)!setsockopt(fd, SOL_IPV6, IPV6_RECVERR, &on, sizeof on);
	if (device && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device->name, sizeof device->name) != 0) {
		rc = -errno;
		close(fd);
		return ktrxer_fail(err, rc, "raw socket cannot be bound to device '%s': %m", device->name);
	}
	ktx_sock_send_room(fd, 4 << 20);
	return fd;
}

static int raw_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	struct ktrxer_error err;
	int fd = raw_socket(AF_INET, device, &err);

	if (fd >= 0) {
		info->features = KTX_CAN_IPV4 | KTX_CAN_TRAIN;
		if (ktrxer_txstamp_enable(fd) == 0)
			info->features |=
				KTX_CAN_DRIVER_STAMP | (ktrxer_txstamp_add_sched(fd) == 0 ? KTX_CAN_SCHED_STAMP : 0);
		close(fd);
	}
	fd = raw_socket(AF_INET6, device, fd < 0 ? NULL : &err);
	if (fd >= 0) {
		info->features |= KTX_CAN_IPV6 | KTX_CAN_TRAIN;
		close(fd);
	}
	if (info->features)
		return 0;
	memcpy(info->reason, err.text, sizeof info->reason);
	return err.code;
}

static int raw_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);
	struct ktrxer_error second;
	int rc;

	if (!state)
		return ktrxer_fail(err, -ENOMEM, "no memory for the raw engine");
	ktx_sock_init(&state->sock, raw_socket(AF_INET, setup->device, err));
	state->spare_fd = raw_socket(AF_INET6, setup->device, &second);
	if (state->sock.fd < 0 && state->spare_fd < 0) {
		rc = state->sock.fd;
		free(state);
		return rc;
	}
	state->want_stamps = !(setup->options->flags & KTX_NO_STAMPS) && setup->options->purpose == KTX_FOR_TIMING;
	state->options = *setup->options;
	if (state->want_stamps)
		ktx_sock_stamps(&state->sock, state->sock.fd >= 0 ? state->sock.fd : state->spare_fd, 0,
				&state->options);
	state->link = setup->link;
	if (setup->device) {
		memcpy(state->device_mac, setup->device->mac, sizeof state->device_mac);
		state->scope = setup->device->index;
	}
	*out = state;
	return 0;
}

static void raw_close(struct ktx_engine_state *state)
{
	if (state->spare_fd >= 0)
		close(state->spare_fd);
	ktx_sock_close(&state->sock);
	free(state);
}

static uint32_t raw_features(const struct ktx_engine_state *state)
{
	return KTX_CAN_TRAIN | KTX_CAN_IPV4 | KTX_CAN_IPV6 | ktx_sock_stamp_features(&state->sock);
}

/* The first frame chooses the socket, before the pump has any request. */
static int raw_choose(struct ktx_engine_state *state, uint8_t version, struct ktrxer_error *err)
{
	if (state->version)
		return version == state->version
			       ? 0
			       : ktrxer_fail(err, -EOPNOTSUPP,
					     "this raw transmitter began with IPv%u: open a second one for IPv%u",
					     state->version, version);
	if (version == 6) {
		int fd = state->sock.fd;

		state->sock.fd = state->spare_fd;
		state->spare_fd = fd;
	}
	if (state->sock.fd < 0)
		return ktrxer_fail(err, -EAFNOSUPPORT, "no raw socket for IPv%u here", version);
	if (state->want_stamps)
		ktx_sock_stamps(&state->sock, state->sock.fd, version == 6 ? AF_INET6 : AF_INET, &state->options);
	state->version = version;
	return 0;
}

/*
 * The kernel takes the source address of a header as it is, and looks up the route for the address that the socket is
 * bound to: rules by source (`ip rule add from`) apply to such a socket alone. An address of another host cannot be
 * bound; its packets have the route of any source, and so have those of a transmitter with several sources.
 */
static void raw_bind(struct ktx_engine_state *state, const struct ktrxer_addr *from)
{
	union ktrxer_name name;
	struct ktrxer_addr source = *from;
	socklen_t length;

	if (state->mixed || (state->source.family && ktrxer_addr_equal(&state->source, from)))
		return;
	if (state->source.family) {
		state->mixed = true;
		source = (struct ktrxer_addr){ .family = from->family };
	}
	state->source = *from;
	source.scope_id = source.bytes[0] == 0xfe ? state->scope : 0;
	length = ktrxer_name_make(&name, &source, 0);
	(void)!bind(state->sock.fd, &name.sa, length);
}

static int raw_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	struct ktrxer_packet_view view;
	int rc = ktx_stack_check(&view, frame, length, state->link, state->device_mac, "raw", err);

	if (rc < 0)
		return rc;
	if (view.version == 4 && ktrxer_sum_fold(ktrxer_sum(frame + view.l3, 4u * (frame[view.l3] & 15u), 0)) != 0xffff)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the kernel rewrites the IPv4 header checksum of raw packets, and this one is "
				   "wrong: only engines that send whole frames (packet) keep it");
	if (view.version == 4 && load_be32(view.from.bytes) == 0)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the kernel replaces the source 0.0.0.0 of raw packets: use the packet engine");
	rc = raw_choose(state, view.version, err);
	if (rc == 0)
		raw_bind(state, &view.from);
	return rc;
}

static int raw_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	struct ktx_sock *sock = &state->sock;

	if (count > KTX_BATCH_MAX)
		count = KTX_BATCH_MAX;
	for (int i = 0; i < count; i++) {
		uint32_t l3 = ktx_stack_offset(state->link);

		ktx_stack_destination(&state->to[i], requests[i]->frame + l3, 0, state->scope);
		sock->vectors[i] =
			(struct iovec){ .iov_base = requests[i]->frame + l3, .iov_len = requests[i]->length - l3 };
		sock->messages[i].msg_hdr.msg_name = &state->to[i];
		sock->messages[i].msg_hdr.msg_namelen = ktx_stack_address_length(&state->to[i]);
	}
	return ktx_sock_send(sock, count);
}

/*
 * Over IPv6 the kernel also puts each frame rejected for its size into the error queue, where it would look like an
 * error of the network.
 */
static void raw_warm(struct ktx_engine_state *state)
{
	if (state->version == 4)
		ktx_sock_warm(&state->sock);
}

static int raw_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	return state->sock.stamps ? ktrxer_txstamp_reap(state->sock.fd, completions) : 0;
}

static void raw_restart_stamps(struct ktx_engine_state *state)
{
	ktrxer_txstamp_restart(state->sock.fd);
}

static int raw_event_fd(const struct ktx_engine_state *state)
{
	return state->sock.stamps && state->version ? state->sock.fd : -1;
}

static bool raw_holds(const struct ktx_engine_state *state)
{
	return ktx_sock_holds(&state->sock);
}

static const struct ktx_submit_ops raw_submit = {
	.send = raw_send,
	.warm = raw_warm,
	.reap = raw_reap,
	.holds = raw_holds,
	.restart_stamps = raw_restart_stamps,
};

const struct ktx_engine ktx_engine_raw = {
	.name = "raw",
	.summary = "raw IP socket: any IP packet, through the host's routing and qdisc",
	.submit = &raw_submit,
	.can = KTX_CAN_HOST_STACK | KTX_CAN_SEND_TIME,
	.rank_timing = 20,
	.rank_rate = 10,
	.why_timing = "the host's routing chooses the way; any IP header",
	.why_rate = "the host's routing chooses the way; any IP header",
	.probe = raw_probe,
	.open = raw_open,
	.close = raw_close,
	.features = raw_features,
	.check = raw_check,
	.event_fd = raw_event_fd,
};
