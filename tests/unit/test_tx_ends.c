/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The transmitter over a scripted engine (fake_engine.h): refused, late, cancelled, stuck, lost; each way to end, and
 * that accounts close.
 */
#include "base_limits.h"
#include "cm.h"
#include "fake_engine.h"
#include "tx_limits.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

TEST(refusals_are_retried_then_failed)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[4];
	struct ktx_accounts a;
	struct ktx *tx;

	/* long enough for a machine that does not run this thread for a while */
	options.retry_ns = 2 * KTRXER_NS_PER_S;
	tx = fake_open_with(options);
	fake.refuse = 5;
	fake.refuse_with = -ENOBUFS;
	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.sent, 1);
	assert_int_equal(a.tries, 6);
	assert_int_equal(ktx_reports(tx, reports, 4), 1);
	assert_int_equal(reports[0].tries, 6);
	ktx_close(tx);

	options.retry_ns = 20 * KTRXER_NS_PER_MS;
	tx = fake_open_with(options);
	fake.refuse = 1 << 30;
	fake.refuse_with = -ENOBUFS;
	assert_int_equal(fake_commit(tx, 2, 0, 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.failed, 1);
#ifdef KTRXER_SMALL
	assert_int_equal(a.last_error, -ENOBUFS);
#else
	assert_int_equal(a.last_error, -ENOSR); /* No queue of this host has dropped it. */
#endif
	assert_true(a.tries >= 2);
	fake.refuse = 0;
	assert_int_equal(fake_commit(tx, 3, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 1);
	ktx_close(tx);
}

TEST(a_device_that_refuses_for_long_does_not_hold_up_the_schedule)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;
	uint64_t begin;

	options.reports = KTX_REPORT_NONE;
	tx = fake_open_with(options); /* 10 ms of retries */
	fake.refuse = 1 << 30;
	fake.refuse_with = -ENOBUFS;
	begin = ktrxer_now_ns();
	for (int i = 0; i < 500; i++)
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
	assert_int_equal(fake_drain(tx).failed, 500);
	assert_true(ktrxer_now_ns() - begin > 15 * KTRXER_NS_PER_MS);
	assert_true(ktrxer_now_ns() - begin < 1000 * (uint64_t)KTRXER_NS_PER_MS); /* 5 s if each had its 10 ms */
	/* one that goes, and the next has all its time again */
	fake.refuse = 0;
	assert_int_equal(fake_commit(tx, 500, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 1);
	fake.refuse = 1 << 30;
	begin = ktrxer_now_ns();
	assert_int_equal(fake_commit(tx, 501, 0, 0), 0);
	assert_int_equal(fake_drain(tx).failed, 501);
	assert_true(ktrxer_now_ns() - begin >= 10 * KTRXER_NS_PER_MS);
	ktx_close(tx);
}

TEST(late_probes_are_skipped_shifted_or_sent)
{
	for (int policy = KTX_LATE_CATCH_UP; policy <= KTX_LATE_SHIFT; policy++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[3];
		struct ktx_accounts a;
		struct ktx *tx;
		uint64_t start;

		options.late = (enum ktx_late_policy)policy;
		options.late_ns = 100 * KTRXER_NS_PER_MS; /* a busy machine may well delay a process by 10 ms */
		tx = fake_open_with(options);
		start = ktrxer_now_ns() - 500 * KTRXER_NS_PER_MS;
		for (int i = 0; i < 3; i++) /* 500 ms late, 200 ms late, 200 ms ahead */
			assert_int_equal(fake_commit(tx, i,
						     start + (i == 1   ? 300
							      : i == 2 ? 700
								       : 0) *
								     (uint64_t)KTRXER_NS_PER_MS,
						     0),
					 0);
		a = fake_drain(tx);
		assert_int_equal(ktx_reports(tx, reports, 3), 3);
		if (policy == KTX_LATE_SKIP) {
			assert_int_equal(a.skipped, 2);
			assert_int_equal(a.sent, 1);
			assert_true(a.late >= 2);
			assert_int_equal(reports[0].status, KTX_SKIPPED);
		} else {
			assert_int_equal(a.sent, 3);
			/* a shift is late once: what follows it is on its new time */
			assert_true(policy == KTX_LATE_SHIFT ? a.late >= 1 : a.late >= 2);
		}
		if (policy == KTX_LATE_CATCH_UP) {
			assert_int_equal(reports[2].planned_ns, reports[2].at_ns);
			assert_true(reports[1].sent_ns > reports[1].at_ns + 100 * (uint64_t)KTRXER_NS_PER_MS);
		}
		if (policy == KTX_LATE_SHIFT) {
			/* the distances stay what they were */
			assert_true(reports[1].planned_ns - reports[0].planned_ns >= 300 * (uint64_t)KTRXER_NS_PER_MS);
			assert_true(reports[1].sent_ns >= reports[1].planned_ns);
			assert_true(reports[0].planned_ns > reports[0].at_ns + 400 * (uint64_t)KTRXER_NS_PER_MS);
		}
		ktx_close(tx);
	}
}

TEST(cancel_ends_what_is_pending_at_once)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	uint64_t now = ktrxer_now_ns();
	struct ktx_accounts a;

	assert_int_equal(fake_commit(tx, 0, 0, 0), 0);
	for (int i = 1; i < 100; i++)
		assert_int_equal(fake_commit(tx, i, now + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	ktx_cancel(tx);
	a = fake_drain(tx);
	assert_int_equal(a.cancelled + a.sent, 100);
	assert_true(a.cancelled >= 99);
	assert_true(ktrxer_now_ns() - now < (uint64_t)KTRXER_NS_PER_S);
	/* and it goes on working, at once */
	assert_int_equal(fake_commit(tx, 99, ktrxer_now_ns() + KTRXER_NS_PER_MS, 0), 0);
	assert_int_equal(fake_drain(tx).sent, a.sent + 1);
	assert_int_equal(fake_commit(tx, 100, now + 3600 * (uint64_t)KTRXER_NS_PER_S, 0), 0);
	ktx_close(tx);
}

/*
 * The pump may see a cancellation before the commitments that it is about: it must not go on from there with requests
 * of old.
 */
TEST(cancellations_race_with_commitments)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_accounts a;
	struct ktx *tx;
	uint64_t end;

	options.slots = 64;
	options.reports = KTX_REPORT_NONE;
	options.wait = KTX_WAIT_SLEEP;
	tx = fake_open_with(options);
	end = ktrxer_now_ns() + 500 * KTRXER_NS_PER_MS;
	while (ktrxer_now_ns() < end)
		if (fake_commit(tx, 0, 0, 0) == 0)
			ktx_cancel(tx);
	a = fake_drain(tx);
	assert_int_equal(a.requested, a.sent + a.cancelled);
	assert_int_equal(a.tries, a.sent);
	ktx_close(tx);
}

TEST(a_slot_is_not_free_before_its_buffer_is)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[8];
	struct ktx *tx;
	struct ktx_info info;
	uint64_t begin;

	options.engine = "holder";
	options.slots = 4;
	tx = fake_open_with(options);
	ktx_info(tx, &info);
	assert_int_equal(info.frame_size, 1000); /* the engine's longest, less than 1500 */
	fake.holds_buffers = true;
	for (int i = 0; i < 4; i++)
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
	/* longer than a stamp would be waited for */
	assert_int_equal(ktx_drain(tx, ktrxer_now_ns() + 150 * KTRXER_NS_PER_MS), -ETIMEDOUT);
	assert_int_equal(fake.sent, 4);
	assert_int_equal(ktx_reports(tx, reports, 8), 0);
	assert_int_equal(fake_commit(tx, 9, 0, 0), -EAGAIN);
	/* given back without a word: it is found by looking */
	begin = ktrxer_now_ns();
	fake.gives_back = true;
	assert_int_equal(fake_drain(tx).queued, 4);
	assert_true(ktrxer_now_ns() - begin < 90 * KTRXER_NS_PER_MS);
	assert_int_equal(ktx_reports(tx, reports, 8), 4);
	assert_int_equal(fake_commit(tx, 9, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 5);
	ktx_close(tx);

	struct ktrxer_error err = { 0 };

	options.frame_size = 1001;
	assert_int_equal(ktx_open(&tx, &options, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "1000"));
}

TEST(an_event_loop_finds_the_end_of_what_is_pending)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[8];
	struct pollfd ready = { .events = POLLIN };
	struct ktx *tx;

	options.engine = "holder";
	options.reports = KTX_REPORT_FAILURES;
	tx = fake_open_with(options);
	ready.fd = ktx_fd(tx);
	assert_int_equal(ktx_drain(tx, 0), 0);
	fake.holds_buffers = true;
	for (int i = 0; i < 4; i++)
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
	assert_int_equal(ktx_drain(tx, 0), -ETIMEDOUT);
	assert_int_equal(poll(&ready, 1, 20), 0); /* no call to make before the end */
	fake.gives_back = true;
	fake_await(tx);
	assert_int_equal(ktx_drain(tx, 0), 0);
	ktx_close(tx);

	/* A report that waits keeps the descriptor readable. */
	options.reports = KTX_REPORT_ALL;
	tx = fake_open_with(options);
	ready.fd = ktx_fd(tx);
	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	fake_drain(tx);
	fake.holds_buffers = true;
	assert_int_equal(fake_commit(tx, 2, 0, 0), 0);
	assert_int_equal(ktx_drain(tx, 0), -ETIMEDOUT);
	assert_int_equal(poll(&ready, 1, 0), 1);
	assert_int_equal(ktx_reports(tx, reports, 8), 1);
	ktx_close(tx);
}

