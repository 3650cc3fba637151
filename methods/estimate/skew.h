/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rate of a receiver's clock against the sender's, from delays over time: the least delays of a path without skew
 * lie on a level line (Moon, Skelly, Towsley, INFOCOM 1999).
 */
#ifndef KTRXER_METHODS_SKEW_H
#define KTRXER_METHODS_SKEW_H

#include <stddef.h>

struct timed_delay {
	double at_ns, delay_ns; /* any origin each */
};

#define SKEW_MOST 1e-3 /* clocks of computers differ by less */

/*
 * The slope of the lower convex hull at the mean time. `first`: the first member of each of `count` elements that are
 * `size` bytes apart and in the order of their times. `hull` has room for `count`. 0: not known.
 */
double skew_of(const struct timed_delay *first, size_t size, size_t count, size_t *hull);

#endif
