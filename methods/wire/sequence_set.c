/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sequence_set.h"

#include <string.h>

enum sequence_found sequence_add(uint64_t *words, uint32_t bits, uint32_t *next, uint32_t number)
{
	const uint64_t bit = 1ULL << (number % 64);
	uint64_t *word = &words[number % bits / 64];

	if ((int32_t)(number - *next) >= 0) {
		if (number - *next >= bits)
			memset(words, 0, bits / 8);
		else
			for (uint32_t n = *next; n != number; n++)
				words[n % bits / 64] &= ~(1ULL << (n % 64));
		*next = number + 1;
		*word |= bit;
		return SEQUENCE_NEW;
	}
	if (*next - number > bits)
		return SEQUENCE_OLD;
	if (*word & bit)
		return SEQUENCE_SEEN;
	*word |= bit;
	return SEQUENCE_NEW;
}
