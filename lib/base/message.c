/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "message.h"

#include "bytes.h"
#include "clock.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>

/* The 64-bit form (Linux 5.1) has a number of its own, which old C libraries lack. */
#ifndef SO_TIMESTAMPING_NEW
#define SO_TIMESTAMPING_NEW 65
#endif
#define TIMESTAMPING_OLD 37

static void option(int fd, int level, int name)
{
	const int on = 1;

	(void)!setsockopt(fd, level, name, &on, sizeof on);
}

void ktrxer_message_enable(int fd, uint8_t family)
{
	option(fd, SOL_SOCKET, SO_RXQ_OVFL);
	if (family == AF_INET6) {
		option(fd, SOL_IPV6, IPV6_RECVHOPLIMIT);
		option(fd, SOL_IPV6, IPV6_RECVTCLASS);
	} else {
		option(fd, SOL_IP, IP_RECVTTL);
		option(fd, SOL_IP, IP_RECVTOS);
	}
}

#ifndef KTRXER_SMALL
void ktrxer_message_enable_device(int fd, uint8_t family)
{
	if (family == AF_INET6)
		option(fd, SOL_IPV6, IPV6_RECVPKTINFO);
	else
		option(fd, SOL_IP, IP_PKTINFO);
}
#endif

/* Three times of two words each: software, (unused), raw NIC. Words of 64 bits, or of 32 on an old 32-bit kernel. */
static int64_t stamp_of(struct bytes b, int which)
{
	if (bytes_left(&b) >= 48) {
		int64_t t[2];

		bytes_skip(&b, 16 * (size_t)which);
		return bytes_copy(&b, t, sizeof t) ? ktrxer_timespec_ns(t[0], t[1]) : 0;
	} else {
		int32_t t[2];

		bytes_skip(&b, 8 * (size_t)which);
		return bytes_copy(&b, t, sizeof t) ? ktrxer_timespec_ns(t[0], t[1]) : 0;
	}
}

/* An int; IP_TOS is one byte. */
static uint32_t word_of(struct bytes b)
{
	uint32_t word = 0;

	if (bytes_left(&b) < sizeof word)
		return bytes_left(&b) ? *b.at : 0;
	bytes_copy(&b, &word, sizeof word);
	return word;
}

static void read_socket(struct ktrxer_message *m, int type, struct bytes b)
{
	if (type == SO_TIMESTAMPING_NEW || type == TIMESTAMPING_OLD) {
		m->real_ns = stamp_of(b, 0);
		m->nic_ns = stamp_of(b, 2);
	} else if (type == SO_RXQ_OVFL) {
		m->has_drops = bytes_copy(&b, &m->drops, sizeof m->drops);
	}
}

static void read_ip(struct ktrxer_message *m, int type, struct bytes b)
{
	struct in_pktinfo info;

	if (type == IP_TTL) {
		m->ttl = (uint8_t)word_of(b);
	} else if (type == IP_TOS) {
		m->tos = (uint8_t)word_of(b);
	} else if (type == IP_PKTINFO && bytes_copy(&b, &info, sizeof info)) {
		m->to.family = m->local.family = AF_INET;
		memcpy(m->to.bytes, &info.ipi_addr, 4);
		memcpy(m->local.bytes, &info.ipi_spec_dst, 4);
		m->ifindex = (uint32_t)info.ipi_ifindex;
	}
}

static void read_ip6(struct ktrxer_message *m, int type, struct bytes b)
{
	struct in6_pktinfo info;

	if (type == IPV6_HOPLIMIT) {
		m->ttl = (uint8_t)word_of(b);
	} else if (type == IPV6_TCLASS) {
		m->tos = (uint8_t)word_of(b);
	} else if (type == IPV6_PKTINFO && bytes_copy(&b, &info, sizeof info)) {
		m->to.family = AF_INET6;
		memcpy(m->to.bytes, &info.ipi6_addr, 16);
		m->local = m->to;
		m->ifindex = info.ipi6_ifindex;
	}
}

void ktrxer_message_read(struct ktrxer_message *m, struct msghdr *header)
{
	memset(m, 0, sizeof *m);
	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
		const struct bytes b = bytes_of(CMSG_DATA(c), c->cmsg_len - CMSG_LEN(0));

		if (c->cmsg_level == SOL_SOCKET)
			read_socket(m, c->cmsg_type, b);
		else if (c->cmsg_level == SOL_IP)
			read_ip(m, c->cmsg_type, b);
		else if (c->cmsg_level == SOL_IPV6)
			read_ip6(m, c->cmsg_type, b);
	}
}

static void drops_add(uint32_t drops, uint32_t *seen, uint64_t *sum)
{
	const int32_t more = (int32_t)(drops - *seen);

	if (more > 0) {
		*sum += (uint32_t)more;
		*seen = drops;
	}
}

void ktrxer_message_drops(const struct ktrxer_message *message, uint32_t *seen, uint64_t *sum)
{
	if (message->has_drops)
		drops_add(message->drops, seen, sum);
}

void ktrxer_socket_drops(int fd, uint32_t *seen, uint64_t *sum)
{
	uint32_t memory[SK_MEMINFO_VARS] = { 0 };
	socklen_t size = sizeof memory;

	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, memory, &size) == 0)
		drops_add(memory[SK_MEMINFO_DROPS], seen, sum);
}

void ktrxer_message_add(struct msghdr *header, int level, int type, const void *value, size_t length)
{
	struct cmsghdr *c = (struct cmsghdr *)((char *)header->msg_control + header->msg_controllen);

	memset(c, 0, CMSG_SPACE(length));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(length);
	memcpy(CMSG_DATA(c), value, length);
	header->msg_controllen += CMSG_SPACE(length);
}

void ktrxer_message_add_source(struct msghdr *header, const struct ktrxer_addr *local, uint32_t ifindex)
{
	if (local->family == AF_INET6) {
		const bool link_local = local->bytes[0] == 0xfe && (local->bytes[1] & 0xc0) == 0x80;
		struct in6_pktinfo info = { .ipi6_ifindex = link_local ? ifindex : 0 };

		memcpy(&info.ipi6_addr, local->bytes, 16);
		ktrxer_message_add(header, SOL_IPV6, IPV6_PKTINFO, &info, sizeof info);
	} else {
		struct in_pktinfo info = { 0 };

		memcpy(&info.ipi_spec_dst, local->bytes, 4);
		ktrxer_message_add(header, SOL_IP, IP_PKTINFO, &info, sizeof info);
	}
}
