/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The transmitter over a scripted engine (fake_engine.h): slots, order, reports, trains, calls that are refused. */
#include "cm.h"
#include "fake_engine.h"
#include "tx_limits.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

TEST(sends_in_order_at_their_times)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	uint64_t start = ktrxer_now_ns() + 20 * KTRXER_NS_PER_MS;
	struct ktx_report reports[64];
	int got = 0;

	fake.stamps = fake.stamps_come = true;
	for (int i = 0; i < 50; i++)
		assert_int_equal(fake_commit(tx, 100 + i, start + i * 1000000ULL, 0), 0);
	struct ktx_accounts a = fake_drain(tx);

	assert_int_equal(a.sent, 50);
	assert_int_equal(a.driver, 50);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(fake.order[i], 100 + i);
		/* The compensation is at most 60 us here. */
		assert_true(fake.sent_at[i] + 60000 > start + i * 1000000ULL);
	}
	got = ktx_reports(tx, reports, 64);
	assert_int_equal(got, 50);
	for (int i = 0; i < got; i++) {
		assert_int_equal(reports[i].id, 100 + i);
		assert_int_equal(reports[i].status, KTX_SENT);
		assert_int_equal(reports[i].departure_source, KTX_DEPARTURE_DRIVER);
		assert_int_equal(reports[i].at_ns, start + i * 1000000ULL);
		assert_true(llabs((int64_t)(reports[i].departure_ns - fake.sent_at[i])) <=
			    reports[i].bound_ns + fake.clock_bound_ns);
		/* without a stamp of the packet scheduler: the time just before the call */
		assert_true(reports[i].sent_ns <= fake.sent_at[i]);
		assert_true(i == 0 || reports[i].sent_ns > fake.sent_at[i - 1]);
		assert_true(reports[i].raw_ns != 0);
	}
	assert_int_equal(ktx_reports(tx, reports, 64), 0);
	ktx_close(tx);
}

TEST(full_ring_returns_eagain_and_wakes_the_tool)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;

	options.slots = 8;
	options.reports = KTX_REPORT_NONE;
	tx = fake_open_with(options);
	fake_commit_all(tx, 5000);
	assert_int_equal(fake_drain(tx).sent, 5000);
	ktx_close(tx);
}

TEST(unread_reports_hold_their_slots)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report report;
	struct ktx *tx;

	options.slots = 4;
	tx = fake_open_with(options);
	for (int i = 0; i < 4; i++)
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 4);
	assert_int_equal(fake_commit(tx, 9, 0, 0), -EAGAIN);
	fake_await(tx);
	assert_int_equal(ktx_reports(tx, &report, 1), 1);
	assert_int_equal(report.id, 0);
	assert_int_equal(fake_commit(tx, 9, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 5);
	ktx_close(tx);
}

/*
 * A program that gets no slot, reads the reports that there are, and sleeps, is woken: by the room that the reading
 * itself made, too.
 */
TEST(reading_reports_does_not_take_back_the_word_of_free_slots)
{
	for (int kind = KTX_REPORT_ALL; kind <= KTX_REPORT_NONE; kind++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[8];
		struct pollfd p = { .events = POLLIN };
		struct ktx *tx;

		options.slots = 4;
		options.reports = (enum ktx_report_kind)kind;
		options.flags = KTX_CALLER_PUMPS;
		tx = fake_open_with(options);
		p.fd = ktx_fd(tx);
		for (int i = 0; i < 4; i++)
			assert_int_equal(fake_commit(tx, (uint64_t)i, 0, 0), 0);
		assert_int_equal(fake_commit(tx, 4, 0, 0), -EAGAIN);
		assert_int_equal(fake_drain(tx).sent, 4);
		while (ktx_reports(tx, reports, 8) > 0)
			;
		assert_int_equal(poll(&p, 1, 0), 1);
		assert_int_equal(fake_commit(tx, 4, 0, 0), 0);
		fake_drain(tx);
		while (ktx_reports(tx, reports, 8) > 0)
			;
		assert_int_equal(poll(&p, 1, 0), 0); /* and without a waiting program there is no event */
		ktx_close(tx);
	}
}

