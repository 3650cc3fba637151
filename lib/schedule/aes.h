/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * AES-128, one block, encryption only (FIPS 197): the random-number generator of RFC 4656 is defined by it.
 *
 * Not for secrets: its table look-ups take a time that depends on the key. The key here is a session identifier that
 * both ends know. docs/decisions/0001-no-libraries-for-small-algorithms.md says why this is not a library's.
 */
#ifndef KTRXER_LIB_AES_H
#define KTRXER_LIB_AES_H

#include <stdint.h>

struct aes128 {
	uint32_t round_key[44];
};

void ktrxer_aes128_key(struct aes128 *aes, const uint8_t key[16]);
void ktrxer_aes128_encrypt(const struct aes128 *aes, uint8_t out[16], const uint8_t in[16]); /* out may be in */

#endif
