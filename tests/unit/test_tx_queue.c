/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transmitter over a scripted engine whose queue in the kernel waits (fake_engine.h): when frames are submitted,
 * with which times.
 */
#include "cm.h"
#include "fake_engine.h"
#include "tx_limits.h"

#include <errno.h>
#include <poll.h>

#define MS (uint64_t)KTRXER_NS_PER_MS

static struct ktx *open_queue(uint32_t flags)
{
	struct ktx_options options = {
		.size = sizeof(struct ktx_options), .cpu = -1, .engine = "queue", .flags = flags
	};
	struct ktx *tx = fake_open_with(options);

	fake.stamps = fake.stamps_come = true;
	return tx;
}

TEST(frames_are_submitted_ahead_with_their_times)
{
	struct ktx *tx = open_queue(KTX_NO_COMPENSATION);
	const uint64_t start = ktrxer_now_ns() + 40 * MS;
	struct ktx_report reports[64];

	for (uint64_t i = 0; i < 50; i++)
		assert_int_equal(fake_commit(tx, i, start + i * MS, 0), 0);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.sent, 50);
	assert_int_equal(a.driver, 50);
	assert_int_equal(ktx_reports(tx, reports, 64), 50);
	for (uint64_t i = 0; i < 50; i++) {
		assert_int_equal(fake.leave_ns[i], start + i * MS);
		assert_true(fake.sent_at[i] + KTX_QUEUE_AHEAD_NS >=
			    start + i * MS); /* not earlier: it could not be cancelled any more */
		/*
		 * The stamp of the queue, but for the clock's conversion; later where the machine was away at the
		 * submission.
		 */
		assert_true(reports[i].sent_ns + 5000 > start + i * MS);
		assert_int_equal(reports[i].planned_ns, start + i * MS);
	}
	assert_int_equal(fake.left_early, 0);
	ktx_close(tx);
}

TEST(what_the_queue_costs_is_taken_off)
{
	struct ktx *tx = open_queue(0);
	const uint64_t start = ktrxer_now_ns() + 20 * MS;

	fake.stamp_after_ns = 8000;
	for (uint64_t i = 0; i < 200; i++)
		assert_int_equal(fake_commit(tx, i, start + i * MS / 2, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 200);
	assert_true(start + 199 * MS / 2 - fake.leave_ns[199] >= 4000);
	assert_true(start + 199 * MS / 2 - fake.leave_ns[199] <= KTX_COMPENSATION_MAX_NS);
	ktx_close(tx);
}

TEST(a_train_has_the_time_of_its_first)
{
	struct ktx *tx = open_queue(KTX_NO_COMPENSATION);
	const uint64_t at = ktrxer_now_ns() + 5 * MS;

	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(fake_commit(tx, i, at, i < 3 ? KTX_TRAIN_GOES_ON : 0), 0);
	assert_int_equal(fake_commit(tx, 4, 0, 0), 0); /* no time: behind what is before it */
	assert_int_equal(fake_drain(tx).sent, 5);
	assert_int_equal(fake.leave_ns[0], at);
	for (int i = 1; i < 5; i++)
		assert_int_equal(fake.leave_ns[i], 0);
	ktx_close(tx);
}

TEST(what_the_queue_drops_has_failed)
{
	struct ktx *tx = open_queue(KTX_NO_COMPENSATION);
	struct ktx_report reports[16];

	fake.drop = 3;
	fake.drop_with = -ETIME;
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns() + 5 * MS, 0), 0);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.failed, 3);
	assert_int_equal(a.sent, 7);
	assert_int_equal(a.last_error, -ETIME);
	assert_int_equal(ktx_reports(tx, reports, 16), 10);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(reports[i].status, KTX_FAILED);
		assert_int_equal(reports[i].error, -ETIME);
		assert_int_equal(reports[i].sent_ns, 0);
	}
	ktx_close(tx);
}

TEST(a_full_queue_is_given_no_more)
{
	struct ktx_options options = {
		.size = sizeof(struct ktx_options), .cpu = -1, .engine = "queue", .flags = KTX_CALLER_PUMPS
	};
	struct ktx *tx = fake_open_with(options);
	uint64_t next;

	fake.stamps = true;
	tx->queue.depth = 4;
	for (uint64_t i = 0; i < 20; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns(), 0), 0);
	ktx_pump(tx, &next);
	assert_int_equal(fake.sent, 4);
	ktx_pump(tx, &next);
	assert_int_equal(fake.sent, 4);
	assert_true(next < KTRXER_NEVER);
	fake.stamps_come = true;
	assert_int_equal(fake_drain(tx).sent, 20);
	ktx_close(tx);
}

TEST(a_queue_that_keeps_no_times_is_noticed)
{
	struct ktx_options options = {
		.size = sizeof(struct ktx_options), .cpu = -1, .engine = "queue", .flags = KTX_CALLER_PUMPS
	};
	struct ktx *tx = fake_open_with(options);
	uint64_t next;

	fake.stamps = fake.stamps_come = true;
	tx->queue.ahead_ns = 20000 * MS;
	assert_int_equal(fake_commit(tx, 1, ktrxer_now_ns() + 10000 * MS, 0), 0);
	ktx_pump(tx, &next);
	assert_int_equal(fake.sent, 1);
	fake.leave_ns[0] = 0; /* the fake stamps it at the submission then */
	ktx_pump(tx, &next);
	assert_int_equal(fake.left_early, 1);
	assert_int_equal(fake_drain(tx).sent, 1);
	ktx_close(tx);
}

TEST(cancel_reaches_what_is_not_in_the_queue)
{
	struct ktx *tx = open_queue(0);
	const uint64_t now = ktrxer_now_ns();

	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(fake_commit(tx, i, now + (i < 4 ? 5 : 3600000) * MS, 0), 0);
	for (int i = 0; i < FAKE_LIMIT_S * 1000 && fake.sent < 4; i++)
		poll(NULL, 0, 1);
	ktx_cancel(tx);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.sent, 4);
	assert_int_equal(a.cancelled, 6);
	ktx_close(tx);
}

TEST(late_ones_are_skipped_on_request)
{
	struct ktx_options options = {
		.size = sizeof(struct ktx_options), .cpu = -1, .engine = "queue", .late = KTX_LATE_SKIP
	};
	struct ktx *tx = fake_open_with(options);

	fake.stamps = fake.stamps_come = true;
	/* Submitted so far ahead that a machine which stands still for a while does not make the second late, too. */
	tx->queue.ahead_ns = 2000 * MS;
	assert_int_equal(fake_commit(tx, 0, ktrxer_now_ns() - 50 * MS, 0), 0);
	assert_int_equal(fake_commit(tx, 1, ktrxer_now_ns() + 1000 * MS, 0), 0);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.skipped, 1);
	assert_int_equal(a.sent, 1);
	ktx_close(tx);
}