TEST(a_buffer_that_never_returns_does_not_hold_up_the_accounts)
{
	struct ktx_options options = KTX_OPTIONS_INIT;

	options.engine = "holder";
	for (int taken = 0; taken <= 1; taken++) {
		struct ktx *tx = fake_open_with(options);
		const uint64_t begin = ktrxer_now_ns();
		struct ktx_report reports[8];

		fake.holds_buffers = true;
		fake.give_up_with = taken ? 0 : -EIO;
		for (int i = 0; i < 3; i++)
			assert_int_equal(fake_commit(tx, i, 0, 0), 0);
		struct ktx_accounts a = fake_drain(tx);

		assert_true(ktrxer_now_ns() - begin >= KTX_BUFFER_WAIT_NS);
		assert_int_equal(a.queued, taken ? 3 : 0);
		assert_int_equal(a.failed, taken ? 0 : 3);
		assert_int_equal(fake.given_up, 3);
		assert_int_equal(ktx_reports(tx, reports, 8), 3);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(reports[i].status, taken ? KTX_SENT : KTX_FAILED);
			assert_int_equal(reports[i].error, taken ? 0 : -EIO);
		}
		ktx_close(tx);
	}
}

TEST(a_stamp_that_does_not_come_leaves_the_departure_without_a_source)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report report;
	struct ktx_accounts a;
	struct ktx *tx = fake_open_with(options);
	uint64_t begin = ktrxer_now_ns();

	fake.stamps = true;
	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	a = fake_drain(tx);
	assert_true(ktrxer_now_ns() - begin >= KTX_STAMP_WAIT_NS);
	assert_int_equal(a.stamps_missing, 1);
	assert_int_equal(a.queued, 1);
	assert_int_equal(ktx_reports(tx, &report, 1), 1);
	assert_int_equal(report.departure_source, KTX_DEPARTURE_QUEUED);
	assert_true(report.sent_ns >= begin);
	/* the stamp comes after all: too late, and not to be taken for the next one's */
	fake.stamps_come = true;
	fake.stamp_after_ns = 500;
	assert_int_equal(fake_commit(tx, 2, 0, 0), 0);
	assert_int_equal(fake_drain(tx).driver, 1);
	ktx_close(tx);
}

