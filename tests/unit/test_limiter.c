/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "limiter.h"
#include "bytes.h"

#include <sys/socket.h>

#define S ((uint64_t)KTRXER_NS_PER_S)

TEST(limiter_by_prefix)
{
	struct ktrxer_addr addr = { .family = AF_INET6, .bytes = { 0x20, 1, 0xd, 0xb8, 1, 2, 3, 4, 5 } },
			   v4 = { .family = AF_INET };
	struct limiter *limiter;
	uint64_t taken = 0;

	assert_int_equal(limiter_new(&limiter, 100, 1, 7), 0);
	assert_true(limiter_take(limiter, &addr, 1, S));
	addr.bytes[7] = 9; /* the same /56 */
	assert_false(limiter_take(limiter, &addr, 1, S));
	addr.bytes[6] = 9; /* another */
	assert_true(limiter_take(limiter, &addr, 1, S));
	/* A flood from a million networks: as many pass as the table has places. The first network stays limited. */
	for (uint32_t i = 0; i < 1000000; i++) {
		store_be32(v4.bytes, i << 8);
		taken += limiter_take(limiter, &v4, 1, S);
	}
	assert_in_range(taken, KTRXER_LIMITER_BUCKETS / 2, KTRXER_LIMITER_BUCKETS);
	assert_false(limiter_take(limiter, &addr, 1, S));
	assert_true(limiter_take(limiter, &addr, 1, 2 * S)); /* a second later it has a new answer */
	limiter_free(limiter);
	assert_int_equal(limiter_new(&limiter, 0, 0, 7), 0);
	for (int i = 0; i < 1000; i++)
		assert_true(limiter_take(limiter, &v4, 1, S));
	limiter_free(limiter);
}
