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
	double gaps[PACKETS_MOST], sum = 0, before = 0, best = 0, within = 0, line, sustained, part;
	int64_t first[PACKETS_MOST];
	uint32_t n = 0, at = 0;

	for (uint32_t i = 1; i < packets && n < PACKETS_MOST; i++)
		if (arrived[i] && arrived[i - 1]) {
			gaps[n] = fmax((double)(int64_t)(arrived[i] - arrived[i - 1]), 0);
			sum += gaps[n++];
		}
	if (n * 4 < packets * 3 || n < BEFORE + AFTER)
		return false;
	line = sustained = sum / n;
	for (uint32_t i = 0; i + AFTER <= n; i++) {
		const double rest = (sum - before) / (n - i);

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
