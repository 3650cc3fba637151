/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The host's own datagram sockets: UDP, and ICMP echo requests through the kernel's ping sockets. Needs no privilege.
 * The kernel writes the headers, so a frame is taken only when the headers that it would write are the ones in the
 * frame; zero in the IPv4 identification and the IPv6 flow label means "the host's choice".
 */
#include "bytes.h"
#include "engine.h"
#include "message.h"
#include "send_room.h"
#include "sock.h"
#include "host_stack.h"
#include "txstamp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Properties of the socket, which cannot change from frame to frame; the first frame decides. */
struct udp_shape {
	uint8_t version, proto;
	uint16_t port; /* UDP: source port; ICMP: identifier */
	bool dont_fragment, no_checksum;
	struct ktrxer_addr from;
};

struct ktx_engine_state {
	struct ktx_sock sock;
	enum ktrxer_link link;
	struct ktrxer_device device; /* index 0: any */
	uint8_t device_mac[6];
	struct ktx_options options;
	bool want_stamps;
	struct udp_shape shape;       /* version 0: no frame yet */
	uint8_t ttl, tos;             /* of the socket; a frame that differs brings its own by control message */
	union ktx_stack_address peer; /* the destination that the socket is connected to; family 0: none */
	union ktx_stack_address to[KTX_BATCH_MAX];
	union {
		char room[2 * CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control[KTX_BATCH_MAX];
};

static int udp_probe(const struct ktrxer_device *device, struct ktx_engine_info *info)
{
	(void)device;
	for (int v = 0; v < 2; v++) {
		int fd = socket(v ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			continue;
		info->features |=
			(v ? KTX_CAN_IPV6 : KTX_CAN_IPV4) | KTX_CAN_TRAIN | KTX_CAN_UNPRIVILEGED | KTX_CAN_REPLY_FD;
		if (ktrxer_txstamp_enable(fd) == 0)
			info->features |=
				KTX_CAN_DRIVER_STAMP | (ktrxer_txstamp_add_sched(fd) == 0 ? KTX_CAN_SCHED_STAMP : 0);
		close(fd);
	}
	if (info->features)
		return 0;
	snprintf(info->reason, sizeof info->reason, "this kernel has neither IPv4 nor IPv6");
	return -EAFNOSUPPORT;
}

static int udp_open(struct ktx_engine_state **out, const struct ktx_engine_setup *setup, struct ktrxer_error *err)
{
	struct ktx_engine_state *state = calloc(1, sizeof *state);

	if (!state)
		return ktrxer_fail(err, -ENOMEM, "no memory for the udp engine");
	ktx_sock_init(&state->sock, -1);
	state->link = setup->link;
	if (setup->device) {
		state->device = *setup->device;
		memcpy(state->device_mac, setup->device->mac, sizeof state->device_mac);
	}
	state->options = *setup->options;
	state->want_stamps = !(setup->options->flags & KTX_NO_STAMPS) && setup->options->purpose == KTX_FOR_TIMING;
	*out = state;
	return 0;
}

static void udp_close(struct ktx_engine_state *state)
{
	ktx_sock_close(&state->sock);
	free(state);
}

static uint32_t udp_features(const struct ktx_engine_state *state)
{
	return KTX_CAN_IPV4 | KTX_CAN_IPV6 | KTX_CAN_TRAIN | KTX_CAN_UNPRIVILEGED | KTX_CAN_REPLY_FD |
	       (state->shape.version ? ktx_sock_stamp_features(&state->sock)
		: state->want_stamps ? KTX_CAN_DRIVER_STAMP
				     : 0);
}

#ifndef KTRXER_SMALL
/*
 * The kernel gives each raw socket a copy of each reply. A copy would cost each of many probers as much as a probe, so
 * only the replies to our own requests enter the socket's queue.
 */
static void id_filter(int fd, bool v6, uint16_t id)
{
	/* An IPv4 packet begins with its IP header, an IPv6 one with that of ICMP. */
	struct sock_filter code[] = {
		BPF_STMT(v6 ? BPF_LDX | BPF_IMM : BPF_LDX | BPF_MSH | BPF_B, 0),
		BPF_STMT(BPF_LD | BPF_H | BPF_IND, 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, id, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	const struct sock_fprog program = { .len = sizeof code / sizeof *code, .filter = code };

	(void)!setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}
#endif

/* Only echo replies, and the errors about our requests, reach a raw ICMP socket. */
static void icmp_filter(int fd, bool v6)
{
	if (v6) {
		struct icmp6_filter filter;

		ICMP6_FILTER_SETBLOCKALL(&filter);
		ICMP6_FILTER_SETPASS(ICMP6_ECHO_REPLY, &filter);
		(void)!setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter);
	} else {
		struct icmp_filter filter = { .data = ~(1U << ICMP_ECHOREPLY) };

		(void)!setsockopt(fd, SOL_RAW, ICMP_FILTER, &filter, sizeof filter);
	}
}

static int udp_socket(const struct udp_shape *shape, struct ktrxer_error *err)
{
	const bool v6 = shape->version == 6, icmp = shape->proto != KTRXER_UDP;
	const int family = v6 ? AF_INET6 : AF_INET;
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, shape->proto), rc;
	if (fd < 0 && icmp && (errno == EACCES || errno == EPERM || errno == EPROTONOSUPPORT)) {
		/* ping_group_range leaves our group out; with CAP_NET_RAW there is the raw way. */
		fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, shape->proto);
		if (fd >= 0) {
			icmp_filter(fd, v6);
#ifndef KTRXER_SMALL
			id_filter(fd, v6, shape->port);
#endif
			return fd;
		}
		rc = -errno;
		return ktrxer_fail(err, rc, "%s", KTRXER_PING_CLOSED);
	}
	if (fd < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "datagram socket: %m");
	}
	return fd;
}

static int udp_bind(int fd, const struct udp_shape *shape, uint32_t scope, struct ktrxer_error *err)
{
	union ktx_stack_address local = { 0 };
	char text[KTRXER_ADDR_TEXT];
	int rc;

	if (shape->version == 6) {
		local.v6.sin6_family = AF_INET6;
		local.v6.sin6_port = htons(shape->port);
		memcpy(&local.v6.sin6_addr, shape->from.bytes, 16);
		if (IN6_IS_ADDR_LINKLOCAL(&local.v6.sin6_addr))
			local.v6.sin6_scope_id = scope;
	} else {
		local.v4.sin_family = AF_INET;
		local.v4.sin_port = htons(shape->port);
		memcpy(&local.v4.sin_addr, shape->from.bytes, 4);
	}
	if (bind(fd, &local.sa, ktx_stack_address_length(&local)) == 0)
		return 0;
	rc = -errno;
	ktrxer_addr_format(&shape->from, text);
	if (rc == -EADDRNOTAVAIL)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "%s is no address of this host, and the udp engine can send from no other: "
				   "use the raw or packet engine",
				   text);
	if (rc == -EADDRINUSE)
		return ktrxer_fail(err, rc, "%s %u of %s is taken by another program",
				   shape->proto == KTRXER_UDP ? "port" : "identifier", shape->port, text);
	return ktrxer_fail(err, rc, "cannot send from %s port %u: %m", text, shape->port);
}

