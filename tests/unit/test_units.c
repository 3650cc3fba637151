/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct u64_case {
	const char *text;
	int ret;
	uint64_t value;
};

typedef int (*u64_parser)(uint64_t *value, const char *text, struct ktrxer_error *err);

static void check(u64_parser parse, const struct u64_case *cases)
{
	for (const struct u64_case *c = cases; c->text; c++) {
		uint64_t value = 0xdeadbeef;
		struct ktrxer_error err = { 0 };
		int ret = parse(&value, c->text, &err);

		if (ret != c->ret || value != (ret ? 0xdeadbeef : c->value))
			fail_msg("'%s': %d and %llu, should be %d and %llu (%s)", c->text, ret,
				 (unsigned long long)value, c->ret, (unsigned long long)c->value, err.text);
		if (ret && (err.code != ret || !strstr(err.text, "is ")))
			fail_msg("'%s': says '%s'", c->text, err.text);
		assert_int_equal(parse(&value, c->text, NULL), ret);
	}
}

TEST(numbers)
{
	static const struct u64_case cases[] = {
		{ "0", 0, 0 },
		{ "10", 0, 10 },
		{ "010", 0, 10 },
		{ "0x10", 0, 16 },
		{ "0XfF", 0, 255 },
		{ "10k", 0, 10000 },
		{ "10 k", 0, 10000 },
		{ "1.5M", 0, 1500000 },
		{ "2G", 0, 2000000000 },
		{ "2.0", 0, 2 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "000000000000000000000000000000018446744073709551615", 0, UINT64_MAX },
		{ "18446744073709551616", -ERANGE },
		{ "18446744073709551620", -ERANGE },
		{ "99999999999999999999999999", -ERANGE },
		{ "18446744073709551.615k", 0, UINT64_MAX },
		{ "18446744073709551.616k", -EINVAL }, /* its digits alone pass 64 bits */
		{ "18446744074G", -ERANGE },
		{ "18446744073G", 0, 18446744073000000000u },
		{ "0xffffffffffffffff", 0, UINT64_MAX },
		{ "0x0ffffffffffffffff", 0, UINT64_MAX },
		{ "0x10000000000000000", -ERANGE },
		{ "1.5", -EINVAL },
		{ "0.0001k", -EINVAL },
		{ "", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 ", -EINVAL },
		{ "1  k", -EINVAL },
		{ "-1", -EINVAL },
		{ "+1", -EINVAL },
		{ "--1", -EINVAL },
		{ "1e3", -EINVAL },
		{ "1E3", -EINVAL },
		{ "0x", -EINVAL },
		{ "0x1g", -EINVAL },
		{ "0x-1", -EINVAL },
		{ "1.", -EINVAL },
		{ ".5k", -EINVAL },
		{ "1..2", -EINVAL },
		{ "1.2.3", -EINVAL },
		{ "1,5", -EINVAL },
		{ "1'000", -EINVAL },
		{ "1_000", -EINVAL },
		{ "1K", -EINVAL },
		{ "1m", -EINVAL },
		{ "1kk", -EINVAL },
		{ "1Ki", -EINVAL },
		{ "nan", -EINVAL },
		{ "inf", -EINVAL },
		{ "k", -EINVAL },
		{ "1\n", -EINVAL },
		{ "\xef\xbc\x91", -EINVAL }, /* a full-width 1 */
		{ NULL },
	};

	check(ktrxer_parse_u64, cases);
}

TEST(signed_numbers)
{
	int64_t value = 7;

	assert_int_equal(ktrxer_parse_i64(&value, "-9223372036854775808", NULL), 0);
	assert_true(value == INT64_MIN);
	assert_int_equal(ktrxer_parse_i64(&value, "9223372036854775807", NULL), 0);
	assert_true(value == INT64_MAX);
	assert_int_equal(ktrxer_parse_i64(&value, "-0x10", NULL), 0);
	assert_true(value == -16);
	assert_int_equal(ktrxer_parse_i64(&value, "-1.5k", NULL), 0);
	assert_true(value == -1500);
	assert_int_equal(ktrxer_parse_i64(&value, "9223372036854775808", NULL), -ERANGE);
	assert_int_equal(ktrxer_parse_i64(&value, "-9223372036854775809", NULL), -ERANGE);
	assert_int_equal(ktrxer_parse_i64(&value, "-", NULL), -EINVAL);
	assert_int_equal(ktrxer_parse_i64(&value, "--1", NULL), -EINVAL);
	assert_int_equal(ktrxer_parse_i64(&value, "- 1", NULL), -EINVAL);
	assert_true(value == -1500);
}

TEST(durations)
{
	static const struct u64_case cases[] = {
		{ "10ms", 0, 10000000 },
		{ "10 ms", 0, 10000000 },
		{ "1.5s", 0, 1500000000 },
		{ "250us", 0, 250000 },
		{ "250\xc2\xb5s", 0, 250000 },
		{ "250\xce\xbcs", 0, 250000 },
		{ "2m", 0, 120000000000 },
		{ "2min", 0, 120000000000 },
		{ "1h", 0, 3600000000000 },
		{ "0.5d", 0, 43200000000000 },
		{ "3", 0, 3000000000 },
		{ "0.001", 0, 1000000 },
		{ "0", 0, 0 },
		{ "0.000000001", 0, 1 },
		{ "0.000000001000000000000000000000000000000", 0, 1 },
		{ "1ns", 0, 1 },
		{ "1.0ns", 0, 1 },
		{ "18446744073709551615ns", 0, UINT64_MAX },
		{ "18446744073.709551615", 0, UINT64_MAX },
		{ "18446744073709551616ns", -ERANGE },
		{ "18446744074s", -ERANGE },
		{ "213504d", -ERANGE },
		{ "213503d", 0, 213503ull * 86400 * 1000000000 },
		{ "1.5ns", -EINVAL },
		{ "0.0000000001", -EINVAL },
		{ "0.00000000000000000000000000001", -EINVAL },
		{ "10MS", -EINVAL },
		{ "10M", -EINVAL },
		{ "1m30s", -EINVAL },
		{ "1e-3", -EINVAL },
		{ "-1s", -EINVAL },
		{ "10 ", -EINVAL },
		{ "ms", -EINVAL },
		{ "1 0ms", -EINVAL },
		{ "10ms ", -EINVAL },
		{ "10mss", -EINVAL },
		{ NULL },
	};

	check(ktrxer_parse_duration, cases);
}

TEST(bit_rates)
{
	static const struct u64_case cases[] = {
		{ "10M", 0, 10000000 },
		{ "1G", 0, 1000000000 },
		{ "9.5Mbit", 0, 9500000 },
		{ "1Gbit/s", 0, 1000000000 },
		{ "1 Gbit/s", 0, 1000000000 },
		{ "64kbps", 0, 64000 },
		{ "500", 0, 500 },
		{ "500bit/s", 0, 500 },
		{ "0.5k", 0, 500 },
		{ "400Gb/s", 0, 400000000000 },
		{ "1T", 0, 1000000000000 },
		{ "18446744073709551615", 0, UINT64_MAX },
		{ "18446745T", -ERANGE },
		{ "10m", -EINVAL },
		{ "10K", -EINVAL },
		{ "10MB", -EINVAL },
		{ "10Mi", -EINVAL },
		{ "10MB/s", -EINVAL },
		{ "0.5", -EINVAL },
		{ "10bitbit", -EINVAL },
		{ NULL },
	};

	check(ktrxer_parse_bitrate, cases);
}

TEST(sizes)
{
	static const struct u64_case cases[] = {
		{ "64", 0, 64 },
		{ "64B", 0, 64 },
		{ "64k", 0, 64000 },
		{ "64kB", 0, 64000 },
		{ "64Ki", 0, 65536 },
		{ "64KiB", 0, 65536 },
		{ "64 MiB", 0, 64 << 20 },
		{ "1.5Ki", 0, 1536 },
		{ "0.0009765625Ki", 0, 1 },
		{ "16777215Ti", 0, 16777215ull << 40 },
		{ "16777216Ti", -ERANGE },
		{ "64K", -EINVAL },
		{ "64KB", -EINVAL },
		{ "64kiB", -EINVAL },
		{ "64m", -EINVAL },
		{ "0.5", -EINVAL },
		{ "1.0001Ki", -EINVAL },
		{ "0x40", -EINVAL },
		{ NULL },
	};

	check(ktrxer_parse_size, cases);
}

TEST(rates)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t num, den;
	} cases[] = {
		{ "36k", 0, 36000, 1 },
		{ "36kpps", 0, 36000, 1 },
		{ "36 kpps", 0, 36000, 1 },
		{ "100/s", 0, 100, 1 },
		{ "6000/m", 0, 100, 1 },
		{ "100/m", 0, 5, 3 },
		{ "1/h", 0, 1, 3600 },
		{ "0.5", 0, 1, 2 },
		{ "0.3", 0, 3, 10 },
		{ "33.333333", 0, 33333333, 1000000 },
		{ "1.5k/min", 0, 25, 1 },
		{ "1G", 0, 1000000000, 1 },
		{ "1000000000.0", 0, 1000000000, 1 },
		{ "1000000001", -ERANGE },
		{ "1000000000.1", -ERANGE },
		{ "60G/m", 0, 1000000000, 1 },
		{ "61G/m", -ERANGE },
		{ "18446744073709551615", -ERANGE },
		{ "18446744073709551616", -ERANGE },
		{ "0.0000000001", 0, 1, 10000000000 },
		{ "0.0000000001/h", -ERANGE },
		{ "0.0000000000000000001", -ERANGE },
		{ "0", -EINVAL },
		{ "0k", -EINVAL },
		{ "0.000", -EINVAL },
		{ "0/s", -EINVAL },
		{ "-1", -EINVAL },
		{ "", -EINVAL },
		{ "/s", -EINVAL },
		{ "1/", -EINVAL },
		{ "1/d", -EINVAL },
		{ "1/s/s", -EINVAL },
		{ "1 /s", -EINVAL },
		{ "1pps/s", -EINVAL },
		{ "10ms", -EINVAL },
		{ "1e3", -EINVAL },
		{ "10K", -EINVAL },
		{ "nan", -EINVAL },
		{ "00000000000000000000000000000000000000000000000000000000000000000001", -EINVAL },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t num = 7, den = 7;
		struct ktrxer_error err = { 0 };
		int ret = ktrxer_parse_rate(&num, &den, cases[i].text, &err);

		if (ret != cases[i].ret || num != (ret ? 7 : cases[i].num) || den != (ret ? 7 : cases[i].den))
			fail_msg("'%s': %d, %llu/%llu (%s)", cases[i].text, ret, (unsigned long long)num,
				 (unsigned long long)den, err.text);
		if (ret && (err.code != ret || !err.text[0]))
			fail_msg("'%s': says nothing", cases[i].text);
	}
}

