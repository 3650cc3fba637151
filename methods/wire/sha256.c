/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "sha256.h"

#include "bytes.h"

/* FIPS 180-4, 4.2.2: the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constant[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void compress(uint32_t state[8], const uint8_t *block)
{
	uint32_t w[64], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5],
			g = state[6], h = state[7];

	for (int i = 0; i < 16; i++)
		w[i] = load_be32(block + 4 * i);
	for (int i = 16; i < 64; i++) {
		uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3;
		uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10;

		w[i] = w[i - 16] + s0 + w[i - 7] + s1;
	}
	for (int i = 0; i < 64; i++) {
		uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) +
			      round_constant[i] + w[i];
		uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));

		h = g;
		g = f;
		f = e;
		e = d + t1;
		d = c;
		c = b;
		b = a;
		a = t1 + t2;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void sha256_begin(struct sha256 *sha)
{
	static const uint32_t initial[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
					     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	memcpy(sha->state, initial, sizeof initial);
	sha->length = 0;
}

void sha256_add(struct sha256 *sha, const void *data, size_t length)
{
	const uint8_t *at = data;
	size_t used = sha->length % SHA256_BLOCK;

	sha->length += length;
	if (used && used + length >= SHA256_BLOCK) {
		memcpy(sha->block + used, at, SHA256_BLOCK - used);
		compress(sha->state, sha->block);
		at += SHA256_BLOCK - used;
		length -= SHA256_BLOCK - used;
		used = 0;
	}
	for (; length >= SHA256_BLOCK; at += SHA256_BLOCK, length -= SHA256_BLOCK)
		compress(sha->state, at);
	if (length)
		memcpy(sha->block + used, at, length);
}

void sha256_end(struct sha256 *sha, uint8_t digest[SHA256_LENGTH])
{
	const uint64_t bits = sha->length * 8;
	size_t used = sha->length % SHA256_BLOCK;

	sha->block[used++] = 0x80;
	if (used > SHA256_BLOCK - 8) {
		memset(sha->block + used, 0, SHA256_BLOCK - used);
		compress(sha->state, sha->block);
		used = 0;
	}
	memset(sha->block + used, 0, SHA256_BLOCK - 8 - used);
	store_be64(sha->block + SHA256_BLOCK - 8, bits);
	compress(sha->state, sha->block);
	for (int i = 0; i < 8; i++)
		store_be32(digest + 4 * i, sha->state[i]);
}

void hmac_key_set(struct hmac_key *key, const void *secret, size_t length)
{
	uint8_t pad[SHA256_BLOCK] = { 0 };

	if (length > SHA256_BLOCK) {
		sha256_begin(&key->inner);
		sha256_add(&key->inner, secret, length);
		sha256_end(&key->inner, pad);
	} else if (length) {
		memcpy(pad, secret, length);
	}
	for (int i = 0; i < SHA256_BLOCK; i++)
		pad[i] ^= 0x36;
	sha256_begin(&key->inner);
	sha256_add(&key->inner, pad, sizeof pad);
	for (int i = 0; i < SHA256_BLOCK; i++)
		pad[i] ^= 0x36 ^ 0x5c;
	sha256_begin(&key->outer);
	sha256_add(&key->outer, pad, sizeof pad);
	secret_forget(pad, sizeof pad);
}

void hmac_begin(struct sha256 *message, const struct hmac_key *key)
{
	*message = key->inner;
}

void hmac_end(struct sha256 *message, const struct hmac_key *key, uint8_t mac[SHA256_LENGTH])
{
	uint8_t inner[SHA256_LENGTH];

	sha256_end(message, inner);
	*message = key->outer;
	sha256_add(message, inner, sizeof inner);
	sha256_end(message, mac);
}

void hmac_sha256(const struct hmac_key *key, const void *data, size_t length, uint8_t mac[SHA256_LENGTH])
{
	struct sha256 message;

	hmac_begin(&message, key);
	sha256_add(&message, data, length);
	hmac_end(&message, key, mac);
}

bool secret_equal(const void *a, const void *b, size_t length)
{
	const volatile uint8_t *x = a, *y = b;
	uint8_t difference = 0;

	for (size_t i = 0; i < length; i++)
		difference |= x[i] ^ y[i];
	return difference == 0;
}

void secret_forget(void *secret, size_t length)
{
	volatile uint8_t *at = secret;

	while (length--)
		*at++ = 0;
}
