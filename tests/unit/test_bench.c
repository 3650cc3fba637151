/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bench's statistics, its table, the reader of its own results, and what counts as a change. */
#include "cm.h"

#include "bench.h"
#include "bench_compare.h"
#include "bench_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct bench_column columns[] = {
	{ .key = "engine", .head = "sender", .text = true, .is_key = true },
	{ .key = "payload", .head = "payload B", .is_key = true },
	{ .key = "rounds" },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "median_us", .head = "median us", .decimals = 3, .shown = 2, .better = -1, .spread = "spread_us" },
	{ .key = "spread_us", .decimals = 3 },
	{ .key = NULL },
};

static void test_quantiles(void **state)
{
	struct bench_pool pool = { 0 };

	(void)state;
	assert_true(bench_pool_median(&pool) == BENCH_NONE);
	assert_true(bench_pool_iqr(&pool) == BENCH_NONE);
	for (int i = 100; i >= 1; i--)
		bench_pool_add(&pool, i);
	assert_int_equal(bench_pool_median(&pool), 50);
	assert_int_equal(bench_pool_iqr(&pool), 50);
	assert_int_equal(bench_pool_quantile(&pool, 0), 1);
	assert_int_equal(bench_pool_quantile(&pool, 10000), 1);
	assert_int_equal(bench_pool_quantile(&pool, 10001), 2);
	assert_int_equal(bench_pool_quantile(&pool, 990000), 99);
	assert_int_equal(bench_pool_quantile(&pool, 1000000), 100);
	assert_int_equal(bench_pool_quantile(&pool, 2000000), 100);
	bench_pool_add(&pool, -7); /* sorted before, and now not */
	assert_int_equal(bench_pool_quantile(&pool, 0), -7);
	bench_pool_clear(&pool);
	bench_pool_add(&pool, INT64_MAX);
	bench_pool_add(&pool, INT64_MIN + 1);
	assert_true(bench_pool_iqr(&pool) == BENCH_NONE); /* it would not fit */
	bench_pool_free(&pool);
}

static void test_rate(void **state)
{
	(void)state;
	assert_int_equal(bench_rate_milli(101, 0, 100000), 1000000000); /* 100 gaps in 100 us: a million a second */
	assert_int_equal(bench_rate_milli(2, 5, 1000000005), 1000);
	assert_true(bench_rate_milli(1, 0, 5) == BENCH_NONE);
	assert_true(bench_rate_milli(2, 5, 5) == BENCH_NONE);
	assert_true(bench_rate_milli(2, 6, 5) == BENCH_NONE);
}

static void test_notches(void **state)
{
	(void)state;
	/* 1.57 * 100 / sqrt(100) = 15.7 on each side */
	assert_false(bench_notches_apart(1000, 100, 100, 1031, 100, 100));
	assert_true(bench_notches_apart(1000, 100, 100, 1032, 100, 100));
	assert_true(bench_notches_apart(1032, 100, 100, 1000, 100, 100));
	assert_true(bench_notches_apart(1, 0, 1, 2, 0, 1));
	assert_false(bench_notches_apart(1, 0, 0, 2, 0, 1));
	assert_false(bench_notches_apart(BENCH_NONE, 0, 9, 2, 0, 9));
	assert_false(bench_notches_apart(1, 0, 9, 2, BENCH_NONE, 9));
}

