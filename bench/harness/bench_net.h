/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The path of a bench: a device of this network namespace sends, and the probes arrive at a device of this machine, in
 * this or in another namespace. `ktrxer bench` (lab/ktrxer_lab/bench) makes two namespaces and a veth pair where the
 * user names no devices.
 */
#ifndef KTRXER_CLI_BENCH_NET_H
#define KTRXER_CLI_BENCH_NET_H

#include <ktrxer.h>

struct bench_net {
	int home_fd, near_fd, far_fd; /* namespaces */
	char near_device[16], far_device[16];
	uint32_t near_index, far_index;
	struct ktrxer_addr to;
};

struct bench_net_options {
	const char *device, *far_device, *far_netns; /* far_netns NULL: this namespace */
	struct ktrxer_addr to;
};

/* Leaves the calling thread at the near host; threads and processes that it starts from now on are there too. */
int bench_net_open(struct bench_net *net, const struct bench_net_options *options, struct ktrxer_error *err);
void bench_net_close(struct bench_net *net);
/* The calling thread goes to the far host, and back. 0 or a negative errno. */
int bench_net_far(const struct bench_net *net);
int bench_net_near(const struct bench_net *net);

#endif
