/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where frames go: device, source, next hop and its link address, all as in the tables of this network namespace. */
#include "path.h"

#include "options.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

struct resolution {
	struct ktrxer_path_options options;
	struct rtnl *rtnl;
	struct ktrxer_path *path;
	struct device_more more;
	struct route route;
	uint32_t device;  /* that the way must take; 0: any */
	bool have_device; /* path->device is filled */
	bool have_route;
	bool own_source; /* an address of this host */
	struct ktrxer_error *err;
};

static bool is_any(const struct ktrxer_addr *addr)
{
	static const uint8_t zeros[16];

	return !memcmp(addr->bytes, zeros, addr->family == AF_INET6 ? 16 : 4);
}

static bool is_multicast(const struct ktrxer_addr *addr)
{
	return addr->family == AF_INET6 ? addr->bytes[0] == 0xff : (addr->bytes[0] & 0xf0) == 0xe0;
}

/* The same number may stand on every link: fe80::/10, and multicast that stays within an interface or a link. */
static bool is_of_one_link(const struct ktrxer_addr *addr)
{
	if (addr->family != AF_INET6)
		return false;
	if (addr->bytes[0] == 0xff)
		return (addr->bytes[1] & 0x0f) <= 2;
	return addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80;
}

static bool is_mapped(const struct ktrxer_addr *addr)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return addr->family == AF_INET6 && !memcmp(addr->bytes, mapped, sizeof mapped);
}

static int options_check(const struct resolution *r)
{
	const struct ktrxer_addr *to = &r->options.to, *from = &r->options.from;
	char text[KTRXER_ADDR_TEXT], text2[KTRXER_ADDR_TEXT];

	if (to->family != AF_INET && to->family != AF_INET6)
		return ktrxer_fail(r->err, -EINVAL, "no destination address was given");
	if (is_any(to))
		return ktrxer_fail(r->err, -EINVAL, "%s is no destination: it stands for 'any address'",
				   ktrxer_addr_format(to, text));
	if (is_mapped(to) || is_mapped(from))
		return ktrxer_fail(r->err, -EINVAL,
				   "%s is an IPv4 address in IPv6 dress, which no packet carries: write it as IPv4",
				   ktrxer_addr_format(is_mapped(to) ? to : from, text));
	if (!from->family)
		return 0;
	if (from->family != to->family)
		return ktrxer_fail(r->err, -EINVAL, "source %s and destination %s are of different IP versions",
				   ktrxer_addr_format(from, text), ktrxer_addr_format(to, text2));
	if (is_multicast(from))
		return ktrxer_fail(r->err, -EINVAL, "%s is multicast: no packet may come from there",
				   ktrxer_addr_format(from, text));
	return 0;
}

static int device_usable(const struct resolution *r)
{
	const struct ktrxer_device *device = &r->path->device;

	if (!device->up)
		return ktrxer_fail(r->err, -ENETDOWN, "device '%s' is down; `ip link set %s up` starts it",
				   device->name, device->name);
	if (!device->running)
		return ktrxer_fail(r->err, -ENETDOWN,
				   "device '%s' is up but has no carrier: a cable is out, or its other end is down",
				   device->name);
	if (r->more.no_link && !r->options.no_link_address)
		return ktrxer_device_odd_link(device, &r->more, r->err);
	return 0;
}

/* Device and scope, as far as the caller says them. */
static int device_choose(struct resolution *r)
{
	const struct ktrxer_addr *to = &r->options.to, *from = &r->options.from;
	uint32_t scope = to->scope_id ? to->scope_id : from->scope_id;
	char text[KTRXER_ADDR_TEXT], text2[KTRXER_ADDR_TEXT];
	int ret;

	if (to->scope_id && from->scope_id && to->scope_id != from->scope_id)
		return ktrxer_fail(r->err, -EINVAL, "%s and %s are on different links", ktrxer_addr_format(from, text),
				   ktrxer_addr_format(to, text2));
	if (r->options.device) {
		ret = ktrxer_device_by_name(r->rtnl, &r->path->device, &r->more, r->options.device, r->err);
		if (!ret && scope && scope != r->path->device.index)
			ret = ktrxer_fail(r->err, -EINVAL, "%s is not on device '%s'",
					  ktrxer_addr_format(to->scope_id ? to : from, text), r->path->device.name);
	} else if (scope) {
		ret = ktrxer_device_by_index(r->rtnl, &r->path->device, &r->more, scope, r->err);
	} else if (is_of_one_link(to)) {
		return ktrxer_fail(r->err, -EINVAL,
				   "%s may be on any link: say on which, as in %s%%eth0, or name the device",
				   ktrxer_addr_format(to, text), text);
	} else {
		return 0;
	}
	if (ret)
		return ret;
	r->have_device = true;
	r->device = r->path->device.index;
	return device_usable(r);
}

