/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The adjustments of a clock: read here, watched, and carried by a reflector. */
#include "cm.h"

#include "clock_adjust.h"
#include "reflector.h"
#include "stamp_packet.h"

#include <sys/socket.h>

#define US 1000LL
#define MS 1000000LL
#define BASE 1795000000000000000LL

TEST(readings_agree_with_each_other)
{
	const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC };
	struct clock_watch w = { 0 };
	struct clock_adjust a;

	for (int which = 0; which < 2; which++) {
		w = (struct clock_watch){ 0 };
		for (int i = 0; i < 1000; i++) {
			clock_adjust_read(&a, clocks[which]);
			assert_true(a.bound_ns > 0 && a.at_ns >= w.last.at_ns);
			assert_false(clock_watch_take(&w, &a));
		}
	}
	assert_int_equal(a.at_ns / (3600 * 1000 * MS), (int64_t)(ktrxer_now_ns() / (3600 * 1000 * MS)));
}

/* A clock that gains `ppm` from reading 100 to reading 200, of one every 10 ms, and is stepped at reading 100. */
static struct clock_watch watched(int64_t ppm, int64_t step_ns)
{
	struct clock_watch w = { 0 };

	for (int64_t i = 0; i < 400; i++) {
		const int64_t slewed = i < 100 ? 0 : (i < 200 ? i - 100 : 100) * 10 * ppm;
		const struct clock_adjust a = { .ns = BASE + slewed + (i < 100 ? 0 : step_ns),
						.bound_ns = 100,
						.at_ns = i * 10 * MS };

		clock_watch_take(&w, &a);
	}
	return w;
}

TEST(changes_are_counted_once_and_with_their_size)
{
	assert_int_equal(watched(0, 0).changes, 0);
	assert_int_equal(watched(590, 0).changes, 0);
	assert_int_equal(watched(-590, 0).changes, 0);
	assert_int_equal(watched(2000, 0).changes, 1);
	assert_int_equal(watched(2000, 0).largest_ns, 2 * MS);
	assert_int_equal(watched(-80000, 0).largest_ns, -80 * MS);
	assert_int_equal(watched(0, 10 * US).changes, 1);
	assert_int_equal(watched(0, -3000 * MS).changes, 1);
	assert_int_equal(watched(0, -3000 * MS).largest_ns, -3000 * MS);
}

TEST(no_reading_overflows)
{
	const int64_t any[] = { INT64_MIN, INT64_MAX, 0, -1, INT64_MAX, INT64_MIN, INT64_MIN };
	struct clock_watch w = { 0 };

	for (size_t i = 0; i < 49; i++) {
		const struct clock_adjust a = { .ns = any[i % 7], .bound_ns = UINT32_MAX, .at_ns = any[i / 7] };

		clock_watch_take(&w, &a);
	}
	assert_true(w.changes > 0);
}

static struct stamp_clock reflected(struct reflector *r, int64_t adjusted_ns)
{
	const struct reflector_arrival a = { .from = { .family = AF_INET, .bytes = { 192, 0, 2, 7 } },
					     .to = { .family = AF_INET, .bytes = { 198, 51, 100, 1 } },
					     .from_port = 50000,
					     .to_port = 862,
					     .received_real_ns = BASE,
					     .adjusted = { .ns = adjusted_ns, .bound_ns = 77 },
					     .now_ns = 1 };
	const struct stamp_probe p = { .seq = 1, .time = 2, .error = 3 };
	uint8_t packet[STAMP_OPEN_LENGTH + STAMP_TLV_HEAD + 16];
	struct reflector_answer answer;

	stamp_probe_write(packet, &p, false);
	assert_int_equal(stamp_tlv_write(packet + STAMP_OPEN_LENGTH, STAMP_TLV_CLOCK, 16), STAMP_TLV_HEAD + 16);
	assert_int_equal(reflector_answer(r, packet, sizeof packet, sizeof packet, &a, &answer), REFLECTOR_ANSWER);
	assert_int_equal(packet[STAMP_OPEN_LENGTH], 0);
	return stamp_clock_read(packet + STAMP_OPEN_LENGTH + STAMP_TLV_HEAD);
}

/* The adjustment itself is the time since the start of the host. */
TEST(a_reflector_reports_changes_only)
{
	const struct reflector_options options = { .secret = 1 };
	struct stamp_clock first, second, again;
	struct reflector *r;

	assert_int_equal(reflector_new(&r, &options), 0);
	first = reflected(r, BASE);
	second = reflected(r, BASE - 5 * MS);
	reflector_free(r);
	assert_true(first.adjusted_ns == 0 && first.bound_ns == 77);
	assert_true(second.adjusted_ns == -5 * MS && second.origin == first.origin);
	assert_int_equal(reflector_new(&r, &options), 0);
	again = reflected(r, BASE + 123456);
	reflector_free(r);
	assert_true(again.adjusted_ns == 0 && again.origin != first.origin);
}

TEST(a_length_that_is_wrong_is_malformed)
{
	for (uint16_t length = 0; length < 40; length++)
		assert_int_equal(stamp_tlv_length_ok(STAMP_TLV_CLOCK, length), length == 16);
}
