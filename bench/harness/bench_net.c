/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_net.h"

#include "error.h"
#include "rtnl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define NEAR_DEVICE "b0"
#define FAR_DEVICE "b1"

static int here(void)
{
	int fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int go(int fd)
{
	return setns(fd, CLONE_NEWNET) == 0 ? 0 : -errno;
}

int bench_net_far(const struct bench_net *net)
{
	return go(net->far_fd);
}

int bench_net_near(const struct bench_net *net)
{
	return go(net->near_fd);
}

/* ------------------------------------------------------------------------------------------------------- our own hosts */

/* Of the namespace that the thread is in. A kernel without the feature has no such file. */
static void set(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, value, strlen(value)) < 0)
		errno = 0; /* it stays as it is: a default that was never changed */
	close(fd);
}

static int new_host(struct ktrxer_error *err)
{
	char word[64];
	int rc;

	if (unshare(CLONE_NEWNET)) {
		rc = -errno;
		return ktrxer_fail(err, rc, "no network namespace can be made here (%s): run as root, under `unshare -Urn`, or give "
				   "--device, --to and --far-device", ktrxer_strerror(rc, word, sizeof word));
	}
	/* No router solicitations, no multicast reports among the probes. */
	set("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
	set("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
	set("/proc/sys/net/ipv4/conf/all/rp_filter", "0");
	set("/proc/sys/net/ipv4/conf/default/rp_filter", "0");
	return here();
}

static int make_pair(struct rtnl *rtnl, int far_fd, uint32_t mtu, char text[RTNL_TEXT])
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC };
	struct rtnl_request r;
	size_t link, data, peer;

	ktrxer_rtnl_request_begin(&r, RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &info, sizeof info);
	ktrxer_rtnl_request_put(&r, IFLA_IFNAME, NEAR_DEVICE, sizeof NEAR_DEVICE);
	ktrxer_rtnl_request_put_u32(&r, IFLA_MTU, mtu);
	link = ktrxer_rtnl_request_nest(&r, IFLA_LINKINFO);
	ktrxer_rtnl_request_put(&r, IFLA_INFO_KIND, "veth", 4);
	data = ktrxer_rtnl_request_nest(&r, IFLA_INFO_DATA);
	peer = ktrxer_rtnl_request_nest(&r, VETH_INFO_PEER);
	ktrxer_rtnl_request_append(&r, &info, sizeof info);
	ktrxer_rtnl_request_put(&r, IFLA_IFNAME, FAR_DEVICE, sizeof FAR_DEVICE);
	ktrxer_rtnl_request_put_u32(&r, IFLA_MTU, mtu);
	ktrxer_rtnl_request_put_u32(&r, IFLA_NET_NS_FD, (uint32_t)far_fd);
	ktrxer_rtnl_request_nest_end(&r, peer);
	ktrxer_rtnl_request_nest_end(&r, data);
	ktrxer_rtnl_request_nest_end(&r, link);
	return ktrxer_rtnl_talk(rtnl, &r, NULL, NULL, text);
}

static int set_up(struct rtnl *rtnl, const char *device, const uint8_t address[4], char text[RTNL_TEXT])
{
	struct ifinfomsg info = { .ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP };
	struct ifaddrmsg addr = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_scope = RT_SCOPE_UNIVERSE };
	struct rtnl_request r;
	int rc;

	info.ifi_index = (int)if_nametoindex(device);
	addr.ifa_index = (uint32_t)info.ifi_index;
	if (!info.ifi_index)
		return -ENODEV;
	if (address) {
		ktrxer_rtnl_request_begin(&r, RTM_NEWADDR, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, &addr, sizeof addr);
		ktrxer_rtnl_request_put(&r, IFA_LOCAL, address, 4);
		ktrxer_rtnl_request_put(&r, IFA_ADDRESS, address, 4);
		if ((rc = ktrxer_rtnl_talk(rtnl, &r, NULL, NULL, text)) < 0)
			return rc;
	}
	ktrxer_rtnl_request_begin(&r, RTM_NEWLINK, NLM_F_ACK, &info, sizeof info);
	return ktrxer_rtnl_talk(rtnl, &r, NULL, NULL, text);
}

