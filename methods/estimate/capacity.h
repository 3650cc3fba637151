/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The most frequent rates of many packet pairs, the modes of Dovrolis, Ramanathan and Moore (ToN 2004). One of them is
 * the capacity of the narrow link (RFC 5136); pairs.h finds that one by the least delay.
 */
#ifndef KTRXER_METHODS_CAPACITY_H
#define KTRXER_METHODS_CAPACITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CAPACITY_MODES_MAX = 16 };

struct capacity_mode {
	double low_bit_s, high_bit_s; /* its ends */
	double bit_s;                 /* the mean in its densest window */
	size_t count;                 /* pairs between its ends */
	size_t densest;               /* pairs in its densest window */
};

struct capacity_modes {
	struct capacity_mode modes[CAPACITY_MODES_MAX]; /* the densest first */
	size_t count;
	size_t used, left_out; /* gaps above zero, and the others */
	double window_bit_s;
};

/*
 * The local modes of the rates bits / gap. The window is a tenth of the interquartile range, and not less than what one
 * step of the clock changes. Sorts `gaps_ns`. -EINVAL: no gap above zero; -ENOMEM.
 */
int capacity_find_modes(int64_t *gaps_ns, size_t count, uint64_t bits, uint32_t resolution_ns,
			struct capacity_modes *result);

#endif
