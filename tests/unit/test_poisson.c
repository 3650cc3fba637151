/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The conformance vectors that RFC 4656 publishes, to the last bit. */
#include "cm.h"
#include "poisson.h"

#include <stdbool.h>

struct vector {
	uint8_t sid[16];
	uint64_t first, sum;
};

static const struct vector vectors[] = {
	{ { 0x28, 0x72, 0x97, 0x93, 0x03, 0xab, 0x47, 0xee, 0xac, 0x02, 0x8d, 0xab, 0x38, 0x29, 0xda, 0xb2 },
	  0x000000006d27e540,
	  0x000f4479bd317381 },
	{ { 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x00 },
	  0x00000000c2127448,
	  0x000f433686466a62 },
	{ { 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef },
	  0x000000017ef33648,
	  0x000f416c8884d2d3 },
};

TEST(published_vectors)
{
	struct poisson poisson;
	uint64_t deviate, sum;

	for (size_t v = 0; v < sizeof(vectors) / sizeof(vectors[0]); v++) {
		ktrxer_poisson_init(&poisson, vectors[v].sid);
		sum = 0;
		for (int i = 0; i < 1000000; i++) {
			deviate = ktrxer_poisson_next(&poisson);
			if (i == 0)
				assert_true(deviate == vectors[v].first);
			assert_true(deviate < (uint64_t)1 << 38);
			sum += deviate;
		}
		assert_true(sum == vectors[v].sum);
	}
}

TEST(counter_carries)
{
	struct poisson a, b;

	ktrxer_poisson_init(&a, vectors[0].sid);
	ktrxer_poisson_init(&b, vectors[0].sid);
	for (int i = 0; i < 16; i++)
		a.counter[i] = 0xff;
	a.counter[15] = 0xfc; /* four draws before the end: then it starts again */
	a.counter[0] = 0xff;
	for (int i = 0; i < 16; i++)
		ktrxer_poisson_next(&a);
	assert_true(a.counter[0] == 0 && a.counter[14] == 0 && a.counter[15] != 0);
	for (int i = 0; i < 300; i++)
		ktrxer_poisson_next(&b);
	assert_true(b.counter[14] > 0);
}