TEST(only_failures_are_reported_on_request)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[8];
	struct ktx *tx;

	options.reports = KTX_REPORT_FAILURES;
	options.flags = KTX_CALLER_PUMPS;
	tx = fake_open_with(options);
	for (int i = 0; i < 5; i++) {
		if (i == 3) {
			fake.refuse = 1;
			fake.refuse_with = -EPERM;
		}
		assert_int_equal(fake_commit(tx, i, 0, 0), 0);
		fake_drain(tx);
	}
	assert_int_equal(ktx_reports(tx, reports, 8), 1);
	assert_int_equal(reports[0].id, 3);
	assert_int_equal(reports[0].status, KTX_FAILED);
	assert_int_equal(reports[0].error, -EPERM);
	assert_int_equal(reports[0].sent_ns, 0);
	assert_int_equal(fake_drain(tx).failed, 1);
	ktx_close(tx);
}

TEST(trains_leave_by_one_call)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	uint64_t at = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;

	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_commit(tx, i, at, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
	assert_int_equal(fake_drain(tx).sent, 10);
	assert_int_equal(fake.sends, 1);
	assert_int_equal(fake.largest, 10);
	/* without times a train is not begun before it is whole */
	fake.sends = 0;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fake_commit(tx, i, 0, i < 2 ? KTX_TRAIN_GOES_ON : 0), 0);
		poll(NULL, 0, 5);
		assert_int_equal(fake.sends != 0 && i < 2, 0);
	}
	assert_int_equal(fake_drain(tx).sent, 13);
	assert_int_equal(fake.sends, 1);
	ktx_close(tx);
}

TEST(a_partly_taken_train_goes_on)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);

	fake.take_most = 3;
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake_commit(tx, i, 0, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
	assert_int_equal(fake_drain(tx).sent, 10);
	for (int i = 0; i < 10; i++)
		assert_int_equal(fake.order[i], i);
	ktx_close(tx);
}

/*
 * One that takes longer than late_ns, by more calls than one: none of it is skipped, and none of it moves the others.
 */
TEST(a_train_is_not_torn_by_the_late_policy)
{
	for (int policy = KTX_LATE_SKIP; policy <= KTX_LATE_SHIFT; policy++) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		struct ktx_report reports[12];
		uint64_t at, next;
		struct ktx *tx;

		options.flags = KTX_CALLER_PUMPS;
		options.late = (enum ktx_late_policy)policy;
		options.late_ns = 20 * KTRXER_NS_PER_MS;
		tx = fake_open_with(options);
		fake.take_most = 1;
		fake.send_lasts_ms = 5;
		at = ktrxer_now_ns();
		for (int i = 0; i < 10; i++)
			assert_int_equal(fake_commit(tx, i, at, i < 9 ? KTX_TRAIN_GOES_ON : 0), 0);
		while (ktx_pump(tx, &next) == 0 && next != KTRXER_NEVER)
			;
		assert_int_equal(fake.sent, 10);
		fake.send_lasts_ms = 0;
		assert_int_equal(tx->pump.shift_ns, 0);
		assert_int_equal(ktx_reports(tx, reports, 12), 10);
		ktx_close(tx);
	}
}

/* ThreadSanitizer sees what this cannot: whether the pump's thread writes what ktx_info() reads. */
TEST(info_can_be_read_while_the_thread_works)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t last_ns;
	struct ktx_info info;
	struct ktx *tx;

	options.slots = 256;
	tx = fake_open_with(options);
	fake.stamps = fake.stamps_come = true;
	last_ns = ktrxer_now_ns();
	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(fake_commit(tx, i, last_ns += 500000, 0), 0);
	while (ktrxer_now_ns() < last_ns) {
		ktx_info(tx, &info);
		assert_in_range(info.wakeup_margin_ns, KTX_MARGIN_MIN_NS, KTX_MARGIN_MAX_NS);
		assert_in_range(info.compensation_ns, 0, KTX_COMPENSATION_MAX_NS);
		assert_true(strlen(info.notes) < sizeof info.notes - 1);
	}
	assert_int_equal(fake_drain(tx).sent, 100);
	/* After its last send the thread still adapts the two, then publishes them, then sleeps. */
	last_ns = ktrxer_now_ns() + 5 * (uint64_t)KTRXER_NS_PER_S;
	do
		ktx_info(tx, &info);
	while ((info.compensation_ns != tx->pump.waiter.compensation_ns ||
		info.wakeup_margin_ns != tx->pump.waiter.margin_ns) &&
	       ktrxer_now_ns() < last_ns);
	assert_int_equal(info.compensation_ns, tx->pump.waiter.compensation_ns);
	assert_int_equal(info.wakeup_margin_ns, tx->pump.waiter.margin_ns);
	ktx_close(tx);
}

