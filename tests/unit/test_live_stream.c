/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reading of maps that the live and stream programs write meanwhile. */
#include "cm.h"
#include "live_program.h"
#include "live_stream.h"

static struct ktx_stream_look look_at(struct stream_worker *counters, bool traced)
{
	struct live_stream_worker worker = { .state = counters };
	struct stream_share share = { .taken = 1000, .count = 2000 };
	const struct live_stream stream = {
		.phase = STREAM_RUNS,
		.workers = &worker,
		.workers_count = 1,
		.share = &share,
		.count = 2000,
		.traced = traced,
	};
	struct ktx_stream_look look;

	ktrxer_live_stream_look(&stream, &look);
	return look;
}

/*
 * Both counters run while they are read: a batch may begin between the two reads, and what was `submitted` is behind
 * what is `completed`.
 */
TEST(counters_of_different_times_add_no_4_billion)
{
	struct stream_worker counters = { .submitted = 100, .completed = 70, .sent = 70, .unstamped = 70 };

	assert_int_equal(look_at(&counters, false).sent, 100);
	assert_int_equal(look_at(&counters, false).queued, 100);
	assert_int_equal(look_at(&counters, true).sent, 70); /* the tracepoints count them */
	counters.completed = counters.sent = 130;
	assert_int_equal(look_at(&counters, false).sent, 130);
	counters.submitted = UINT32_MAX;
	counters.completed = 5;
	assert_int_equal(look_at(&counters, false).sent, 130);
	/* Past 2^32 they go on from 0. */
	counters.completed = UINT32_MAX - 5;
	counters.submitted = 10;
	assert_int_equal(look_at(&counters, false).sent, 146);
}

TEST(an_end_is_read_by_halves_where_there_are_no_wide_atomics)
{
	static const uint64_t finals[] = {
		LIVE_END(LIVE_SKIPPED, 0), LIVE_END(LIVE_FAILED, 105), LIVE_END(LIVE_UNPROVEN, 0), 0x100000000,
		0x1234567890abcdef,
	};
	static const uint64_t others[] = { 0, LIVE_SUBMITTED };
	uint64_t word;

	for (size_t i = 0; i < sizeof finals / sizeof *finals; i++) {
		assert_true(live_end_by_halves(&finals[i], &word));
		assert_true(word == finals[i]);
		assert_true(live_end_read(&finals[i], &word));
		assert_true(word == finals[i]);
	}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		assert_false(live_end_by_halves(&others[i], &word));
		assert_false(live_end_read(&others[i], &word));
	}
}