TEST(gaps)
{
	uint64_t num, den;

	assert_int_equal(ktrxer_rate_gap(36000, 1, &num, &den), 0);
	assert_true(num == 250000 && den == 9);
	assert_int_equal(ktrxer_rate_gap(2, 4, &num, &den), 0);
	assert_true(num == 2000000000 && den == 1);
	assert_int_equal(ktrxer_rate_gap(UINT64_MAX, UINT64_MAX, &num, &den), 0);
	assert_true(num == 1000000000 && den == 1);
	assert_int_equal(ktrxer_rate_gap(1, UINT64_MAX, &num, &den), -ERANGE);
	assert_int_equal(ktrxer_rate_gap(0, 1, &num, &den), -ERANGE);
	assert_int_equal(ktrxer_rate_gap(1, 0, &num, &den), -ERANGE);
}

TEST(ranges)
{
	static const struct {
		const char *text;
		int ret;
		uint64_t from, to, step;
	} cases[] = {
		{ "28..1428/50", 0, 28, 1428, 50 },
		{ "28..1428", 0, 28, 1428, 1 },
		{ "64", 0, 64, 64, 1 },
		{ "64..64", 0, 64, 64, 1 },
		{ "0..18446744073709551615/18446744073709551615", 0, 0, UINT64_MAX, UINT64_MAX },
		{ "1k..2k/100", 0, 1000, 2000, 100 },
		{ "1.5k..2Ki", 0, 1500, 2048, 1 },
		{ "0..1/5", 0, 0, 1, 5 },
		{ "2..1", -EINVAL },
		{ "1..2/0", -EINVAL },
		{ "1..2/", -EINVAL },
		{ "..2", -EINVAL },
		{ "1..", -EINVAL },
		{ "..", -EINVAL },
		{ "", -EINVAL },
		{ "1/2", -EINVAL },
		{ "1/2..3", -EINVAL },
		{ "1..2..3", -EINVAL },
		{ "1...2", -EINVAL },
		{ "1..2/3/4", -EINVAL },
		{ "1-2", -EINVAL },
		{ "-1..2", -EINVAL },
		{ "1.. 2", -EINVAL },
		{ "1..18446744073709551616", -ERANGE },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t from = 7, to = 7, step = 7;
		struct ktrxer_error err = { 0 };
		int ret = ktrxer_parse_range(&from, &to, &step, cases[i].text, &err);

		if (ret != cases[i].ret ||
		    (!ret && (from != cases[i].from || to != cases[i].to || step != cases[i].step)) ||
		    (ret && (from != 7 || to != 7 || step != 7)))
			fail_msg("'%s': %d, %llu..%llu/%llu (%s)", cases[i].text, ret, (unsigned long long)from,
				 (unsigned long long)to, (unsigned long long)step, err.text);
	}
}

