/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include <stdio.h>

void bench_gather_join(struct bench_gather *gather, struct bench_pool *pools, int count, bool stalled)
{
	struct bench_set *set = stalled ? &gather->stalled : &gather->clean;

	set->rounds++;
	for (int i = 0; i < count; i++) {
		bench_pool_join(&set->pooled[i], &pools[i]);
		if (pools[i].count)
			bench_pool_add(&set->medians[i], bench_pool_median(&pools[i]));
	}
}

static void set_free(struct bench_set *set)
{
	for (int i = 0; i < BENCH_POOLS; i++) {
		bench_pool_free(&set->pooled[i]);
		bench_pool_free(&set->medians[i]);
	}
}

void bench_gather_free(struct bench_gather *gather)
{
	set_free(&gather->clean);
	set_free(&gather->stalled);
	bench_pool_free(&gather->cross);
}

static void set_part(const struct bench_table *table, struct bench_row *row, const char *key, const char *part, int64_t value)
{
	char name[64];

	snprintf(name, sizeof name, "%s%s", key, part);
	bench_set(table, row, name, value);
}

void bench_figures(const struct bench_table *table, struct bench_row *row, const char *key, struct bench_set *set, int pool)
{
	struct bench_pool *all = &set->pooled[pool], *medians = &set->medians[pool];

	set_part(table, row, key, "median_us", bench_pool_median(medians));
	set_part(table, row, key, "spread_us", bench_pool_iqr(medians));
	set_part(table, row, key, "iqr_us", bench_pool_iqr(all));
	set_part(table, row, key, "p10_us", bench_pool_quantile(all, 100000));
	set_part(table, row, key, "p25_us", bench_pool_quantile(all, 250000));
	set_part(table, row, key, "p75_us", bench_pool_quantile(all, 750000));
	set_part(table, row, key, "p90_us", bench_pool_quantile(all, 900000));
	set_part(table, row, key, "p99_us", bench_pool_quantile(all, 990000));
}
