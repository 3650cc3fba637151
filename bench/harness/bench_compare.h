/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Two runs of the same bench, row by row: what has changed by more than the rounds of each differ among themselves? */
#ifndef KTRXER_CLI_BENCH_COMPARE_H
#define KTRXER_CLI_BENCH_COMPARE_H

#include "bench_table.h"

enum bench_change { BENCH_SAME = 0, BENCH_BETTER = 1, BENCH_WORSE = -1, BENCH_OTHER = 2, BENCH_UNKNOWN = 3 };

/* The row of `old` with the same keys, NULL: none. Both tables have the same columns. */
const struct bench_row *bench_same_row(const struct bench_table *old, const struct bench_row *row);
/* Column `i` of two such rows. `difference`: in thousandths of the old value; BENCH_NONE where that is zero. */
enum bench_change bench_changed(const struct bench_table *table, const struct bench_row *old, const struct bench_row *now, int i,
				int64_t *difference);

#endif
