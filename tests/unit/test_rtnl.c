/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers of the kernel, made by hand: good ones, and such as no kernel sends. */
#include "cm.h"
#include "path.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SEQUENCE = 7, PORT = 1234 };

/* ------------------------------------------------------------------------------------------------------ building */

struct build {
	uint8_t data[1024];
	uint32_t length;
	uint32_t message, nest; /* where the last of each begins */
};

static void put(struct build *b, const void *data, uint32_t length)
{
	assert_true(b->length + NLMSG_ALIGN(length) <= sizeof b->data);
	memcpy(b->data + b->length, data, length);
	memset(b->data + b->length + length, 0, NLMSG_ALIGN(length) - length);
	b->length += NLMSG_ALIGN(length);
}

static void message(struct build *b, uint16_t type, uint16_t flags, const void *body, uint32_t length)
{
	struct nlmsghdr header = { .nlmsg_type = type, .nlmsg_flags = flags, .nlmsg_seq = SEQUENCE, .nlmsg_pid = PORT };

	b->message = b->length;
	put(b, &header, sizeof header);
	put(b, body, length);
}

static void message_end(struct build *b)
{
	uint32_t length = b->length - b->message;

	memcpy(b->data + b->message, &length, sizeof length);
}

static void attribute(struct build *b, uint16_t type, const void *value, uint32_t length)
{
	struct rtattr head = { .rta_len = (uint16_t)(sizeof head + length), .rta_type = type };
	uint8_t whole[256];

	memcpy(whole, &head, sizeof head);
	memcpy(whole + sizeof head, value, length);
	put(b, whole, (uint32_t)sizeof head + length);
}

static void attribute_u32(struct build *b, uint16_t type, uint32_t value)
{
	attribute(b, type, &value, sizeof value);
}

static void nest(struct build *b, uint16_t type)
{
	b->nest = b->length;
	attribute(b, type | NLA_F_NESTED, "", 0);
}

static void nest_end(struct build *b)
{
	uint16_t length = (uint16_t)(b->length - b->nest);

	memcpy(b->data + b->nest, &length, sizeof length);
}

/* ------------------------------------------------------------------------------------------------------ reading */

struct heard {
	int parts;
	uint16_t type;
	size_t length;
	int answer; /* what take returns */
};

static int hear(void *context, uint16_t type, struct bytes body)
{
	struct heard *heard = context;

	heard->parts++;
	heard->type = type;
	heard->length = bytes_left(&body);
	return heard->answer;
}

/* From memory that ends with the datagram, for the sanitizer's eyes. */
static int read_exact(struct rtnl_answer *answer, const uint8_t *data, uint32_t length, struct heard *heard)
{
	uint8_t *exact = malloc(length ? length : 1);
	int ret;

	assert_non_null(exact);
	memcpy(exact, data, length);
	*answer = (struct rtnl_answer){ .sequence = SEQUENCE, .port = PORT };
	*heard = (struct heard){ .answer = heard->answer };
	ret = ktrxer_rtnl_read(answer, bytes_of(exact, length), hear, heard);
	free(exact);
	return ret;
}

TEST(one_part)
{
	struct build b = { 0 };
	struct rtnl_answer answer;
	struct heard heard = { 0 };

	message(&b, RTM_NEWROUTE, 0, "twelve bytes", 12);
	message_end(&b);
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), 0);
	assert_true(answer.complete);
	assert_int_equal(heard.parts, 1);
	assert_int_equal(heard.type, RTM_NEWROUTE);
	assert_int_equal(heard.length, 12);

	heard.answer = -EBADMSG;
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), -EBADMSG);
}

