/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The link address of a next hop. The kernel does ARP and ND: it is asked to, and its table is read until the answer is
 * there. So the answer is the one that its own traffic would use, and no socket for ARP frames is needed.
 *
 * With CAP_NET_ADMIN the kernel is asked by a neighbour message with NTF_USE ("behave as if you had a packet for it").
 * Without, it is given such a packet: an empty UDP datagram to the next hop's discard port, with a TTL of 1.
 */
#include "path.h"

#include "name.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { KTRXER_NEIGHBOUR_TIMEOUT_MS = 1000 };

enum {
	PORT_DISCARD = 9,
	ATTRIBUTE_IFINDEX = 8, /* NDA_IFINDEX, Linux 4.4 as a filter */
	STATES_VALID = NUD_REACHABLE | NUD_STALE | NUD_DELAY | NUD_PROBE | NUD_NOARP | NUD_PERMANENT,
	PAUSE_FIRST_US = 500, /* an answer over a LAN takes some 100 us */
	PAUSE_MAX_US = 16000,
};

int ktrxer_neighbour_parse(struct neighbour *neighbour, struct bytes body)
{
	struct bytes value;
	struct ndmsg info;
	uint16_t type;

	memset(neighbour, 0, sizeof *neighbour);
	if (!bytes_copy(&body, &info, sizeof info))
		return -EBADMSG;
	neighbour->device = (uint32_t)info.ndm_ifindex;
	/* A proxy's entry is about what we answer. */
	neighbour->state = info.ndm_flags & NTF_PROXY ? 0 : info.ndm_state;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		size_t length = bytes_left(&value);

		if (type == NDA_DST &&
		    ((info.ndm_family == AF_INET && length == 4) || (info.ndm_family == AF_INET6 && length == 16))) {
			neighbour->addr.family = info.ndm_family;
			bytes_copy(&value, neighbour->addr.bytes, length);
		} else if (type == NDA_LLADDR && length == sizeof neighbour->mac) {
			neighbour->has_mac = bytes_copy(&value, neighbour->mac, sizeof neighbour->mac);
		}
	}
	return body.ok ? 0 : -EBADMSG;
}

struct neighbour_search {
	const struct ktrxer_addr *addr;
	uint32_t device;
	struct neighbour found;
};

static int neighbour_take(void *context, uint16_t type, struct bytes body)
{
	struct neighbour_search *search = context;
	struct neighbour one;
	int ret;

	if (type != RTM_NEWNEIGH)
		return 0;
	ret = ktrxer_neighbour_parse(&one, body);
	if (ret)
		return ret;
	one.addr.scope_id = search->addr->scope_id; /* the device says the same */
	if (one.device == search->device && one.state && ktrxer_addr_equal(&one.addr, search->addr))
		search->found = one;
	return 0;
}

/* search->found.state is 0 where the table has none. */
static int neighbour_look(struct rtnl *rtnl, struct neighbour_search *search)
{
	struct ndmsg info = { .ndm_family = search->addr->family, .ndm_ifindex = (int)search->device };
	uint32_t width = search->addr->family == AF_INET6 ? 16 : 4;
	struct rtnl_request request;
	int ret;

	memset(&search->found, 0, sizeof search->found);
	ktrxer_rtnl_request_begin(&request, RTM_GETNEIGH, 0, &info, sizeof info);
	ktrxer_rtnl_request_put(&request, NDA_DST, search->addr->bytes, width);
	ret = ktrxer_rtnl_talk(rtnl, &request, neighbour_take, search, NULL);
	if (ret == -ENOENT)
		return 0;
	if (ret != -EOPNOTSUPP && ret != -EINVAL)
		return ret;
	/* Linux before 5.0 dumps the whole table only. */
	info.ndm_ifindex = 0;
	ktrxer_rtnl_request_begin(&request, RTM_GETNEIGH, NLM_F_DUMP, &info, sizeof info);
	ktrxer_rtnl_request_put_u32(&request, ATTRIBUTE_IFINDEX, search->device);
	ret = ktrxer_rtnl_talk(rtnl, &request, neighbour_take, search, NULL);
	return ret == -EINTR ? 0 : ret; /* it is read again anyway */
}

