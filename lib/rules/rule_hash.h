/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The tables of rules that the library shares with the module, with the library's hash. */
#ifndef KTRXER_LIB_RULE_HASH_H
#define KTRXER_LIB_RULE_HASH_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t krx_hash(const void *words, uint32_t count, uint32_t seed)
{
	uint32_t hash = seed, word;

	for (uint32_t i = 0; i < count; i++) {
		memcpy(&word, (const uint8_t *)words + (size_t)i * sizeof word, sizeof word);
		hash = (hash ^ word) * 0x9e3779b1u;
		hash ^= hash >> 15;
	}
	return hash;
}

#include <linux/ktrxer_match.h>

#endif
