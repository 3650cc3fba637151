/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "mda.h"

TEST(the_published_numbers)
{
	static const uint32_t at_95[] = { 6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63 },
			      at_99[] = { 8, 15, 21, 28, 36, 43, 51, 58, 66, 74, 82 };

	for (uint32_t i = 0; i < 11; i++) {
		assert_int_equal(mda_probes(i + 2, 0.05), at_95[i]);
		assert_int_equal(mda_probes(i + 2, 0.01), at_99[i]);
	}
}

TEST(many_hops)
{
	uint32_t before = mda_probes(2, 0.05);

	for (uint32_t hops = 16; hops <= MDA_HOPS_MAX; hops += 16) {
		uint32_t n = mda_probes(hops, 0.05);

		assert_true(n > before);
		before = n;
	}
}

/* (1 - share)^n of one hidden next hop, of the tenth of ten, of the second of two. */
TEST(shares)
{
	assert_int_equal(mda_share_probes(1, 0.1, 0.05), 29);
	assert_int_equal(mda_share_probes(2, 0.1, 0.05), 39);
	assert_int_equal(mda_share_probes(9, 0.1, 0.05), 51);
	assert_int_equal(mda_share_probes(200, 0.1, 0.05), 51);
	assert_int_equal(mda_share_probes(1, 0.5, 0.05), 6);
	assert_int_equal(mda_share_probes(1, 0.4, 0.05), 7);
	assert_int_equal(mda_share_probes(1, 0.01, 0.05), 299);
}

TEST(arguments_out_of_limits)
{
	assert_int_equal(mda_share_probes(0, 0.1, 0.05), 0);
	assert_int_equal(mda_share_probes(1, 0, 0.05), 0);
	assert_int_equal(mda_share_probes(1, 0.51, 0.05), 0);
	assert_int_equal(mda_share_probes(1, 0.1, 1), 0);
	assert_int_equal(mda_probes(0, 0.05), 0);
	assert_int_equal(mda_probes(1, 0.05), 0);
	assert_int_equal(mda_probes(MDA_HOPS_MAX + 1, 0.05), 0);
	assert_int_equal(mda_probes(2, 0), 0);
	assert_int_equal(mda_probes(2, 1), 0);
	assert_int_equal(mda_probes(2, -1), 0);
	assert_int_equal(mda_probes(2, __builtin_nan("")), 0);
}
