/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "inlet.h"

#include "clock.h"
#include "error.h"
#include "limits.h"
#include "packet.h"
#include "txstamp.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int inlet_socket(struct inlet *inlet, const struct inlet_options *o, int fd)
{
	const int on = 1, room = 4 << 20;
	socklen_t size = sizeof(int);
	int type = 0;

	inlet->socket = inlet->fd = fd;
	if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
		return -errno;
	inlet->ip_header = type == SOCK_RAW && o->proto == KTRXER_ICMP;
	(void)!setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
	if (o->path->to.family == AF_INET6) {
		(void)!setsockopt(fd, SOL_IPV6, IPV6_RECVHOPLIMIT, &on, sizeof on);
		(void)!setsockopt(fd, SOL_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
	} else {
		(void)!setsockopt(fd, SOL_IP, IP_RECVTTL, &on, sizeof on);
		(void)!setsockopt(fd, SOL_IP, IP_RECVTOS, &on, sizeof on);
	}
	return 0;
}

static int inlet_krx(struct inlet *inlet, const struct inlet_options *o, struct ktrxer_error *err)
{
	struct krx_options options = KRX_OPTIONS_INIT;
	struct krx_rule rule = { .op = KRX_CAPTURE, .proto = o->proto };
	struct ktx_info info;
	int rc;

	/* Who is sent by the NIC's word is received by it: its clock is read for the one, and serves the other. */
	ktx_info(o->tx, &info);
	options.nic_stamps = info.features & KTX_CAN_WIRE_STAMP;
	options.device = o->path->device.name;
	/* An answer to a multicast or broadcast probe comes from whom it likes. */
	rule.to = o->path->source;
	rule.to_prefix = rule.to.family == AF_INET6 ? 128 : 32;
	rule.to_port = o->proto == KTRXER_UDP ? o->port : 0;
	rc = krx_open(&inlet->krx, &options, &rule, 1, err);
	if (rc == 0)
		inlet->fd = krx_fd(inlet->krx);
	return rc;
}

int inlet_open(struct inlet *inlet, const struct inlet_options *o, struct ktrxer_error *err)
{
	int fd = ktx_reply_fd(o->tx);

	*inlet = (struct inlet){ .fd = -1, .socket = -1, .link = o->path->device.link, .proto = o->proto, .snap = o->snap };
	inlet->clock = calloc(1, sizeof *inlet->clock);
	inlet->data = calloc(1, o->snap);
	if (!inlet->clock || !inlet->data)
		return ktrxer_fail(err, -ENOMEM, "no memory for answers");
	ktrxer_clock_map_init(inlet->clock);
	inlet->empty_ns = ktrxer_now_ns();
	return fd >= 0 ? inlet_socket(inlet, o, fd) : inlet_krx(inlet, o, err);
}

void inlet_close(struct inlet *inlet)
{
	krx_close(inlet->krx);
	free(inlet->clock);
	free(inlet->data);
	*inlet = (struct inlet){ .fd = -1, .socket = -1 };
}

uint64_t inlet_lost(const struct inlet *inlet)
{
	struct krx_stats stats = { 0 };

	if (inlet->krx && krx_stats(inlet->krx, &stats, NULL, 0) == 0)
		return inlet->overflows + stats.lost;
	return inlet->overflows;
}

/* ------------------------------------------------------------------------------------------------- by the socket */

static void from_of(struct ktrxer_addr *addr, const struct sockaddr_storage *ss)
{
	memset(addr, 0, sizeof *addr);
	addr->family = (uint8_t)ss->ss_family;
	if (ss->ss_family == AF_INET)
		memcpy(addr->bytes, &((const struct sockaddr_in *)ss)->sin_addr, 4);
	else if (ss->ss_family == AF_INET6)
		memcpy(addr->bytes, &((const struct sockaddr_in6 *)ss)->sin6_addr, 16);
	else
		addr->family = 0;
}

static void control_read(struct inlet *inlet, struct msghdr *message, struct inlet_arrival *arrival)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
		const bool ip = c->cmsg_level == SOL_IP, ip6 = c->cmsg_level == SOL_IPV6;
		uint32_t word = 0;

		if (ip && c->cmsg_type == IP_TOS && c->cmsg_len >= CMSG_LEN(1))
			arrival->tos = *CMSG_DATA(c); /* one byte, the others are words */
		if (c->cmsg_len < CMSG_LEN(sizeof word))
			continue;
		memcpy(&word, CMSG_DATA(c), sizeof word);
		if ((ip && c->cmsg_type == IP_TTL) || (ip6 && c->cmsg_type == IPV6_HOPLIMIT))
			arrival->ttl = (uint8_t)word;
		if (ip6 && c->cmsg_type == IPV6_TCLASS)
			arrival->tos = (uint8_t)word;
		if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
			inlet->overflows += word - inlet->overflow_seen;
			inlet->overflow_seen = word;
		}
	}
}

