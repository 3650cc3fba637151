/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The send time and this host's own queue, over a scripted engine whose packet scheduler stamps (fake_engine.h). */
#include "base_limits.h"
#include "cm.h"
#include "fake_engine.h"

#include <stdlib.h>

#define MS ((uint64_t)KTRXER_NS_PER_MS)

static struct ktx *open_sched(int64_t own_queue_ns, enum ktx_report_kind reports)
{
	struct ktx_options options = KTX_OPTIONS_INIT;
	struct ktx *tx;

	options.slots = 64;
	options.reports = reports;
	tx = fake_open_with(options);
	fake.stamps = fake.stamps_come = fake.scheds = true;
	fake.stamp_after_ns = own_queue_ns;
	return tx;
}

static struct ktx_report report_of(struct ktx *tx)
{
	struct ktx_report report;

	assert_int_equal(ktx_reports(tx, &report, 1), 1);
	return report;
}

TEST(a_long_own_queue_is_no_lateness)
{
	struct ktx *tx = open_sched((int64_t)MS, KTX_REPORT_ALL);
	struct ktx_accounts a;
	struct ktx_report report;

	assert_int_equal(fake_commit(tx, 0, 0, 0), 0);
	fake_drain(tx);
	report_of(tx);
	fake.stamp_after_ns = (int64_t)(250 * MS);
	assert_int_equal(fake_commit(tx, 1, ktrxer_now_ns() + 20 * MS, 0), 0);
	a = fake_drain(tx);
	report = report_of(tx);
	assert_int_equal(report.sent_source, KTX_SENT_SCHED);
	assert_true(llabs((int64_t)(report.sent_ns - fake.sent_at[1])) <= report.bound_ns + fake.clock_bound_ns);
	assert_true(llabs(report.own_queue_ns - (int64_t)(250 * MS)) <= 2 * (report.bound_ns + fake.clock_bound_ns));
	assert_int_equal(report.departure_source, KTX_DEPARTURE_DRIVER);
	assert_true(report.departure_ns >= report.sent_ns + 249 * MS);
	assert_int_equal(a.stamps_missing, 0);
	assert_int_equal(a.untimed, 0);
	assert_true(a.late == 0 || report.sent_ns > report.at_ns + 100000); /* the host's stall, never the queue */
	ktx_close(tx);
}

/* Before the driver's first stamp, longer than such a stamp is awaited of a device that may have none. */
TEST(an_own_queue_that_is_long_from_the_start)
{
	struct ktx *tx = open_sched((int64_t)(250 * MS), KTX_REPORT_ALL);

	for (uint64_t n = 0; n < 2; n++)
		assert_int_equal(fake_commit(tx, n, ktrxer_now_ns() + 20 * MS, 0), 0);
	assert_int_equal(fake_drain(tx).stamps_missing, 0);
	for (uint64_t n = 0; n < 2; n++) {
		const struct ktx_report report = report_of(tx);

		assert_int_equal(report.sent_source, KTX_SENT_SCHED);
		assert_true(llabs(report.own_queue_ns - (int64_t)(250 * MS)) <=
			    2 * (report.bound_ns + fake.clock_bound_ns));
	}
	ktx_close(tx);
}

TEST(what_the_own_queue_drops_holds_nothing_up)
{
	struct ktx *tx = open_sched((int64_t)MS, KTX_REPORT_ALL);
	uint64_t begin;

	assert_int_equal(fake_commit(tx, 0, 0, 0), 0);
	fake_drain(tx);
	report_of(tx);
	fake.lost_key = 1 + 1;
	begin = ktrxer_now_ns();
	for (uint64_t n = 1; n < 4; n++)
		assert_int_equal(fake_commit(tx, n, 0, 0), 0);
	assert_int_equal(fake_drain(tx).stamps_missing, 1);
	assert_true(ktrxer_now_ns() - begin < KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S);
	for (uint64_t n = 1; n < 4; n++) {
		const struct ktx_report report = report_of(tx);

		assert_int_equal(report.id, n);
		assert_int_equal(report.sent_source, KTX_SENT_SCHED); /* it has entered the queue */
		assert_int_equal(report.departure_source, n == 1 ? KTX_DEPARTURE_QUEUED : KTX_DEPARTURE_DRIVER);
		assert_true(n == 1 ? report.own_queue_ns == -1 : report.own_queue_ns > 0);
	}
	ktx_close(tx);
}