TEST(many_parts)
{
	struct build b = { 0 };
	struct rtnl_answer answer;
	struct heard heard = { 0 };
	uint32_t before_end;
	int32_t zero = 0;

	message(&b, RTM_NEWLINK, NLM_F_MULTI, "abcd", 4);
	message_end(&b);
	message(&b, NLMSG_NOOP, NLM_F_MULTI, "", 0);
	message_end(&b);
	message(&b, RTM_NEWLINK, NLM_F_MULTI | NLM_F_DUMP_INTR, "abcdefgh", 8);
	message_end(&b);
	before_end = b.length;
	message(&b, NLMSG_DONE, NLM_F_MULTI, &zero, sizeof zero);
	message_end(&b);
	message(&b, RTM_NEWLINK, NLM_F_MULTI, "abcd", 4); /* after the end nothing counts */
	message_end(&b);

	assert_int_equal(read_exact(&answer, b.data, before_end, &heard), 0);
	assert_false(answer.complete);
	assert_int_equal(heard.parts, 2);
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), 0);
	assert_true(answer.complete);
	assert_true(answer.interrupted);
	assert_int_equal(heard.parts, 2);
}

TEST(parts_for_others)
{
	struct build b = { 0 };
	struct rtnl_answer answer;
	struct heard heard = { 0 };
	struct nlmsghdr header;

	for (int i = 0; i < 2; i++) {
		message(&b, RTM_NEWLINK, 0, "abcd", 4);
		message_end(&b);
		memcpy(&header, b.data + b.message, sizeof header);
		if (i)
			header.nlmsg_pid++;
		else
			header.nlmsg_seq--;
		memcpy(b.data + b.message, &header, sizeof header);
	}
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), 0);
	assert_false(answer.complete);
	assert_int_equal(heard.parts, 0);
}

/* error, then the request's header (or all of it), then words */
static int error_of(struct rtnl_answer *answer, int32_t code, uint16_t flags, uint32_t claimed, uint32_t there,
		    const char *words)
{
	struct nlmsghdr request = { .nlmsg_len = claimed };
	struct heard heard = { 0 };
	struct build b = { 0 };
	uint8_t zeros[64] = { 0 };

	message(&b, NLMSG_ERROR, flags, &code, sizeof code);
	put(&b, &request, sizeof request);
	put(&b, zeros, there);
	if (words)
		attribute(&b, 1, words, (uint32_t)strlen(words) + 1);
	message_end(&b);
	return read_exact(answer, b.data, b.length, &heard);
}

TEST(errors)
{
	struct rtnl_answer answer;
	char lots[201];

	assert_int_equal(error_of(&answer, 0, 0, 36, 0, NULL), 0);
	assert_true(answer.complete);
	assert_int_equal(error_of(&answer, -ENODEV, 0, 36, 0, NULL), -ENODEV);
	assert_string_equal(answer.text, "");
	assert_int_equal(error_of(&answer, -EINVAL, 0x300, 36, 0, "Invalid flags"), -EINVAL);
	assert_string_equal(answer.text, "Invalid flags");
	assert_int_equal(error_of(&answer, -EINVAL, 0x200, 36, 20, "not capped"), -EINVAL);
	assert_string_equal(answer.text, "not capped");
	/* the whole request is claimed to be there, and is not; or is shorter than its own header; or enormous */
	assert_int_equal(error_of(&answer, -EINVAL, 0x200, 200, 20, "x"), -EBADMSG);
	assert_int_equal(error_of(&answer, -EINVAL, 0x200, 4, 0, "x"), -EBADMSG);
	assert_int_equal(error_of(&answer, -EINVAL, 0x200, UINT32_MAX, 0, "x"), -EBADMSG);
	/* errors are errnos */
	assert_int_equal(error_of(&answer, 1, 0, 36, 0, NULL), -EBADMSG);
	assert_int_equal(error_of(&answer, INT32_MIN, 0, 36, 0, NULL), -EBADMSG);
	memset(lots, 'w', sizeof lots - 1);
	lots[sizeof lots - 1] = '\0';
	assert_int_equal(error_of(&answer, -EINVAL, 0x300, 36, 0, lots), -EINVAL);
	assert_int_equal(strlen(answer.text), RTNL_TEXT - 1);
}

