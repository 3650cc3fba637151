/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reply_receiver.h"

#include "base_limits.h"
#include "clock.h"
#include "error.h"
#include "message.h"
#include "name.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { LINK_HEADERS = 18 }; /* Ethernet with a tag */

static int open_socket(struct reply_receiver *receiver, const struct reply_receiver_options *o, int fd)
{
	const int room = 4 << 20;
	socklen_t size = sizeof(int);
	int type = 0;

	receiver->socket = receiver->fd = fd;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
		return -errno;
	receiver->ip_header = type == SOCK_RAW && o->proto == KTRXER_ICMP;
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	ktrxer_message_enable(fd, o->path->to.family);
	ktrxer_message_enable_device(fd, o->path->to.family);
	return 0;
}

static int open_krx(struct reply_receiver *receiver, const struct reply_receiver_options *o, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	const uint8_t icmp = o->path->to.family == AF_INET6 ? KTRXER_ICMPV6 : KTRXER_ICMP;
	struct krx_rule rules[2] = { { .op = KRX_CAPTURE, .proto = o->proto }, { .op = KRX_CAPTURE, .proto = icmp } };
	struct ktx_info info;
	int rc;

	/* Receive stamps are the NIC's where send stamps are: its clock is read for both. */
	ktx_info(o->tx, &info);
	options.nic_stamps = info.features & KTX_CAN_NIC_STAMP;
	/* Else all devices, because an answer may arrive by another one than its probe left by. */
	options.device = options.nic_stamps ? o->path->device.name : NULL;
	/*
	 * The ring has slots of the largest packet. Without a device that is 64 KiB: so few slots that answers are
	 * lost.
	 */
	options.snap_length = o->path->device.mtu + LINK_HEADERS;
	/* An answer to a multicast or broadcast probe has any source address. */
	for (int i = 0; i < 2; i++) {
		rules[i].to = o->path->source;
		rules[i].to.scope_id = 0; /* a rule is about packets, which do not contain it */
		rules[i].to_prefix = rules[i].to.family == AF_INET6 ? 128 : 32;
	}
	rules[0].to_port = o->proto == KTRXER_UDP ? o->port : 0;
	receiver->probe = (struct icmp_error_probe){
		.from = o->path->source, .to = o->path->to, .proto = o->proto, .id = o->port
	};
	rc = krx_open(&receiver->krx, &options, rules, o->proto == icmp ? 1 : 2, err);
	if (rc == 0)
		receiver->fd = krx_fd(receiver->krx);
	return rc;
}

int reply_receiver_open(struct reply_receiver *receiver, const struct reply_receiver_options *o,
			struct ktrxer_error *err)
{
	int fd = ktx_reply_fd(o->tx);

	*receiver = (struct reply_receiver){
		.fd = -1, .socket = -1, .proto = o->proto, .snap = o->snap, .witness = o->witness
	};
	receiver->clock = calloc(1, sizeof *receiver->clock);
	receiver->data = calloc(1, o->snap);
	if (!receiver->clock || !receiver->data)
		return ktrxer_fail(err, -ENOMEM, "no memory for answers");
	ktrxer_clock_map_init(receiver->clock);
	receiver->empty_ns = ktrxer_now_ns();
	return fd >= 0 ? open_socket(receiver, o, fd) : open_krx(receiver, o, err);
}

void reply_receiver_close(struct reply_receiver *receiver)
{
	krx_close(receiver->krx);
	free(receiver->clock);
	free(receiver->data);
	*receiver = (struct reply_receiver){ .fd = -1, .socket = -1 };
}

uint64_t reply_receiver_drops(const struct reply_receiver *receiver)
{
	struct krx_stats stats = { 0 };

	return receiver->krx && krx_stats(receiver->krx, &stats, NULL, 0) == 0 ? stats.lost : 0;
}

