/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The set of sequence numbers is exact for the last `bits` of them, in a ring of bits. Numbers begin anew after 2^32.
 */
#ifndef KTRXER_METHODS_SEQUENCE_SET_H
#define KTRXER_METHODS_SEQUENCE_SET_H

#include <stdbool.h>
#include <stdint.h>

enum sequence_found {
	SEQUENCE_NEW,
	SEQUENCE_SEEN,
	SEQUENCE_OLD, /* more than `bits` behind the highest one: not known */
};

/*
 * `bits`: a power of two, at least 64, in `words`, all zero before the first number. *next: the highest number + 1;
 * before the first number, the first.
 */
enum sequence_found sequence_add(uint64_t *words, uint32_t bits, uint32_t *next, uint32_t number);

#endif