static int fail_own(const struct resolution *r)
{
	char text[KTRXER_ADDR_TEXT];

	return ktrxer_fail(r->err, -ENETUNREACH,
			   "%s is this host's own address: frames to it never leave by '%s'; name no device, or a "
			   "next hop's MAC address and a source",
			   ktrxer_addr_format(&r->options.to, text), r->path->device.name);
}

/* 0 if the device that was named, or that the scope gives, is that of the route. */
static int route_fits(struct resolution *r)
{
	const struct ktrxer_device *device = &r->path->device;
	char text[KTRXER_ADDR_TEXT];

	if (r->more.vrf || device->loopback)
		return 0;
	if (r->route.type == RTN_LOCAL) {
		if (r->options.device)
			return fail_own(r);
		return 0; /* the scope of an own link-local address: the way is by loopback */
	}
	if (r->route.device != r->device)
		return ktrxer_fail(r->err, -ENETUNREACH, "no route to %s by device '%s'; see `ip route get %s`",
				   ktrxer_addr_format(&r->options.to, text), device->name, text);
	/* IPv4 would take a default route there, for an address that another device has, and even for 127.0.0.1. */
	if (r->route.type == RTN_UNICAST && ktrxer_route_is_own(r->rtnl, &r->options.to, 0))
		return fail_own(r);
	return 0;
}

static int route_choose(struct resolution *r)
{
	const struct ktrxer_addr *to = &r->options.to, *from = &r->options.from;
	int ret;

	/*
	 * An address that is not this host's is no source of the look-up: the kernel has no route for packets that it
	 * would not send itself.
	 */
	r->own_source = from->family && !is_any(from) && ktrxer_route_is_own(r->rtnl, from, r->device);
	ret = ktrxer_route_get(r->rtnl, &r->route, to, r->own_source ? from : NULL, r->device, r->err);
	if (!ret && r->have_device)
		ret = route_fits(r);
	if (ret == -ENETUNREACH && r->options.next_hop_mac && r->have_device && from->family) {
		/*
		 * A frame whose device, source and link address are given needs no route, whatever this host's tables
		 * hold.
		 */
		if (r->err)
			*r->err = (struct ktrxer_error){ 0 };
		memset(&r->route, 0, sizeof r->route);
		return 0;
	}
	if (ret)
		return ret;
	r->have_route = true;
	if (r->have_device && r->route.device == r->device)
		return 0;
	ret = ktrxer_device_by_index(r->rtnl, &r->path->device, &r->more, r->route.device, r->err);
	return ret ? ret : device_usable(r);
}

static int source_choose(struct resolution *r)
{
	struct ktrxer_path *path = r->path;
	char text[KTRXER_ADDR_TEXT];

	if (r->options.from.family) {
		path->source = r->options.from;
	} else {
		path->source = r->route.source;
		r->own_source = true;
	}
	if (path->source.family == path->to.family && (r->options.from.family || !is_any(&path->source)))
		return 0;
	return ktrxer_fail(r->err, -EADDRNOTAVAIL,
			   "device '%s' has no %s address to send to %s from (a fresh IPv6 address takes a second or "
			   "two); give it one, or name a source address",
			   path->device.name, path->to.family == AF_INET6 ? "IPv6" : "IPv4",
			   ktrxer_addr_format(&path->to, text));
}

static void mtu_choose(struct resolution *r)
{
	uint32_t mtu = r->path->device.mtu;

	if (r->path->to.family == AF_INET6 && r->more.mtu6 && r->more.mtu6 < mtu)
		mtu = r->more.mtu6;
	if (r->have_route && r->route.mtu && r->route.mtu < mtu)
		mtu = r->route.mtu;
	r->path->mtu = mtu;
}

