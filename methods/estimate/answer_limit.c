/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "answer_limit.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBERS_MAX = 1 << 20, ROOM_FIRST = 1024, BITS = 64, EACH_MIN = 8 /* answers, and losses */ };
/*
 * Even intervals leave 1 between the extremes, and the jitter of two arrivals at the bucket as much again. Random
 * losses of the same share have less than half of a standard deviation between the extremes once in a million cases
 * (Kuiper's statistic of a Brownian bridge; a walk in steps misses 0.6 of a step at each extreme).
 */
#define RANGE_MAX 2.5
#define DEVIATIONS_MAX 0.5

void answer_log_add(struct answer_log *log, uint64_t number)
{
	if (number >= NUMBERS_MAX)
		return;
	if (number >= log->room) {
		const uint32_t room = number < ROOM_FIRST ? ROOM_FIRST : (uint32_t)(number / BITS + 1) * BITS * 2;
		uint64_t *more = realloc(log->answered, room / 8);

		if (!more)
			return;
		memset(more + log->room / BITS, 0, (room - log->room) / 8);
		log->answered = more;
		log->room = room;
	}
	log->answered[number / BITS] |= UINT64_C(1) << (number % BITS);
	if (number >= log->end)
		log->end = (uint32_t)number + 1;
}

void answer_log_free(struct answer_log *log)
{
	free(log->answered);
	*log = (struct answer_log){ .answered = NULL };
}

static bool is_answered(const struct answer_log *log, uint32_t number)
{
	return log->answered[number / BITS] >> (number % BITS) & 1;
}

bool answer_limit(const struct answer_log *log, double *share)
{
	uint32_t first = 0, probes, answers = 0;
	double low = 0, high = 0, deviation = 0, range;

	while (first < log->end && is_answered(log, first))
		first++;
	probes = log->end - first;
	for (uint32_t i = first; i < log->end; i++)
		answers += is_answered(log, i);
	if (answers < EACH_MIN || probes - answers < EACH_MIN)
		return false;
	*share = (double)answers / probes;
	for (uint32_t i = first; i < log->end; i++) {
		deviation += is_answered(log, i) - *share;
		low = deviation < low ? deviation : low;
		high = deviation > high ? deviation : high;
	}
	range = high - low;
	return range <= RANGE_MAX &&
	       (range + 1) * (range + 1) <= DEVIATIONS_MAX * DEVIATIONS_MAX * answers * (1 - *share);
}
