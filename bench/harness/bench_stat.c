/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_stat.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 64 };

void bench_pool_add(struct bench_pool *pool, int64_t value)
{
	if (pool->count == pool->room) {
		size_t room = pool->room ? pool->room * 2 : FIRST_ROOM;
		int64_t *values = room > pool->room && room <= SIZE_MAX / sizeof *values ? realloc(pool->values, room * sizeof *values) : NULL;

		if (!values) {
			pool->failed = true;
			return;
		}
		pool->values = values;
		pool->room = room;
	}
	pool->values[pool->count++] = value;
	pool->sorted = false;
}

void bench_pool_join(struct bench_pool *into, const struct bench_pool *from)
{
	for (size_t i = 0; i < from->count; i++)
		bench_pool_add(into, from->values[i]);
	into->failed |= from->failed;
}

void bench_pool_clear(struct bench_pool *pool)
{
	pool->count = 0;
	pool->sorted = false;
}

void bench_pool_free(struct bench_pool *pool)
{
	free(pool->values);
	*pool = (struct bench_pool){ 0 };
}

static int by_size(const void *a, const void *b)
{
	int64_t x, y;

	memcpy(&x, a, sizeof x);
	memcpy(&y, b, sizeof y);
	return (x > y) - (x < y);
}

int64_t bench_pool_quantile(struct bench_pool *pool, uint32_t ppm)
{
	uint64_t rank;

	if (!pool->count || pool->failed)
		return BENCH_NONE;
	if (!pool->sorted) {
		qsort(pool->values, pool->count, sizeof *pool->values, by_size);
		pool->sorted = true;
	}
	if (ppm > 1000000)
		ppm = 1000000;
	/* the smallest value that at least this share of them does not pass */
	rank = ((uint64_t)pool->count * ppm + 999999) / 1000000;
	return pool->values[rank ? rank - 1 : 0];
}

int64_t bench_pool_median(struct bench_pool *pool)
{
	return bench_pool_quantile(pool, 500000);
}

int64_t bench_pool_iqr(struct bench_pool *pool)
{
	int64_t high = bench_pool_quantile(pool, 750000), low = bench_pool_quantile(pool, 250000), iqr;

	if (high == BENCH_NONE || __builtin_sub_overflow(high, low, &iqr))
		return BENCH_NONE;
	return iqr;
}

int64_t bench_rate_milli(uint64_t count, uint64_t first_ns, uint64_t last_ns)
{
	if (count < 2 || last_ns <= first_ns)
		return BENCH_NONE;
	return (int64_t)((long double)(count - 1) * 1e12L / (long double)(last_ns - first_ns));
}

bool bench_notches_apart(int64_t a, int64_t iqr_a, uint64_t n, int64_t b, int64_t iqr_b, uint64_t m)
{
	const double distance = (double)a - (double)b, half_a = 1.57 * (double)iqr_a, half_b = 1.57 * (double)iqr_b;
	double reach = 0, x, y;

	if (a == BENCH_NONE || b == BENCH_NONE || iqr_a == BENCH_NONE || iqr_b == BENCH_NONE || !n || !m)
		return false;
	/* Without sqrt(), and so without libm: by Newton's way. */
	x = y = 1;
	for (int i = 0; i < 64; i++) {
		x = (x + (double)n / x) / 2;
		y = (y + (double)m / y) / 2;
	}
	reach = half_a / x + half_b / y;
	return distance > reach || -distance > reach;
}
