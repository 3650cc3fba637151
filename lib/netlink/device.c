/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Network devices as rtnetlink describes them. */
#include "path.h"

#include "options.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	/* Old headers lack the name. */
	ATTRIBUTE_ALT_IFNAME = 53, /* Linux 5.5 */
	EXT_SKIP_STATS = 1 << 3,   /* Linux 4.4 */
	TYPE_RAWIP = 519,          /* ARPHRD_RAWIP: modems */
	TYPE_IP6GRE = 823,
	TYPE_NONE = 0xfffe, /* tun, wireguard, xfrm */
	INET6_CONF_MTU = 2, /* DEVCONF_MTU6 */
	ALT_NAME_MAX = 127,
	NAMES_SHOWN = 120, /* bytes of an error's text for the names that there are */
};

/* 0: the first header is none that this library can build. */
static enum ktrxer_link link_of(uint16_t type, unsigned int flags)
{
	switch (type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		return KTRXER_LINK_ETHERNET;
	case TYPE_NONE:
	case TYPE_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_SLIP:
	case ARPHRD_CSLIP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
		return KTRXER_LINK_RAW_IP;
	case ARPHRD_IPGRE:
	case TYPE_IP6GRE:
		/* Without a fixed far end the caller has to bring the outer header, too. */
		return flags & IFF_POINTOPOINT ? KTRXER_LINK_RAW_IP : 0;
	default:
		return 0;
	}
}

static void parse_linkinfo(struct ktrxer_device *device, struct bytes attributes)
{
	struct bytes value;
	uint16_t type;

	while (ktrxer_rtnl_next(&attributes, &type, &value))
		if (type == IFLA_INFO_KIND)
			ktrxer_rtnl_string(value, device->kind, sizeof device->kind);
}

/* IFLA_AF_SPEC: one attribute a family; IPv6's has an array of its settings. */
static void parse_families(struct device_more *more, struct bytes families)
{
	struct bytes family, value;
	uint16_t type;

	while (ktrxer_rtnl_next(&families, &type, &family)) {
		if (type != AF_INET6)
			continue;
		while (ktrxer_rtnl_next(&family, &type, &value)) {
			int32_t mtu;

			if (type == IFLA_INET6_CONF && bytes_skip(&value, INET6_CONF_MTU * sizeof mtu) &&
			    bytes_copy(&value, &mtu, sizeof mtu) && mtu > 0)
				more->mtu6 = (uint32_t)mtu;
		}
	}
}

int ktrxer_device_parse(struct ktrxer_device *device, struct device_more *more, struct bytes body)
{
	struct ifinfomsg info;
	struct bytes value;
	uint16_t type;

	memset(device, 0, sizeof *device);
	memset(more, 0, sizeof *more);
	if (!bytes_copy(&body, &info, sizeof info) || info.ifi_index <= 0)
		return -EBADMSG;
	device->index = (uint32_t)info.ifi_index;
	device->up = info.ifi_flags & IFF_UP;
	device->running = info.ifi_flags & IFF_RUNNING;
	device->loopback = info.ifi_flags & IFF_LOOPBACK;
	more->type = info.ifi_type;
	device->link = link_of(info.ifi_type, info.ifi_flags);
	more->no_link = !device->link;
	device->needs_neighbour = info.ifi_type == ARPHRD_ETHER && !(info.ifi_flags & (IFF_NOARP | IFF_LOOPBACK));
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		switch (type) {
		case IFLA_IFNAME:
			ktrxer_rtnl_string(value, device->name, sizeof device->name);
			break;
		case IFLA_ADDRESS:
			if (bytes_left(&value) == sizeof device->mac)
				bytes_copy(&value, device->mac, sizeof device->mac);
			break;
		case IFLA_MTU:
			device->mtu = ktrxer_rtnl_u32(value);
			break;
		case IFLA_QDISC:
			ktrxer_rtnl_string(value, device->qdisc, sizeof device->qdisc);
			break;
		case IFLA_NUM_TX_QUEUES:
			device->tx_queues = ktrxer_rtnl_u32(value);
			break;
		case IFLA_LINKINFO:
			parse_linkinfo(device, value);
			break;
		case IFLA_AF_SPEC:
			parse_families(more, value);
			break;
		}
	}
	more->vrf = !strcmp(device->kind, "vrf");
	return body.ok && device->name[0] ? 0 : -EBADMSG;
}

