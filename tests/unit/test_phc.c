/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A NIC's clock on ours: from sequences that the kernel told (igb of QEMU 10 under Linux 6.1, its clock 0.95 ppm slow),
 * and from such as no NIC tells.
 */
#include "cm.h"
#include "fake_engine.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define S KTRXER_NS_PER_S

static struct ptp_clock_time at(int64_t ns)
{
	return (struct ptp_clock_time){ .sec = ns / S, .nsec = (uint32_t)(ns % S) };
}

/*
 * The first of the three samples of each PTP_SYS_OFFSET_EXTENDED, 100 ms apart: before, NIC, after; less 1767225622 s.
 */
static const int64_t recorded[][3] = {
	{ 703668266, 703653361, 703668338 },    { 803769203, 803754203, 803769275 },
	{ 903869339, 903854243, 903869411 },    { 1003969502, 1003954311, 1003969574 },
	{ 1104070299, 1104055012, 1104070371 }, { 1204170407, 1204155025, 1204170479 },
	{ 1304271053, 1304255575, 1304271125 }, { 1404370994, 1404355421, 1404371066 },
	{ 1504470936, 1504455267, 1504471008 }, { 1604570877, 1604555113, 1604570949 },
	{ 1704671130, 1704655270, 1704671202 }, { 1804771842, 1804755887, 1804771914 },
};
#define RECORDED (sizeof recorded / sizeof *recorded)
#define EPOCH (1767225622 * S)

TEST(extended_takes_the_narrowest)
{
	struct ptp_sys_offset_extended reported = { .n_samples = 3 };
	struct phc_reading r;

	/* The second was interrupted, as a busy machine does it. */
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 3; j++)
			reported.ts[i][j] = at(EPOCH + recorded[0][j] + i * 275 + (i == 1 && j == 2 ? 40000 : 0));
	reported.ts[2][2] = at(EPOCH + recorded[0][2] + 2 * 275 - 20);
	assert_true(ktrxer_phc_of_extended(&reported, &r));
	assert_int_equal(r.nic_ns, EPOCH + 703653361 + 550);
	assert_int_equal(r.real_ns, EPOCH + 703668266 + 550 + 26);
	assert_int_equal(r.bound_ns, 27);
	/* The clock was set back in between, and one that took a second: no samples. */
	reported.n_samples = 2;
	reported.ts[0][2] = at(EPOCH);
	reported.ts[1][2] = at(EPOCH + 2 * S);
	assert_false(ktrxer_phc_of_extended(&reported, &r));
	reported.n_samples = 0;
	assert_false(ktrxer_phc_of_extended(&reported, &r));
	memset(&reported.ts, 0, sizeof reported.ts);
	reported.n_samples = UINT32_MAX; /* no kernel reports so many samples: the reader refuses the value */
	assert_true(ktrxer_phc_of_extended(&reported, &r));
}

TEST(plain_and_precise)
{
	/* The recorded order is system, NIC, system, NIC, ... */
	static const int64_t plain[] = { 904870351, 904854347, 904870569, 904854565, 904870787, 904854783, 904871005 };
	struct ptp_sys_offset reported = { .n_samples = 3 };
	struct ptp_sys_offset_precise precise = { .device = at(EPOCH + 5), .sys_realtime = at(EPOCH + 105) };
	struct phc_reading r;

	for (int i = 0; i < 7; i++)
		reported.ts[i] = at(EPOCH + S + plain[i]);
	assert_true(ktrxer_phc_of_plain(&reported, &r));
	assert_int_equal(r.nic_ns, EPOCH + S + 904854347);
	assert_int_equal(r.real_ns, EPOCH + S + 904870351 + 109);
	assert_int_equal(r.bound_ns, 110);
	assert_true(ktrxer_phc_of_precise(&precise, &r));
	assert_int_equal(r.real_ns - r.nic_ns, 100);
	assert_true(r.bound_ns > 0);
	precise.device.nsec = 2000000000;
	assert_false(ktrxer_phc_of_precise(&precise, &r));
}

/* CLOCK_REALTIME stands for CLOCK_MONOTONIC here, a second behind. */
static void add(struct phc_map *map, size_t i)
{
	ktrxer_phc_map_add(map, EPOCH + recorded[i][1], (uint64_t)(EPOCH + (recorded[i][0] + recorded[i][2]) / 2 - S),
			   37);
}