static int socket_next(struct reply_receiver *receiver, struct reply *reply)
{
	_Alignas(struct cmsghdr) char control[KTRXER_MESSAGE_CONTROL];
	union ktrxer_name from = { 0 };
	struct iovec vector = { .iov_base = receiver->data, .iov_len = receiver->snap };
	struct msghdr header = { .msg_name = &from,
				 .msg_namelen = sizeof from,
				 .msg_iov = &vector,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof control };
	const uint64_t before = ktrxer_now_ns();
	ssize_t n = recvmsg(receiver->socket, &header, MSG_DONTWAIT);
	struct ktrxer_message m;
	uint64_t now, earliest;
	uint32_t offset = 0;

	if (n < 0) {
		/* recvmsg() returns an ICMP error about a probe here, too; the error queue has it in full. */
		if (errno == EAGAIN) {
			receiver->empty_ns = before;
			return 0;
		}
		return errno == ENETDOWN || errno == ENODEV ? -errno : -EAGAIN;
	}
	ktrxer_message_read(&m, &header);
	ktrxer_message_drops(&m, &receiver->drops_seen, &receiver->socket_drops);
	*reply = (struct reply){ .ttl = m.ttl, .tos = m.tos, .device = m.ifindex };
	ktrxer_name_read(&from, &reply->from);
	reply->from.scope_id = 0; /* as in the header of a packet */
	now = ktrxer_now_ns();
	/* Each time: a step just now, not noticed, would move this round trip by as much. */
	ktrxer_clock_map_refresh(receiver->clock, now, 0);
	/* It came after the socket was last seen empty, or just before: that tells the two sides of a step apart. */
	earliest = receiver->empty_ns > KRX_STAMP_BEFORE_NS ? receiver->empty_ns - KRX_STAMP_BEFORE_NS : 0;
	if (m.real_ns &&
	    ktrxer_clock_map_mono_checked(receiver->clock, m.real_ns, earliest, now, &reply->received_ns)) {
		reply->source = KTRXER_STAMP_KERNEL;
		reply->bound_ns = ktrxer_clock_map_bound(receiver->clock);
	} else if (m.real_ns && reply->received_ns >= earliest && reply->received_ns <= now) {
		/* A step of the clock may have come on either side of this stamp. */
		reply->source = 0;
		reply->bound_ns = ktrxer_clock_map_step(receiver->clock);
	} else {
		reply->received_ns = now;
		reply->source = KTRXER_STAMP_USER;
		reply->bound_ns = ktrxer_clock_map_bound(receiver->clock);
	}
	if (receiver->ip_header) {
		offset = n ? 4u * (receiver->data[0] & 15u) : 0;
		if (n < 20 || offset < 20 || offset > (uint32_t)n)
			return -EAGAIN;
		reply->ttl = receiver->data[8];
		reply->tos = receiver->data[1];
	}
	reply->data = receiver->data + offset;
	reply->length = (uint32_t)n - offset;
	return 1;
}

/* The devices from the lowest to the highest; the highest is that of the address, so it is the one that counts. */
static bool is_copy(struct reply_receiver *receiver, const struct krx_packet *packet)
{
	for (uint32_t i = 0; packet->source == KTRXER_STAMP_KERNEL && i < REPLY_COPIES; i++) {
		struct reply_seen *seen = &receiver->seen[i];

		if (seen->raw_ns != packet->raw_ns || seen->device == packet->device)
			continue;
		path_witness_moved(receiver->witness, seen->device, packet->device);
		seen->device = packet->device;
		return true;
	}
	receiver->seen[receiver->seen_next++ % REPLY_COPIES] =
		(struct reply_seen){ .raw_ns = packet->raw_ns, .device = packet->device };
	return false;
}

static int krx_one(struct reply_receiver *receiver, struct reply *reply)
{
	struct ktrxer_frame_view view;
	struct ktx_network_error error;
	struct krx_packet packet;
	int rc = krx_next(receiver->krx, &packet);
	uint32_t at;

	if (rc <= 0)
		return rc;
	if (is_copy(receiver, &packet))
		return -EAGAIN;
	/* The first fragment has the number of the probe. */
	if (ktrxer_frame_read(&view, packet.data, packet.length, packet.link) < 0 && (!view.fragment || view.malformed))
		return -EAGAIN;
	if (icmp_error_read(&error, &packet, &view, &receiver->probe)) {
		if (receiver->error)
			receiver->error(receiver->context, &error);
		return -EAGAIN;
	}
	at = receiver->proto == KTRXER_UDP ? view.payload : view.transport;
	if (!view.transport || view.proto != receiver->proto)
		return -EAGAIN;
	*reply = (struct reply){ .data = packet.data + at,
				 .length = view.payload + view.payload_length - at,
				 .received_ns = packet.mono_ns,
				 .bound_ns = packet.bound_ns,
				 .source = packet.source,
				 .ttl = view.ttl,
				 .tos = view.tos,
				 .from = view.from,
				 .device = packet.device };
	return 1;
}

int reply_receiver_next(struct reply_receiver *receiver, struct reply *reply)
{
	return receiver->krx ? krx_one(receiver, reply) : socket_next(receiver, reply);
}
