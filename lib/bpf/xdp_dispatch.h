/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An XDP program beside those of others, through libxdp's dispatcher. The dispatcher and its parts are pinned (/sys/fs/bpf/xdp): unlike
 * a link of our own such a program outlives its process. So it asks for a heartbeat, and without one it lets everything pass.
 */
#ifndef KTRXER_LIB_XDP_DISPATCH_H
#define KTRXER_LIB_XDP_DISPATCH_H

#include "error.h"

#include <linux/types.h>
#include <pthread.h>
#include <stdatomic.h>

struct bpf_object;
struct xdp_program;

struct xdp_dispatch {
	const struct ktrxer_device *device;
	struct xdp_program *program; /* NULL: not there */
	bool generic;
	volatile __u64 *alive_ns;
	pthread_t thread;
	int stop_fd; /* the heart beats while it is >= 0 */
	_Atomic uint32_t pauses; /* how often it was silent for so long that rules were not in force */
};

/* Is it a dispatcher of libxdp's that holds the device, and can we join it? */
bool xdp_dispatch_there(uint32_t device);

/*
 * Loads the object and puts its program in front of the others. The program does nothing until the heart beats. -EBUSY and the like:
 * err says what libxdp had against it.
 */
int xdp_dispatch_join(struct xdp_dispatch *dispatch, struct bpf_object *object, const char *name, const struct ktrxer_device *device,
		      struct ktrxer_error *err);
int xdp_dispatch_beat(struct xdp_dispatch *dispatch, __u64 *alive_ns, struct ktrxer_error *err);
void xdp_dispatch_leave(struct xdp_dispatch *dispatch);

/*
 * Programs of rules in the device's dispatcher whose heart has been silent for its time: left behind by a process that was killed. How
 * many there are; with `clean` they are taken out. A negative errno: the device's dispatcher cannot be read, or a program not taken out.
 */
int xdp_dispatch_left(const struct ktrxer_device *device, bool clean, struct ktrxer_error *err);

#endif
