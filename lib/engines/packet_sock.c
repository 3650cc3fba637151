/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "packet_sock.h"

#include "send_room.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <unistd.h>

int ktx_packet_socket(const struct ktrxer_device *device, struct ktrxer_error *err)
{
	struct sockaddr_ll ll = { .sll_family = AF_PACKET, .sll_ifindex = (int)device->index };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), rc;
	if (fd < 0) {
		rc = -errno;
		if (rc == -EPERM || rc == -EACCES)
			return ktrxer_fail(err, rc, "packet sockets need CAP_NET_RAW: run as root");
		if (rc == -EAFNOSUPPORT)
			return ktrxer_fail(err, rc, "this kernel has no packet sockets (CONFIG_PACKET)");
		return ktrxer_fail(err, rc, "packet socket: %m");
	}
	if (bind(fd, (struct sockaddr *)&ll, sizeof ll) != 0) {
		rc = -errno;
		close(fd);
		if (rc == -ENODEV || rc == -ENXIO)
			return ktrxer_fail(err, -ENODEV, "device '%s' is gone", device->name);
		return ktrxer_fail(err, rc, "packet socket on '%s': %m", device->name);
	}
	return fd;
}

void ktx_packet_sock_init(struct ktx_packet_sock *packet, int fd, const struct ktrxer_device *device)
{
	ktx_sock_init(&packet->sock, fd);
	packet->link = device->link;
	packet->to = (struct sockaddr_ll){ .sll_family = AF_PACKET, .sll_ifindex = (int)device->index };
	ktx_sock_send_room(fd, 4 << 20);
}

int ktx_packet_sock_check(const struct ktx_packet_sock *packet, const uint8_t *frame, uint32_t length,
			  struct ktrxer_error *err)
{
	if (packet->link == KTRXER_LINK_ETHERNET)
		return 0;
	if (length < 1 || (frame[0] >> 4 != 4 && frame[0] >> 4 != 6))
		return ktrxer_fail(err, -EBADMSG,
				   "this link carries IP packets without a link header; this is neither IPv4 nor IPv6");
	return 0;
}

int ktx_packet_sock_fill(struct ktx_packet_sock *packet, struct ktx_request *const *requests, int count)
{
	struct ktx_sock *sock = &packet->sock;

	if (count > KTX_BATCH_MAX)
		count = KTX_BATCH_MAX;
	for (int i = 0; i < count; i++) {
		sock->vectors[i] = (struct iovec){ .iov_base = requests[i]->frame, .iov_len = requests[i]->length };
		if (packet->link != KTRXER_LINK_RAW_IP)
			continue;
		/* One version a batch: a call has one protocol for all. */
		if (i > 0 && (requests[i]->frame[0] >> 4) != (requests[0]->frame[0] >> 4))
			return i;
		packet->to.sll_protocol = htons(requests[0]->frame[0] >> 4 == 6 ? ETH_P_IPV6 : ETH_P_IP);
		sock->messages[i].msg_hdr.msg_name = &packet->to;
		sock->messages[i].msg_hdr.msg_namelen = sizeof packet->to;
	}
	return count;
}
