/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Reads back what a bench wrote with --json: the rows alone, and of which bench they are. No reader of JSON at large (decision 8). */
#ifndef KTRXER_CLI_BENCH_READ_H
#define KTRXER_CLI_BENCH_READ_H

#include "bench_table.h"

enum {
	BENCH_READ_BYTES = 16 << 20, /* a file that is longer is none of ours */
	BENCH_READ_ROWS = 65536,
	BENCH_READ_DEPTH = 16,
};

/* How that run was asked for; empty and 0 where the file does not say. */
struct bench_settings {
	char kind[BENCH_NAME], payload[64], cross[192], gaps[192], methods[64], predispatch[192];
	uint64_t rounds, count, interval_ns, for_ns, train, threads, seed, fq, both_ways;
};

/* `table` is open, without rows. Keys that are not its columns are passed over, columns without a key stay unknown. */
int bench_read(struct bench_table *table, struct bench_settings *settings, const char *text, size_t length, struct ktrxer_error *err);
int bench_read_file(struct bench_table *table, struct bench_settings *settings, const char *file, struct ktrxer_error *err);

#endif