static void driver_read(struct ktrxer_device *device)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct ifreq request;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	memset(&request, 0, sizeof request);
	memcpy(request.ifr_name, device->name, sizeof device->name);
	request.ifr_data = (void *)&info;
	if (!ioctl(fd, SIOCETHTOOL, &request)) {
		info.driver[sizeof info.driver - 1] = '\0';
		memcpy(device->driver, info.driver, sizeof device->driver);
	}
	close(fd);
}

struct device_list {
	uint8_t *devices;
	size_t size; /* of one, in the caller's headers */
	int max, count;
};

static int list_take(void *context, uint16_t type, struct bytes body)
{
	struct device_list *list = context;
	struct ktrxer_device device;
	struct device_more more;
	int ret;

	if (type != RTM_NEWLINK)
		return 0;
	ret = ktrxer_device_parse(&device, &more, body);
	if (ret)
		return ret;
	if (list->count < list->max) {
		driver_read(&device);
		ktrxer_result_write(list->devices + (size_t)list->count * list->size, list->size, &device,
				    sizeof device);
	}
	list->count++;
	return 0;
}

static void list_restart(void *context)
{
	struct device_list *list = context;

	list->count = 0;
}

static int list_read(struct rtnl *rtnl, struct device_list *list)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct rtnl_request request;
	int ret;

	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, NLM_F_DUMP, &info, sizeof info);
	ktrxer_rtnl_request_put_u32(&request, IFLA_EXT_MASK, EXT_SKIP_STATS);
	ret = ktrxer_rtnl_dump(rtnl, &request, list_restart, list_take, list);
	return ret == -EINTR ? 0 : ret; /* devices that come and go all the time: the list so far is good enough */
}

int ktrxer_device_list_sized(struct ktrxer_device *devices, size_t size, int max, struct ktrxer_error *err)
{
	struct device_list list = { .devices = (uint8_t *)devices, .size = size, .max = max };
	struct rtnl *rtnl;
	int ret;

	if (max < 0 || !size || (max && !devices))
		return ktrxer_fail(err, -EINVAL, "ktrxer_device_list: no place for %d devices", max);
	ret = ktrxer_rtnl_open(&rtnl);
	if (!ret) {
		ret = list_read(rtnl, &list);
		ktrxer_rtnl_close(rtnl);
	}
	if (ret)
		return ktrxer_fail(err, ret, "cannot list the network devices by rtnetlink: %m");
	return list.count;
}

/* Changes of one letter (put in, left out, another one) that lead from one name to the other. */
static unsigned int name_distance(const char *a, const char *b)
{
	unsigned int row[IF_NAMESIZE + 1], above_left, above;
	size_t length = strnlen(b, IF_NAMESIZE);

	for (unsigned int j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; a[i] && i < IF_NAMESIZE; i++) {
		above_left = row[0]++;
		for (size_t j = 0; j < length; j++) {
			unsigned int best = above_left + (a[i] != b[j]);

			above = row[j + 1];
			if (row[j] + 1 < best)
				best = row[j] + 1;
			if (above + 1 < best)
				best = above + 1;
			above_left = above;
			row[j + 1] = best;
		}
	}
	return row[length];
}

/* "no such device" and what would have been one. */
static int fail_unknown(struct rtnl *rtnl, const char *name, struct ktrxer_error *err)
{
	struct ktrxer_device devices[64];
	struct device_list list = { .devices = (uint8_t *)devices, .size = sizeof *devices, .max = 64 };
	char names[NAMES_SHOWN] = "";
	unsigned int nearest = 3;
	const char *similar = NULL;
	size_t used = 0;
	int shown;

	if (!err)
		return -ENODEV;
	if (list_read(rtnl, &list))
		list.count = 0;
	shown = list.count < list.max ? list.count : list.max;
	for (int i = 0; i < shown; i++) {
		unsigned int distance = name_distance(name, devices[i].name);

		if (distance < nearest && distance < strlen(devices[i].name)) {
			nearest = distance;
			similar = devices[i].name;
		}
	}
	if (similar)
		return ktrxer_fail(err, -ENODEV, "device '%.64s': there is none of that name here; did you mean '%s'?",
				   name, similar);
	for (int i = 0; i < shown; i++) {
		int n = snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", devices[i].name);

		if (n < 0 || (size_t)n >= sizeof names - used) {
			names[used] = '\0';
			shown = i;
			break;
		}
		used += (size_t)n;
	}
	if (shown < list.count)
		return ktrxer_fail(err, -ENODEV,
				   "device '%.64s': there is none of that name here; there are %s and %d more", name,
				   names, list.count - shown);
	return ktrxer_fail(err, -ENODEV, "device '%.64s': there is none of that name here; there are %s", name,
			   names[0] ? names : "none at all");
}

