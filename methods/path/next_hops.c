/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "next_hops.h"

#include "bytes.h"

#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum {
	FLAG_FIB_MATCH = 0x2000, /* RTM_F_FIB_MATCH, Linux 4.13: the route with all its next hops, not the chosen one */
	ANSWER_BYTES = 8192,
};
#define ANSWER_WAIT_US 200000

struct attribute {
	struct rtattr head;
	uint8_t value[16];
};

struct request {
	struct nlmsghdr head;
	struct rtmsg route;
	struct attribute attributes[2];
};

static void put(struct request *r, uint16_t type, const struct ktrxer_addr *addr)
{
	const uint16_t width = addr->family == AF_INET6 ? 16 : 4;
	struct rtattr head = { .rta_len = (uint16_t)(sizeof head + width), .rta_type = type };

	memcpy((uint8_t *)r + r->head.nlmsg_len, &head, sizeof head);
	memcpy((uint8_t *)r + r->head.nlmsg_len + sizeof head, addr->bytes, width);
	r->head.nlmsg_len += sizeof head + width;
}

static uint32_t hops_of(struct bytes hops, uint32_t device)
{
	uint32_t count = 0;
	struct rtnexthop hop;

	while (bytes_left(&hops) >= sizeof hop) {
		const struct bytes rest = hops;

		bytes_copy(&hops, &hop, sizeof hop);
		hops = rest;
		if (hop.rtnh_len < sizeof hop || !bytes_skip(&hops, RTNH_ALIGN(hop.rtnh_len)))
			return 1;
		count += !device || (uint32_t)hop.rtnh_ifindex == device;
	}
	return count ? count : 1;
}

uint32_t next_hops_read(const void *message, size_t length, uint32_t device)
{
	struct bytes b = bytes_of(message, length), value;
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr attribute;

	if (!bytes_copy(&b, &head, sizeof head) || head.nlmsg_type != RTM_NEWROUTE || head.nlmsg_len > length ||
	    !bytes_copy(&b, &route, sizeof route))
		return 1;
	while (bytes_left(&b) >= sizeof attribute) {
		bytes_copy(&b, &attribute, sizeof attribute);
		if (attribute.rta_len < sizeof attribute)
			return 1;
		value = bytes_sub(&b, attribute.rta_len - sizeof attribute);
		if (!value.ok)
			return 1;
		if (attribute.rta_type == RTA_MULTIPATH)
			return hops_of(value, device);
		/* The last attribute may lack its padding. */
		if (!bytes_skip(&b, RTA_ALIGN(attribute.rta_len) - attribute.rta_len))
			return 1;
	}
	return 1;
}

uint32_t next_hops_count(const struct ktrxer_addr *to, const struct ktrxer_addr *from, uint32_t device)
{
	const uint8_t bits = to->family == AF_INET6 ? 128 : 32;
	const struct timeval wait = { .tv_usec = ANSWER_WAIT_US };
	struct request request = {
		.head = { .nlmsg_len = NLMSG_LENGTH(sizeof(struct rtmsg)),
			  .nlmsg_type = RTM_GETROUTE,
			  .nlmsg_flags = NLM_F_REQUEST },
		.route = { .rtm_family = to->family, .rtm_dst_len = bits, .rtm_flags = FLAG_FIB_MATCH },
	};
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	_Alignas(struct nlmsghdr) uint8_t answer[ANSWER_BYTES];
	ssize_t length = -1;

	if (fd < 0)
		return 1;
	put(&request, RTA_DST, to);
	if (from->family == to->family) {
		request.route.rtm_src_len = bits;
		put(&request, RTA_SRC, from);
	}
	(void)!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
	if (send(fd, &request, request.head.nlmsg_len, 0) > 0)
		length = recv(fd, answer, sizeof answer, 0);
	close(fd);
	return length > 0 ? next_hops_read(answer, (size_t)length, device) : 1;
}
