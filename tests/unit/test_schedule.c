/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "draw_here.h"
#include "poisson.h"
#include "wide.h"

#include <ktrxer.h>

#include <errno.h>
#include <string.h>

/* Numbers of all sizes, and the awkward ones. */
static uint64_t draw_wild(void)
{
	switch (draw() % 4) {
	case 0:
		return UINT64_MAX - draw() % 3;
	case 1:
		return ((uint64_t)1 << draw() % 64) - draw() % 2;
	default:
		return draw() >> draw() % 64;
	}
}

static struct ktrxer_schedule *make(const struct ktrxer_schedule_options *options)
{
	struct ktrxer_error err = { 0 };
	struct ktrxer_schedule *schedule;
	int ret = ktrxer_schedule_new(&schedule, options, &err);

	if (ret)
		print_error("%s\n", err.text);
	assert_int_equal(ret, 0);
	assert_non_null(schedule);
	return schedule;
}

static void refused(const struct ktrxer_schedule_options *options, int code, const char *word)
{
	struct ktrxer_schedule *schedule = (void *)1;
	struct ktrxer_error err = { 0 };

	assert_int_equal(ktrxer_schedule_new(&schedule, options, &err), code);
	assert_null(schedule);
	assert_int_equal(err.code, code);
	if (!strstr(err.text, word))
		fail_msg("'%s' does not say '%s'", err.text, word);
	assert_int_equal(ktrxer_schedule_new(&schedule, options, NULL), code);
}

static struct ktrxer_deadline next(struct ktrxer_schedule *schedule)
{
	struct ktrxer_deadline deadline;

	assert_int_equal(ktrxer_schedule_next(schedule, &deadline), 0);
	return deadline;
}

TEST(wide_arithmetic)
{
	for (int i = 0; i < 200000; i++) {
		uint64_t a = draw_wild(), b = draw_wild(), by = draw_wild(), rest, other_rest;
		struct wide x = wide_multiply(a, b), y = wide_multiply_portable(a, b), back;

		assert_true(x.high == y.high && x.low == y.low);
		x.low = draw_wild();
		by = by ? by : 1;
		x.high %= by;
		assert_true(wide_divide(x, by, &rest) == wide_divide_portable(x, by, &other_rest));
		assert_true(rest == other_rest && rest < by);
		back = wide_add(wide_multiply_portable(wide_divide_portable(x, by, &rest), by), rest);
		assert_true(back.high == x.high && back.low == x.low);
	}
}

TEST(periodic_is_exact_after_ten_million)
{
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_deadline d = { 0 };
	struct ktrxer_schedule *s;

	o.kind = KTRXER_SCHEDULE_PERIODIC;
	o.start_ns = 123456789;
	o.gap_num = 1000000000;
	o.gap_den = 36000;
	s = make(&o);
	for (int i = 0; i < 10000000; i++)
		d = next(s);
	assert_true(d.index == 9999999);
	assert_true(d.at_ns == 123456789 + UINT64_C(277777750000)); /* floor(9999999 * 10^9 / 36000) */
	d = next(s);
	assert_true(d.at_ns == 123456789 + UINT64_C(277777777777)); /* 10^7 / 36000 s = 277.777... s */
	ktrxer_schedule_free(s);
}

TEST(other_rates)
{
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_deadline d = { 0 };
	struct ktrxer_schedule *s;

	o.kind = KTRXER_SCHEDULE_PERIODIC;
	o.gap_num = 3000000000; /* 1/3 pps */
	s = make(&o);
	for (int i = 0; i <= 1000; i++)
		d = next(s);
	assert_true(d.at_ns == 3000 * UINT64_C(1000000000));
	ktrxer_schedule_free(s);

	o.gap_num = 1; /* 10^9 pps */
	s = make(&o);
	for (int i = 0; i <= 1000; i++)
		d = next(s);
	assert_true(d.at_ns == 1000 && !d.train_goes_on);
	ktrxer_schedule_free(s);

	o.gap_num = 1; /* 3 * 10^9 pps: several in a nanosecond */
	o.gap_den = 3;
	s = make(&o);
	for (int i = 0; i <= 1000; i++)
		d = next(s);
	assert_true(d.at_ns == 333);
	ktrxer_schedule_free(s);

	o.gap_num = UINT64_C(1001000000000); /* 30000/1001 a second */
	o.gap_den = 30000;
	s = make(&o);
	for (int i = 0; i <= 30000; i++)
		d = next(s);
	assert_true(d.at_ns == UINT64_C(1001000000000));
	ktrxer_schedule_free(s);
}