TEST(a_shifted_train_is_shifted_as_a_whole)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx_report reports[2];
	struct ktx *tx;
	uint64_t at = ktrxer_now_ns() - 50 * KTRXER_NS_PER_MS;

	options.late = KTX_LATE_SHIFT;
	tx = fake_open_with(options);
	assert_int_equal(fake_commit(tx, 0, at, KTX_TRAIN_GOES_ON), 0);
	assert_int_equal(fake_commit(tx, 1, at, 0), 0);
	fake_drain(tx);
	assert_int_equal(fake.sends, 1);
	assert_int_equal(ktx_reports(tx, reports, 2), 2);
	assert_true(reports[0].planned_ns > at);
	assert_int_equal(reports[1].planned_ns, reports[0].planned_ns);
	ktx_close(tx);
}

/*
 * Deadlines begin anew: what the shift was before says nothing about them, nor does it count as their lateness. The
 * first deadline is at the beginning of the clock: a machine that has just booted has no time an hour before now.
 */
TEST(a_cancellation_ends_the_shift)
{
	for (uint32_t flags = 0; flags <= KTX_CALLER_PUMPS; flags += KTX_CALLER_PUMPS) {
		struct ktx_options options = KTX_OPTIONS_INIT;
		const uint64_t up_ns = ktrxer_now_ns();
		struct ktx_report reports[4];
		struct ktrxer_hist *lateness;
		struct ktx *tx;
		uint64_t at;

		options.flags = flags;
		options.late = KTX_LATE_SHIFT;
		options.late_ns = 20 * KTRXER_NS_PER_MS; /* later than a busy machine makes the new ones */
		tx = fake_open_with(options);
		assert_int_equal(fake_commit(tx, 0, 1, 0), 0);
		fake_drain(tx);
		ktx_cancel(tx);
		ktx_cancel(tx);
		at = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;
		assert_int_equal(fake_commit(tx, 1, at, 0), 0);
		assert_int_equal(fake_commit(tx, 2, at, 0), 0);
		fake_drain(tx);
		assert_int_equal(ktx_reports(tx, reports, 4), 3);
		assert_true(reports[0].planned_ns >= up_ns);
		for (int i = 1; i < 3; i++)
			assert_true(reports[i].planned_ns - reports[i].at_ns < up_ns / 2);
		lateness = ktx_lateness(tx);
		assert_true(ktrxer_hist_min(lateness) > -(int64_t)(up_ns / 2));
		ktrxer_hist_free(lateness);
		ktx_close(tx);
	}
}

static bool share_a_line(const void *a, size_t a_size, const void *b, size_t b_size)
{
	const uintptr_t a_first = (uintptr_t)a / KTX_LINE, a_last = ((uintptr_t)a + a_size - 1) / KTX_LINE;
	const uintptr_t b_first = (uintptr_t)b / KTX_LINE, b_last = ((uintptr_t)b + b_size - 1) / KTX_LINE;

	return a_first <= b_last && b_first <= a_last;
}

/* Members that one thread writes and the other reads for each probe are on cache lines of their own. */
TEST(the_two_threads_write_to_lines_of_their_own)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	const struct {
		const void *at;
		size_t size;
		/* clang-format off */
	} parts[] = {
		{ &tx->ring.requests, sizeof tx->ring.requests }, { &tx->ring.mask, sizeof tx->ring.mask },
		{ &tx->state, sizeof tx->state },
		{ &tx->ring.head, sizeof tx->ring.head },   { &tx->ring.done, sizeof tx->ring.done },
		{ &tx->shared, sizeof tx->shared },
		{ &tx->tool, sizeof tx->tool },             { &tx->pump, sizeof tx->pump },
	};
	/* clang-format on */
	const size_t constant = 3;

	for (size_t i = constant; i < sizeof parts / sizeof *parts; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(share_a_line(parts[i].at, parts[i].size, parts[j].at, parts[j].size));
	ktx_close(tx);
}

