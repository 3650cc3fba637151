/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_chirp.h"

#include <math.h>

/*
 * The published values: an excursion ends when the delay has fallen to this part of its height, and has so many
 * packets.
 */
#define DECREASE 1.5
enum { BUSY = 5, CHIRP_MAX = 256 };

/* The first packet after `i` at which the excursion that begins at `i` is over; `n`: it is not. */
static uint32_t excursion_end(const double *delay, uint32_t n, uint32_t i)
{
	double height = 0;
	uint32_t j = i + 1;

	for (; j < n; j++) {
		height = fmax(height, delay[j] - delay[i]);
		if (delay[j] - delay[i] < height / DECREASE)
			break;
	}
	return j;
}

double abw_chirp(const struct abw_train *t, uint64_t bits, double skew)
{
	double delay[CHIRP_MAX], sent[CHIRP_MAX], rate[CHIRP_MAX], own[CHIRP_MAX] = { 0 };
	double sum = 0, weights = 0, rest;
	uint32_t n = 0, turning;

	for (uint32_t i = 0; i < t->packets && n < CHIRP_MAX; i++)
		if (t->sent_ns[i] && t->arrived_ns[i]) {
			sent[n] = (double)(int64_t)(t->sent_ns[i] - t->sent_ns[0]);
			delay[n] = (double)(int64_t)(t->arrived_ns[i] - t->sent_ns[i]) - skew * sent[n];
			n++;
		}
	if (n < ABW_TREND_LEAST)
		return 0;
	for (uint32_t i = 0; i + 1 < n; i++)
		rate[i] = sent[i + 1] > sent[i] ? (double)bits * 1e9 / (sent[i + 1] - sent[i]) : INFINITY;
	turning = n - 2;
	for (uint32_t i = 0; i + 1 < n;) {
		const uint32_t end = delay[i + 1] > delay[i] ? excursion_end(delay, n, i) : i + 1;

		if (end ==
		    n) { /* the delay never falls again: from here on, the rate is above the available bandwidth */
			turning = i;
			break;
		}
		for (uint32_t k = i; end - i >= BUSY && k < end; k++)
			if (delay[k + 1] > delay[k])
				own[k] = rate[k];
		i = end;
	}
	rest = rate[turning];
	for (uint32_t i = 0; i + 1 < n; i++) {
		const double gap = sent[i + 1] - sent[i];

		sum += (own[i] > 0 && i < turning ? fmin(own[i], rest) : rest) * gap;
		weights += gap;
	}
	return weights > 0 && isfinite(sum) ? sum / weights : 0;
}
