/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Samples of a run file of unknown origin: any numbers as probes of loss_directions(), and as round trips of
 * one_way_of_rows().
 */
#include "loss_directions.h"
#include "one_way_delays.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

static void losses(const uint8_t *data, size_t size, uint8_t flags)
{
	const size_t count = size / sizeof(struct loss_probe);
	struct loss_probe *const probes = malloc(size + 1), *const before = malloc(size + 1);
	struct loss_evidence e = {
		.reflector = flags & 3, .copied_up = flags & 4, .split = flags & 8, .withdraw = flags & 16
	};

	MUST(probes && before);
	memcpy(probes, data, count * sizeof *probes);
	for (size_t i = 0; i < count; i++) /* the states of the store; half of the counts are small */
		probes[i].state = (int64_t)((uint64_t)probes[i].state % (LOSS_TOO_LATE + 1));
	if (count) {
		e.up = (uint64_t)probes->number;
		e.down = (uint64_t)probes->count;
	}
	memcpy(before, probes, count * sizeof *probes);
	MUST(loss_directions(probes, count, &e) == 0);
	for (size_t i = 0; i < count; i++) {
		const int64_t was = before[i].state, is = probes[i].state;
		const bool lost = was == LOSS_LOST || was == LOSS_UP || was == LOSS_DOWN;

		MUST(probes[i].number == before[i].number && probes[i].count == before[i].count);
		MUST(is == was || (lost && (is == LOSS_LOST || is == LOSS_UP || is == LOSS_DOWN)));
	}
	free(before);
	free(probes);
}

static void delays(const uint8_t *data, size_t size, uint8_t flags)
{
	const size_t count = size / sizeof(struct one_way_row);
	struct one_way_row *const rows = malloc(size + 1);
	struct one_way_row_delays *const found = malloc(count * sizeof *found + 1);
	const struct one_way_clocks clocks = { .adjusted = flags & 1, .free_running = flags & 2 };

	MUST(rows && found);
	memcpy(rows, data, count * sizeof *rows);
	if (flags & 4) /* times as they may be: seconds, and one clock ahead of the other */
		for (size_t i = 0; i < count; i++) {
			rows[i].sent_ns = (int64_t)i * 1000000 + rows[i].sent_ns % 1000;
			rows[i].rtt_ns = (int64_t)((uint64_t)rows[i].rtt_ns % 5000000);
			rows[i].far_ns = rows[i].sent_ns + rows[i].far_ns % 5000000;
			rows[i].own_queue_ns = rows[i].far_queue_ns = 0;
			rows[i].dwell_ns = (int64_t)((uint64_t)rows[i].dwell_ns % 50000000);
		}
	MUST(one_way_of_rows(rows, count, &clocks, found) >= 0);
	for (size_t i = 0; i < count; i++)
		MUST(found[i].bound_ns >= 0 || (found[i].bound_ns == INT64_MIN && found[i].up_ns == INT64_MIN));
	free(found);
	free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	(*data & 32 ? losses : delays)(data + 1, size - 1, *data);
	return 0;
}