TEST(bad_calls_are_refused_and_change_nothing)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx = fake_open_with(options);
	struct ktrxer_error err = { 0 };
	struct ktx_probe probe = { .length = 60 };
	struct ktx_slot slot, again;

	assert_int_equal(ktx_commit(tx, &probe, &err), -EINVAL);
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	assert_int_equal(ktx_reserve(tx, &again), 0);
	assert_ptr_equal(slot.frame, again.frame);
	probe.length = slot.capacity + 1;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EMSGSIZE);
	assert_non_null(strstr(err.text, "between 1 and"));
	probe.length = 0;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EMSGSIZE);
	probe.length = 60;
	slot.frame[0] = 0xbd;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EBADMSG);
	slot.frame[0] = 0;
	probe.at_ns = ktrxer_now_ns();
	assert_int_equal(ktx_commit(tx, &probe, &err), 0);
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	probe.at_ns--;
	assert_int_equal(ktx_commit(tx, &probe, &err), -EINVAL);
	assert_int_equal(fake_drain(tx).requested, 1);
	ktx_close(tx);

	options.engine = "warp";
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
	assert_non_null(strstr(err.text, "fake"));
	assert_null(tx);
	options.engine = NULL;
	options.size = 4;
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
	options = (struct ktx_options)KTX_OPTIONS_INIT;
	options.slots = KTX_SLOTS_MAX + 1;
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
}

/* 4 GiB and 4 MiB: where sizes have 32 bits that must not become 4 MiB. */
TEST(more_memory_than_can_be_addressed_is_refused)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktrxer_error err;
	struct ktx *tx;

	if (SIZE_MAX > UINT32_MAX)
		cm_skip("64-bit addresses: no number of slots is too many for them");
	options.slots = 65536;
	options.frame_size = 65549;
	assert_int_equal(ktx_open(&tx, &options, &err), -ENOMEM);
}

TEST(the_caller_can_pump)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next = 0, at = ktrxer_now_ns() + 30 * KTRXER_NS_PER_MS;
	struct ktx *tx;

	options.flags = KTX_CALLER_PUMPS;
	tx = fake_open_with(options);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next == KTRXER_NEVER);
	assert_int_equal(fake_commit(tx, 7, at, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	assert_true(next < at && next + KTX_MARGIN_MAX_NS >= at);
	assert_int_equal(fake.sent, 0);
	assert_int_equal(fake_drain(tx).sent, 1);
	ktx_close(tx);

	options.flags = 0;
	tx = fake_open_with(options);
	assert_int_equal(ktx_pump(tx, &next), -EINVAL);
	ktx_close(tx);
}

/* Neither for a send time that is near nor for a device that is full. */
TEST(the_pump_never_waits)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	uint64_t next = 0, at = 0, before = 0;
	int early = 0;
	struct ktx *tx;

	options.flags = KTX_CALLER_PUMPS;
	options.retry_ns = 3600 * (uint64_t)KTRXER_NS_PER_S;
	tx = fake_open_with(options);
	/* A machine that stops this thread for as long as that may miss one, but not each of them. */
	for (uint64_t i = 0; i < 100; i++) {
		const int sent = fake.sent;

		at = ktrxer_now_ns() + KTX_MARGIN_PRIOR_NS / 2;
		assert_int_equal(fake_commit(tx, i, at, 0), 0);
		before = ktrxer_now_ns();
		assert_int_equal(ktx_pump(tx, &next), 0);
		if (fake.sent == sent) {
			early++;
			assert_true(next >= before && next < at); /* at once */
		}
		fake_drain(tx);
		assert_true(fake.sent_at[sent] + KTX_COMPENSATION_MAX_NS >= at);
	}
	assert_in_range(early, 1, 100);

	fake.refuse = 1000000;
	fake.refuse_with = -ENOBUFS;
	fake.sends = 0;
	assert_int_equal(fake_commit(tx, 100, 0, 0), 0);
	for (int i = 1; i < 4; i++) {
		const int sends = fake.sends;

		before = ktrxer_now_ns();
		assert_int_equal(ktx_pump(tx, &next), 0);
		assert_in_range(fake.sends - sends, 1,
				100); /* more than one only where this thread was stopped meanwhile */
		assert_in_range(next - before, 1000, KTRXER_NS_PER_S);
		while (ktrxer_now_ns() < next)
			;
	}
	fake.refuse = 0;
	assert_int_equal(fake_drain(tx).sent, 101);
	ktx_close(tx);
}
