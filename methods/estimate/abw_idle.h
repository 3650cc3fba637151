/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The share of the time in which the queue of the tight link is empty, from small probes at exact times that load
 * the path hardly: a probe with the least delay has met an empty queue. Capacity times this share is the available
 * bandwidth of one loaded link. With several loaded links it is a lower bound, because a probe has to find all
 * queues empty.
 */
#ifndef KTRXER_METHODS_ABW_IDLE_H
#define KTRXER_METHODS_ABW_IDLE_H

#include "skew.h"

#include <stdbool.h>
#include <stddef.h>

struct abw_idle {
	double share, low, high; /* 99 % */
	double skew_ppm;         /* of the receiver's clock, taken out of the delays */
	double median_ns;        /* of the delays above the least one */
	bool resolved;           /* the probes with the least delay are a group apart */
};

enum { ABW_IDLE_LEAST = 100 };

/* Sorts `delays` by time. The skew of the receiver's clock, from the least delays; 0: not known. -ENOMEM. */
int abw_skew(struct timed_delay *delays, size_t count, double tolerance_ns, double *skew);

/*
 * Sorts `delays` by time, and takes the skew out of them. `tolerance_ns`: delays that differ by less are equal but
 * for noise; up to `most_ns` where these delays show more of it. 0, -EINVAL: fewer than ABW_IDLE_LEAST; -ENOMEM.
 */
int abw_idle(struct timed_delay *delays, size_t count, double tolerance_ns, double most_ns, struct abw_idle *result);

#endif