TEST(done_with_an_error)
{
	struct rtnl_answer answer;
	struct heard heard = { 0 };
	struct build b = { 0 };
	int32_t code = -EMSGSIZE;

	message(&b, NLMSG_DONE, NLM_F_MULTI | 0x200, &code, sizeof code);
	attribute(&b, 1, "too big", 8);
	message_end(&b);
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), -EMSGSIZE);
	assert_string_equal(answer.text, "too big");
	b = (struct build){ 0 };
	message(&b, NLMSG_OVERRUN, 0, "", 0);
	message_end(&b);
	assert_int_equal(read_exact(&answer, b.data, b.length, &heard), -ENOBUFS);
}

TEST(lengths_that_lie)
{
	static const uint32_t lies[] = { 0, 1, 15, 29, 33, 64, 0x7fffffff, 0xfffffff0, 0xffffffff };
	struct rtnl_answer answer;
	struct heard heard = { 0 };
	struct build b = { 0 };

	message(&b, RTM_NEWROUTE, NLM_F_MULTI, "twelve bytes", 12);
	message_end(&b);
	assert_int_equal(b.length, 28);
	for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
		memcpy(b.data, &lies[i], sizeof lies[i]);
		if (read_exact(&answer, b.data, b.length, &heard) != -EBADMSG || heard.parts)
			fail_msg("a length of %u was believed", lies[i]);
	}
	message_end(&b);
	for (uint32_t cut = 1; cut < b.length; cut++)
		assert_int_equal(read_exact(&answer, b.data, cut, &heard), -EBADMSG);
	assert_int_equal(read_exact(&answer, b.data, 0, &heard), 0);
	assert_false(answer.complete);
}

