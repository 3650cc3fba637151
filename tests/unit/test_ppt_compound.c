/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "ppt_compound.h"

#include <errno.h>
#include <string.h>

#define MS 1000000ll

static struct ppt_arrival arrivals[64];
static size_t count;
static uint32_t sizes[32];
static int64_t gaps[32];

static void add(int64_t time_ns, uint32_t size)
{
	arrivals[count++] = (struct ppt_arrival){ .time_ns = time_ns, .size_bytes = size };
}

static void probes(int first, int last, uint32_t trailing)
{
	for (int i = first; i < last; i++) {
		add(i * 10 * MS, 1502);
		add(i * 10 * MS + 79000 + i, trailing);
	}
}

TEST(each_probe_is_found)
{
	struct ppt_compound r;

	count = 0;
	probes(0, 5, 87);
	probes(5, 10, 112);
	assert_int_equal(ppt_compound(arrivals, count, sizes, gaps, &r), 0);
	assert_int_equal(r.probes, 10);
	assert_int_equal(r.heading_bytes, 1502);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(sizes[i], i < 5 ? 87 : 112);
		assert_int_equal(gaps[i], 79000 + i);
	}
	assert_int_equal(r.heading_alone + r.trailing_alone + r.backwards + r.split, 0);
}

TEST(halves_that_were_lost)
{
	struct ppt_compound r;

	count = 0;
	add(0, 87); /* its heading packet was lost */
	probes(1, 3, 87);
	add(30 * MS, 1502); /* its trailing packet was lost */
	probes(4, 6, 87);
	add(60 * MS, 1502); /* the trailing packet of this one and the heading packet of the next were lost */
	add(70 * MS + 79000, 87);
	probes(8, 10, 87);
	add(100 * MS, 1502); /* the capture ends here */
	assert_int_equal(ppt_compound(arrivals, count, sizes, gaps, &r), 0);
	assert_int_equal(r.probes, 6);
	assert_int_equal(r.trailing_alone, 1);
	assert_int_equal(r.heading_alone, 2);
	assert_int_equal(r.split, 1);
}

TEST(reordering_and_clock_steps)
{
	struct ppt_compound r;

	count = 0;
	probes(0, 3, 87);
	for (int i = 3; i < 6; i++) { /* the trailing packet first */
		add(i * 10 * MS, 87);
		add(i * 10 * MS + 100, 1502);
	}
	probes(6, 8, 87);
	add(80 * MS, 1502); /* the clock steps back inside the probe */
	add(20 * MS, 87);
	add(INT64_MIN, 1502);
	add(INT64_MAX, 87);
	assert_int_equal(ppt_compound(arrivals, count, sizes, gaps, &r), 0);
	assert_int_equal(r.probes, 5);
	assert_int_equal(r.backwards, 2);
	for (size_t i = 0; i < r.probes; i++)
		assert_true(gaps[i] >= 79000 && gaps[i] < 80000);
}

/*
 * The halves of two probes from different ports that lost their other halves; and probes whose sizes have a port each.
 */
TEST(packets_of_different_flows)
{
	struct ppt_compound r;

	count = 0;
	probes(0, 4, 87);
	for (size_t i = 0; i < count; i++)
		arrivals[i].flow = (uint16_t)(40000 + i / 2 % 2);
	add(40 * MS, 1502);
	arrivals[count - 1].flow = 40000;
	add(40 * MS + 79000, 87);
	arrivals[count - 1].flow = 40001;
	assert_int_equal(ppt_compound(arrivals, count, sizes, gaps, &r), 0);
	assert_int_equal(r.probes, 4);
	assert_int_equal(r.heading_alone, 1);
	assert_int_equal(r.trailing_alone, 1);
}

TEST(captures_without_probes)
{
	struct ppt_compound r;

	count = 0;
	assert_int_equal(ppt_compound(arrivals, 0, sizes, gaps, &r), -EINVAL);
	for (int i = 0; i < 10; i++)
		add(i * MS, 1502);
	assert_int_equal(ppt_compound(arrivals, count, sizes, gaps, &r), -EINVAL);
	assert_int_equal(r.heading_alone, 10);
}

TEST(trains_by_size)
{
	const uint32_t mixed[] = { 87, 112, 87, 87, 112 }, three[] = { 87, 112, 99, 87, 87 },
		       one[] = { 87, 87, 87, 87, 87 };
	const int64_t values[] = { 1, 2, 3, 4, 5 };
	struct ktrxer_error err = { 0 };
	struct ppt_train trains[2];

	assert_int_equal(ppt_trains_split(trains, mixed, values, 5, 0, 0, &err), 0);
	assert_int_equal(trains[0].size_bytes, 87);
	assert_int_equal(trains[0].count, 3);
	assert_int_equal(trains[0].gaps_ns[2], 4);
	assert_int_equal(trains[1].count, 2);
	assert_int_equal(trains[1].gaps_ns[1], 5);
	ppt_trains_free(trains);
	assert_int_equal(ppt_trains_split(trains, three, values, 5, 99, 112, &err), 0);
	assert_int_equal(trains[0].count, 1);
	ppt_trains_free(trains);
	assert_int_equal(ppt_trains_split(trains, three, values, 5, 0, 0, &err), -EINVAL);
	assert_non_null(strstr(err.text, "87, 112, 99"));
	assert_int_equal(ppt_trains_split(trains, one, values, 5, 0, 0, &err), -EINVAL);
	assert_int_equal(ppt_trains_split(trains, mixed, values, 0, 0, 0, &err), -EINVAL);
	assert_int_equal(ppt_trains_split(trains, mixed, values, 5, 87, 0, &err), -EINVAL);
	assert_int_equal(ppt_trains_split(trains, mixed, values, 5, 87, 87, &err), -EINVAL);
	assert_int_equal(ppt_trains_split(trains, mixed, values, 5, 87, 88, &err), -EINVAL);
	assert_non_null(strstr(err.text, "of 88 bytes"));
	ppt_trains_free(trains);
}
