/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Percentiles in fixed memory. Magnitudes up to 2047 have a bucket each; from there every power of two is cut into 512
 * buckets, and a bucket answers with its middle: off by 1/1024 of the value at most. Negative values have a second
 * array.
 *
 * Both arrays are allocated at once (220 KiB): record() runs in the waiter thread, where an allocation would make a
 * probe late, and its failure could not be reported. Pages that are never written never become resident. Counters have
 * 32 bits to keep this small; a wrap goes to a small table of carries.
 */
#include "hist.h"

#include <stdlib.h>

enum {
	LINEAR_BITS = 11, /* exact below 2^11 */
	SUB_BITS = 9,     /* buckets of a power of two above: 2^9 */
	LINEAR = 1 << LINEAR_BITS,
	SUB = 1 << SUB_BITS,
	BUCKETS = LINEAR + (62 - LINEAR_BITS) * SUB + 1, /* the last one is for 2^62 alone */
	/*
	 * Buckets that hold 2^32 values or more: there cannot be more of them than count / 2^32, so this table is
	 * enough for 2.7 * 10^11 values wherever they lie, and for any number in practice.
	 */
	CARRIES = 64,
};

struct carry {
	uint32_t bucket; /* of both arrays, as if they were one */
	uint32_t wraps;
};

struct ktrxer_hist {
	uint64_t count;
	int64_t min, max;
	uint64_t sum_low; /* 128-bit two's complement: exact, whatever comes */
	int64_t sum_high;
	uint32_t carries;
	struct carry carry[CARRIES];
	uint32_t bucket[2][BUCKETS]; /* [0]: 0 and above, [1]: below 0, by magnitude */
};

static inline uint32_t bucket_of(uint64_t magnitude)
{
	uint32_t shift;

	if (magnitude < LINEAR)
		return (uint32_t)magnitude;
	shift = 63 - SUB_BITS - (uint32_t)__builtin_clzll(magnitude);
	/*
	 * magnitude >> shift is in [SUB, 2 * SUB); the first power of two above LINEAR has shift LINEAR_BITS - SUB_BITS
	 */
	return LINEAR + ((shift - (LINEAR_BITS - SUB_BITS)) << SUB_BITS) + (uint32_t)(magnitude >> shift) - SUB;
}

static uint64_t bucket_low(uint32_t bucket)
{
	uint32_t above = bucket - LINEAR;

	if (bucket < LINEAR)
		return bucket;
	return (uint64_t)(SUB + (above & (SUB - 1))) << ((above >> SUB_BITS) + LINEAR_BITS - SUB_BITS);
}

static uint64_t bucket_width(uint32_t bucket)
{
	if (bucket < LINEAR || bucket == BUCKETS - 1)
		return 1;
	return (uint64_t)1 << (((bucket - LINEAR) >> SUB_BITS) + LINEAR_BITS - SUB_BITS);
}

static int64_t bucket_middle(const struct ktrxer_hist *hist, int sign, uint32_t bucket)
{
	int64_t middle = (int64_t)(bucket_low(bucket) + bucket_width(bucket) / 2);

	if (sign)
		middle = -middle;
	/* the ends are known exactly */
	if (middle < hist->min)
		return hist->min;
	return middle > hist->max ? hist->max : middle;
}

static struct carry *carry_find(struct ktrxer_hist *hist, uint32_t bucket)
{
	for (uint32_t i = 0; i < hist->carries; i++)
		if (hist->carry[i].bucket == bucket)
			return &hist->carry[i];
	if (hist->carries == CARRIES)
		return NULL;
	hist->carry[hist->carries] = (struct carry){ .bucket = bucket };
	return &hist->carry[hist->carries++];
}

static uint64_t bucket_count(const struct ktrxer_hist *hist, int sign, uint32_t bucket)
{
	uint32_t number = (uint32_t)sign * BUCKETS + bucket;
	uint64_t count = hist->bucket[sign][bucket];

	for (uint32_t i = 0; i < hist->carries; i++)
		if (hist->carry[i].bucket == number)
			count += (uint64_t)hist->carry[i].wraps << 32;
	return count;
}

static void bucket_set(struct ktrxer_hist *hist, int sign, uint32_t bucket, uint64_t count)
{
	struct carry *carry;

	if (count >> 32 || hist->carries) {
		carry = carry_find(hist, (uint32_t)sign * BUCKETS + bucket);
		if (carry)
			carry->wraps = (uint32_t)(count >> 32);
		else if (count >> 32)
			count = UINT32_MAX; /* no room: see CARRIES */
	}
	hist->bucket[sign][bucket] = (uint32_t)count;
	/* an entry that is no longer needed makes room; only the last one can have been added just now */
	if (hist->carries && !hist->carry[hist->carries - 1].wraps)
		hist->carries--;
}

static __attribute__((noinline, cold)) void bucket_wrapped(struct ktrxer_hist *hist, int sign, uint32_t bucket)
{
	struct carry *carry = carry_find(hist, (uint32_t)sign * BUCKETS + bucket);

	if (carry)
		carry->wraps++;
	else
		hist->bucket[sign][bucket] = UINT32_MAX;
}

