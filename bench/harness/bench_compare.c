/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_compare.h"

#include "bench.h"
#include "bench_read.h"
#include "error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NOISE_PERCENT = 5 }; /* smaller differences are not called changes, however close together the rounds lie */

static bool same_cell(const struct bench_column *column, const union bench_cell *a, const union bench_cell *b)
{
	return column->text ? !strcmp(a->text, b->text) : a->number == b->number;
}

const struct bench_row *bench_same_row(const struct bench_table *old, const struct bench_row *row)
{
	for (int r = 0; r < old->count; r++) {
		bool same = true;

		for (int i = 0; i < old->width && same; i++)
			same = !old->columns[i].is_key || same_cell(&old->columns[i], &old->rows[r].cells[i], &row->cells[i]);
		if (same)
			return &old->rows[r];
	}
	return NULL;
}

static uint64_t rounds_of(const struct bench_table *table, const struct bench_row *row)
{
	int all = bench_table_column(table, "rounds"), stalled = bench_table_column(table, "stalled_rounds");
	int64_t n = all >= 0 ? row->cells[all].number : BENCH_NONE, s = stalled >= 0 ? row->cells[stalled].number : BENCH_NONE;

	if (n == BENCH_NONE || n < 1)
		return 0;
	return s > 0 && s < n ? (uint64_t)(n - s) : (uint64_t)n;
}

enum bench_change bench_changed(const struct bench_table *table, const struct bench_row *old, const struct bench_row *now, int i,
				int64_t *difference)
{
	const struct bench_column *c = &table->columns[i];
	const int spread = c->spread ? bench_table_column(table, c->spread) : -1;
	const int64_t a = old->cells[i].number, b = now->cells[i].number;
	int64_t size;
	long double share;

	*difference = BENCH_NONE;
	if (spread < 0 || a == BENCH_NONE || b == BENCH_NONE)
		return BENCH_UNKNOWN;
	if (a) {
		share = ((long double)b - (long double)a) * 1000 / (a < 0 ? -(long double)a : (long double)a);
		*difference = share > 1e9L ? 1000000000 : share < -1e9L ? -1000000000 : (int64_t)share;
	}
	size = *difference == BENCH_NONE ? INT64_MAX : *difference < 0 ? -*difference : *difference;
	if (a == b || size < NOISE_PERCENT * 10 ||
	    !bench_notches_apart(a, old->cells[spread].number, rounds_of(table, old), b, now->cells[spread].number, rounds_of(table, now)))
		return BENCH_SAME;
	if (!c->better)
		return BENCH_OTHER;
	return (b > a) == (c->better > 0) ? BENCH_BETTER : BENCH_WORSE;
}

/* "packet, 28 B payload, ..." of its keys. */
static void name_row(const struct bench_table *table, const struct bench_row *row, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int i = 0; i < table->width; i++) {
		const struct bench_column *c = &table->columns[i];
		char cell[BENCH_NAME];

		if (!c->is_key || used >= size)
			continue;
		bench_cell_format(c, &row->cells[i], cell);
		used += (size_t)snprintf(text + used, size - used, "%s%s%s%s", used ? ", " : "", c->text ? "" : c->head, c->text ? "" : " ", cell);
	}
}

static void say_change(struct bench_run *run, struct json *json, const struct bench_row *old, const struct bench_row *now, int i,
		       enum bench_change change, int64_t difference)
{
	static const char *const words[] = { "same", "better", "changed" };
	const char *word = change == BENCH_WORSE ? "worse" : words[change];
	const struct bench_column *c = &run->table.columns[i];
	char name[160], before[BENCH_NAME], after[BENCH_NAME];

	name_row(&run->table, now, name, sizeof name);
	bench_cell_format(c, &old->cells[i], before);
	bench_cell_format(c, &now->cells[i], after);
	if (difference == BENCH_NONE)
		out_text(run->cli, "  %s: %s: %s was %s, is %s", word, name, c->key, before, after);
	else
		out_text(run->cli, "  %s: %s: %s was %s, is %s (%+lld.%lld %%)", word, name, c->key, before, after,
			 (long long)(difference / 10), (long long)llabs(difference % 10));
	json_object(json, NULL);
	for (int k = 0; k < run->table.width; k++) {
		const struct bench_column *key = &run->table.columns[k];

		if (!key->is_key)
			continue;
		if (key->text)
			json_string(json, key->key, now->cells[k].text);
		else
			json_fixed(json, key->key, now->cells[k].number, key->decimals);
	}
	json_string(json, "figure", c->key);
	json_string(json, "change", word);
	json_fixed(json, "was", old->cells[i].number, c->decimals);
	json_fixed(json, "is", now->cells[i].number, c->decimals);
	json_object_end(json);
}

static int read_old(struct bench_table *old, const struct bench_kind *now, const char *file, struct ktrxer_error *err)
{
	struct bench_settings settings;
	int rc = bench_table_open(old, now->columns);

	if (rc < 0)
		return ktrxer_fail(err, rc, "too many columns");
	rc = bench_read_file(old, &settings, file, err);
	if (!rc && strcmp(settings.kind, now->name) != 0)
		rc = ktrxer_fail(err, -EINVAL, "--compare %s: that is of `bench %s`, and this is `bench %s`", file, settings.kind, now->name);
	if (rc < 0)
		bench_table_close(old);
	return rc;
}

int bench_compare_check(const struct bench_kind *kind, const char *file, struct ktrxer_error *err)
{
	struct bench_table old;
	int rc = read_old(&old, kind, file, err);

	if (!rc)
		bench_table_close(&old);
	return rc;
}

int bench_compare(struct bench_run *run, const char *file, struct json *json, struct ktrxer_error *err)
{
	struct bench_table old;
	int rc = read_old(&old, run->kind, file, err), compared = 0, changed = 0, alone = 0;

	if (rc < 0)
		return rc;
	out_text(run->cli, "against %s:", file);
	json_array(json, "changes");
	for (int r = 0; r < run->table.count; r++) {
		const struct bench_row *now = &run->table.rows[r], *was = bench_same_row(&old, now);

		if (!was) {
			alone++;
			continue;
		}
		for (int i = 0; i < old.width; i++) {
			int64_t difference;
			enum bench_change change = bench_changed(&run->table, was, now, i, &difference);

			if (change == BENCH_UNKNOWN)
				continue;
			compared++;
			if (change == BENCH_SAME)
				continue;
			changed++;
			say_change(run, json, was, now, i, change, difference);
		}
	}
	json_array_end(json);
	json_u64(json, "compared", (uint64_t)compared);
	out_text(run->cli, "  %d figures compared, %d changed by more than their rounds explain and by %d %%; %d rows have no counterpart there",
		 compared, changed, NOISE_PERCENT, alone);
	bench_table_close(&old);
	return 0;
}