/* Any parameters: never decreasing, and each deadline is floor(i * num / den), computed anew by wide arithmetic. */
TEST(periodic_property)
{
	for (int round = 0; round < 3000; round++) {
		struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
		struct ktrxer_deadline d;
		struct ktrxer_schedule *s;
		uint64_t last = 0;
		int ret;

		o.kind = KTRXER_SCHEDULE_PERIODIC;
		o.start_ns = draw() >> (1 + draw() % 63);
		o.gap_num = draw_wild();
		o.gap_den = draw_wild();
		o.gap_num += !o.gap_num;
		o.gap_den += !o.gap_den;
		o.train = draw() % 3 ? 1 : 1 + (uint32_t)(draw() % 5);
		if (o.train > 1)
			o.train_gap_ns = draw() % (o.gap_num / o.gap_den / o.train + 1);
		s = make(&o);
		for (uint64_t i = 0; i < 200; i++) {
			struct wide product = wide_multiply_portable(i / o.train, o.gap_num);
			uint64_t want = 0, rest;
			bool over = product.high >= o.gap_den;

			if (!over)
				want = wide_divide_portable(product, o.gap_den, &rest);
			over = over || __builtin_add_overflow(want, o.start_ns, &want) ||
			       __builtin_add_overflow(want, i % o.train * o.train_gap_ns, &want) || want == UINT64_MAX;
			ret = ktrxer_schedule_next(s, &d);
			assert_int_equal(ret, over ? -EOVERFLOW : 0);
			if (over) {
				assert_int_equal(ktrxer_schedule_next(s, &d), -EOVERFLOW); /* from now on */
				break;
			}
			assert_true(d.at_ns == want && d.at_ns >= last && d.index == i);
			assert_true(d.train_goes_on == (o.train_gap_ns == 0 && i % o.train != o.train - 1));
			last = d.at_ns;
		}
		ktrxer_schedule_free(s);
	}
}

/*
 * The same for Poisson: floor(S * num / den) in 2^-32 ns, S summed here, where the numbers are small enough to check by
 * hand.
 */
TEST(poisson_property)
{
	for (int round = 0; round < 300; round++) {
		struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
		struct ktrxer_deadline d;
		struct ktrxer_schedule *s;
		struct poisson poisson;
		uint64_t sum = 0, begin = 0, last = 0, rest, want;
		int ret;

		o.kind = KTRXER_SCHEDULE_POISSON;
		o.start_ns = draw() >> 20;
		o.gap_den = 1 + draw() % 1000000;
		o.gap_num = 1 + draw() % (o.gap_den * 1000000);
		o.train = 1 + (uint32_t)(draw() % 3);
		o.train_gap_ns = draw() % 2 ? draw() % 2000000 : 0;
		for (int i = 0; i < 16; i++)
			o.seed[i] = (uint8_t)draw();
		ktrxer_poisson_init(&poisson, o.seed);
		s = make(&o);
		for (uint64_t i = 0; i < 2000; i++) {
			ret = ktrxer_schedule_next(s, &d);
			assert_int_equal(ret, 0);
			if (i % o.train == 0) {
				sum += ktrxer_poisson_next(&poisson);
				/* floor(floor(x / den) / 2^32) == floor(x / den / 2^32) */
				want = wide_divide_portable(wide_multiply_portable(sum, o.gap_num), o.gap_den, &rest) >>
				       32;
				begin = o.start_ns + want;
				begin = begin < last ? last : begin;
			}
			assert_true(d.at_ns == begin + i % o.train * o.train_gap_ns && d.at_ns >= last && d.index == i);
			assert_true(d.train_goes_on == (o.train_gap_ns == 0 && i % o.train != o.train - 1));
			last = d.at_ns;
		}
		ktrxer_schedule_free(s);
	}
}

TEST(poisson_vector_and_mean)
{
	static const uint8_t sid[16] = { 0x28, 0x72, 0x97, 0x93, 0x03, 0xab, 0x47, 0xee,
					 0xac, 0x02, 0x8d, 0xab, 0x38, 0x29, 0xda, 0xb2 };
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_deadline d = { 0 };
	struct ktrxer_schedule *s;
	struct wide sum;

	o.kind = KTRXER_SCHEDULE_POISSON;
	memcpy(o.seed, sid, 16);
	o.gap_num = (uint64_t)1 << 32; /* then a deadline is the sum of deviates itself */
	s = make(&o);
	assert_true(next(s).at_ns == 0x6d27e540);
	for (int i = 1; i < 1000000; i++)
		d = next(s);
	assert_true(d.at_ns == UINT64_C(0x000f4479bd317381));
	ktrxer_schedule_free(s);

	o.gap_num = 10000000; /* 100 pps, a million of them: within 0.1 % of 10^4 s by the published sum */
	s = make(&o);
	for (int i = 0; i < 1000000; i++)
		d = next(s);
	sum = wide_multiply_portable(UINT64_C(0x000f4479bd317381), 10000000);
	assert_true(d.at_ns == (sum.high << 32 | sum.low >> 32));
	assert_true(d.at_ns > UINT64_C(9990000000000) && d.at_ns < UINT64_C(10010000000000));
	ktrxer_schedule_free(s);
}