struct device_answer {
	struct ktrxer_device *device;
	struct device_more *more;
	bool seen;
};

static int device_take(void *context, uint16_t type, struct bytes body)
{
	struct device_answer *answer = context;

	if (type != RTM_NEWLINK)
		return 0;
	answer->seen = true;
	return ktrxer_device_parse(answer->device, answer->more, body);
}

static int device_ask(struct rtnl *rtnl, struct ktrxer_device *device, struct device_more *more, const char *name,
		      uint32_t index)
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)index };
	struct device_answer answer = { .device = device, .more = more };
	struct rtnl_request request;
	int ret;

	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, 0, &info, sizeof info);
	if (name)
		ktrxer_rtnl_request_put(&request, strlen(name) < IF_NAMESIZE ? IFLA_IFNAME : ATTRIBUTE_ALT_IFNAME, name,
					(uint32_t)strlen(name) + 1);
	ktrxer_rtnl_request_put_u32(&request, IFLA_EXT_MASK, EXT_SKIP_STATS);
	ret = ktrxer_rtnl_talk(rtnl, &request, device_take, &answer, NULL);
	if (!ret && !answer.seen)
		ret = -ENODEV;
	return ret;
}

int ktrxer_device_by_name(struct rtnl *rtnl, struct ktrxer_device *device, struct device_more *more, const char *name,
			  struct ktrxer_error *err)
{
	int ret = -ENODEV;

	if (name && name[0] && strnlen(name, ALT_NAME_MAX + 1) <= ALT_NAME_MAX)
		ret = device_ask(rtnl, device, more, name, 0);
	/* A kernel before 5.5 takes a name that is too long for a fault of the request. */
	if (ret == -ENODEV || ret == -EINVAL || ret == -ERANGE)
		return fail_unknown(rtnl, name ? name : "", err);
	if (ret)
		return ktrxer_fail(err, ret, "device '%s': rtnetlink does not tell: %m", name);
	driver_read(device);
	return 0;
}

int ktrxer_device_by_index(struct rtnl *rtnl, struct ktrxer_device *device, struct device_more *more, uint32_t index,
			   struct ktrxer_error *err)
{
	int ret = device_ask(rtnl, device, more, NULL, index);

	if (ret)
		return ktrxer_fail(err, ret, "device number %u: rtnetlink does not tell: %m", index);
	driver_read(device);
	return 0;
}

int ktrxer_device_odd_link(const struct ktrxer_device *device, const struct device_more *more, struct ktrxer_error *err)
{
	return ktrxer_fail(
		err, -EOPNOTSUPP,
		"device '%s': its frames (link type %u%s%s) are not known here; Ethernet, loopback and IP tunnels are; "
		"the engine 'udp' sends through any",
		device->name, more->type, device->kind[0] ? ", " : "", device->kind);
}

int ktrxer_device_get_sized(struct ktrxer_device *to, size_t size, const char *name, struct ktrxer_error *err)
{
	struct ktrxer_device device = { 0 };
	struct device_more more;
	struct rtnl *rtnl;
	int ret;

	if (!to || !size || !name)
		return ktrxer_fail(err, -EINVAL, "ktrxer_device_get: no %s (NULL)",
				   to && size ? "name" : "place for the device");
	ktrxer_result_write(to, size, &device, sizeof device);
	ret = ktrxer_rtnl_open(&rtnl);
	if (ret)
		return ktrxer_fail(err, ret, "no rtnetlink socket: %m");
	ret = ktrxer_device_by_name(rtnl, &device, &more, name, err);
	ktrxer_rtnl_close(rtnl);
	if (!ret && more.no_link)
		ret = ktrxer_device_odd_link(&device, &more, err);
	ktrxer_result_write(to, size, &device, sizeof device);
	return ret;
}
