/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* ppt_probes_check() on simulated paths: links that store and forward, and a receiver that may need a constant time. */
#include "cm.h"
#include "ppt_checks.h"
#include "random_here.h"

#include <math.h>
#include <stdlib.h>

enum { HEADING = 1502, PROBES = 30, KINDS = 4 };

struct path {
	double links[4]; /* bit/s, up to the first 0 */
	double service_ns, noise_ns;
	uint32_t small, large;
};

struct found {
	struct ppt_result r;
	struct ppt_checks checks;
};

static struct pair_times probe_of(const struct path *path, int number, uint32_t heading, uint32_t trailing)
{
	const double sent = 1e9 + number * 4e8 + 1e7 * random_uniform();
	double first = sent, second = sent + 300, ready;
	struct pair_times p = { .sent_ns = { (uint64_t)first, (uint64_t)second } };

	for (int i = 0; i < 4 && path->links[i] > 0; i++) {
		first += (8.0 * heading + 96) * 1e9 / path->links[i];
		second = fmax(first, second) + (8.0 * trailing + 96) * 1e9 / path->links[i];
	}
	ready = first + path->service_ns;
	second = fmax(second, ready) + path->service_ns;
	p.arrived_ns[0] = 7000000000000ull + (uint64_t)ready;
	p.arrived_ns[1] = 7000000000000ull + (uint64_t)(second + path->noise_ns * random_normal());
	return p;
}

static struct found checked(const struct path *path)
{
	static struct pair_times times[KINDS][PROBES];
	const uint32_t both[2] = { path->small, path->large };
	const struct ppt_check_sizes c = ppt_check_sizes(HEADING, both, 78);
	const uint32_t sizes[KINDS] = { path->small, path->large, c.middle, c.shorter };
	struct found f = { .checks = { .heading_bytes = HEADING, .shorter_heading_bytes = c.shorter_heading } };
	struct ppt_probes sets[KINDS];
	struct ktrxer_error err = { 0 };

	for (int kind = 0; kind < KINDS; kind++) {
		for (int i = 0; i < PROBES; i++)
			times[kind][i] = probe_of(path, i, kind == 3 ? c.shorter_heading : HEADING, sizes[kind]);
		sets[kind] = (struct ppt_probes){ .probes = times[kind], .count = PROBES, .size_bytes = sizes[kind] };
	}
	f.checks.middle = sets[2];
	f.checks.shorter = sets[3];
	if (ppt_probes_estimate(sets, HEADING, 100, &f.r, &err) < 0 ||
	    ppt_probes_check(sets, &f.checks, 100, &f.r, &err) < 0)
		fail_msg("%s", err.text);
	return f;
}

/* How many of 20 worlds have the reading. */
static int count_of(const struct path *path, enum ppt_reading reading)
{
	int count = 0;

	for (int i = 0; i < 20; i++)
		count += checked(path).r.reading == reading;
	return count;
}

TEST(a_heading_packet_that_covers_the_gap_changes_nothing)
{
	static const struct path paths[] = {
		{ { 10e6 }, 0, 50, 78, 232 },
		{ { 1000e6, 100e6 }, 0, 20, 78, 232 },
		{ { 100e6, 10e6, 155e6, 100e6 }, 0, 50, 78, 221 },
		{ { 10e6, 100e6 }, 0, 50, 78, 139 },
		{ { 100e6 }, 3000, 50, 78, 232 },
		{ { 1000e6 }, 0, 5, 78, 232 },
	};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (count_of(&paths[i], PPT_RESOLVED) < 20)
			fail_msg("path %zu: %d of 20 resolved", i, count_of(&paths[i], PPT_RESOLVED));
}

/* Before the check these paths were 41.4, 145.8, 19.7 and 14.3 Mbit/s, and the results were valid. */
TEST(a_heading_packet_that_does_not_cover_the_gap_is_found)
{
	static const struct path paths[] = {
		{ { 10e6, 100e6 }, 0, 50, 78, 150 },         { { 100e6, 1000e6 }, 0, 20, 78, 232 },
		{ { 20e6, 1000e6 }, 0, 50, 78, 232 },        { { 10e6, 100e6 }, 0, 50, 78, 232 },
		{ { 10e6, 1000e6, 100e6 }, 0, 50, 78, 232 },
	};

	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		if (count_of(&paths[i], PPT_UNCOVERED) < 20)
			fail_msg("path %zu: %d of 20 found", i, count_of(&paths[i], PPT_UNCOVERED));
}