#define FQ_TIMER_SLACK 13 /* TCA_FQ_TIMER_SLACK, Linux 5.9; older kernels pass over it */

/* The queue that keeps launch times, at the near device. */
static int add_fq(struct rtnl *rtnl, const char *device, char text[RTNL_TEXT])
{
	const struct tcmsg head = { .tcm_ifindex = (int)if_nametoindex(device), .tcm_parent = TC_H_ROOT };
	struct rtnl_request r;
	size_t options;

	ktrxer_rtnl_request_begin(&r, RTM_NEWQDISC, NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, &head, sizeof head);
	ktrxer_rtnl_request_put(&r, TCA_KIND, "fq", sizeof "fq");
	options = ktrxer_rtnl_request_nest(&r, TCA_OPTIONS);
	ktrxer_rtnl_request_put_u32(&r, FQ_TIMER_SLACK, 0);
	ktrxer_rtnl_request_nest_end(&r, options);
	return ktrxer_rtnl_talk(rtnl, &r, NULL, NULL, text);
}

static int give_fq(const char *device, struct ktrxer_error *err)
{
	char text[RTNL_TEXT] = "", word[64];
	struct rtnl *rtnl;
	int rc = ktrxer_rtnl_open(&rtnl);

	if (rc == 0) {
		rc = add_fq(rtnl, device, text);
		ktrxer_rtnl_close(rtnl);
	}
	if (rc == -ENOENT)
		return ktrxer_fail(err, rc, "--fq: this kernel has no fq qdisc (CONFIG_NET_SCH_FQ, module sch_fq)");
	return rc < 0 ? ktrxer_fail(err, rc, "--fq: %s", text[0] ? text : ktrxer_strerror(rc, word, sizeof word)) : 0;
}

/* Both devices of a host up; the thread is there. */
static int furnish(const char *device, uint8_t number, char text[RTNL_TEXT])
{
	const uint8_t address[4] = { 10, 99, 0, number };
	struct rtnl *rtnl;
	int rc = ktrxer_rtnl_open(&rtnl);

	if (rc < 0)
		return rc;
	rc = set_up(rtnl, "lo", NULL, text);
	if (!rc)
		rc = set_up(rtnl, device, address, text);
	ktrxer_rtnl_close(rtnl);
	return rc;
}

static int own_hosts(struct bench_net *net, uint32_t mtu, struct ktrxer_error *err)
{
	char text[RTNL_TEXT] = "", word[64];
	struct rtnl *rtnl;
	int rc;

	net->own = true;
	net->far_fd = new_host(err);
	if (net->far_fd < 0)
		return net->far_fd;
	net->near_fd = new_host(err);
	if (net->near_fd < 0)
		return net->near_fd;
	snprintf(net->near_device, sizeof net->near_device, NEAR_DEVICE);
	snprintf(net->far_device, sizeof net->far_device, FAR_DEVICE);
	if ((rc = ktrxer_rtnl_open(&rtnl)) < 0)
		goto fail;
	rc = make_pair(rtnl, net->far_fd, mtu, text);
	ktrxer_rtnl_close(rtnl);
	if (!rc)
		rc = furnish(net->near_device, 1, text);
	net->near_index = if_nametoindex(net->near_device);
	if (!rc)
		rc = bench_net_far(net);
	if (!rc)
		rc = furnish(net->far_device, 2, text);
	if (!rc) {
		net->far_index = if_nametoindex(net->far_device);
		rc = bench_net_near(net);
	}
	if (rc)
		goto fail;
	return ktrxer_addr_parse(&net->to, "10.99.0.2");

fail:
	return ktrxer_fail(err, rc, "two hosts joined by a veth pair cannot be made: %s%s%s%s", ktrxer_strerror(rc, word, sizeof word),
			   text[0] ? " (" : "", text, text[0] ? ")" : "");
}