/* Half of the slots may wait in the queue. The next probes leave on time all the same. */
TEST(a_queue_longer_than_the_slots)
{
	struct ktx *tx = open_sched((int64_t)MS, KTX_REPORT_NONE);
	uint64_t begin;

	assert_int_equal(fake_commit(tx, 0, 0, 0), 0);
	fake_drain(tx);
	fake.stamp_after_ns = 60 * (int64_t)KTRXER_NS_PER_S;
	begin = ktrxer_now_ns();
	fake_commit_all(tx, 200);
	assert_true(ktrxer_now_ns() - begin < KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S);
	ktx_close(tx);
}

TEST(a_device_that_never_stamps)
{
	struct ktx *tx = open_sched(60 * (int64_t)KTRXER_NS_PER_S, KTX_REPORT_ALL);
	const uint64_t begin = ktrxer_now_ns();
	struct ktx_report report;

	fake.no_queue = true;
	assert_int_equal(fake_commit(tx, 0, 0, 0), 0);
	fake_drain(tx);
	assert_true(ktrxer_now_ns() - begin < KTX_OWN_QUEUE_WAIT_S * (uint64_t)KTRXER_NS_PER_S);
	report = report_of(tx);
	assert_int_equal(report.sent_source, KTX_SENT_SCHED);
	assert_int_equal(report.own_queue_ns, -1);
	assert_int_equal(report.departure_ns, 0);
	ktx_close(tx);
}

TEST(without_its_stamp_a_probe_is_untimed)
{
	struct ktx *tx = open_sched(1000, KTX_REPORT_ALL);
	struct ktx_accounts a;
	struct ktrxer_hist *lateness;

	fake.sched_key = 1; /* that of number 0 is lost */
	for (uint64_t n = 0; n < 2; n++)
		assert_int_equal(fake_commit(tx, n, ktrxer_now_ns() + MS, 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.sent, 2);
	assert_int_equal(a.untimed, 1);
	assert_int_equal(report_of(tx).sent_source, KTX_SENT_NONE);
	assert_int_equal(report_of(tx).sent_source, KTX_SENT_SCHED);
	lateness = ktx_lateness(tx);
	assert_int_equal(ktrxer_hist_count(lateness), 1);
	ktrxer_hist_free(lateness);
	ktx_close(tx);
}

#ifndef KTRXER_SMALL
TEST(departures_are_counted_by_device_and_source)
{
	struct ktx *tx = open_sched(1000, KTX_REPORT_ALL);
	struct ktx_departure rows[KTX_DEPARTURES];
	int n;

	assert_int_equal(ktx_departures(tx, rows, KTX_DEPARTURES), 0);
	for (uint32_t device = 0; device < 12; device++)
		for (uint64_t i = 0; i < 2; i++) {
			fake.device = device; /* 0: not reported */
			assert_int_equal(fake_commit(tx, 2 * device + i, 0, 0), 0);
			fake_drain(tx);
		}
	fake.device = 1;
	fake.from = (struct ktrxer_addr){ .family = 2, .bytes = { 192, 0, 2, 1 } };
	assert_int_equal(fake_commit(tx, 24, 0, 0), 0);
	fake_drain(tx);
	n = ktx_departures(tx, rows, KTX_DEPARTURES);
	assert_int_equal(n, KTX_DEPARTURES);
	for (int i = 0; i < n - 1; i++) {
		assert_int_equal(rows[i].device, i + 1);
		assert_int_equal(rows[i].count, 2);
	}
	assert_int_equal(rows[n - 1].device, 0);
	assert_int_equal(rows[n - 1].count, 4 * 2 + 1);
	assert_int_equal(ktx_departures(tx, rows, 3), KTX_DEPARTURES);
	ktx_close(tx);
}
#endif