/* The model of the paper: a receiver that processes one packet after the other in constant time. */
TEST(a_receiver_with_a_constant_time_is_read_above_the_bend)
{
	static const struct path serial = { { 100e6 }, 10000, 30, 78, 232 }, fast = { { 1000e6 }, 3000, 5, 78, 1000 };
	const struct path *paths[] = { &serial, &fast };

	for (int i = 0; i < 2; i++)
		for (int n = 0; n < 20; n++) {
			const struct found f = checked(paths[i]);

			assert_int_equal(f.r.reading, PPT_RESOLVED);
			assert_true(f.r.serial && fabs(f.r.service_ns / paths[i]->service_ns - 1) < 0.01);
			assert_true(fabs(f.r.capacity_bit_s / paths[i]->links[0] - 1) < 0.03);
		}
}

/* Both smaller sizes are below the bend: two gaps are equal, and the third one alone gives no slope. */
TEST(a_line_through_the_bend_is_no_result)
{
	static const struct path path = { { 100e6 }, 14000, 30, 78, 232 };

	assert_int_equal(count_of(&path, PPT_BENT), 20);
}

TEST(a_receiver_that_is_slower_than_all_sizes_has_a_service_time)
{
	static const struct path path = { { 1000e6 }, 3000, 20, 78, 232 };

	assert_true(count_of(&path, PPT_SERVICE_TIME) >= 19);
}

/* A random number between both, uniform in its logarithm. */
static double between(double low, double high)
{
	return low * pow(high / low, random_uniform());
}

/* Of 2,000 such paths, 1,485 were resolved and 0 of these were wrong; without the checks 1,844 and 369. */
TEST(no_random_path_is_read_wrongly)
{
	static const double rates[] = { 10e6, 20e6, 50e6, 100e6, 200e6, 500e6, 1000e6 };
	const int paths = getenv("KTRXER_EMULATED") ? 50 : 400;
	int resolved = 0, missed = 0;

	for (int i = 0; i < paths; i++) {
		struct path path = { .noise_ns = between(5, 1000), .small = 78, .large = 232 };
		const int links = 1 + (int)(3 * random_uniform());
		struct found f;

		for (int n = 0; n < links; n++)
			path.links[n] = rates[(int)(7 * random_uniform())];
		if (random_uniform() < 0.5)
			path.service_ns = between(1000, 20000);
		f = checked(&path);
		if (f.r.reading != PPT_RESOLVED)
			continue;
		resolved++;
		missed += fabs(f.r.capacity_bit_s / path.links[links - 1] - 1) > 0.1 &&
			  f.r.capacity.high - f.r.capacity.low < 0.15 * f.r.capacity_bit_s;
	}
	if (missed * 100 > paths || resolved * 2 < paths)
		fail_msg("%d of %d resolved, %d of them wrongly", resolved, paths, missed);
}

TEST(each_kind_has_its_own_size)
{
	for (uint32_t small = 78; small < 1400; small += 7)
		for (uint32_t large = small + PPT_SIZES_APART; large < HEADING; large += 11) {
			const uint32_t both[2] = { small, large };
			const struct ppt_check_sizes c = ppt_check_sizes(HEADING, both, 78);

			assert_true(c.middle > small && c.middle < large && c.shorter >= 78 && c.shorter < large);
			assert_true(c.shorter != small && c.shorter != c.middle);
			assert_true(c.shorter_heading < HEADING && c.shorter_heading > c.shorter);
			/* The path disperses the shorter probe less than the whole one, or as much. */
			assert_true((c.shorter_heading + 12.0) / (c.shorter + 12) >= (HEADING + 12.0) / (large + 12));
		}
}

TEST(checks_without_probes_leave_no_result)
{
	struct pair_times none[10] = { { { 0 }, { 0 } } };
	struct ppt_probes sets[2] = { { .probes = none, .count = 10, .size_bytes = 78 },
				      { .probes = none, .count = 10, .size_bytes = 232 } };
	struct ppt_checks checks = {
		.middle = sets[0], .shorter = sets[1], .heading_bytes = 1502, .shorter_heading_bytes = 1125
	};
	struct ppt_result r = { .reading = PPT_RESOLVED };
	struct ktrxer_error err = { 0 };

	assert_int_equal(ppt_probes_check(sets, &checks, 100, &r, &err), 0);
	assert_int_equal(r.reading, PPT_TOO_FEW);
	assert_int_equal(checks.middle.outcomes[PAIR_LOST] + checks.middle.outcomes[PAIR_UNSENT], 10);
}