TEST(a_lost_device_ends_all_without_hanging)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	struct ktx_accounts a;
	int rc = 0;

	fake.refuse = 1 << 30;
	fake.refuse_with = -ENETDOWN;
	for (int i = 0; i < 20 && rc == 0; i++)
		rc = fake_commit(tx, i, 0, 0);
	a = fake_drain(tx);
	assert_true(a.failed > 0 && a.failed == a.requested);
	assert_int_equal(a.last_error, -ENETDOWN);
	assert_int_equal(fake_commit(tx, 99, 0, 0), -ENETDOWN);
	ktx_close(tx);
}

/* Times so near to the beginning, or the end, of the clock that a sum with them would wrap. */
TEST(times_at_both_ends_of_the_clock)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next, now;
	struct ktx *tx;

	options.flags = KTX_CALLER_PUMPS;
	options.late = KTX_LATE_SHIFT;
	tx = fake_open_with(options);
	tx->pump.waiter.compensation_ns = 5000;
	assert_int_equal(fake_commit(tx, 0, 1, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_int_equal(fake.sent, 1);
	now = ktrxer_now_ns();
	/* shifted by all that the first one was late */
	assert_int_equal(fake_commit(tx, 1, KTRXER_NEVER, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_int_equal(fake.sent, 1);
	assert_true(next > now);
	ktx_close(tx);
}

/* After four thousand million probes the numbers of requests begin again. */
TEST(numbers_of_requests_wrap)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	const uint32_t from = UINT32_MAX - 300;
	struct ktx_report reports[8];
	struct ktx_accounts a;
	struct ktx *tx;
	int got = 0;

	options.flags = KTX_CALLER_PUMPS;
	options.slots = 64;
	tx = fake_open_with(options);
	fake.stamps = fake.stamps_come = true;
	tx->ring.head = tx->ring.done = tx->shared.cancel_to = from;
	tx->tool.written = tx->tool.counted = tx->tool.reaped = tx->pump.submitted = from;
	for (int i = 0; i < 1000; i++) {
		uint64_t next;

		assert_int_equal(fake_commit(tx, i,
					     i % 100 == 99 ? ktrxer_now_ns() + 3600 * (uint64_t)KTRXER_NS_PER_S : 0,
					     i % 3 ? KTX_TRAIN_GOES_ON : 0),
				 0);
		if (i % 100 == 99)
			ktx_cancel(tx);
		for (int n = 0; ktx_pump(tx, &next) == 0 && (n = ktx_reports(tx, reports, 8)) > 0; got += n)
			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, got + k);
	}
	a = fake_drain(tx);
	got += ktx_reports(tx, reports, 8);
	assert_int_equal(got, 1000);
	assert_int_equal(a.cancelled, 10);
	assert_int_equal(a.driver, 990);
	ktx_close(tx);
}

TEST(for_ever_is_no_overflow)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_accounts a;
	struct ktx *tx;

	options.late = KTX_LATE_SKIP;
	options.late_ns = options.retry_ns = UINT64_MAX;
	tx = fake_open_with(options);
	fake.refuse = 3;
	fake.refuse_with = -ENOBUFS;
	assert_int_equal(fake_commit(tx, 0, ktrxer_now_ns() - 1000000, 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.sent, 1);
	assert_int_equal(a.tries, 4);
	assert_int_equal(a.late, 0);
	ktx_close(tx);
}

/* Random scripts; whatever happens, the accounts close and every probe has one report. */
TEST(accounts_always_close)
{
	for (unsigned seed = 1; seed <= 30; seed++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		uint64_t at = ktrxer_now_ns(), committed = 0, reported = 0;
		struct ktx_report reports[16];
		struct ktx_accounts a;
		struct ktx *tx;

		srandom(seed);
		options.slots = 1u << (1 + random() % 6);
		options.retry_ns = 200 * KTRXER_NS_PER_US;
		options.late_ns = 50 * KTRXER_NS_PER_US;
		options.late = (enum ktx_late_policy)(random() % 3);
		options.flags = random() % 2 ? KTX_CALLER_PUMPS : 0;
		tx = fake_open_with(options);
		fake.stamps = random() % 2;
		fake.stamps_come = true;
		for (int i = 0; i < 300; i++) {
			int rc;

			at += (uint64_t)(random() % 60000);
			if (random() % 40 == 0) {
				fake.refuse_with = random() % 2 ? -ENOBUFS : -EMSGSIZE;
				fake.refuse = (int)(random() % 20);
			}
			fake.take_most = (int)(random() % 4);
			if (random() % 100 == 0)
				ktx_cancel(tx);
			rc = fake_commit(tx, committed, random() % 3 ? at : 0,
					 random() % 3 == 0 ? KTX_TRAIN_GOES_ON : 0);
			assert_true(rc == 0 || rc == -EAGAIN);
			committed += rc == 0;
			if (options.flags & KTX_CALLER_PUMPS) {
				uint64_t next;

				ktx_pump(tx, &next);
			}
			int n = ktx_reports(tx, reports, (int)(random() % 16));

			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, reported++);
		}
		a = fake_drain(tx);
		assert_int_equal(a.requested, committed);
		for (int n; (n = ktx_reports(tx, reports, 16)) > 0;)
			for (int k = 0; k < n; k++)
				assert_int_equal(reports[k].id, reported++);
		assert_int_equal(reported, committed);
		ktx_close(tx);
	}
}
