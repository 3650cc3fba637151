/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_net.h"

#include "error.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static int open_path(struct bench_net *net, const struct bench_net_options *o, struct ktrxer_error *err)
{
	char word[64];
	int rc;

	if (!o->device || !o->far_device || !o->to.family)
		return ktrxer_fail(err, -EINVAL,
				   "a path needs --device DEV (sends), --to IP and --far-device DEV (where the probes "
				   "arrive: on this "
				   "machine, because one clock measures both ends; --far-netns NAME if it is in "
				   "another network namespace)");
	net->near_fd = here();
	if (net->near_fd < 0)
		return ktrxer_fail(err, net->near_fd, "/proc/thread-self/ns/net: %s",
				   ktrxer_strerror(net->near_fd, word, sizeof word));
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
		return ktrxer_fail(err, rc, "the far host cannot be entered: %s",
				   ktrxer_strerror(rc, word, sizeof word));
	net->far_index = if_nametoindex(net->far_device);
	if ((rc = bench_net_near(net)) < 0)
		return ktrxer_fail(err, rc, "no route from the far host to this one: %s",
				   ktrxer_strerror(rc, word, sizeof word));
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
		return ktrxer_fail(err, net->home_fd, "/proc/thread-self/ns/net: %s",
				   ktrxer_strerror(net->home_fd, word, sizeof word));
	rc = open_path(net, o, err);
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
