/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Ancillary data as kernels write it: each kind alone, all together, and cut short. */
#include "cm.h"

#include "message.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define TIMESTAMPING_NEW 65
#define TIMESTAMPING_OLD 37

struct control {
	_Alignas(struct cmsghdr) char room[KTRXER_MESSAGE_CONTROL];
	struct msghdr header;
};

static void add(struct control *c, int level, int type, const void *value, size_t length)
{
	struct cmsghdr *one = (struct cmsghdr *)(c->room + c->header.msg_controllen);

	assert_true(c->header.msg_controllen + CMSG_SPACE(length) <= sizeof c->room);
	*one = (struct cmsghdr){ .cmsg_level = level, .cmsg_type = type, .cmsg_len = CMSG_LEN(length) };
	memcpy(CMSG_DATA(one), value, length);
	c->header.msg_control = c->room;
	c->header.msg_controllen += CMSG_SPACE(length);
}

TEST(nothing_is_reported)
{
	struct control c = { 0 };
	struct ktrxer_message m;

	memset(&m, 0xff, sizeof m);
	ktrxer_message_read(&m, &c.header);
	assert_true(!m.real_ns && !m.nic_ns && !m.to.family && !m.local.family && !m.ifindex && !m.has_drops &&
		    !m.ttl && !m.tos);
}

TEST(stamps_of_both_widths)
{
	const int64_t wide[6] = { 1700000000, 5, 0, 0, 37, 999999999 };
	const int32_t narrow[6] = { 1700000000, 6, 0, 0, 38, 1 };
	struct control c = { 0 };
	struct ktrxer_message m;

	add(&c, SOL_SOCKET, TIMESTAMPING_NEW, wide, sizeof wide);
	ktrxer_message_read(&m, &c.header);
	assert_true(m.real_ns == 1700000000000000005 && m.nic_ns == 37999999999);
	c = (struct control){ 0 };
	add(&c, SOL_SOCKET, TIMESTAMPING_OLD, narrow, sizeof narrow);
	ktrxer_message_read(&m, &c.header);
	assert_true(m.real_ns == 1700000000000000006 && m.nic_ns == 38000000001);
	c = (struct control){ 0 };
	add(&c, SOL_SOCKET, TIMESTAMPING_OLD, narrow, 4); /* cut short: no stamp */
	ktrxer_message_read(&m, &c.header);
	assert_true(!m.real_ns && !m.nic_ns);
}

TEST(ipv4_with_a_destination)
{
	struct in_pktinfo info = { .ipi_ifindex = 3 };
	const uint8_t tos = 0xb8;
	const int ttl = 63;
	const uint32_t drops = 7;
	struct control c = { 0 };
	struct ktrxer_message m;

	inet_pton(AF_INET, "192.0.2.255", &info.ipi_addr);
	inet_pton(AF_INET, "192.0.2.1", &info.ipi_spec_dst);
	add(&c, SOL_IP, IP_TTL, &ttl, sizeof ttl);
	add(&c, SOL_IP, IP_TOS, &tos, sizeof tos);
	add(&c, SOL_IP, IP_PKTINFO, &info, sizeof info);
	add(&c, SOL_SOCKET, SO_RXQ_OVFL, &drops, sizeof drops);
	ktrxer_message_read(&m, &c.header);
	assert_true(m.ttl == 63 && m.tos == 0xb8 && m.ifindex == 3 && m.has_drops && m.drops == 7);
	assert_true(m.to.family == AF_INET && m.to.bytes[3] == 255 && m.local.family == AF_INET &&
		    m.local.bytes[3] == 1);
}

TEST(ipv6_with_a_destination)
{
	struct in6_pktinfo info = { .ipi6_ifindex = 4 };
	const int ttl = 255, class = 0x2e << 2 | 3;
	struct control c = { 0 };
	struct ktrxer_message m;

	inet_pton(AF_INET6, "2001:db8::7", &info.ipi6_addr);
	add(&c, SOL_IPV6, IPV6_HOPLIMIT, &ttl, sizeof ttl);
	add(&c, SOL_IPV6, IPV6_TCLASS, &class, sizeof class);
	add(&c, SOL_IPV6, IPV6_PKTINFO, &info, sizeof info);
	ktrxer_message_read(&m, &c.header);
	assert_true(m.ttl == 255 && m.tos == (0x2e << 2 | 3) && m.ifindex == 4 && !m.has_drops);
	assert_true(m.to.family == AF_INET6 && m.to.bytes[15] == 7 && ktrxer_addr_equal(&m.to, &m.local));
}

/* The kernel's count has 32 bits, the sum 64. */
TEST(drops_across_the_wrap)
{
	struct ktrxer_message m = { .has_drops = true, .drops = UINT32_MAX };
	uint32_t seen = UINT32_MAX - 2;
	uint64_t sum = 10;

	ktrxer_message_drops(&m, &seen, &sum);
	assert_true(sum == 12 && seen == UINT32_MAX);
	m.drops = 3;
	ktrxer_message_drops(&m, &seen, &sum);
	assert_true(sum == 16 && seen == 3);
	m = (struct ktrxer_message){ 0 }; /* a datagram before the first drop has no count */
	ktrxer_message_drops(&m, &seen, &sum);
	assert_true(sum == 16 && seen == 3);
	m = (struct ktrxer_message){ .has_drops = true, .drops = 1 }; /* it waited while the socket itself was asked */
	ktrxer_message_drops(&m, &seen, &sum);
	assert_true(sum == 16 && seen == 3);
}

/* ktrxer_message_read() finds the messages that ktrxer_message_enable() requests. */
TEST(a_datagram_over_loopback)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), tos = 0xb8;
	struct sockaddr_in name = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof name;
	struct control c = { 0 };
	struct iovec vector = { .iov_base = &size, .iov_len = sizeof size };
	struct ktrxer_message m;

	assert_true(fd >= 0);
	ktrxer_message_enable(fd, AF_INET);
	assert_int_equal(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&name, &size), 0);
	assert_int_equal(setsockopt(fd, SOL_IP, IP_TOS, &tos, sizeof tos), 0);
	assert_int_equal(sendto(fd, "x", 1, 0, (struct sockaddr *)&name, sizeof name), 1);
	c.header = (struct msghdr){
		.msg_iov = &vector, .msg_iovlen = 1, .msg_control = c.room, .msg_controllen = sizeof c.room
	};
	assert_int_equal(recvmsg(fd, &c.header, 0), 1);
	ktrxer_message_read(&m, &c.header);
	assert_true(m.ttl > 0 && m.tos == 0xb8);
	close(fd);
}
