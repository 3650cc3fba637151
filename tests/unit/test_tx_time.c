/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The send time in frames (ktx_options.send_time), over a scripted engine. */
#include "bytes.h"
#include "clock.h"
#include "cm.h"
#include "fake_engine.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum { AT = 32, LENGTH = 60 };

static struct ktx_options with(enum ktx_send_time format)
{
	struct ktx_options options = KTX_OPTIONS_INIT;

	options.flags = KTX_CALLER_PUMPS;
	options.send_time = format;
	options.send_time_at = AT;
	options.retry_ns = (uint64_t)KTRXER_NS_PER_S;
	return options;
}

/* The field of the frame that was submitted last. */
static uint64_t field(void)
{
	return load_be64(fake.last + AT);
}

TEST(times_of_both_formats)
{
	const int64_t ns = 1700000000LL * KTRXER_NS_PER_S + KTRXER_NS_PER_S / 2;

	assert_int_equal(ktrxer_time_field(ns, KTX_SEND_TIME_UNIX), 1700000000ULL << 32 | 500000000);
	assert_int_equal(ktrxer_time_field(ns, KTX_SEND_TIME_NTP), 3908988800ULL << 32 | 1ULL << 31);
	assert_int_equal(ktrxer_time_field(-1, KTX_SEND_TIME_UNIX), 0xffffffffULL << 32 | 999999999);
}

TEST(the_time_is_that_of_the_submission)
{
	for (int format = KTX_SEND_TIME_NTP; format <= KTX_SEND_TIME_UNIX; format++) {
		struct ktx *tx = fake_open_with(with((enum ktx_send_time)format));
		const uint64_t at_ns = ktrxer_now_ns() + 5 * KTRXER_NS_PER_MS;
		uint64_t before, after;

		assert_int_equal(fake_commit(tx, 1, at_ns, 0), 0);
		while (ktrxer_now_ns() < at_ns)
			;
		before = ktrxer_time_field(ktrxer_real_now_ns(), (enum ktx_send_time)format);
		assert_int_equal(fake_drain(tx).sent, 1);
		after = ktrxer_time_field(ktrxer_real_now_ns(), (enum ktx_send_time)format);
		assert_true(before <= field() && field() <= after);
		ktx_close(tx);
	}
}

TEST(a_rejected_frame_gets_the_time_of_its_next_try)
{
	struct ktx *tx = fake_open_with(with(KTX_SEND_TIME_UNIX));
	uint64_t next, first, tried;

	fake.refuse = 1 << 20; /* a slow machine tries more than once within one call */
	fake.refuse_with = -ENOBUFS;
	assert_int_equal(fake_commit(tx, 1, 0, 0), 0);
	assert_int_equal(ktx_pump(tx, &next), 0);
	fake.refuse = 0;
	first = field();
	tried = ktrxer_time_field(ktrxer_real_now_ns(), KTX_SEND_TIME_UNIX);
	assert_int_equal(fake_drain(tx).sent, 1);
	assert_true(first <= tried && tried <= field());
	ktx_close(tx);
}

TEST(each_frame_of_a_train_has_a_time)
{
	struct ktx *tx = fake_open_with(with(KTX_SEND_TIME_UNIX));

	assert_int_equal(fake_commit(tx, 1, 0, KTX_TRAIN_GOES_ON), 0);
	assert_int_equal(fake_commit(tx, 2, 0, 0), 0);
	assert_int_equal(fake_drain(tx).sent, 2);
	assert_int_equal(fake.largest, 2);
	assert_true(field());
	ktx_close(tx);
}

TEST(the_checksum_stays_right)
{
	struct ktrxer_path path = { .source = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } },
				    .to = { .family = AF_INET, .bytes = { 127, 0, 0, 1 } } };
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	struct ktx *tx = fake_open_with(with(KTX_SEND_TIME_NTP));
	struct ktx_probe probe = { .id = 1, .length = LENGTH };
	uint8_t frame[LENGTH];
	struct ktx_slot slot;

	spec.path = &path;
	spec.proto = KTRXER_UDP;
	spec.from_port = 1;
	spec.to_port = 2;
	spec.payload_length = LENGTH - 28;
	spec.link = KTRXER_LINK_RAW_IP;
	assert_int_equal(ktx_reserve(tx, &slot), 0);
	assert_int_equal(ktrxer_frame_build(slot.frame, slot.capacity, &spec), LENGTH);
	assert_int_equal(ktx_commit(tx, &probe, NULL), 0);
	assert_int_equal(fake_drain(tx).sent, 1);
	assert_true(field());
	memcpy(frame, fake.last, LENGTH);
	assert_int_equal(ktrxer_frame_checksum(frame, LENGTH, KTRXER_LINK_RAW_IP), 0);
	assert_memory_equal(frame, fake.last, LENGTH);
	ktx_close(tx);
}

TEST(a_frame_that_ends_before_its_time_is_refused)
{
	struct ktx *tx = fake_open_with(with(KTX_SEND_TIME_NTP));
	struct ktx_probe probe = { .id = 1, .length = AT + 7 };
	struct ktrxer_error err;
	struct ktx_slot slot;

	assert_int_equal(ktx_reserve(tx, &slot), 0);
	assert_int_equal(ktx_commit(tx, &probe, &err), -EMSGSIZE);
	assert_string_equal(err.text, "a frame of 39 bytes ends before its time field, which ends at 40");
	probe.length++;
	assert_int_equal(ktx_commit(tx, &probe, &err), 0);
	ktx_close(tx);
}

/* Engines that cannot write the time: a named one is an error, `auto` takes another one. */
TEST(engines_without_the_feature_are_not_chosen)
{
	struct ktx_options options = with(KTX_SEND_TIME_NTP);
	struct ktrxer_error err;
	struct ktx_info info;
	struct ktx *tx;

	for (int i = 0; i < 3; i++) {
		options.engine = (const char *[]){ "holder", "kernel", "queue" }[i];
		assert_int_equal(ktx_open(&tx, &options, &err), -EOPNOTSUPP);
		assert_non_null(strstr(err.text, "cannot write the send time into frames"));
	}
	options.engine = NULL;
	tx = fake_open_with(options);
	ktx_info(tx, &info);
	assert_string_equal(info.engine, "fake");
	assert_true(info.features & KTX_CAN_SEND_TIME);
	ktx_close(tx);
}

TEST(unknown_formats_and_places_are_refused)
{
	struct ktx_options options = with((enum ktx_send_time)(KTX_SEND_TIME_UNIX + 1));
	struct ktrxer_error err;
	struct ktx *tx;

	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
	options = with(KTX_SEND_TIME_NTP);
	options.send_time_at = UINT32_MAX;
	assert_int_equal(ktx_open(&tx, &options, &err), -EINVAL);
}