/* ------------------------------------------------------------------------------------------------------ the user's path */

static int open_netns(const char *name, struct ktrxer_error *err)
{
	char path[300], word[64];
	int fd;

	snprintf(path, sizeof path, strchr(name, '/') ? "%s" : "/run/netns/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return ktrxer_fail(err, -errno, "--far-netns %s: %s: %s; `ip netns list` tells", name, path,
				   ktrxer_strerror(-errno, word, sizeof word));
	return fd;
}

static int users_path(struct bench_net *net, const struct bench_net_options *o, struct ktrxer_error *err)
{
	char word[64];
	int rc;

	if (!o->device || !o->far_device || !o->to.family)
		return ktrxer_fail(err, -EINVAL, "a path of your own has three ends: --device DEV (it sends), --to IP, and --far-device DEV "
				   "(where it arrives: on this machine, for one clock is to judge; --far-netns if in another namespace)");
	net->near_fd = here();
	if (net->near_fd < 0)
		return ktrxer_fail(err, net->near_fd, "/proc/thread-self/ns/net: %s", ktrxer_strerror(net->near_fd, word, sizeof word));
	net->far_fd = o->far_netns ? open_netns(o->far_netns, err) : here();
	if (net->far_fd < 0)
		return net->far_fd;
	snprintf(net->near_device, sizeof net->near_device, "%s", o->device);
	snprintf(net->far_device, sizeof net->far_device, "%s", o->far_device);
	net->to = o->to;
	net->near_index = if_nametoindex(net->near_device);
	if (!net->near_index)
		return ktrxer_fail(err, -ENODEV, "--device %s: no such device; `ip link` lists them", o->device);
	if ((rc = bench_net_far(net)) < 0)
		return ktrxer_fail(err, rc, "the far host cannot be entered: %s", ktrxer_strerror(rc, word, sizeof word));
	net->far_index = if_nametoindex(net->far_device);
	if ((rc = bench_net_near(net)) < 0)
		return ktrxer_fail(err, rc, "no way back from the far host: %s", ktrxer_strerror(rc, word, sizeof word));
	if (!net->far_index)
		return ktrxer_fail(err, -ENODEV, "--far-device %s: no such device at the far end", o->far_device);
	return 0;
}

int bench_net_open(struct bench_net *net, const struct bench_net_options *o, struct ktrxer_error *err)
{
	char word[64];
	int rc;

	*net = (struct bench_net){ .home_fd = -1, .near_fd = -1, .far_fd = -1 };
	net->home_fd = here();
	if (net->home_fd < 0)
		return ktrxer_fail(err, net->home_fd, "/proc/thread-self/ns/net: %s", ktrxer_strerror(net->home_fd, word, sizeof word));
	if (o->device || o->far_device || o->far_netns || o->to.family)
		rc = users_path(net, o, err);
	else
		rc = own_hosts(net, o->mtu ? o->mtu : 1500, err);
	if (rc == 0 && o->fq)
		rc = net->own ? give_fq(net->near_device, err) : ktrxer_fail(err, -EINVAL, "--fq is for the bench's own hosts: give your device its "
									     "queue by `tc qdisc replace dev %s root fq`", net->near_device);
	if (rc < 0)
		bench_net_close(net);
	return rc;
}

void bench_net_close(struct bench_net *net)
{
	if (net->home_fd >= 0 && go(net->home_fd) == 0)
		close(net->home_fd);
	if (net->near_fd >= 0)
		close(net->near_fd);
	if (net->far_fd >= 0)
		close(net->far_fd);
	net->home_fd = net->near_fd = net->far_fd = -1;
}