static void option_set(int fd, int level, int name, int value)
{
	(void)!setsockopt(fd, level, name, &value, sizeof value);
}

static int udp_first(struct ktx_engine_state *state, const struct udp_shape *shape,
		     const struct ktrxer_packet_view *view, struct ktrxer_error *err)
{
	int fd = udp_socket(shape, err), rc;

	if (fd < 0)
		return fd;
	if (state->device.index &&
	    setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, state->device.name, sizeof state->device.name) != 0) {
		rc = ktrxer_fail(err, -errno, "the socket cannot be bound to device '%s'", state->device.name);
		goto close_socket;
	}
	option_set(fd, SOL_SOCKET, SO_BROADCAST, 1);
	if (shape->version == 6) {
		option_set(fd, SOL_IPV6, IPV6_RECVERR, 1);
		option_set(fd, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);
		option_set(fd, SOL_IPV6, IPV6_UNICAST_HOPS, view->ttl);
		option_set(fd, SOL_IPV6, IPV6_MULTICAST_HOPS, view->ttl);
		option_set(fd, SOL_IPV6, IPV6_TCLASS, view->tos);
	} else {
		option_set(fd, SOL_IP, IP_RECVERR, 1);
		option_set(fd, SOL_IP, IP_MTU_DISCOVER, shape->dont_fragment ? IP_PMTUDISC_PROBE : IP_PMTUDISC_DONT);
		option_set(fd, SOL_IP, IP_TTL, view->ttl);
		option_set(fd, SOL_IP, IP_MULTICAST_TTL, view->ttl);
		option_set(fd, SOL_IP, IP_TOS, view->tos);
	}
	if (shape->no_checksum)
		option_set(fd, SOL_SOCKET, SO_NO_CHECK, 1);
	rc = udp_bind(fd, shape, state->device.index, err);
	if (rc < 0)
		goto close_socket;
	ktx_sock_send_room(fd, 4 << 20);
	/*
	 * One call for both directions: the caller reads the answers, with the kernel's stamps, from this same socket.
	 */
	if (state->want_stamps)
		ktx_sock_stamps(&state->sock, fd, shape->version == 6 ? AF_INET6 : AF_INET, &state->options);
	else
		ktrxer_rxstamp_enable(fd);
	state->ttl = view->ttl;
	state->tos = view->tos;
	state->sock.fd = fd;
	state->shape = *shape;
	return 0;