TEST(poisson_overflows)
{
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_deadline d;
	struct ktrxer_schedule *s;
	int i = 0, ret;

	o.kind = KTRXER_SCHEDULE_POISSON;
	o.gap_num = UINT64_MAX / 50;
	s = make(&o);
	while ((ret = ktrxer_schedule_next(s, &d)) == 0)
		assert_true(++i < 200);
	assert_int_equal(ret, -EOVERFLOW);
	assert_true(i > 20);
	ktrxer_schedule_free(s);

	o.gap_num = UINT64_MAX;
	for (int k = 0; k < 200; k++) { /* the largest gap with large deviates and small ones */
		o.seed[3] = (uint8_t)k;
		s = make(&o);
		for (i = 0; (ret = ktrxer_schedule_next(s, &d)) == 0; i++)
			assert_true(i < 30);
		assert_int_equal(ret, -EOVERFLOW);
		ktrxer_schedule_free(s);
	}
}

TEST(lists)
{
	static const uint64_t at[] = { 0, 5, 5, 100, UINT64_MAX };
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_deadline d;
	struct ktrxer_schedule *s;

	o.kind = KTRXER_SCHEDULE_LIST;
	o.start_ns = 1000;
	o.offsets_ns = at;
	o.offsets = 4;
	s = make(&o);
	for (int i = 0; i < 4; i++) {
		d = next(s);
		assert_true(d.at_ns == 1000 + at[i] && d.index == (uint64_t)i && !d.train_goes_on);
	}
	assert_int_equal(ktrxer_schedule_next(s, &d), -ENODATA);
	assert_int_equal(ktrxer_schedule_next(s, &d), -ENODATA);
	ktrxer_schedule_free(s);

	o.train = 2; /* back to back: fits anywhere */
	s = make(&o);
	for (int i = 0; i < 8; i++) {
		d = next(s);
		assert_true(d.at_ns == 1000 + at[i / 2] && d.train_goes_on == (i % 2 == 0));
	}
	assert_int_equal(ktrxer_schedule_next(s, &d), -ENODATA);
	ktrxer_schedule_free(s);

	o.train = 1;
	o.offsets = 5;
	s = make(&o);
	for (int i = 0; i < 4; i++)
		next(s);
	assert_int_equal(ktrxer_schedule_next(s, &d), -EOVERFLOW);
	ktrxer_schedule_free(s);
}

TEST(refuses_nonsense)
{
	static const uint64_t wrong[] = { 3, 7, 6 }, near[] = { 0, 10, 19 };
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT, p;
	struct {
		struct ktrxer_schedule_options o;
		uint64_t more;
	} newer = { KTRXER_SCHEDULE_OPTIONS_INIT, 0 };
	struct ktrxer_schedule *s;

	o.gap_num = 1000;
	refused(&o, -EINVAL, "kind 0");
	o.kind = (enum ktrxer_schedule_kind)9;
	refused(&o, -EINVAL, "kind 9");
	o.kind = KTRXER_SCHEDULE_PERIODIC;
	p = o, p.gap_num = 0;
	refused(&p, -EINVAL, "above zero");
	p = o, p.gap_den = 0;
	refused(&p, -EINVAL, "above zero");
	p = o, p.kind = KTRXER_SCHEDULE_POISSON, p.gap_num = 0;
	refused(&p, -EINVAL, "above zero");
	p = o, p.train = (1 << 20) + 1;
	refused(&p, -EINVAL, "train");
	p = o, p.train = 3, p.train_gap_ns = 501;
	refused(&p, -EINVAL, "a train lasts 1002 ns");
	p = o, p.train = 3, p.train_gap_ns = UINT64_MAX / 2 + 1;
	refused(&p, -EINVAL, "centuries");
	p = o, p.size = 8;
	refused(&p, -EINVAL, "size");
	p = o, p.size = 0;
	refused(&p, -EINVAL, "size");

	p = o, p.kind = KTRXER_SCHEDULE_LIST;
	refused(&p, -EINVAL, "no offsets");
	p.offsets = 3;
	refused(&p, -EINVAL, "no offsets");
	p.offsets_ns = wrong;
	refused(&p, -EINVAL, "offset 3");
	p.offsets_ns = near, p.train = 2, p.train_gap_ns = 10;
	refused(&p, -EINVAL, "only 9 ns");
	p.offsets = 2;
	ktrxer_schedule_free(make(&p));

	p = o, p.train = 3, p.train_gap_ns = 500; /* exactly to the next one */
	s = make(&p);
	for (uint64_t i = 0; i < 9; i++)
		assert_true(next(s).at_ns == i / 3 * 1000 + i % 3 * 500);
	ktrxer_schedule_free(s);

	newer.o.kind = KTRXER_SCHEDULE_PERIODIC;
	newer.o.gap_num = 5;
	newer.o.size = sizeof(newer);
	ktrxer_schedule_free(make(&newer.o));
	newer.more = 1;
	refused(&newer.o, -E2BIG, "newer");
	ktrxer_schedule_free(NULL);
}
