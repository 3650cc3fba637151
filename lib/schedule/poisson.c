/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "poisson.h"

#include "bytes.h"

/*
 * q[k] = ln2/1! + (ln2)^2/2! + ... + (ln2)^k/k!, as fractions of 2^32: the figures of the RFC. q[1] is ln 2 as it is used
 * everywhere here. The last one is the largest draw there is: for U equal to it no q[k] is larger, and the RFC's loop ends at the
 * table's end.
 */
static const uint32_t q[] = { 0,          0xb17217f8, 0xeef193f7, 0xfd271862, 0xff9d6dd0, 0xfff4cfd0,
			      0xfffee819, 0xffffe7ff, 0xfffffe2b, 0xffffffe0, 0xfffffffe, 0xffffffff };
enum { Q_COUNT = sizeof(q) / sizeof(q[0]) };

void ktrxer_poisson_init(struct poisson *poisson, const uint8_t seed[16])
{
	memset(poisson, 0, sizeof(*poisson));
	ktrxer_aes128_key(&poisson->aes, seed);
}

static uint32_t draw(struct poisson *poisson)
{
	int quarter = poisson->counter[15] & 3;

	if (quarter == 0)
		ktrxer_aes128_encrypt(&poisson->aes, poisson->block, poisson->counter);
	for (int i = 15; i >= 0 && ++poisson->counter[i] == 0; i--)
		;
	return load_be32(poisson->block + 4 * quarter);
}

uint64_t ktrxer_poisson_next(struct poisson *poisson)
{
	uint32_t u = draw(poisson), v = UINT32_MAX, j = 0, k = 2;

	while (j < 32 && u & 0x80000000) {
		u <<= 1;
		j++;
	}
	u <<= 1;
	if (u < q[1])
		return (uint64_t)j * q[1] + u;
	while (k < Q_COUNT && u >= q[k])
		k++;
	for (uint32_t i = 0; i < k; i++) {
		uint32_t other = draw(poisson);

		v = other < v ? other : v;
	}
	/* (j + v) * ln 2, cut to 32 bits of fraction */
	return (uint64_t)j * q[1] + ((uint64_t)v * q[1] >> 32);
}