close_socket:
	close(fd);
	return rc;
}

static int udp_check_headers(const struct ktrxer_packet_view *view, const uint8_t *frame, struct udp_shape *shape,
			     struct ktrxer_error *err)
{
	const bool v6 = view->version == 6;
	uint16_t checksum, stored;

	if (view->options)
		return ktrxer_fail(err, -EOPNOTSUPP, "the udp engine cannot write %s: use the raw or packet engine",
				   v6 ? "IPv6 extension headers" : "IPv4 options");
	if (view->fragment)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the udp engine cannot send a fragment: use the raw or packet engine");
	if (v6 ? (load_be32(frame + view->l3) & 0xfffffu) != 0 : view->ip_id != 0)
		return ktrxer_fail(
			err, -EOPNOTSUPP,
			"the kernel chooses the %s of datagrams: leave it zero, or use the raw or packet engine",
			v6 ? "flow label" : "identification");
	if (!view->ttl)
		return ktrxer_fail(err, -EOPNOTSUPP, "the udp engine cannot send with a TTL of 0");
	if (view->proto == KTRXER_UDP && view->ports)
		shape->port = view->from_port;
	else if ((!v6 && view->proto == KTRXER_ICMP && view->icmp_type == ICMP_ECHO && !view->icmp_code) ||
		 (v6 && view->proto == KTRXER_ICMPV6 && view->icmp_type == ICMP6_ECHO_REQUEST && !view->icmp_code))
		shape->port = view->icmp_id;
	else
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the udp engine sends UDP and ICMP echo requests, not protocol %u: "
				   "use the raw or packet engine",
				   view->proto);
	stored = load_be16(frame + view->l4 + (view->proto == KTRXER_UDP ? 6 : 2));
	checksum = ktrxer_transport_checksum(frame, view);
	shape->no_checksum = view->proto == KTRXER_UDP && !v6 && stored == 0;
	if (!shape->no_checksum && stored != checksum)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the kernel writes right checksums and this one is wrong (%04x, right: %04x): "
				   "use the raw or packet engine",
				   stored, checksum);
	shape->version = view->version;
	shape->proto = view->proto;
	shape->dont_fragment = view->dont_fragment;
	shape->from = view->from;
	return 0;
}

static int udp_check(struct ktx_engine_state *state, const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	struct ktrxer_packet_view view;
	struct udp_shape shape = { 0 };
	int rc = ktx_stack_check(&view, frame, length, state->link, state->device_mac, "udp", err);

	if (rc == 0)
		rc = udp_check_headers(&view, frame, &shape, err);
	if (rc < 0)
		return rc;
	if (!state->shape.version)
		return udp_first(state, &shape, &view, err);
	if (shape.version != state->shape.version || shape.proto != state->shape.proto ||
	    shape.port != state->shape.port || shape.dont_fragment != state->shape.dont_fragment ||
	    shape.no_checksum != state->shape.no_checksum || !ktrxer_addr_equal(&shape.from, &state->shape.from))
		return ktrxer_fail(
			err, -EOPNOTSUPP,
			"the udp engine is one socket: version, protocol, source address and port, DF and "
			"the use of a checksum stay as the first frame had them; use the raw or packet engine");
	return 0;
}

