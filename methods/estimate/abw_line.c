/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_line.h"

#include "estimate_sort.h"

#include <math.h>

/* Widths of the densest quarter that hold nearly all of uniform and of exponential noise. */
#define TOLERANCE 10
#define EXTRA_MAX 3 /* gaps that a link of this rate makes between two packets; a longer one has another cause */

enum { STEPS = 4, LOWEST = 3 /* so many gaps that are equal but for noise are no accident */ };

/* True: the gap before packet i is known, and the sender did not make it. */
static bool usable(const uint64_t *sent, const uint64_t *arrived, uint32_t i, int64_t *gap, bool *spread)
{
	const int64_t apart = (int64_t)(sent[i] - sent[i - 1]);

	*gap = (int64_t)(arrived[i] - arrived[i - 1]);
	*spread = false;
	if (!sent[i] || !sent[i - 1] || !arrived[i] || !arrived[i - 1] || *gap < 0)
		return false;
	*spread = apart * 2 > *gap && *gap;
	return !*spread;
}

static void trains_of(const uint64_t *sent, const uint64_t *arrived, uint32_t trains, uint32_t packets,
		      struct abw_line *r)
{
	double sum = 0, squares = 0;
	uint32_t n = 0;

	for (uint32_t t = 0; t < trains; t++) {
		double extra = 0, sum_ns = 0;
		uint32_t gaps = 0;

		for (uint32_t i = t * packets + 1; i < (t + 1) * packets; i++) {
			int64_t gap;
			bool spread;

			if (!usable(sent, arrived, i, &gap, &spread))
				continue;
			extra += fmin((double)gap / r->gap_ns - 1, EXTRA_MAX);
			sum_ns += (double)gap;
			gaps++;
		}
		if (gaps + 1 == packets && (r->train_gap_ns <= 0 || sum_ns / gaps < r->train_gap_ns))
			r->train_gap_ns = sum_ns / gaps;
		if (!gaps)
			continue;
		extra /= gaps;
		sum += extra;
		squares += extra * extra;
		n++;
	}
	if (n < 2 || r->gap_ns <= 0)
		return;
	r->extra = sum / n;
	r->extra_error = sqrt(fmax(squares / n - r->extra * r->extra, 0) / (n - 1));
}

void abw_line(const uint64_t *sent, const uint64_t *arrived, uint32_t trains, uint32_t packets, struct abw_line *r)
{
	int64_t gaps[ABW_LINE_MOST];
	uint32_t n = 0, quarter, best = 0, small = 0, near = 0;
	int64_t width, step = INT64_MAX;
	double mean = 0, middle, sum = 0;

	*r = (struct abw_line){ 0 };
	for (uint32_t i = 1; i < trains * packets && n < ABW_LINE_MOST; i++) {
		int64_t gap;
		bool spread;

		if (i % packets == 0)
			continue;
		if (usable(sent, arrived, i, &gap, &spread))
			gaps[n++] = gap;
		r->spread += spread;
	}
	r->gaps = n;
	if (n < 4)
		return;
	estimate_sort(gaps, n);
	quarter = n / 4;
	for (uint32_t i = 0; i < n; i++) {
		mean += (double)gaps[i] / n;
		if (i + quarter < n && gaps[i + quarter] - gaps[i] < gaps[best + quarter] - gaps[best])
			best = i;
		if (i && gaps[i] > gaps[i - 1] && gaps[i] - gaps[i - 1] < step)
			step = gaps[i] - gaps[i - 1];
	}
	width = gaps[best + quarter] - gaps[best];
	middle = (double)(gaps[best + quarter / 2] + gaps[best + (quarter + 1) / 2]) / 2;
	r->tolerance_ns = TOLERANCE * (double)width;
	/*
	 * Stamps of a clock with steps are equal in spite of noise; larger steps are those of a receiver that takes
	 * groups.
	 */
	if (!width && (double)step < middle / 8)
		r->tolerance_ns = STEPS * (double)step;
	/* Cross traffic of equal packets makes dense gaps as well, and longer ones. */
	for (uint32_t i = 0; i + LOWEST <= n; i++)
		if (gaps[i + LOWEST - 1] - gaps[i] <= width) {
			if (width || middle - (double)gaps[i + LOWEST / 2] > r->tolerance_ns)
				middle = fmin(middle, (double)gaps[i + LOWEST / 2]);
			break;
		}
	for (uint32_t i = 0; i < n; i++) {
		const bool counts = fabs((double)gaps[i] - middle) <= r->tolerance_ns / 2;

		small += (double)gaps[i] < mean / 10;
		near += counts;
		sum += counts ? (double)gaps[i] : 0;
	}
	r->gap_ns = near ? sum / near : middle;
	r->grouped = small * 4 >= n;
	trains_of(sent, arrived, trains, packets, r);
}
