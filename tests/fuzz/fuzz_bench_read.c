/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The reader of a bench's own results: any bytes end in rows or in a refusal; rows that were read are written and read again the same. */
#include "bench.h"
#include "bench_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void again(const struct bench_table *table, const char *kind)
{
	struct json *json = json_new(false);
	struct bench_settings kind_again;
	struct bench_table other;
	struct ktrxer_error err;
	const char *text;
	size_t length;

	bench_table_open(&other, table->columns);
	json_object(json, NULL);
	json_string(json, "bench", kind);
	bench_table_json(table, json);
	json_object_end(json);
	text = json_text(json, &length);
	if (!text || (kind[0] && bench_read(&other, &kind_again, text, length, &err) < 0) || other.count != table->count)
		abort();
	for (int r = 0; r < table->count; r++)
		for (int i = 0; i < table->width; i++)
			if (table->columns[i].text ? strcmp(table->rows[r].cells[i].text, other.rows[r].cells[i].text) != 0
						   : table->rows[r].cells[i].number != other.rows[r].cells[i].number)
				abort();
	json_free(json);
	bench_table_close(&other);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bench_table table;
	struct ktrxer_error err;
	struct bench_settings kind;

	bench_table_open(&table, bench_schedule.columns);
	if (bench_read(&table, &kind, (const char *)data, size, &err) == 0)
		again(&table, kind.kind);
	bench_table_close(&table);
	return 0;
}
