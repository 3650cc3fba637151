/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Draws of 64 bits (xorshift) that are the same at each run; a test sets `seed` to begin anew. */
#ifndef KTRXER_TESTS_DRAW_HERE_H
#define KTRXER_TESTS_DRAW_HERE_H

#include <stdint.h>

static uint64_t seed = 1;

static inline uint64_t draw(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

#endif
