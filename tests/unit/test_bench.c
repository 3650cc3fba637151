/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The lists among the options of the bench. Its figures are tested in lab/tests/test_bench_figures.py. */
#include "cm.h"

#include "bench.h"

#include <errno.h>

TEST(test_lists)
{
	uint64_t v[BENCH_LEVELS];
	struct ktrxer_error err;
	int n;

	assert_int_equal(bench_list_parse(v, &n, "0,12k,24k,36k", false, "--cross", &err), 0);
	assert_int_equal(n, 4);
	assert_int_equal(v[3], 36000);
	assert_int_equal(bench_list_parse(v, &n, "0us,100ms", true, "--gaps", &err), 0);
	assert_int_equal(v[1], 100000000);
	assert_int_equal(bench_list_parse(v, &n, "", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, ",1", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,-2", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,2,3,4,5,6,7,8,9", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "111111111111111111111111111111111111111111111111111111111", false,
					  "--cross", &err),
			 -EINVAL);
}
