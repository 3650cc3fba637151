/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_table.h"

#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 400 };

int bench_table_open(struct bench_table *table, const struct bench_column *columns)
{
	*table = (struct bench_table){ .columns = columns };
	while (columns[table->width].key)
		table->width++;
	return table->width <= BENCH_COLUMNS ? 0 : -E2BIG;
}

void bench_table_close(struct bench_table *table)
{
	free(table->rows);
	table->rows = NULL;
	table->count = table->room = 0;
}

struct bench_row *bench_table_row(struct bench_table *table)
{
	struct bench_row *row;

	if (table->count == table->room) {
		int room = table->room ? table->room * 2 : 16;
		struct bench_row *rows = realloc(table->rows, (size_t)room * sizeof *rows);

		if (!rows)
			return NULL;
		table->rows = rows;
		table->room = room;
	}
	row = &table->rows[table->count++];
	memset(row, 0, sizeof *row);
	for (int i = 0; i < table->width; i++)
		if (!table->columns[i].text)
			row->cells[i].number = BENCH_NONE;
	return row;
}

int bench_table_column(const struct bench_table *table, const char *key)
{
	for (int i = 0; i < table->width; i++)
		if (!strcmp(table->columns[i].key, key))
			return i;
	return -1;
}

void bench_set(const struct bench_table *table, struct bench_row *row, const char *key, int64_t value)
{
	int i = bench_table_column(table, key);

	if (i >= 0 && !table->columns[i].text)
		row->cells[i].number = value;
}

void bench_set_text(const struct bench_table *table, struct bench_row *row, const char *key, const char *text)
{
	int i = bench_table_column(table, key);

	if (i >= 0 && table->columns[i].text)
		snprintf(row->cells[i].text, sizeof row->cells[i].text, "%s", text);
}

/* ---------------------------------------------------------------------------------------------------------- for people */

static uint64_t power_of_ten(int n)
{
	uint64_t power = 1;

	while (n-- > 0)
		power *= 10;
	return power;
}

static void format_fixed(char text[BENCH_NAME], int64_t value, int decimals, int shown)
{
	uint64_t size = value < 0 ? -(uint64_t)value : (uint64_t)value, unit;
	char digits[24], *at = digits + sizeof digits;

	if (shown > decimals)
		shown = decimals;
	unit = power_of_ten(decimals - shown);
	size = (size + unit / 2) / unit;
	*--at = '\0';
	for (int place = 0; size || place <= shown; place++, size /= 10) {
		if (place && place == shown)
			*--at = '.';
		*--at = (char)('0' + size % 10);
	}
	snprintf(text, BENCH_NAME, "%s%s", value < 0 && strspn(at, "0.") != strlen(at) ? "-" : "", at);
}

void bench_cell_format(const struct bench_column *column, const union bench_cell *cell, char text[BENCH_NAME])
{
	if (column->text)
		snprintf(text, BENCH_NAME, "%s", cell->text[0] ? cell->text : "-");
	else if (cell->number == BENCH_NONE)
		snprintf(text, BENCH_NAME, "-");
	else
		format_fixed(text, cell->number, column->decimals, column->shown);
}

static void put(char line[LINE], const char *text, int width, bool left)
{
	size_t used = strlen(line);

	snprintf(line + used, LINE - used, left ? "%s%-*s" : "%s%*s", used ? "  " : "", width, text);
}

void bench_table_print(const struct bench_table *table, struct cli *cli)
{
	int widths[BENCH_COLUMNS];
	char text[BENCH_NAME], line[LINE] = "";

	for (int i = 0; i < table->width; i++) {
		const struct bench_column *c = &table->columns[i];

		widths[i] = c->head ? (int)strlen(c->head) : 0;
		for (int r = 0; c->head && r < table->count; r++) {
			bench_cell_format(c, &table->rows[r].cells[i], text);
			if ((int)strlen(text) > widths[i])
				widths[i] = (int)strlen(text);
		}
		if (c->head)
			put(line, c->head, widths[i], c->text);
	}
	out_text(cli, "%s", line);
	for (int r = 0; r < table->count; r++) {
		line[0] = '\0';
		for (int i = 0; i < table->width; i++) {
			if (!table->columns[i].head)
				continue;
			bench_cell_format(&table->columns[i], &table->rows[r].cells[i], text);
			put(line, text, widths[i], table->columns[i].text);
		}
		out_text(cli, "%s", line);
	}
}

/* -------------------------------------------------------------------------------------------------------- for programs */

void bench_table_json(const struct bench_table *table, struct json *json)
{
	json_array(json, "rows");
	for (int r = 0; r < table->count; r++) {
		json_object(json, NULL);
		for (int i = 0; i < table->width; i++) {
			const struct bench_column *c = &table->columns[i];
			const union bench_cell *cell = &table->rows[r].cells[i];

			if (c->text)
				json_string(json, c->key, cell->text[0] ? cell->text : NULL);
			else if (cell->number == BENCH_NONE)
				json_null(json, c->key);
			else
				json_fixed(json, c->key, cell->number, c->decimals);
		}
		json_object_end(json);
	}
	json_array_end(json);
}

int bench_table_csv(const struct bench_table *table, const char *file, struct ktrxer_error *err)
{
	FILE *csv = fopen(file, "we");
	char text[BENCH_NAME], word[64];
	bool failed;

	if (!csv)
		return ktrxer_fail(err, -errno, "--csv %s: %s", file, ktrxer_strerror(-errno, word, sizeof word));
	for (int i = 0; i < table->width; i++)
		fprintf(csv, "%s%s", i ? "," : "", table->columns[i].key);
	fputc('\n', csv);
	for (int r = 0; r < table->count; r++) {
		for (int i = 0; i < table->width; i++) {
			const struct bench_column *c = &table->columns[i];
			const union bench_cell *cell = &table->rows[r].cells[i];

			text[0] = '\0';
			if (c->text)
				snprintf(text, sizeof text, "%s", cell->text);
			else if (cell->number != BENCH_NONE)
				format_fixed(text, cell->number, c->decimals, c->decimals);
			fprintf(csv, "%s%s", i ? "," : "", text);
		}
		fputc('\n', csv);
	}
	failed = ferror(csv) != 0;
	if (fclose(csv) || failed)
		return ktrxer_fail(err, -EIO, "--csv %s: it cannot be written whole: is the disk full?", file);
	return 0;
}