TEST(messages)
{
	struct ktrxer_error err;
	uint64_t value;
	char text[400];

	ktrxer_parse_duration(&value, "10x", &err);
	assert_string_equal(err.text,
			    "'10x' is not a duration: unknown unit 'x'; write for example 10ms, 1.5s, 250us, 2m or 1h");
	ktrxer_parse_size(&value, "64K", &err);
	assert_string_equal(err.text,
			    "'64K' is not a size: unknown unit 'K' (k is 1000, Ki is 1024); write for example 64, "
			    "64k (1000) or 64Ki (1024)");
	ktrxer_parse_u64(&value, "-1", &err);
	assert_non_null(strstr(err.text, "it is negative"));
	/* A typed value may have any length; the remedy must stay in the line. */
	memset(text, '9', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	text[0] = 'x';
	ktrxer_parse_duration(&value, text, &err);
	assert_non_null(strstr(err.text, "write for example 10ms"));
	text[0] = '9';
	assert_int_equal(ktrxer_parse_duration(&value, text, &err), -ERANGE);
	assert_non_null(strstr(err.text, "64 bits"));
}

TEST(formats)
{
	char text[KTRXER_UNITS_TEXT];

	assert_string_equal(ktrxer_format_ns(text, 0), "0 ns");
	assert_string_equal(ktrxer_format_ns(text, 999), "999 ns");
	assert_string_equal(ktrxer_format_ns(text, 1000), "1.000 us");
	assert_string_equal(ktrxer_format_ns(text, 1234567), "1.235 ms");
	assert_string_equal(ktrxer_format_ns(text, 999999), "999.999 us");
	assert_string_equal(ktrxer_format_ns(text, 999999499), "999.999 ms");
	assert_string_equal(ktrxer_format_ns(text, 999999500), "1.000 s");
	assert_string_equal(ktrxer_format_ns(text, -2500), "-2.500 us");
	assert_string_equal(ktrxer_format_ns(text, 83000000000), "83.000 s");
	assert_string_equal(ktrxer_format_ns(text, INT64_MIN), "-9223372036.855 s");
	assert_string_equal(ktrxer_format_ns(text, INT64_MAX), "9223372036.855 s");
	assert_string_equal(ktrxer_format_duration(text, 0), "0s");
	assert_string_equal(ktrxer_format_duration(text, 10000000), "10ms");
	assert_string_equal(ktrxer_format_duration(text, 1500000), "1500us");
	assert_string_equal(ktrxer_format_duration(text, UINT64_MAX), "18446744073709551615ns");
	assert_string_equal(ktrxer_format_bitrate(text, 9500000), "9.500 Mbit/s");
	assert_string_equal(ktrxer_format_bitrate(text, 999), "999 bit/s");
	assert_string_equal(ktrxer_format_bitrate(text, UINT64_MAX), "18446744.074 Tbit/s");
	assert_string_equal(ktrxer_format_size(text, 512), "512 B");
	assert_string_equal(ktrxer_format_size(text, 1536), "1.500 KiB");
	assert_string_equal(ktrxer_format_size(text, 1048575), "1023.999 KiB");
	assert_string_equal(ktrxer_format_size(text, (1 << 30) - 1), "1.000 GiB");
	assert_string_equal(ktrxer_format_size(text, UINT64_MAX), "16777216.000 TiB");
}

/* Whatever is written for people can be typed again: exactly where the format is exact, else within half a thousandth.
 */
TEST(round_trips)
{
	char text[KTRXER_UNITS_TEXT];
	uint64_t back, x = 1;

	for (int i = 0; i < 200000; i++) {
		uint64_t value, error;

		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		value = x >> (x & 63);
		ktrxer_format_duration(text, value);
		assert_int_equal(ktrxer_parse_duration(&back, text, NULL), 0);
		assert_true(back == value);
		value &= INT64_MAX;
		ktrxer_format_ns(text, (int64_t)value);
		assert_int_equal(ktrxer_parse_duration(&back, text, NULL), 0);
		error = back > value ? back - value : value - back;
		assert_true(value < 1000 ? !error : error <= value / 1999);
		ktrxer_format_bitrate(text, value);
		assert_int_equal(ktrxer_parse_bitrate(&back, text, NULL), 0);
		error = back > value ? back - value : value - back;
		assert_true(value < 1000 ? !error : error <= value / 1999);
	}
}
