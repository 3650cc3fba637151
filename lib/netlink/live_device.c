/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "live_device.h"

#include "rtnl.h"

#include <errno.h>
#include <linux/genetlink.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

/* <linux/netdev.h> of Linux 6.3, by number: older headers lack it. */
enum {
	NETDEV_COMMAND_GET = 1,
	NETDEV_ATTRIBUTE_IFINDEX = 1,
	NETDEV_ATTRIBUTE_XDP_FEATURES = 3,
	NETDEV_XDP_NDO_XMIT = 4,
};

static bool skip_header(struct bytes *body)
{
	return bytes_skip(body, GENL_HDRLEN);
}

uint16_t ktrxer_live_family_of(struct bytes body)
{
	struct bytes value;
	uint16_t type, id = 0;

	if (!skip_header(&body))
		return 0;
	while (ktrxer_rtnl_next(&body, &type, &value))
		if (type == CTRL_ATTR_FAMILY_ID && bytes_left(&value) == sizeof id)
			bytes_copy(&value, &id, sizeof id);
	return body.ok ? id : 0;
}

bool ktrxer_live_xdp_features_of(struct bytes body, uint32_t index, uint64_t *features)
{
	bool found = false, same = false;
	struct bytes value;
	uint16_t type;

	if (!skip_header(&body))
		return false;
	while (ktrxer_rtnl_next(&body, &type, &value)) {
		if (type == NETDEV_ATTRIBUTE_IFINDEX)
			same = ktrxer_rtnl_u32(value) == index;
		if (type == NETDEV_ATTRIBUTE_XDP_FEATURES && bytes_left(&value) == sizeof *features)
			found = bytes_copy(&value, features, sizeof *features);
	}
	return body.ok && same && found;
}

static int family_take(void *context, uint16_t type, struct bytes body)
{
	(void)type;
	*(uint16_t *)context = ktrxer_live_family_of(body);
	return 0;
}

struct features_answer {
	uint32_t index;
	uint64_t features;
	bool found;
};

static int features_take(void *context, uint16_t type, struct bytes body)
{
	struct features_answer *answer = context;

	(void)type;
	answer->found |= ktrxer_live_xdp_features_of(body, answer->index, &answer->features);
	return 0;
}

static int features_ask(struct rtnl *rtnl, struct features_answer *answer)
{
	struct genlmsghdr header = { .cmd = CTRL_CMD_GETFAMILY, .version = 1 };
	struct rtnl_request request;
	uint16_t family = 0;
	int rc;

	ktrxer_rtnl_request_begin(&request, GENL_ID_CTRL, 0, &header, sizeof header);
	ktrxer_rtnl_request_put(&request, CTRL_ATTR_FAMILY_NAME, "netdev", sizeof "netdev");
	rc = ktrxer_rtnl_talk(rtnl, &request, family_take, &family, NULL);
	if (rc < 0 || !family)
		return rc;
	header = (struct genlmsghdr){ .cmd = NETDEV_COMMAND_GET, .version = 1 };
	ktrxer_rtnl_request_begin(&request, family, 0, &header, sizeof header);
	ktrxer_rtnl_request_put_u32(&request, NETDEV_ATTRIBUTE_IFINDEX, answer->index);
	return ktrxer_rtnl_talk(rtnl, &request, features_take, answer, NULL);
}

/* A link with its 64-bit counters; the second one is packets sent. */
static bool statistics_of(struct bytes body, uint64_t *packets)
{
	struct bytes value;
	uint64_t skipped;
	uint16_t type;

	if (!bytes_skip(&body, sizeof(struct ifinfomsg)))
		return false;
	while (ktrxer_rtnl_next(&body, &type, &value))
		if (type == IFLA_STATS64)
			return bytes_copy(&value, &skipped, sizeof skipped) &&
			       bytes_copy(&value, packets, sizeof *packets);
	return false;
}

static int statistics_take(void *context, uint16_t type, struct bytes body)
{
	(void)type;
	return statistics_of(body, context) ? 0 : -ENODATA;
}

int ktrxer_live_device_sent(const struct ktrxer_device *device, uint64_t *packets)
{
	const struct ifinfomsg header = { .ifi_index = (int)device->index };
	struct rtnl_request request;
	struct rtnl *rtnl;
	int rc = ktrxer_rtnl_open(&rtnl);

	if (rc < 0)
		return rc;
	ktrxer_rtnl_request_begin(&request, RTM_GETLINK, 0, &header, sizeof header);
	rc = ktrxer_rtnl_talk(rtnl, &request, statistics_take, packets, NULL);
	ktrxer_rtnl_close(rtnl);
	return rc;
}

int ktrxer_live_device_check(const struct ktrxer_device *device, struct ktrxer_error *err)
{
	struct features_answer answer = { .index = device->index };
	struct rtnl *rtnl;

	if (device->link != KTRXER_LINK_ETHERNET)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "'%s' has no Ethernet header, XDP sends nothing else: use the packet engine",
				   device->name);
	if (ktrxer_rtnl_open_family(&rtnl, NETLINK_GENERIC) < 0)
		return 0;
	(void)features_ask(rtnl, &answer);
	ktrxer_rtnl_close(rtnl);
	/* Each frame that an older kernel's driver does not take is reported as a failed probe. */
	if (!answer.found || answer.features & NETDEV_XDP_NDO_XMIT)
		return 0;
	if (strcmp(device->kind, "veth") == 0)
		return ktrxer_fail(
			err, -EOPNOTSUPP,
			"'%s' would drop all silently: its peer must poll, `ethtool -K PEER gro on` or an XDP "
			"program there makes it",
			device->name);
	if (device->loopback)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "the loopback device takes no redirected frames: use the packet engine");
	return ktrxer_fail(
		err, -EOPNOTSUPP,
		"the driver of '%s' (%s) takes no redirected frames now: some do once an XDP program is on the "
		"device, else use the packet engine",
		device->name, device->driver[0] ? device->driver : device->kind);
}