static int nudge_by_table(struct rtnl *rtnl, const struct ktrxer_addr *addr, uint32_t device)
{
	struct ndmsg info = { .ndm_family = addr->family, .ndm_ifindex = (int)device, .ndm_flags = NTF_USE };
	struct rtnl_request request;

	ktrxer_rtnl_request_begin(&request, RTM_NEWNEIGH, NLM_F_ACK | NLM_F_CREATE, &info, sizeof info);
	ktrxer_rtnl_request_put(&request, NDA_DST, addr->bytes, addr->family == AF_INET6 ? 16 : 4);
	return ktrxer_rtnl_talk(rtnl, &request, NULL, NULL, NULL);
}

static int nudge_by_datagram(const struct ktrxer_addr *addr, const struct ktrxer_device *device)
{
	int fd = socket(addr->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const bool v6 = addr->family == AF_INET6;
	union ktrxer_name to;
	const socklen_t length = ktrxer_name_make(&to, addr, PORT_DISCARD);
	int ret = 0, hops = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_UNICAST_HOPS : IP_TTL, &hops, sizeof hops);
	/*
	 * Users without privilege may set this from Linux 5.7 on; where it fails the routing table decides, nearly
	 * always for the same device.
	 */
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, device->name, (socklen_t)strlen(device->name));
	if (sendto(fd, "", 0, MSG_DONTWAIT | MSG_DONTROUTE, &to.sa, length) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static uint64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static bool neighbour_valid(const struct neighbour *neighbour)
{
	return neighbour->state & STATES_VALID && neighbour->has_mac;
}

/* Reads the table until the entry is valid, has failed or the deadline is there. */
static int neighbour_wait(struct rtnl *rtnl, struct neighbour_search *search, uint64_t deadline_us)
{
	uint64_t pause_us = PAUSE_FIRST_US;

	for (;;) {
		uint64_t now;
		struct timespec pause;
		int ret = neighbour_look(rtnl, search);

		if (ret || neighbour_valid(&search->found))
			return ret;
		if (search->found.state & NUD_FAILED)
			return -EHOSTUNREACH;
		now = now_us();
		if (now >= deadline_us)
			return -EHOSTUNREACH;
		if (pause_us > deadline_us - now)
			pause_us = deadline_us - now;
		pause = (struct timespec){ .tv_nsec = (long)pause_us * 1000 };
		nanosleep(&pause, NULL);
		pause_us = pause_us * 2 < PAUSE_MAX_US ? pause_us * 2 : PAUSE_MAX_US;
	}
}

int ktrxer_neighbour_resolve(struct rtnl *rtnl, uint8_t mac[6], const struct ktrxer_device *device,
			     const struct ktrxer_addr *addr, uint32_t timeout_ms, struct ktrxer_error *err)
{
	struct neighbour_search search = { .addr = addr, .device = device->index };
	const char *protocol = addr->family == AF_INET6 ? "neighbour discovery" : "ARP";
	char text[KTRXER_ADDR_TEXT], word[80];
	uint64_t start = now_us();
	int ret = neighbour_look(rtnl, &search);

	ktrxer_addr_format(addr, text);
	if (ret)
		goto table_failed;
	if (neighbour_valid(&search.found))
		goto found;
	if (!device->needs_neighbour)
		return -ENOENT; /* such a link has no neighbours: the caller has the address to use instead */

	if (nudge_by_table(rtnl, addr, device->index)) {
		ret = nudge_by_datagram(addr, device);
		if (ret)
			return ktrxer_fail(err, -EHOSTUNREACH,
					   "%s is not in the neighbour table, and a request for it on '%s' needs "
					   "CAP_NET_ADMIN (%s); ping it once, or name the next hop's MAC address",
					   text, device->name, ktrxer_strerror(ret, word, sizeof word));
	}
	if (!timeout_ms)
		timeout_ms = KTRXER_NEIGHBOUR_TIMEOUT_MS;
	ret = neighbour_wait(rtnl, &search, start + (uint64_t)timeout_ms * 1000);
	if (ret == -EHOSTUNREACH)
		return ktrxer_fail(
			err, ret,
			"%s does not answer %s on '%s' (waited %u ms): is it up, and on this link? Name the next "
			"hop's MAC address to send without asking",
			text, protocol, device->name, (unsigned int)((now_us() - start) / 1000));
	if (ret)
		goto table_failed;
found:
	memcpy(mac, search.found.mac, sizeof search.found.mac);
	return 0;

table_failed:
	return ktrxer_fail(err, ret, "the neighbour table does not tell of %s on '%s': %m", text, device->name);
}