static int socket_next(struct inlet *inlet, const uint8_t **data, uint32_t *length, struct inlet_arrival *arrival)
{
	union {
		char room[256];
		struct cmsghdr align;
	} control;
	struct sockaddr_storage from = { 0 };
	struct iovec vector = { .iov_base = inlet->data, .iov_len = inlet->snap };
	struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &vector, .msg_iovlen = 1,
				  .msg_control = control.room, .msg_controllen = sizeof control.room };
	uint32_t offset = 0;
	uint64_t now, earliest;
	int64_t real;
	const uint64_t before = ktrxer_now_ns();
	ssize_t n = recvmsg(inlet->socket, &message, MSG_DONTWAIT);

	if (n < 0) {
		/* An ICMP error about a probe is told here too; the error queue has it in full. */
		if (errno == EAGAIN) {
			inlet->empty_ns = before;
			return 0;
		}
		return errno == ENETDOWN || errno == ENODEV ? -errno : -EAGAIN;
	}
	*arrival = (struct inlet_arrival){ 0 };
	from_of(&arrival->from, &from);
	control_read(inlet, &message, arrival);
	now = ktrxer_now_ns();
	/* Each time: a step just now, not noticed, would move this round trip by as much. */
	ktrxer_clock_map_refresh(inlet->clock, now, 0);
	real = ktrxer_stamp_of_message(&message, NULL);
	/* It came after the socket was last seen empty, or just before: that tells the two sides of a step apart. */
	earliest = inlet->empty_ns > KRX_STAMP_BEFORE_NS ? inlet->empty_ns - KRX_STAMP_BEFORE_NS : 0;
	if (real && ktrxer_clock_map_mono_checked(inlet->clock, real, earliest, now, &arrival->received_ns)) {
		arrival->source = KTRXER_STAMP_KERNEL;
	} else {
		arrival->received_ns = now;
		arrival->source = KTRXER_STAMP_USER;
	}
	arrival->bound_ns = ktrxer_clock_map_bound(inlet->clock);
	*length = (uint32_t)n;
	if (inlet->ip_header) {
		offset = *length ? 4u * (inlet->data[0] & 15u) : 0;
		if (*length < 20 || offset < 20 || offset > *length)
			return -EAGAIN;
		arrival->ttl = inlet->data[8];
		arrival->tos = inlet->data[1];
	}
	*data = inlet->data + offset;
	*length -= offset;
	return 1;
}

/* ---------------------------------------------------------------------------------------------------- by a receiver */

static int krx_one(struct inlet *inlet, const uint8_t **data, uint32_t *length, struct inlet_arrival *arrival)
{
	struct ktrxer_packet_view view;
	struct krx_packet packet;
	int rc = krx_next(inlet->krx, &packet);
	uint32_t at;

	if (rc <= 0)
		return rc;
	ktrxer_packet_parse(&view, packet.data, packet.length, inlet->link);
	*arrival = (struct inlet_arrival){ .received_ns = packet.mono_ns, .bound_ns = packet.bound_ns, .source = packet.source,
					   .ttl = view.ttl, .tos = view.tos, .from = view.from };
	at = inlet->proto == KTRXER_UDP ? view.payload : view.l4;
	if (!at || view.proto != inlet->proto)
		return -EAGAIN;
	*data = packet.data + at;
	*length = view.end - at;
	return 1;
}

int inlet_next(struct inlet *inlet, const uint8_t **data, uint32_t *length, struct inlet_arrival *arrival)
{
	return inlet->krx ? krx_one(inlet, data, length, arrival) : socket_next(inlet, data, length, arrival);
}