static void test_lists(void **state)
{
	uint64_t v[BENCH_LEVELS];
	struct ktrxer_error err;
	int n;

	(void)state;
	assert_int_equal(bench_list_parse(v, &n, "0,12k,24k,36k", false, "--cross", &err), 0);
	assert_int_equal(n, 4);
	assert_int_equal(v[3], 36000);
	assert_int_equal(bench_list_parse(v, &n, "0us,100ms", true, "--gaps", &err), 0);
	assert_int_equal(v[1], 100000000);
	assert_int_equal(bench_list_parse(v, &n, "", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, ",1", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,-2", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "1,2,3,4,5,6,7,8,9", false, "--cross", &err), -EINVAL);
	assert_int_equal(bench_list_parse(v, &n, "111111111111111111111111111111111111111111111111111111111", false, "--cross", &err), -EINVAL);
}

static int read_text(struct bench_table *table, struct bench_settings *settings, const char *text)
{
	struct ktrxer_error err;

	bench_table_close(table);
	bench_table_open(table, columns);
	return bench_read(table, settings, text, strlen(text), &err);
}

static void test_read(void **state)
{
	struct bench_table t = { 0 };
	struct bench_settings kind;

	(void)state;
	assert_int_equal(read_text(&t, &kind, "{\"schema\": 1, \"x\": [{\"y\": [1e9, \"\\\"\\u0041\"]}], \"bench\": \"schedule\", \"settings\": {\"rounds\": 9, "
				   "\"cross\": \"0,1k\", \"count\": -1, \"new\": {}}, \"rows\": [\n"
				   "{\"engine\": \"a, \\\"b\", \"payload\": 28, \"median_us\": -1.25, \"spread_us\": null, \"more\": {\"a\": []}},\n"
				   "{}], \"host\": {\"steal\": 0.5}}\n"), 0);
	assert_string_equal(kind.kind, "schedule");
	assert_int_equal(t.count, 2);
	assert_int_equal(kind.rounds, 9);
	assert_int_equal(kind.count, 0);
	assert_string_equal(kind.cross, "0,1k");
	assert_string_equal(t.rows[0].cells[0].text, "a, \"b");
	assert_int_equal(t.rows[0].cells[1].number, 28);
	assert_int_equal(t.rows[0].cells[4].number, -1250);
	assert_true(t.rows[0].cells[5].number == BENCH_NONE);
	assert_true(t.rows[1].cells[1].number == BENCH_NONE);
	bench_table_close(&t);
}

static void test_read_hostile(void **state)
{
	static const char *const bad[] = {
		"", "{", "{}", "[]", "null", "{\"bench\": \"rate\"}", "{\"rows\": []}", "{\"bench\": \"rate\", \"rows\": {}}",
		"{\"bench\": \"rate\", \"rows\": [", "{\"bench\": \"rate\", \"rows\": []", "{\"bench\": \"rate\", \"rows\": []} x",
		"{\"bench\": \"rate\", \"rows\": [1]}", "{\"bench\": \"rate\", \"rows\": [{\"payload\": 99999999999999999999}]}",
		"{\"bench\": \"rate\", \"rows\": [{\"payload\": 1e3}]}", "{\"bench\": \"rate\", \"rows\": [{\"payload\": -}]}",
		"{\"bench\": \"rate\", \"rows\": [{\"median_us\": 9223372036854775.808}]}", "{\"bench\": \"rate\", \"rows\": [{\"payload\" 1}]}",
		"{\"bench\": \"ra\nte\", \"rows\": []}", "{\"bench\": \"rate\\", "{\"bench\": \"rate\\u00", "{\"bench\": tru, \"rows\": []}",
		"{\"a\":[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]], \"bench\": \"rate\", \"rows\": []}",
	};
	struct bench_table t = { 0 };
	struct bench_settings kind;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		if (read_text(&t, &kind, bad[i]) != -EBADMSG)
			fail_msg("taken: %s", bad[i]);
	assert_int_equal(read_text(&t, &kind, "{\"bench\": \"a name that is far too long for a bench of ours\", \"rows\": []}"), 0);
	assert_int_equal(strlen(kind.kind), BENCH_NAME - 1);
	bench_table_close(&t);
}

/* What is written is read back the same, to the last digit. */
static void test_there_and_back(void **state)
{
	struct json *json = json_new(true);
	struct bench_table t, again;
	struct ktrxer_error err;
	struct bench_settings kind;
	struct bench_row *row;
	const char *text;
	size_t length;

	(void)state;
	bench_table_open(&t, columns);
	bench_table_open(&again, columns);
	for (int i = 0; i < 40; i++) {
		row = bench_table_row(&t);
		bench_set_text(&t, row, "engine", i % 2 ? "packet" : "raw \"x\" \\");
		bench_set(&t, row, "payload", i);
		bench_set(&t, row, "median_us", i % 3 ? ((int64_t)1 << i) - 1000 : BENCH_NONE);
	}
	json_object(json, NULL);
	json_string(json, "bench", "schedule");
	bench_table_json(&t, json);
	json_object_end(json);
	text = json_text(json, &length);
	assert_non_null(text);
	assert_int_equal(bench_read(&again, &kind, text, length, &err), 0);
	assert_int_equal(again.count, t.count);
	for (int r = 0; r < t.count; r++) {
		assert_string_equal(again.rows[r].cells[0].text, t.rows[r].cells[0].text);
		for (int i = 1; i < t.width; i++)
			assert_true(again.rows[r].cells[i].number == t.rows[r].cells[i].number);
		assert_ptr_equal(bench_same_row(&again, &t.rows[r]), &again.rows[r]);
	}
	json_free(json);
	bench_table_close(&t);
	bench_table_close(&again);
}

static void test_change(void **state)
{
	struct bench_row old = { 0 }, now = { 0 };
	struct bench_table t;
	int64_t difference;

	(void)state;
	bench_table_open(&t, columns);
	old.cells[2].number = now.cells[2].number = 9;
	old.cells[3].number = now.cells[3].number = 0;
	old.cells[5].number = now.cells[5].number = 30; /* notches of 15.7 */
	old.cells[4].number = 1000;
	now.cells[4].number = 1030;
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_SAME);
	assert_int_equal(difference, 30);
	now.cells[4].number = 1040; /* apart, but 4 % */
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_SAME);
	now.cells[4].number = 1100;
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_WORSE);
	now.cells[4].number = 900;
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_BETTER);
	assert_int_equal(difference, -100);
	now.cells[3].number = 8; /* one round is left: nothing can be said */
	now.cells[5].number = 200;
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_SAME);
	now.cells[4].number = BENCH_NONE;
	assert_int_equal(bench_changed(&t, &old, &now, 4, &difference), BENCH_UNKNOWN);
	assert_int_equal(bench_changed(&t, &old, &now, 1, &difference), BENCH_UNKNOWN);
}

static void test_cells(void **state)
{
	union bench_cell cell = { .number = -1256 };
	char text[BENCH_NAME];

	(void)state;
	bench_cell_format(&columns[4], &cell, text);
	assert_string_equal(text, "-1.26");
	cell.number = -1;
	bench_cell_format(&columns[4], &cell, text);
	assert_string_equal(text, "0.00");
	cell.number = 999996;
	bench_cell_format(&columns[4], &cell, text);
	assert_string_equal(text, "1000.00");
	cell.number = INT64_MAX;
	bench_cell_format(&columns[1], &cell, text);
	assert_string_equal(text, "9223372036854775807");
	cell.number = BENCH_NONE;
	bench_cell_format(&columns[4], &cell, text);
	assert_string_equal(text, "-");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_quantiles),    cmocka_unit_test(test_rate),   cmocka_unit_test(test_notches),
		cmocka_unit_test(test_lists),        cmocka_unit_test(test_read),   cmocka_unit_test(test_read_hostile),
		cmocka_unit_test(test_there_and_back), cmocka_unit_test(test_change), cmocka_unit_test(test_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
