/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Rows of figures. From one list of columns come the table for people, the JSON, the CSV and the comparison with an older run. */
#ifndef KTRXER_CLI_BENCH_TABLE_H
#define KTRXER_CLI_BENCH_TABLE_H

#include "bench_stat.h"
#include "cli.h"

enum { BENCH_COLUMNS = 24, BENCH_NAME = 32 };

struct bench_column {
	const char *key;    /* in JSON and CSV, its unit at the end; NULL ends the list */
	const char *head;   /* for people; NULL: not shown */
	const char *spread; /* key of the column that says how far the rounds are apart: this one is compared with older runs */
	bool text;
	bool is_key;        /* tells rows apart */
	uint8_t decimals;   /* of the value as it is kept: 1234 with 3 is 1.234 */
	uint8_t shown;      /* decimals for people */
	int8_t better;      /* +1: more is better, -1: less, 0: neither */
};

/* What rows of all senders begin with, and what most of them end with. */
#define BENCH_COLUMNS_WHO                                                                                                       \
	{ .key = "engine", .head = "sender", .text = true, .is_key = true }, { .key = "payload", .head = "payload B", .is_key = true }, \
	{ .key = "cross", .head = "cross pps", .is_key = true }
#define BENCH_COLUMNS_LOSS                                                                                                      \
	{ .key = "lost_percent", .head = "lost %", .decimals = 3, .shown = 2 },                                                 \
	{ .key = "cross_arrived_kpps", .head = "cross kpps", .decimals = 3, .shown = 2 }

union bench_cell {
	int64_t number; /* BENCH_NONE: not known */
	char text[BENCH_NAME];
};

struct bench_row {
	union bench_cell cells[BENCH_COLUMNS];
};

struct bench_table {
	const struct bench_column *columns;
	int width;
	struct bench_row *rows;
	int count, room;
};

int bench_table_open(struct bench_table *table, const struct bench_column *columns);
void bench_table_close(struct bench_table *table);
/* All its cells are unknown. NULL: no memory. */
struct bench_row *bench_table_row(struct bench_table *table);
int bench_table_column(const struct bench_table *table, const char *key); /* -1: none */
void bench_set(const struct bench_table *table, struct bench_row *row, const char *key, int64_t value);
void bench_set_text(const struct bench_table *table, struct bench_row *row, const char *key, const char *text);

void bench_table_print(const struct bench_table *table, struct cli *cli);
void bench_table_json(const struct bench_table *table, struct json *json);
int bench_table_csv(const struct bench_table *table, const char *file, struct ktrxer_error *err);

/* A cell as people see it, "-" where nothing is known. */
void bench_cell_format(const struct bench_column *column, const union bench_cell *cell, char text[BENCH_NAME]);

#endif
