/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * SHA-256 (FIPS 180-4) and HMAC-SHA-256 (RFC 2104): what STAMP's authenticated mode and the server's token are made of.
 * The time they take depends on lengths alone, never on keys or data. Why this is no library's, and what it must not be
 * used for: docs/decisions/0001-no-libraries-for-small-algorithms.md.
 */
#ifndef KTRXER_LIB_SHA256_H
#define KTRXER_LIB_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHA256_LENGTH 32
#define SHA256_BLOCK 64

struct sha256 {
	uint32_t state[8];
	uint64_t length;             /* bytes so far */
	uint8_t block[SHA256_BLOCK]; /* length % 64 bytes of it are in use */
};

void sha256_begin(struct sha256 *sha);
void sha256_add(struct sha256 *sha, const void *data, size_t length);
void sha256_end(struct sha256 *sha, uint8_t digest[SHA256_LENGTH]);

/* A key, hashed once: each message then costs two blocks less. */
struct hmac_key {
	struct sha256 inner, outer;
};

void hmac_key_set(struct hmac_key *key, const void *secret, size_t length);

/* A message in pieces: begin with a copy of the key's inner state. */
void hmac_begin(struct sha256 *message, const struct hmac_key *key);
void hmac_end(struct sha256 *message, const struct hmac_key *key, uint8_t mac[SHA256_LENGTH]);
void hmac_sha256(const struct hmac_key *key, const void *data, size_t length, uint8_t mac[SHA256_LENGTH]);

/* The time does not depend on where they differ. */
bool secret_equal(const void *a, const void *b, size_t length);
/* Overwrites in a way that the compiler does not take out. */
void secret_forget(void *secret, size_t length);

#endif
