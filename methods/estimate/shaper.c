/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "shaper.h"

#include "estimate_sort.h"

#include <math.h>

#define SLOWER 1.25 /* gaps of the sustained rate, in those of the line */
#define CLEAR 30    /* the variance between the two parts of the train, in that of their gaps */
#define AGREE 1.2

enum { PACKETS_MOST = 256, BEFORE = 2, AFTER = 8 };

bool shaper_of_train(const uint64_t *arrived, uint32_t packets, uint32_t bytes, struct shaper *r)
{
	double gaps[PACKETS_MOST], sum = 0, before = 0, best = 0, within = 0, line, sustained, rest, part;
	int64_t first[PACKETS_MOST];
	uint64_t last = 0;
	uint32_t n = 0, at = 0;

	/* A policer drops the packets for which the bucket has no tokens: the others arrive at the sustained rate. */
	for (uint32_t i = 0; i < packets && n < PACKETS_MOST; i++) {
		if (!arrived[i])
			continue;
		if (last) {
			gaps[n] = fmax((double)(int64_t)(arrived[i] - last), 0);
			sum += gaps[n++];
		}
		last = arrived[i];
	}
	if (n < BEFORE + AFTER)
		return false;
	line = sustained = sum / n;
	for (uint32_t i = 0; i + AFTER <= n; i++) {
		rest = (sum - before) / (n - i);
		if (i >= BEFORE && rest > before / i &&
		    (rest - before / i) * (rest - before / i) * i * (n - i) / n > best) {
			best = (rest - before / i) * (rest - before / i) * i * (n - i) / n;
			line = before / i;
			sustained = rest;
			at = i;
		}
		before += gaps[i];
	}
	if (!at || sustained < SLOWER * line)
		return false;
	for (uint32_t i = 0; i < n; i++)
		within += i < at ? (gaps[i] - line) * (gaps[i] - line) : (gaps[i] - sustained) * (gaps[i] - sustained);
	if (best < CLEAR * within / (n - 2))
		return false;
	/* So few packets pass a policer that the last ones of the line were among the AFTER. */
	for (rest = sustained * (n - at); gaps[at] < (line + sustained) / 2; rest -= gaps[at++])
		;
	sustained = rest / (n - at);
	/* The gap in which the bucket ran empty may be among those of the line. */
	for (uint32_t i = 0; i < at; i++)
		first[i] = (int64_t)gaps[i];
	estimate_sort(first, at);
	line = (double)(first[(at - 1) / 2] + first[at / 2]) / 2;
	if (line <= 0)
		return false;
	/* The tokens that came meanwhile are not of the bucket. */
	part = (at + 1.0) * bytes;
	*r = (struct shaper){ 8e9 * bytes / line, 8e9 * bytes / sustained, part * (1 - line / sustained) };
	return true;
}

bool shaper_agree(const struct shaper *one, const struct shaper *other)
{
	return one->sustained_bit_s < AGREE * other->sustained_bit_s &&
	       other->sustained_bit_s < AGREE * one->sustained_bit_s && one->line_bit_s < AGREE * other->line_bit_s &&
	       other->line_bit_s < AGREE * one->line_bit_s;
}