TEST(the_line_predicts_the_next_sample_within_its_error)
{
	struct phc_map map = { 0 };
	uint64_t mono;
	uint32_t bound;

	assert_false(ktrxer_phc_map_mono(&map, EPOCH, &mono, &bound));
	for (size_t i = 0; i < RECORDED; i++) {
		const int64_t real = EPOCH + (recorded[i][0] + recorded[i][2]) / 2 - S;

		if (i) {
			assert_true(ktrxer_phc_map_mono(&map, EPOCH + recorded[i][1], &mono, &bound));
			assert_true(llabs((int64_t)mono - real) <= (int64_t)bound + 37);
		}
		if (i > 1) /* from the rate: 100 ms of 100 ppm would be 10 us */
			assert_in_range(bound, 37, 1000);
		add(&map, i);
	}
	assert_int_equal(map.steps, 0);
	assert_in_range(map.rate_ppb, 850, 1050);
	/* A stamp of the past and one of long ago: worse, and said so. */
	ktrxer_phc_map_mono(&map, EPOCH + recorded[RECORDED - 1][1] - 50 * KTRXER_NS_PER_MS, &mono, &bound);
	assert_in_range(bound, 37, 100);
	ktrxer_phc_map_mono(&map, EPOCH - 3600 * S, &mono, &bound);
	assert_true(bound > 100000);
}

TEST(a_step_of_the_nic_begins_a_new_line)
{
	struct phc_map map = { 0 };
	uint64_t mono;
	uint32_t bound;

	for (size_t i = 0; i < RECORDED; i++)
		add(&map, i);
	/* ptp4l sets it to TAI: 37 s. */
	ktrxer_phc_map_add(&map, EPOCH + recorded[RECORDED - 1][1] + 100 * KTRXER_NS_PER_MS + 37 * S,
			   (uint64_t)(EPOCH + recorded[RECORDED - 1][0] + 100 * KTRXER_NS_PER_MS - S), 37);
	assert_int_equal(map.steps, 1);
	assert_int_equal(map.count, 1);
	assert_true(ktrxer_phc_map_mono(&map, EPOCH + recorded[RECORDED - 1][1] + 101 * KTRXER_NS_PER_MS + 37 * S,
					&mono, &bound));
	assert_true(llabs((int64_t)mono - (EPOCH + recorded[RECORDED - 1][0] + 101 * KTRXER_NS_PER_MS - S)) < 200);
	assert_true(bound >= 100); /* 1 ms of 100 ppm: the rate is to be found anew */
}

TEST(ends_of_the_clock)
{
	static const int64_t times[] = { INT64_MIN, INT64_MIN + 1, -1, 0, 1, INT64_MAX - 1, INT64_MAX };
	struct phc_map map = { 0 };
	uint64_t mono;
	uint32_t bound;

	for (size_t i = 0; i < sizeof times / sizeof *times; i++)
		for (size_t j = 0; j < sizeof times / sizeof *times; j++) {
			ktrxer_phc_map_add(&map, times[i], (uint64_t)times[j], UINT32_MAX);
			assert_true(ktrxer_phc_map_mono(&map, times[j], &mono, &bound));
		}
}

/* ------------------------------------------------------------------------------------------------ in a transmitter */

#define AHEAD (37 * S) /* of the NIC's clock */

/* The clock of the NIC is this file's, by the linker (--wrap). */
static struct {
	pthread_t pump;                 /* the thread that pumps */
	_Atomic int by_pump, by_others; /* readings */
} clock_of_nic;

int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ktrxer_clock_pair pair;
	struct ptp_sys_offset_precise *reported;
	va_list args;

	(void)fd;
	if ((unsigned int)request != (unsigned int)PTP_SYS_OFFSET_PRECISE)
		return -1;
	va_start(args, request);
	reported = va_arg(args, struct ptp_sys_offset_precise *);
	va_end(args);
	if (pthread_equal(pthread_self(), clock_of_nic.pump))
		clock_of_nic.by_pump++;
	else
		clock_of_nic.by_others++;
	ktrxer_clock_pair_read(&pair);
	reported->device = at((int64_t)pair.mono_ns + AHEAD);
	reported->sys_realtime = at(pair.real_ns);
	return 0;
}

