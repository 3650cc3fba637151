/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The kernel's routing decision for one destination. */
#include "path.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

enum {
	FLAG_LOOKUP_TABLE = 0x1000, /* RTM_F_LOOKUP_TABLE, Linux 4.4: say which table matched */
	ATTRIBUTE_VIA = 18,         /* RTA_VIA: a gateway of another family */
	ATTRIBUTE_ENCAP_TYPE = 21,
};

static uint32_t addr_width(uint8_t family)
{
	return family == AF_INET6 ? 16 : 4;
}

static bool addr_read(struct ktrxer_addr *addr, uint8_t family, struct bytes value)
{
	if (bytes_left(&value) != addr_width(family))
		return false;
	*addr = (struct ktrxer_addr){ .family = family };
	return bytes_copy(&value, addr->bytes, addr_width(family));
}

static void parse_metrics(struct route *route, struct bytes metrics)
{
	struct bytes value;
	uint16_t type;

	while (ktrxer_rtnl_next(&metrics, &type, &value))
		if (type == RTAX_MTU)
			route->mtu = ktrxer_rtnl_u32(value);
}

static bool is_link_local(const struct ktrxer_addr *addr)
{
	return addr->family == AF_INET6 && addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80;
}

int ktrxer_route_parse(struct route *route, struct bytes body)
{
	struct bytes value;
	struct rtmsg info;
	uint16_t type, family;

	memset(route, 0, sizeof *route);
	if (!bytes_copy(&body, &info, sizeof info) || (info.rtm_family != AF_INET && info.rtm_family != AF_INET6))
		return -EBADMSG;
	route->type = info.rtm_type;
	route->table = info.rtm_table;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		bool good = true;

		switch (type) {
		case RTA_OIF:
			route->device = ktrxer_rtnl_u32(value);
			break;
		case RTA_TABLE:
			route->table = ktrxer_rtnl_u32(value);
			break;
		case RTA_PREFSRC:
			good = addr_read(&route->source, info.rtm_family, value);
			break;
		case RTA_GATEWAY:
			good = addr_read(&route->gateway, info.rtm_family, value);
			break;
		case ATTRIBUTE_VIA:
			good = bytes_copy(&value, &family, sizeof family) &&
			       (family == AF_INET || family == AF_INET6) &&
			       addr_read(&route->gateway, (uint8_t)family, value);
			break;
		case ATTRIBUTE_ENCAP_TYPE:
			route->encapsulates = true;
			break;
		case RTA_METRICS:
			parse_metrics(route, value);
			break;
		}
		if (!good)
			return -EBADMSG;
	}
	if (is_link_local(&route->gateway))
		route->gateway.scope_id = route->device;
	if (is_link_local(&route->source))
		route->source.scope_id = route->device;
	return body.ok ? 0 : -EBADMSG;
}

struct route_answer {
	struct route *route;
	bool seen;
};

static int route_take(void *context, uint16_t type, struct bytes body)
{
	struct route_answer *answer = context;

	if (type != RTM_NEWROUTE)
		return 0;
	answer->seen = true;
	return ktrxer_route_parse(answer->route, body);
}

static int route_ask(struct rtnl *rtnl, struct route *route, const struct ktrxer_addr *to,
		     const struct ktrxer_addr *from, uint32_t device, char text[RTNL_TEXT])
{
	uint32_t width = addr_width(to->family);
	struct rtmsg info = { .rtm_family = to->family, .rtm_dst_len = (uint8_t)(width * 8) };
	struct route_answer answer = { .route = route };
	struct rtnl_request request;
	int ret;

	if (from)
		info.rtm_src_len = (uint8_t)(width * 8);
	if (to->family == AF_INET)
		info.rtm_flags = FLAG_LOOKUP_TABLE; /* IPv6 reports the table without this flag, and rejects it */
	ktrxer_rtnl_request_begin(&request, RTM_GETROUTE, 0, &info, sizeof info);
	ktrxer_rtnl_request_put(&request, RTA_DST, to->bytes, width);
	if (from)
		ktrxer_rtnl_request_put(&request, RTA_SRC, from->bytes, width);
	if (device)
		ktrxer_rtnl_request_put_u32(&request, RTA_OIF, device);
	ret = ktrxer_rtnl_talk(rtnl, &request, route_take, &answer, text);
	return ret || answer.seen ? ret : -ENETUNREACH;
}

