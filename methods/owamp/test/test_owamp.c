/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* OWAMP without sockets: schedules, layouts, and the delays of records. */
#include "cm.h"
#include "owamp_delays.h"
#include "owamp_schedule.h"
#include "stamp_packet.h"

#include <errno.h>
#include <string.h>

/* A vector of RFC 4656, appendix A: the first deviate, and the sum of a million. */
static const uint8_t sid[OWAMP_SID] = { 0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef,
					0xde, 0xad, 0xbe, 0xef, 0xde, 0xad, 0xbe, 0xef };
#define FIRST 0x17ef33648ULL
#define SUM 0xf416c8884d2d3ULL
#define SECOND (1ULL << 32)

TEST(test_exponential_slots_are_those_of_the_rfc)
{
	const struct owamp_slot slot = { OWAMP_SLOT_EXPONENTIAL, SECOND };
	struct owamp_schedule s;
	uint64_t at = 0;

	assert_int_equal(owamp_schedule_begin(&s, sid, &slot, 1), 0);
	for (int i = 0; i < 1000000; i++) {
		assert_int_equal(owamp_schedule_next(&s, &at), 0);
		if (i == 0)
			assert_true(at == FIRST);
	}
	assert_true(at == SUM);
	owamp_schedule_end(&s);
}

TEST(test_slots_take_turns)
{
	const struct owamp_slot slots[] = { { OWAMP_SLOT_FIXED, SECOND / 4 },
					    { OWAMP_SLOT_EXPONENTIAL, SECOND / 2 },
					    { OWAMP_SLOT_FIXED, 0 } };
	struct owamp_schedule s;
	uint64_t at[4];

	assert_int_equal(owamp_schedule_begin(&s, sid, slots, 3), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(owamp_schedule_next(&s, &at[i]), 0);
	assert_true(at[0] == SECOND / 4 && at[1] == at[0] + FIRST / 2 && at[2] == at[1] && at[3] == at[2] + SECOND / 4);
	owamp_schedule_end(&s);
}

TEST(test_schedules_that_are_not_possible)
{
	struct owamp_slot slots[OWAMP_SLOTS_MOST + 1] = { { OWAMP_SLOT_FIXED, UINT64_MAX } };
	struct owamp_schedule s;
	uint64_t at;

	assert_int_equal(owamp_schedule_begin(&s, sid, slots, 0), -EINVAL);
	assert_int_equal(owamp_schedule_begin(&s, sid, slots, OWAMP_SLOTS_MOST + 1), -EINVAL);
	for (uint8_t type = 0; type < 2; type++) {
		slots[0].type = type;
		assert_int_equal(owamp_schedule_begin(&s, sid, slots, 1), 0);
		assert_int_equal(owamp_schedule_next(&s, &at), -EOVERFLOW);
		owamp_schedule_end(&s);
	}
	slots[0].type = 2;
	assert_int_equal(owamp_schedule_begin(&s, sid, slots, 1), -EINVAL);
	owamp_schedule_end(&s);
}

TEST(test_durations)
{
	const uint64_t ns[] = { 0, 1, 999999999, 1000000000, 1500000000, 123456789012345 };

	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++)
		assert_true(owamp_time_to_ns(owamp_time_of_ns(ns[i])) == ns[i]);
	assert_int_equal(owamp_padded(0), 0);
	assert_int_equal(owamp_padded(24), 32);
	assert_int_equal(owamp_padded(400), 400);
}

static struct owamp_record record(uint32_t seq, int64_t sent_ms, int64_t delay_ms, uint16_t error)
{
	const int64_t base = 1795000000LL * KTRXER_NS_PER_S, sent = base + sent_ms * KTRXER_NS_PER_MS;

	return (struct owamp_record){ seq,
				      error,
				      error,
				      stamp_time_of_ns(sent, false),
				      delay_ms < 0 ? 0 : stamp_time_of_ns(sent + delay_ms * KTRXER_NS_PER_MS, false),
				      252 };
}

static uint16_t error_of(bool synchronised, uint64_t bound_ns)
{
	return stamp_error_write(&(struct stamp_error){ .synchronised = synchronised, .bound_ns = bound_ns });
}

TEST(test_delays)
{
	const uint16_t error = error_of(true, 1000000);
	/* 0; 2 before 1; a copy of 1; 3 is lost; 4 has not been sent; 5 is no packet of the session */
	const struct owamp_record records[] = { record(0, 0, 5, error),   record(2, 20, 6, error),
						record(1, 10, 40, error), record(1, 10, 50, error),
						record(3, 30, -1, error), record(5, 50, 1, error) };
	struct owamp_delays d;

	assert_int_equal(owamp_delays_of(&d, records, 6, 5, 1, NULL), 0);
	assert_int_equal(d.sent, 4);
	assert_int_equal(d.arrived, 3);
	assert_int_equal(d.lost, 1);
	assert_int_equal(d.duplicates, 1);
	assert_int_equal(d.reordered, 1);
	assert_true(d.synchronised && d.bound_ns >= 2000000 && d.bound_ns < 2100000);
	assert_int_equal(d.hops[0], 3);
	assert_int_equal(d.hops[1], 3);
	assert_int_equal(ktrxer_hist_count(d.delay), 3);
	assert_true(ktrxer_hist_max(d.delay) >= 40 * KTRXER_NS_PER_MS &&
		    ktrxer_hist_max(d.delay) < 41 * KTRXER_NS_PER_MS);
	assert_int_equal(ktrxer_hist_min(d.variation), 0);
	owamp_delays_free(&d);
}

/* The stamp of the packet scheduler counts where there is one that is not before the time in the packet. */
TEST(test_delays_begin_in_the_packet_scheduler)
{
	const int64_t base = 1795000000LL * KTRXER_NS_PER_S;
	const int64_t sched[] = { base + 2 * KTRXER_NS_PER_MS, 0, base };
	const struct owamp_record records[] = { record(0, 0, 5, 0), record(1, 10, 5, 0), record(2, 20, 5, 0) };
	struct owamp_delays d;

	assert_int_equal(owamp_delays_of(&d, records, 3, 3, 0, sched), 0);
	assert_int_equal(d.sched, 1);
	assert_true(d.least_ns == 3 * KTRXER_NS_PER_MS);
	assert_true(!d.synchronised && d.bound_ns == UINT64_MAX);
	owamp_delays_free(&d);
}

TEST(test_no_record)
{
	struct owamp_delays d;

	assert_int_equal(owamp_delays_of(&d, NULL, 0, 10, 0, NULL), 0);
	assert_true(d.lost == 10 && !d.arrived && !d.synchronised && d.hops[0] == 255 && d.hops[1] == 255);
	owamp_delays_free(&d);
}
