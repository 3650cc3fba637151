/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The worked checks of the paper: sizes for its paths, and the dispersion of a probe on them. */
#include "cm.h"
#include "ppt_plan.h"

#include <errno.h>
#include <math.h>

#define M 1000000ull

static const struct {
	struct ppt_path path;
	double trailing_max, alpha;
	uint32_t narrow, node, on_grid, with_cross;
} paths[] = {
	{ { { 100 * M, 155 * M, 100 * M, 10 * M }, 4 }, 15000, 1, 4, 0, 1500, 0 },
	{ { { 10 * M, 155 * M, 10 * M, 100 * M }, 4 }, 150, 10, 3, 3, 150, 75 },
	{ { { 100 * M, 10 * M, 155 * M, 100 * M }, 4 }, 231.818, 6.4706, 2, 2, 225, 175 },
};

static uint32_t largest_on_grid(const struct ppt_path *path, const struct ppt_cross *cross)
{
	uint32_t largest = 0;

	for (uint32_t trailing = 50; trailing <= 1500; trailing += 25) {
		struct ppt_dispersion d;

		ppt_disperse(path, 1500, trailing, cross, &d);
		if (d.unbiased)
			largest = trailing;
	}
	return largest;
}

TEST(the_papers_paths)
{
	static const struct ppt_cross cross = { 64, { { 0, 0 }, { 1, 1 }, { 1, 1 } } };

	for (int i = 0; i < 3; i++) {
		struct ppt_sizing s;
		struct ktrxer_error err;

		assert_int_equal(ppt_size(&paths[i].path, 1500, 1000, NULL, &s, &err), 0);
		assert_true(fabs(s.trailing_max_bytes - paths[i].trailing_max) < 0.001);
		assert_true(fabs(s.alpha_min - paths[i].alpha) < 0.0001);
		assert_int_equal(s.narrow, paths[i].narrow);
		assert_int_equal(s.node, paths[i].node);
		assert_int_equal(largest_on_grid(&paths[i].path, NULL), paths[i].on_grid);
		if (paths[i].with_cross)
			assert_int_equal(largest_on_grid(&paths[i].path, &cross), paths[i].with_cross);
	}
}

TEST(without_dispersion_the_gap_is_the_end_links)
{
	struct ppt_dispersion d;

	ppt_disperse(&paths[1].path, 1500, 150, NULL, &d);
	assert_true(d.unbiased);
	assert_true(fabs(d.gap_ns - 12000) < 1e-6 && fabs(d.capacity_bit_s - 100e6) < 1e-3);
	/* One byte more: 8 bits at 10 Mbit/s are 800 ns of dispersion. */
	ppt_disperse(&paths[1].path, 1500, 151, NULL, &d);
	assert_false(d.unbiased);
	assert_true(fabs(d.delta_ns - 800) < 1e-6 && d.capacity_bit_s < 100e6);
}

TEST(the_gap_between_two_frames_makes_trailing_packets_smaller)
{
	/* 1,514 bytes at 100 Mbit/s take as long as 151.4 bytes at 10 Mbit/s, of which 12 are the gap. */
	static const struct ppt_path steps = { { 10 * M, 100 * M }, 2, 96 }, steep = { { 10 * M, 1000 * M }, 2, 96 };
	struct ppt_dispersion d;
	struct ppt_sizing s;
	struct ktrxer_error err;

	assert_int_equal(ppt_size(&steps, 1502, 1, NULL, &s, &err), 0);
	assert_true(fabs(s.trailing_max_bytes - 139.4) < 1e-9 && s.size2 == 139 && s.largest_undispersed == 139);
	assert_true(fabs(s.alpha_rule - 1502 / 139.4) < 1e-9 && s.resolvable);
	ppt_disperse(&steps, 1502, 139, NULL, &d);
	assert_true(d.unbiased && fabs(d.gap_ns - 12080) < 1e-6 && fabs(d.capacity_bit_s - 100e6) < 1e-3);
	ppt_disperse(&steps, 1502, 140, NULL, &d);
	assert_true(!d.unbiased && fabs(d.delta_ns - 480) < 1e-6);

	assert_int_equal(ppt_size(&steep, 1502, 1, NULL, &s, &err), 0);
	assert_true(s.trailing_max_bytes < PPT_TRAILING_MIN && !s.resolvable && !s.largest_undispersed);
}

TEST(the_step_that_the_clock_resolves)
{
	static const struct {
		uint64_t capacity;
		uint32_t resolution_ns, step;
	} cases[] = { { 10 * M, 1000, 3 },
		      { 100 * M, 1000, 25 },
		      { 1000 * M, 1000, 250 },
		      { 1000 * M, 1, 1 },
		      { 10000 * M, 1, 3 } };
	static const struct ppt_cross cross = { 64, { { 0, 0 }, { 1, 1 }, { 1, 1 } } };
	struct ppt_sizing s;
	struct ktrxer_error err;

	for (int i = 0; i < 5; i++) {
		const struct ppt_path one = { { cases[i].capacity }, 1 };

		assert_int_equal(ppt_size(&one, 1500, cases[i].resolution_ns, NULL, &s, &err), 0);
		assert_int_equal(s.step_min, cases[i].step);
		assert_true(s.resolvable && s.size1 == 78 && s.size2 == 1499);
	}
	/* Cross traffic leaves 86 bytes on C2-100: (8 * 1500 / 100 Mbit/s - 8 * 64 / 10 Mbit/s) * 10 Mbit/s / 8. */
	assert_int_equal(ppt_size(&paths[1].path, 1500, 1, &cross, &s, &err), 0);
	assert_int_equal(s.largest_undispersed, 86);
	assert_int_equal(s.size2, 86);
	/* C2-100 leaves 72 bytes between the sizes; a clock of 10 us needs 250. */
	assert_int_equal(ppt_size(&paths[1].path, 1500, 10000, NULL, &s, &err), 0);
	assert_int_equal(s.step_min, 250);
	assert_false(s.resolvable);
}

TEST(the_rule_for_each_node)
{
	struct ppt_sizing s;
	struct ktrxer_error err;
	const struct ppt_path even = { { 10 * M, 20 * M, 40 * M }, 3 };

	assert_int_equal(ppt_size(&paths[1].path, 1500, 1, NULL, &s, &err), 0);
	assert_true(fabs(s.alpha_rule - 15.5) < 1e-9);
	assert_int_equal(ppt_size(&even, 1500, 1, NULL, &s, &err), 0);
	assert_int_equal(s.node, 2); /* of two nodes with the same ratio that nearest to the receiver */
}

TEST(paths_that_are_none)
{
	struct ppt_path path = { { 0 }, 0 };
	struct ktrxer_error err = { 0 };
	struct ppt_sizing s;

	assert_int_equal(ppt_size(&path, 1500, 1, NULL, &s, &err), -EINVAL);
	path.links = 1;
	assert_int_equal(ppt_size(&path, 1500, 1, NULL, &s, &err), -EINVAL);
	path.capacity_bit_s[0] = UINT64_MAX;
	assert_int_equal(ppt_size(&path, 71, 1, NULL, &s, &err), -EINVAL);
	assert_int_equal(ppt_size(&path, 1527, 1, NULL, &s, &err), -EINVAL);
	assert_true(err.text[0]);
	assert_int_equal(ppt_size(&path, 1526, UINT32_MAX, NULL, &s, &err), 0);
	assert_int_equal(s.step_min, UINT32_MAX);
	path.links = PPT_LINKS_MAX + 1;
	assert_int_equal(ppt_size(&path, 1500, 1, NULL, &s, &err), -EINVAL);
}