static void udp_message(struct ktx_engine_state *state, int i, const uint8_t *packet, uint32_t length)
{
	struct msghdr *message = &state->sock.messages[i].msg_hdr;
	const bool v6 = state->shape.version == 6;
	const uint32_t l4 = v6 ? 40 : 20, head = l4 + (state->shape.proto == KTRXER_UDP ? 8 : 0);
	const int ttl = packet[v6 ? 7 : 8], tos = v6 ? (uint8_t)(load_be16(packet) >> 4) : packet[1];

	ktx_stack_destination(&state->to[i], packet, state->shape.proto == KTRXER_UDP ? load_be16(packet + l4 + 2) : 0,
			      state->device.index);
	state->sock.vectors[i] = (struct iovec){ .iov_base = (uint8_t *)packet + head, .iov_len = length - head };
	message->msg_name = &state->to[i];
	message->msg_namelen = ktx_stack_address_length(&state->to[i]);
	message->msg_control = NULL;
	message->msg_controllen = 0;
	if (ttl == state->ttl && tos == state->tos)
		return;
	message->msg_control = state->control[i].room;
	if (ttl != state->ttl)
		ktrxer_message_add(message, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_HOPLIMIT : IP_TTL, &ttl, sizeof ttl);
	if (tos != state->tos)
		ktrxer_message_add(message, v6 ? SOL_IPV6 : SOL_IP, v6 ? IPV6_TCLASS : IP_TOS, &tos, sizeof tos);
}

/*
 * The kernel looks up the route of a datagram after the send time was written into it. A connected socket has the route
 * already.
 */
static void udp_connect(struct ktx_engine_state *state, int count)
{
	const socklen_t length = ktx_stack_address_length(&state->to[0]);

	if (!state->peer.sa.sa_family && connect(state->sock.fd, &state->to[0].sa, length) == 0)
		state->peer = state->to[0];
	for (int i = 0; i < count; i++)
		if (memcmp(&state->to[i], &state->peer, length) == 0)
			state->sock.messages[i].msg_hdr.msg_namelen = 0;
}

static bool about_an_earlier_probe(int rc)
{
	return rc == -ECONNREFUSED || rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EPROTO || rc == -EHOSTDOWN ||
	       rc == -ENOPROTOOPT || rc == -EACCES || rc == -EMSGSIZE || rc == -EOPNOTSUPP || rc == -ENONET;
}

static int udp_send(struct ktx_engine_state *state, struct ktx_request *const *requests, int count)
{
	int rc;

	if (count > KTX_BATCH_MAX)
		count = KTX_BATCH_MAX;
	for (int i = 0; i < count; i++) {
		uint32_t l3 = ktx_stack_offset(state->link);

		udp_message(state, i, requests[i]->frame + l3, requests[i]->length - l3);
	}
	if (state->options.send_time)
		udp_connect(state, count);
	rc = ktx_sock_send(&state->sock, count);
	/*
	 * A socket with RECVERR reports an ICMP error about an earlier probe once, at the next send. A second report is
	 * about this probe.
	 */
	if (about_an_earlier_probe(rc))
		rc = ktx_sock_send(&state->sock, count);
	return rc;
}

/*
 * Over IPv6 the kernel also puts each frame rejected for its size into the error queue, where it would look like an
 * error of the network.
 */
static void udp_warm(struct ktx_engine_state *state)
{
	if (state->shape.version == 4)
		ktx_sock_warm(&state->sock);
}

static int udp_reap(struct ktx_engine_state *state, const struct ktx_completions *completions)
{
	return state->sock.fd >= 0 ? ktrxer_txstamp_reap(state->sock.fd, completions) : 0;
}

static void udp_restart_stamps(struct ktx_engine_state *state)
{
	ktrxer_txstamp_restart(state->sock.fd);
}

/* Errors of the network arrive by this descriptor, also without stamps. */
static int udp_event_fd(const struct ktx_engine_state *state)
{
	return state->sock.fd;
}

static int udp_reply_fd(const struct ktx_engine_state *state)
{
	return state->sock.fd;
}

static bool udp_holds(const struct ktx_engine_state *state)
{
	return ktx_sock_holds(&state->sock);
}

static const struct ktx_submit_ops udp_submit = {
	.send = udp_send,
	.checksums = true,
	.warm = udp_warm,
	.reap = udp_reap,
	.holds = udp_holds,
	.restart_stamps = udp_restart_stamps,
};

const struct ktx_engine ktx_engine_udp = {
	.name = "udp",
	.summary = "the host's datagram sockets: UDP, no privilege needed; ICMP echo",
	.submit = &udp_submit,
	.can = KTX_CAN_HOST_STACK | KTX_CAN_SEND_TIME,
	.rank_timing = 10,
	.rank_rate = 20,
	.why_timing = "needs no privilege",
	.why_rate = "needs no privilege",
	.probe = udp_probe,
	.open = udp_open,
	.close = udp_close,
	.features = udp_features,
	.check = udp_check,
	.event_fd = udp_event_fd,
	.reply_fd = udp_reply_fd,
};
