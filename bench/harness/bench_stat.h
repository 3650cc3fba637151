/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Statistics of the bench: every value is kept, quantiles are exact (type 1: a value that occurred). */
#ifndef KTRXER_CLI_BENCH_STAT_H
#define KTRXER_CLI_BENCH_STAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bench_pool {
	int64_t *values;
	size_t count, room;
	bool sorted, failed; /* failed: memory ran out, and the pool says so instead of lying */
};

#define BENCH_NONE INT64_MIN /* no value */

void bench_pool_add(struct bench_pool *pool, int64_t value);
void bench_pool_join(struct bench_pool *into, const struct bench_pool *from);
void bench_pool_clear(struct bench_pool *pool);
void bench_pool_free(struct bench_pool *pool);
/* In parts of a million; BENCH_NONE when empty. Sorts the pool. */
int64_t bench_pool_quantile(struct bench_pool *pool, uint32_t parts_per_million);
int64_t bench_pool_median(struct bench_pool *pool);
/* Third quartile minus first; BENCH_NONE when empty. */
int64_t bench_pool_iqr(struct bench_pool *pool);

/* (count - 1) * 10^9 / span, in thousandths; BENCH_NONE without two packets and time between them. */
int64_t bench_rate_milli(uint64_t count, uint64_t first_ns, uint64_t last_ns);

/*
 * Are two medians of `n` and `m` rounds, with their interquartile ranges, apart? By the notches of box plots: median +- 1.57 IQR / sqrt(n).
 * The intervals so made overlap by chance in some 95 of 100 cases when nothing has changed.
 */
bool bench_notches_apart(int64_t a, int64_t iqr_a, uint64_t n, int64_t b, int64_t iqr_b, uint64_t m);

#endif
