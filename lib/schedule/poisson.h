/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Exponential deviates of mean 1, as RFC 4656 section 5 defines them to the bit: equal seeds give equal schedules on any
 * machine, so a receiver can know when a probe was due. Knuth's algorithm 3.4.1.S in 32.32 fixed point.
 */
#ifndef KTRXER_LIB_POISSON_H
#define KTRXER_LIB_POISSON_H

#include "aes.h"

struct poisson {
	struct aes128 aes;
	uint8_t counter[16]; /* of 32-bit draws, big-endian; every fourth one encrypts a block */
	uint8_t block[16];
};

void ktrxer_poisson_init(struct poisson *poisson, const uint8_t seed[16]);

/* 32.32 fixed point; below 2^38, as the tail is cut at (32 + 1) ln 2 by the width of a draw. */
uint64_t ktrxer_poisson_next(struct poisson *poisson);

#endif