static struct ktx *open_with_nic(void)
{
	struct ktx_options options = { .size = sizeof(struct ktx_options), .cpu = -1, .flags = KTX_CALLER_PUMPS };
	struct ktx *tx = fake_open_with(options);

	fake.stamps = fake.stamps_come = true;
	fake.nic_ahead_ns = AHEAD;
	tx->nic.phc.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	clock_of_nic.pump = pthread_self();
	assert_int_equal(ktrxer_phc_sampler_start(&tx->nic), 0);
	clock_of_nic.by_pump = clock_of_nic.by_others = 0;
	return tx;
}

static struct ktx_accounts send_five(struct ktx *tx, struct ktx_report reports[5])
{
	struct ktx_accounts a;

	for (uint64_t i = 0; i < 5; i++)
		assert_int_equal(fake_commit(tx, i, ktrxer_now_ns(), 0), 0);
	a = fake_drain(tx);
	assert_int_equal(a.sent, a.requested);
	assert_int_equal(a.stamps_missing, 0);
	assert_int_equal(ktx_reports(tx, reports, 5), 5);
	return a;
}

TEST(a_nic_s_stamp_is_better_than_the_driver_s)
{
	struct ktx *tx = open_with_nic();
	struct ktx_report reports[5];
	struct ktx_info info;

	ktx_info(tx, &info);
	assert_true(info.features & KTX_CAN_NIC_STAMP);
	assert_int_equal(info.best_departure, KTX_DEPARTURE_NIC);
	fake.nic_after_ns = 300;
	assert_int_equal(send_five(tx, reports).nic, 5);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(reports[i].departure_source, KTX_DEPARTURE_NIC);
		assert_int_equal(reports[i].raw_ns, (int64_t)fake.sent_at[i] + AHEAD + 300);
		assert_true(llabs((int64_t)(reports[i].departure_ns - fake.sent_at[i]) - 300) <=
			    (int64_t)reports[i].bound_ns);
	}
	ktx_close(tx);
}

/* One reading may take a millisecond: in any other thread than the one that pumps. */
TEST(the_pump_does_not_read_the_clock_of_the_nic)
{
	struct ktx *tx = open_with_nic();
	const uint64_t end_ns = ktrxer_now_ns() + 10 * (uint64_t)S;
	struct ktx_report reports[5];
	struct phc_line line = { 0 };
	uint32_t version = 0, before = 0, bound;
	uint64_t mono, now;

	ktrxer_phc_sampler_line(&tx->nic, &line, &before);
	while (clock_of_nic.by_others < 3 && ktrxer_now_ns() < end_ns) {
		assert_int_equal(send_five(tx, reports).failed, 0);
		poll(NULL, 0, 10);
	}
	assert_in_range(clock_of_nic.by_others, 3, 1000);
	assert_int_equal(clock_of_nic.by_pump, 0);
	/* It publishes the clock. */
	ktrxer_phc_sampler_line(&tx->nic, &line, &version);
	assert_true(version > 2 && version % 2 == 0);
	now = ktrxer_now_ns();
	ktrxer_phc_line_mono(&line, (int64_t)now + AHEAD, &mono, &bound);
	assert_true(llabs((int64_t)(mono - now)) <= (int64_t)bound + 1000);
	/* A line that is being written is left alone. */
	atomic_fetch_add(&tx->nic.version, 1);
	before = version;
	line.mono_ns = 0;
	ktrxer_phc_sampler_line(&tx->nic, &line, &version);
	assert_int_equal(line.mono_ns, 0);
	assert_int_equal(version, before);
	atomic_fetch_sub(&tx->nic.version, 1);
	ktx_close(tx);
}

TEST(a_nic_s_stamp_that_does_not_come_or_cannot_be)
{
	struct ktx *tx = open_with_nic();
	struct ktx_report reports[5];

	fake.nic_ahead_ns = 0;
	assert_int_equal(send_five(tx, reports).driver, 5);
	fake.nic_ahead_ns = AHEAD;
	fake.nic_after_ns = 3600 * S;
	assert_int_equal(send_five(tx, reports).driver, 10);
	fake.nic_after_ns = -3600 * S;
	assert_int_equal(send_five(tx, reports).driver, 15);
	ktx_close(tx);
}
