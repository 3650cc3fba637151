/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transmitter over a scripted engine whose kernel side waits (fake_engine.h): which side owns a request when, and
 * that each one ends.
 */
#include "cm.h"
#include "fake_engine.h"

#include <errno.h>
#include <poll.h>

#define KERNEL_OPTIONS { .size = sizeof(struct ktx_options), .cpu = -1, .engine = "kernel" }

static void sleep_ms(uint64_t ms)
{
	poll(NULL, 0, (int)ms);
}

TEST(committed_is_with_the_engine_at_once)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	const uint64_t far = ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S;

	for (uint32_t i = 0; i < 10; i++) {
		assert_int_equal(fake_commit(tx, i, far, 0), 0);
		assert_int_equal(fake.published, i + 1); /* however far away */
	}
	ktx_close(tx);
}

TEST(train_is_published_whole)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);

	fake.sends_to = UINT32_MAX;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(fake_commit(tx, i, 0, KTX_TRAIN_GOES_ON), 0);
		assert_int_equal(fake.published, 0);
	}
	assert_int_equal(fake_commit(tx, 9, 0, 0), 0);
	assert_int_equal(fake.publishes, 1);
	assert_int_equal(fake.last_from, 0);
	assert_int_equal(fake_drain(tx).sent, 10);
	ktx_close(tx);
}

TEST(ends_come_back_in_order_with_their_stamps)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	const uint64_t start = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;
	struct ktx_report reports[64];

	fake.sends_to = UINT32_MAX;
	fake.late_ns = 250;
	for (int i = 0; i < 50; i++)
		assert_int_equal(fake_commit(tx, 100 + i, start + i * 200000ULL, 0), 0);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.sent, 50);
	assert_int_equal(a.driver, 50);
	assert_int_equal(ktx_reports(tx, reports, 64), 50);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(reports[i].id, 100 + i);
		assert_int_equal(reports[i].sent_ns, start + i * 200000ULL + 250);
		assert_int_equal(reports[i].raw_ns, reports[i].sent_ns);
		assert_int_equal(reports[i].departure_source, KTX_DEPARTURE_DRIVER);
	}
	/* 50 frames that left 250 ns late: a submission costs more than nothing */
	assert_true(fake.compensation_ns > 100);
	ktx_close(tx);
}

TEST(no_compensation_where_it_is_switched_off)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx;

	options.flags = KTX_NO_COMPENSATION;
	tx = fake_open_with(options);
	fake.sends_to = UINT32_MAX;
	fake.late_ns = 250;
	for (int i = 0; i < 50; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns(), 0), 0);
	fake_drain(tx);
	assert_int_equal(fake.compensation_ns, 0);
	ktx_close(tx);
}

TEST(full_ring_returns_eagain_and_wakes_the_tool)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx;

	options.slots = 8;
	options.reports = KTX_REPORT_NONE;
	tx = fake_open_with(options);
	fake.sends_to = UINT32_MAX;
	fake_commit_all(tx, 5000);
	assert_int_equal(fake_drain(tx).sent, 5000);
	ktx_close(tx);
}

TEST(cancel_ends_what_is_not_sent)
{
	struct ktx_options options = KERNEL_OPTIONS;
	const uint64_t far = ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S;
	struct ktx *tx = fake_open_with(options);

	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_commit(tx, i, far, 0), 0);
	fake.sends_to = 4;
	ktx_cancel(tx);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.sent, 4);
	assert_int_equal(a.cancelled, 6);
	/* It stays usable, and what comes later is not cancelled. */
	for (int i = 0; i < 3; i++)
		assert_int_equal(fake_commit(tx, i, far, 0), 0);
	sleep_ms(20);
	ktx_accounts(tx, &a);
	assert_int_equal(a.pending, 3);
	fake.sends_to = 13;
	ktx_cancel(tx);
	a = fake_drain(tx);
	assert_int_equal(a.sent, 7);
	assert_int_equal(a.cancelled, 6);
	ktx_close(tx);
}

TEST(far_deadlines_cost_nothing)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	uint32_t before;

	assert_int_equal(fake_commit(tx, 1, ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	for (int i = 0; i < FAKE_LIMIT_S * 1000 && !fake.updates; i++)
		sleep_ms(1);
	sleep_ms(20);
	before = fake.updates;
	assert_true(before > 0);
	sleep_ms(100);
	assert_true(fake.updates - before <= 2);
	ktx_close(tx);
}

TEST(failure_is_one_probe_s)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	struct ktx_accounts a;

	fake.sends_to = UINT32_MAX;
	fake.fail_with = -ENXIO;
	for (int i = 0; i < 5; i++)
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.failed, 5);
	assert_int_equal(a.last_error, -ENXIO);
	assert_int_equal(a.tries, 5);
	fake.fail_with = 0;
	assert_int_equal(fake_commit(tx, 6, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 1);
	ktx_close(tx);
}

TEST(device_gone_ends_all_and_refuses_more)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	struct ktx_accounts a;

	for (int i = 0; i < 7; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns() + 50 * KTRXER_NS_PER_MS, 0), 0);
	fake.gone = -ENODEV;
	a = fake_drain(tx);
	assert_int_equal(a.failed, 7);
	assert_int_equal(fake_commit(tx, 8, 0, 0), -ENODEV);
	ktx_close(tx);
}

TEST(an_engine_that_ends_gives_its_own_reason)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);
	const uint8_t frame[60] = { 0 };
	struct ktrxer_error err;

	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	fake.gone = -ESHUTDOWN;
	assert_int_equal(fake_drain(tx).last_error, -ESHUTDOWN);
	assert_int_equal(ktx_check(tx, frame, sizeof frame, &err), -ESHUTDOWN);
	assert_string_equal(err.text, "the kernel side has ended");
	ktx_close(tx);
}

TEST(caller_pumps)
{
	struct ktx_options options = KERNEL_OPTIONS;
	uint64_t next;
	struct ktx *tx;

	options.flags = KTX_CALLER_PUMPS;
	tx = fake_open_with(options);
	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	assert_int_equal(fake.published, 1);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next <= ktrxer_now_ns() + KTRXER_NS_PER_MS); /* there is something to bring back */
	fake.sends_to = UINT32_MAX;
	assert_int_equal(fake_drain(tx).sent, 1);
	ktx_close(tx);
}

TEST(close_with_pending_ends)
{
	struct ktx_options options = KERNEL_OPTIONS;
	struct ktx *tx = fake_open_with(options);

	for (int i = 0; i < 100; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns() + KTRXER_NS_PER_S, i % 3 ? KTX_TRAIN_GOES_ON : 0),
				 0);
	ktx_close(tx);
}