/* Groups have link addresses by rule: RFC 1112 section 6.4, RFC 2464 section 7. */
static bool group_address(uint8_t mac[6], const struct ktrxer_addr *to, bool broadcast)
{
	static const uint8_t all[4] = { 255, 255, 255, 255 };

	if (broadcast || (to->family == AF_INET && !memcmp(to->bytes, all, sizeof all))) {
		memset(mac, 0xff, 6);
	} else if (!is_multicast(to)) {
		return false;
	} else if (to->family == AF_INET6) {
		mac[0] = mac[1] = 0x33;
		memcpy(mac + 2, to->bytes + 12, 4);
	} else {
		mac[0] = 0x01;
		mac[1] = 0x00;
		mac[2] = 0x5e;
		mac[3] = to->bytes[1] & 0x7f;
		memcpy(mac + 4, to->bytes + 2, 2);
	}
	return true;
}

static int link_address_choose(struct resolution *r)
{
	struct ktrxer_path *path = r->path;
	int ret;

	if (r->options.no_link_address)
		return 0;
	if (path->device.link == KTRXER_LINK_RAW_IP) {
		if (r->options.next_hop_mac)
			return ktrxer_fail(r->err, -EINVAL,
					   "device '%s' has no link addresses: leave the next hop's MAC address out",
					   path->device.name);
		return 0;
	}
	if (r->options.next_hop_mac) {
		memcpy(path->next_hop_mac, r->options.next_hop_mac, sizeof path->next_hop_mac);
		return 0;
	}
	if (r->route.encapsulates)
		return ktrxer_fail(r->err, -EOPNOTSUPP,
				   "the route by '%s' wraps packets up (MPLS, segment routing...), which whole frames "
				   "pass by: use the engine 'udp'",
				   path->device.name);
	if (group_address(path->next_hop_mac, &path->to, r->route.type == RTN_BROADCAST))
		return 0;
	if (path->device.loopback)
		return 0; /* zeros, as the kernel's own frames there have */
	ret = ktrxer_neighbour_resolve(r->rtnl, path->next_hop_mac, &path->device, &path->next_hop,
				       r->options.timeout_ms, r->err);
	if (ret == -ENOENT) {
		/*
		 * A link without ARP: the kernel addresses frames to the device itself, and the far end takes them all.
		 */
		memcpy(path->next_hop_mac, path->device.mac, sizeof path->next_hop_mac);
		return 0;
	}
	return ret;
}

static int resolve(struct resolution *r)
{
	struct ktrxer_path *path = r->path;
	int ret;

	path->to = r->options.to;
	ret = options_check(r);
	if (ret)
		return ret;
	ret = device_choose(r);
	if (ret)
		return ret;
	ret = route_choose(r);
	if (ret)
		return ret;
	if (is_of_one_link(&path->to) && !path->to.scope_id)
		path->to.scope_id = path->device.index;
	path->next_hop = r->route.gateway.family ? r->route.gateway : path->to;
	if (r->more.no_link)
		path->device.link = KTRXER_LINK_RAW_IP; /* no_link_address: the host's stack makes the rest */
	ret = source_choose(r);
	if (ret)
		return ret;
	mtu_choose(r);
	path->needs_stack = path->device.loopback && path->to.family == AF_INET && r->own_source;
	return link_address_choose(r);
}

int ktrxer_path_resolve_sized(struct ktrxer_path *to, size_t size, const struct ktrxer_path_options *options,
			      struct ktrxer_error *err)
{
	struct ktrxer_path path = { 0 };
	struct resolution r = { .path = &path, .err = err };
	int ret;

	if (!to || !size)
		return ktrxer_fail(err, -EINVAL, "ktrxer_path_resolve: no place for the path (NULL)");
	ktrxer_result_write(to, size, &path, sizeof path);
	ret = ktrxer_options_read(&r.options, sizeof r.options, options,
				  offsetof(struct ktrxer_path_options, timeout_ms) + sizeof r.options.timeout_ms,
				  "ktrxer_path_options", err);
	if (ret)
		return ret;
	ret = ktrxer_rtnl_open(&r.rtnl);
	if (ret)
		return ktrxer_fail(err, ret, "no rtnetlink socket: %m");
	ret = resolve(&r);
	ktrxer_rtnl_close(r.rtnl);
	ktrxer_result_write(to, size, &path, sizeof path);
	return ret;
}