static void ends_reset(struct ktrxer_hist *hist)
{
	hist->min = INT64_MAX;
	hist->max = INT64_MIN;
}

struct ktrxer_hist *ktrxer_hist_new(void)
{
	struct ktrxer_hist *hist = calloc(1, sizeof(*hist));

	if (hist)
		ends_reset(hist);
	return hist;
}

void ktrxer_hist_free(struct ktrxer_hist *hist)
{
	free(hist);
}

void ktrxer_hist_record(struct ktrxer_hist *hist, int64_t value)
{
	uint32_t bucket;
	int sign;

	if (!hist)
		return;
	if (value > KTRXER_HIST_LIMIT)
		value = KTRXER_HIST_LIMIT;
	else if (value < -KTRXER_HIST_LIMIT)
		value = -KTRXER_HIST_LIMIT;
	sign = value < 0;
	bucket = bucket_of(sign ? (uint64_t)-value : (uint64_t)value);
	if (__builtin_expect(++hist->bucket[sign][bucket] == 0, 0))
		bucket_wrapped(hist, sign, bucket);
	hist->count++;
	hist->sum_low += (uint64_t)value;
	hist->sum_high += (hist->sum_low < (uint64_t)value) - sign;
	if (value < hist->min)
		hist->min = value;
	if (value > hist->max)
		hist->max = value;
}

/* The used part of both arrays, as [from, to) of magnitudes; empty where there is none. */
static void used(const struct ktrxer_hist *hist, uint32_t from[2], uint32_t to[2])
{
	from[0] = from[1] = to[0] = to[1] = 0;
	if (!hist->count)
		return;
	if (hist->max >= 0) {
		from[0] = hist->min > 0 ? bucket_of((uint64_t)hist->min) : 0;
		to[0] = bucket_of((uint64_t)hist->max) + 1;
	}
	if (hist->min < 0) {
		from[1] = hist->max < 0 ? bucket_of((uint64_t)-hist->max) : 0;
		to[1] = bucket_of((uint64_t)-hist->min) + 1;
	}
}

void ktrxer_hist_merge(struct ktrxer_hist *into, const struct ktrxer_hist *from)
{
	uint64_t low;
	uint32_t begin[2], end[2];

	if (!into || !from)
		return;
	low = into->sum_low;
	used(from, begin, end);
	for (int sign = 0; sign < 2; sign++)
		for (uint32_t i = begin[sign]; i < end[sign]; i++)
			if (from->bucket[sign][i] || from->carries)
				bucket_set(into, sign, i, bucket_count(into, sign, i) + bucket_count(from, sign, i));
	if (from->min < into->min)
		into->min = from->min;
	if (from->max > into->max)
		into->max = from->max;
	into->count += from->count;
	into->sum_low += from->sum_low; /* may be the same histogram: `low` was kept */
	into->sum_high += from->sum_high + (into->sum_low < low);
}

uint64_t ktrxer_hist_count(const struct ktrxer_hist *hist)
{
	return hist ? hist->count : 0;
}

int64_t ktrxer_hist_at(const struct ktrxer_hist *hist, uint64_t rank)
{
	uint32_t begin[2], end[2];
	uint64_t seen = 0;

	if (!hist || !hist->count)
		return 0;
	if (rank <= 1)
		return hist->min;
	used(hist, begin, end);
	for (uint32_t i = end[1]; i-- > begin[1];) {
		seen += bucket_count(hist, 1, i);
		if (seen >= rank)
			return bucket_middle(hist, 1, i);
	}
	for (uint32_t i = begin[0]; i < end[0]; i++) {
		seen += bucket_count(hist, 0, i);
		if (seen >= rank)
			return bucket_middle(hist, 0, i);
	}
	return hist->max;
}

int64_t ktrxer_hist_quantile(const struct ktrxer_hist *hist, uint32_t ppm)
{
	const uint32_t million = 1000000;

	if (!hist || !hist->count)
		return 0;
	if (ppm >= million)
		return hist->max;
	/* ceil(count * ppm / 10^6) in parts, for the product may not fit */
	return ktrxer_hist_at(hist,
			      hist->count / million * ppm + (hist->count % million * ppm + million - 1) / million);
}

int64_t ktrxer_hist_iqr(const struct ktrxer_hist *hist)
{
	return ktrxer_hist_quantile(hist, 750000) - ktrxer_hist_quantile(hist, 250000);
}

int64_t ktrxer_hist_min(const struct ktrxer_hist *hist)
{
	return hist && hist->count ? hist->min : 0;
}

int64_t ktrxer_hist_max(const struct ktrxer_hist *hist)
{
	return hist && hist->count ? hist->max : 0;
}

double ktrxer_hist_mean(const struct ktrxer_hist *hist)
{
	uint64_t low, high;
	bool negative;
	double sum;

	if (!hist || !hist->count)
		return 0;
	low = hist->sum_low;
	high = (uint64_t)hist->sum_high;
	negative = hist->sum_high < 0;
	if (negative) { /* by magnitude: -1 is not 2^64 less than a number that a double would round to 2^64 */
		low = -low;
		high = ~high + !low;
	}
	sum = (double)high * 18446744073709551616.0 + (double)low;
	return (negative ? -sum : sum) / (double)hist->count;
}
