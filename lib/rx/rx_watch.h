/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Notices that a device goes down or away, and keeps it promiscuous, for back ends that have no socket of their own on
 * it: a packet socket that takes no packets.
 */
#ifndef KTRXER_LIB_RX_WATCH_H
#define KTRXER_LIB_RX_WATCH_H

#include "error.h"

struct krx_watch {
	int fd; /* becomes readable when there is something to notice; -1: none */
	uint32_t device;
};

int krx_watch_open(struct krx_watch *watch, const struct ktrxer_device *device, bool promiscuous,
		   struct ktrxer_error *err);
void krx_watch_close(struct krx_watch *watch);

/* The state of the device between two looks; zero at the start. */
struct krx_look {
	bool empty; /* the last look found no packet either; clear it with each packet */
	bool down;  /* the device went down once, so it may be gone now */
	int error;  /* that another call has taken from the socket (errno); not yet reported */
};
/*
 * Returns 0, -ENETDOWN or -ENODEV for an empty receiver, whose socket is bound to `device` (0: to none). The end of a
 * queue of packets costs no system call: `fd` stays readable while there is an error, so the caller comes back, and the
 * second empty look asks the kernel.
 */
int krx_watch_look(struct krx_look *look, int fd, uint32_t device);

/* -EPERM, with the capability that the process lacks and what to do. */
int krx_privilege_missing(struct ktrxer_error *err, const char *capability);

#endif
