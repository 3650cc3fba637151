/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random numbers that are the same at each run. */
#ifndef KTRXER_TESTS_RANDOM_HERE_H
#define KTRXER_TESTS_RANDOM_HERE_H

#include <stdint.h>

static uint64_t random_state = 1;

/* 0 to below 1. */
static inline double random_uniform(void)
{
	random_state = random_state * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(random_state >> 11) / 9007199254740992.0;
}

/* Mean 0, standard deviation 1. */
static inline double random_normal(void)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_uniform();
	return sum;
}

#endif
