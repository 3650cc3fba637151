/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Where the bench sends: two hosts of its own in network namespaces, joined by a veth pair
 *
 *     near  b0 10.99.0.1/24 ------ b1 10.99.0.2/24  far
 *
 * which have no names: they exist by the descriptors and threads of this process alone, so that nothing is left of them however
 * it ends, by kill -9 too. Or a path of the user's: a device here, and the device where it arrives, on this machine as well.
 */
#ifndef KTRXER_CLI_BENCH_NET_H
#define KTRXER_CLI_BENCH_NET_H

#include <ktrxer.h>

struct bench_net {
	int home_fd, near_fd, far_fd; /* namespaces */
	bool own;                     /* made here */
	char near_device[16], far_device[16];
	uint32_t near_index, far_index;
	struct ktrxer_addr to;
};

struct bench_net_options {
	const char *device, *far_device, *far_netns; /* NULL: our own hosts */
	struct ktrxer_addr to;
	uint32_t mtu; /* of our own veth pair */
	bool fq;      /* at our own near device */
};

/* Leaves the calling thread at the near host; threads and processes that it starts from now on are there too. */
int bench_net_open(struct bench_net *net, const struct bench_net_options *options, struct ktrxer_error *err);
void bench_net_close(struct bench_net *net);
/* The calling thread goes to the far host, and back. 0 or a negative errno. */
int bench_net_far(const struct bench_net *net);
int bench_net_near(const struct bench_net *net);

#endif