TEST(attributes_that_lie)
{
	struct build b = { 0 };
	struct bytes attributes, value;
	uint16_t type, length;
	int steps = 0;

	attribute(&b, 3, "abc", 3);
	attribute_u32(&b, 4, 77);
	attributes = bytes_of(b.data, b.length);
	assert_true(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_int_equal(type, 3);
	assert_int_equal(bytes_left(&value), 3);
	assert_true(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_int_equal(ktrxer_rtnl_u32(value), 77);
	assert_false(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_true(attributes.ok);

	/* the padding of the last one may be missing */
	attributes = bytes_of(b.data, 7);
	assert_true(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_false(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_true(attributes.ok);

	for (length = 0; length < 4; length++) {
		memcpy(b.data, &length, sizeof length);
		attributes = bytes_of(b.data, b.length);
		while (ktrxer_rtnl_next(&attributes, &type, &value))
			steps++;
		assert_false(attributes.ok);
	}
	length = 17;
	memcpy(b.data, &length, sizeof length);
	attributes = bytes_of(b.data, b.length);
	assert_false(ktrxer_rtnl_next(&attributes, &type, &value));
	assert_false(attributes.ok);
	assert_int_equal(steps, 0);
}

TEST(strings)
{
	char text[6];

	ktrxer_rtnl_string(bytes_of("eth0", 5), text, sizeof text);
	assert_string_equal(text, "eth0");
	ktrxer_rtnl_string(bytes_of("eth0", 4), text, sizeof text); /* no end */
	assert_string_equal(text, "");
	ktrxer_rtnl_string(bytes_of("longer", 7), text, sizeof text);
	assert_string_equal(text, "longe");
	ktrxer_rtnl_string(bytes_of("a\0b", 4), text, sizeof text);
	assert_string_equal(text, "a");
	ktrxer_rtnl_string(bytes_of("", 0), text, sizeof text);
	assert_string_equal(text, "");
	assert_int_equal(ktrxer_rtnl_u32(bytes_of("12345", 5)), 0);
	assert_int_equal(ktrxer_rtnl_u32(bytes_of("123", 3)), 0);
}

/* ------------------------------------------------------------------------------------------------------ devices */

static int device_of(struct ktrxer_device *device, struct device_more *more, uint16_t type, uint32_t flags)
{
	struct ifinfomsg info = { .ifi_type = type, .ifi_index = 3, .ifi_flags = flags };
	struct build b = { 0 };

	put(&b, &info, sizeof info);
	attribute(&b, IFLA_IFNAME, "dev0", 5);
	return ktrxer_device_parse(device, more, bytes_of(b.data, b.length));
}

TEST(devices)
{
	struct ifinfomsg info = { .ifi_type = ARPHRD_ETHER, .ifi_index = 3, .ifi_flags = IFF_UP | IFF_RUNNING };
	int32_t conf[3] = { 0, 64, 1400 };
	struct ktrxer_device device;
	struct device_more more;
	struct build b = { 0 };
	uint32_t outer;

	put(&b, &info, sizeof info);
	attribute(&b, IFLA_IFNAME, "veth0", 6);
	attribute(&b, IFLA_ADDRESS, "\2\0\0\0\0\1", 6);
	attribute_u32(&b, IFLA_MTU, 1500);
	attribute(&b, IFLA_QDISC, "noqueue", 8);
	attribute_u32(&b, IFLA_NUM_TX_QUEUES, 4);
	nest(&b, IFLA_LINKINFO);
	attribute(&b, IFLA_INFO_KIND, "veth", 5);
	nest_end(&b);
	nest(&b, IFLA_AF_SPEC);
	outer = b.nest;
	nest(&b, AF_INET6);
	attribute(&b, IFLA_INET6_CONF, conf, sizeof conf);
	nest_end(&b);
	b.nest = outer;
	nest_end(&b);
	assert_int_equal(ktrxer_device_parse(&device, &more, bytes_of(b.data, b.length)), 0);
	assert_string_equal(device.name, "veth0");
	assert_string_equal(device.kind, "veth");
	assert_string_equal(device.qdisc, "noqueue");
	assert_int_equal(device.index, 3);
	assert_int_equal(device.mtu, 1500);
	assert_int_equal(device.tx_queues, 4);
	assert_memory_equal(device.mac, "\2\0\0\0\0\1", 6);
	assert_true(device.up && device.running && device.needs_neighbour && !device.loopback);
	assert_int_equal(device.link, KTRXER_LINK_ETHERNET);
	assert_int_equal(more.mtu6, 1400);
	/* cut anywhere it is refused or without its last fields, and nothing outside is read */
	for (uint32_t cut = 0; cut < b.length; cut++) {
		uint8_t *exact = malloc(cut ? cut : 1);

		assert_non_null(exact);
		memcpy(exact, b.data, cut);
		ktrxer_device_parse(&device, &more, bytes_of(exact, cut));
		free(exact);
	}

	assert_int_equal(device_of(&device, &more, ARPHRD_LOOPBACK, IFF_LOOPBACK | IFF_UP), 0);
	assert_int_equal(device.link, KTRXER_LINK_ETHERNET);
	assert_true(device.loopback && !device.needs_neighbour);
	assert_int_equal(device_of(&device, &more, ARPHRD_ETHER, IFF_NOARP), 0);
	assert_false(device.needs_neighbour);
	assert_int_equal(device_of(&device, &more, 0xfffe, IFF_POINTOPOINT), 0);
	assert_int_equal(device.link, KTRXER_LINK_RAW_IP);
	assert_false(device.needs_neighbour);
	assert_int_equal(device_of(&device, &more, ARPHRD_PPP, IFF_POINTOPOINT), 0);
	assert_int_equal(device.link, KTRXER_LINK_RAW_IP);
	assert_int_equal(device_of(&device, &more, ARPHRD_IPGRE, IFF_POINTOPOINT), 0);
	assert_int_equal(device.link, KTRXER_LINK_RAW_IP);
	/* GRE without a fixed far end wants its outer header from us; InfiniBand and CAN are not IP's */
	assert_int_equal(device_of(&device, &more, ARPHRD_IPGRE, 0), 0);
	assert_true(more.no_link && !device.link);
	assert_int_equal(device_of(&device, &more, ARPHRD_INFINIBAND, 0), 0);
	assert_true(more.no_link && !device.link);
}

TEST(devices_that_are_none)
{
	struct ifinfomsg info = { .ifi_type = ARPHRD_ETHER, .ifi_index = 0 };
	struct ktrxer_device device;
	struct device_more more;
	struct build b = { 0 };
	char name[40];

	put(&b, &info, sizeof info);
	attribute(&b, IFLA_IFNAME, "veth0", 6);
	assert_int_equal(ktrxer_device_parse(&device, &more, bytes_of(b.data, b.length)), -EBADMSG); /* index 0 */
	info.ifi_index = 3;
	b = (struct build){ 0 };
	put(&b, &info, sizeof info);
	assert_int_equal(ktrxer_device_parse(&device, &more, bytes_of(b.data, b.length)), -EBADMSG); /* no name */
	/* a name and a link address longer than there is room for */
	memset(name, 'n', sizeof name);
	name[39] = '\0';
	attribute(&b, IFLA_IFNAME, name, sizeof name);
	attribute(&b, IFLA_ADDRESS, "12345678901234567890", 20);
	assert_int_equal(ktrxer_device_parse(&device, &more, bytes_of(b.data, b.length)), 0);
	assert_int_equal(strlen(device.name), 15);
	assert_memory_equal(device.mac, "\0\0\0\0\0\0", 6);
}

/* ------------------------------------------------------------------------------------------------------ routes */

TEST(routes)
{
	struct rtmsg info = { .rtm_family = AF_INET, .rtm_table = 254, .rtm_type = RTN_UNICAST };
	uint8_t via[18] = { 0 };
	uint16_t family = AF_INET6;
	struct build b = { 0 };
	struct route route;
	char text[KTRXER_ADDR_TEXT];

	put(&b, &info, sizeof info);
	attribute_u32(&b, RTA_OIF, 3);
	attribute(&b, RTA_PREFSRC, "\12\0\0\1", 4);
	attribute(&b, RTA_GATEWAY, "\12\0\0\2", 4);
	attribute_u32(&b, RTA_TABLE, 4711);
	nest(&b, RTA_METRICS);
	attribute_u32(&b, RTAX_MTU, 1280);
	nest_end(&b);
	assert_int_equal(ktrxer_route_parse(&route, bytes_of(b.data, b.length)), 0);
	assert_int_equal(route.type, RTN_UNICAST);
	assert_int_equal(route.device, 3);
	assert_int_equal(route.mtu, 1280);
	assert_int_equal(route.table, 4711);
	assert_false(route.encapsulates);
	assert_string_equal(ktrxer_addr_format(&route.source, text), "10.0.0.1");
	assert_string_equal(ktrxer_addr_format(&route.gateway, text), "10.0.0.2");

	/* IPv4 by an IPv6 gateway, whose link-local address is on the route's device */
	b = (struct build){ 0 };
	put(&b, &info, sizeof info);
	memcpy(via, &family, sizeof family);
	via[2] = 0xfe;
	via[3] = 0x80;
	via[17] = 1;
	attribute(&b, 18, via, sizeof via);
	attribute_u32(&b, RTA_OIF, 2000000000);
	attribute(&b, 21, "\5\0", 2);
	assert_int_equal(ktrxer_route_parse(&route, bytes_of(b.data, b.length)), 0);
	assert_string_equal(ktrxer_addr_format(&route.gateway, text), "fe80::1%2000000000");
	assert_true(route.encapsulates);
	assert_int_equal(route.source.family, 0);
}

TEST(routes_that_lie)
{
	static const struct {
		uint16_t type;
		uint32_t length;
	} bad[] = { { RTA_GATEWAY, 3 }, { RTA_GATEWAY, 5 },  { RTA_GATEWAY, 16 },
		    { RTA_GATEWAY, 0 }, { RTA_PREFSRC, 16 }, { 18, 1 },
		    { 18, 2 },          { 18, 18 },          { 18, 6 } };
	struct rtmsg info = { .rtm_family = AF_INET };
	uint8_t value[20] = { 99 }; /* no family has that number */
	struct route route;
	struct build b;

	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		b = (struct build){ 0 };
		put(&b, &info, sizeof info);
		attribute(&b, bad[i].type, value, bad[i].length);
		assert_int_equal(ktrxer_route_parse(&route, bytes_of(b.data, b.length)), -EBADMSG);
	}
	info.rtm_family = 7;
	assert_int_equal(ktrxer_route_parse(&route, bytes_of(&info, sizeof info)), -EBADMSG);
	assert_int_equal(ktrxer_route_parse(&route, bytes_of(&info, sizeof info - 1)), -EBADMSG);
}

/* ------------------------------------------------------------------------------------------------------ neighbours */

TEST(neighbours)
{
	struct ndmsg info = { .ndm_family = AF_INET, .ndm_ifindex = 3, .ndm_state = NUD_STALE };
	struct neighbour neighbour;
	struct build b = { 0 };
	char text[KTRXER_ADDR_TEXT];

	put(&b, &info, sizeof info);
	attribute(&b, NDA_DST, "\12\0\0\11", 4);
	attribute(&b, NDA_LLADDR, "\2\0\0\0\0\11", 6);
	assert_int_equal(ktrxer_neighbour_parse(&neighbour, bytes_of(b.data, b.length)), 0);
	assert_string_equal(ktrxer_addr_format(&neighbour.addr, text), "10.0.0.9");
	assert_int_equal(neighbour.state, NUD_STALE);
	assert_int_equal(neighbour.device, 3);
	assert_true(neighbour.has_mac);
	assert_memory_equal(neighbour.mac, "\2\0\0\0\0\11", 6);

	/* an entry of the proxy is none; addresses of other lengths are no addresses */
	b = (struct build){ 0 };
	info.ndm_flags = NTF_PROXY;
	put(&b, &info, sizeof info);
	attribute(&b, NDA_DST, "\12\0\0\11", 5);
	attribute(&b, NDA_LLADDR, "\2\0\0\0\0\11\0\0", 8);
	assert_int_equal(ktrxer_neighbour_parse(&neighbour, bytes_of(b.data, b.length)), 0);
	assert_int_equal(neighbour.state, 0);
	assert_int_equal(neighbour.addr.family, 0);
	assert_false(neighbour.has_mac);
	assert_int_equal(ktrxer_neighbour_parse(&neighbour, bytes_of(b.data, sizeof info - 1)), -EBADMSG);
}

/* ------------------------------------------------------------------------------------------------------ requests */

TEST(requests)
{
	static const uint8_t lots[600] = { 0 };
	struct rtnl_request request;
	struct rtmsg info = { 0 };
	uint16_t length;

	ktrxer_rtnl_request_begin(&request, RTM_GETROUTE, 0, &info, sizeof info);
	ktrxer_rtnl_request_put(&request, RTA_DST, "abc", 3);
	ktrxer_rtnl_request_put_u32(&request, RTA_OIF, 3);
	assert_int_equal(request.length, 16 + 12 + 8 + 8);
	memcpy(&length, request.data + 16 + 12, sizeof length);
	assert_int_equal(length, 7);
	assert_int_equal(request.data[16 + 12 + 7], 0); /* padding */
	assert_false(request.failed);
	ktrxer_rtnl_request_put(&request, RTA_DST, lots, 500);
	assert_true(request.failed);
	ktrxer_rtnl_request_begin(&request, RTM_GETROUTE, 0, lots, sizeof lots);
	assert_true(request.failed);
}

/* The kernel that the test runs on has at least a loopback device. */
TEST(this_kernel)
{
	struct ktrxer_error err = { 0 };
	struct ktrxer_device device, list[2];

	if (getenv("KTRXER_EMULATED"))
		cm_skip("qemu-user translates only a part of rtnetlink between the orders of bytes");
	assert_int_equal(ktrxer_device_get(&device, "lo", &err), 0);
	assert_string_equal(device.name, "lo");
	assert_true(device.loopback);
	assert_true(ktrxer_device_list(list, 2, &err) >= 1);
	assert_true(ktrxer_device_list(NULL, 0, &err) >= 1);
	assert_int_equal(ktrxer_device_get(&device, "l0", &err), -ENODEV);
	assert_non_null(strstr(err.text, "did you mean 'lo'"));
	assert_int_equal(ktrxer_device_get(&device, "a name that no device has", NULL), -ENODEV);
	assert_int_equal(ktrxer_device_get(&device, NULL, &err), -EINVAL);
}