bool ktrxer_route_is_own(struct rtnl *rtnl, const struct ktrxer_addr *addr, uint32_t device)
{
	struct route route;

	if (!route_ask(rtnl, &route, addr, NULL, addr->scope_id, NULL) && route.type == RTN_LOCAL)
		return true;
	/* Within a routing domain (VRF) addresses are only known through its devices. */
	return device && !route_ask(rtnl, &route, addr, NULL, device, NULL) && route.type == RTN_LOCAL;
}

/*
 * IPv4 takes every address to be on the link where a device is named and no route leads there, even past a route that
 * forbids it. A frame must not go where the host itself would not send: no table, no route.
 */
static bool route_is_guess(const struct route *route, uint8_t family, uint32_t device)
{
	return family == AF_INET && device && route->type == RTN_UNICAST && route->table == RT_TABLE_UNSPEC;
}

static int route_fail(int code, uint8_t type, const struct ktrxer_addr *to, const struct ktrxer_addr *from,
		      uint32_t device, const char *text, struct ktrxer_error *err)
{
	char to_text[KTRXER_ADDR_TEXT], from_text[KTRXER_ADDR_TEXT], name[IF_NAMESIZE];
	char which[KTRXER_ADDR_TEXT * 2 + IF_NAMESIZE + 32] = "";
	int n = 0;

	ktrxer_addr_format(to, to_text);
	if (from)
		n = snprintf(which, sizeof which, " from %s", ktrxer_addr_format(from, from_text));
	if (device && if_indextoname(device, name))
		snprintf(which + n, sizeof which - (size_t)n, " by device '%s'", name);

	if (text[0]) /* the kernel's own words: it did not like the question */
		return ktrxer_fail(err, code, "the route to %s%s could not be looked up: %s", to_text, which, text);
	/* The kernel says by a number which kind of route said no (and IPv6, in part, by the route's type). */
	if (code == -EACCES || type == RTN_PROHIBIT)
		return ktrxer_fail(err, -ENETUNREACH,
				   "a 'prohibit' route or rule stands before %s%s; see `ip route get %s`", to_text,
				   which, to_text);
	if (code == -EINVAL || type == RTN_BLACKHOLE)
		return ktrxer_fail(err, -ENETUNREACH,
				   "a 'blackhole' route or rule swallows what goes to %s%s; see `ip route`, `ip rule`",
				   to_text, which);
	if (code == -EHOSTUNREACH || type == RTN_UNREACHABLE)
		return ktrxer_fail(err, -ENETUNREACH,
				   "an 'unreachable' route stands before %s%s; see `ip route get %s`", to_text, which,
				   to_text);
	if (code == -ENETUNREACH || code == -EAGAIN) /* EAGAIN: a 'throw' route, and nothing after it */
		return ktrxer_fail(
			err, -ENETUNREACH,
			"no route to %s%s; see `ip route`, or name device, source and the next hop's MAC address",
			to_text, which);
	return ktrxer_fail(err, code, "the route to %s%s could not be looked up: %m", to_text, which);
}

int ktrxer_route_get(struct rtnl *rtnl, struct route *route, const struct ktrxer_addr *to,
		     const struct ktrxer_addr *from, uint32_t device, struct ktrxer_error *err)
{
	char text[RTNL_TEXT];
	struct route other;
	int ret = route_ask(rtnl, route, to, from, device, text);

	if (from && ret == -EINVAL) {
		/* IPv4 says this of a source that is not (any longer) this host's, too. */
		ret = route_ask(rtnl, route, to, NULL, device, text);
	} else if (from && device && !ret && to->family == AF_INET6 && route->device != device) {
		/* IPv6 takes the device as a mere preference when a source is given. */
		ret = route_ask(rtnl, route, to, NULL, device, text);
	}
	if (!ret && route_is_guess(route, to->family, device)) {
		ret = route_ask(rtnl, &other, to, from, 0, text);
		if (!ret)
			ret = -ENETUNREACH; /* there is one, but not by this device */
	}
	if (!ret) {
		switch (route->type) {
		case RTN_BLACKHOLE:
		case RTN_PROHIBIT:
		case RTN_UNREACHABLE:
		case RTN_THROW:
			ret = -ENETUNREACH;
		}
		if (ret)
			return route_fail(ret, route->type, to, from, device, "", err);
		return 0;
	}
	return route_fail(ret, RTN_UNSPEC, to, from, device, text, err);
}
