/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "capacity.h"

#include "estimate_sort.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static double rate(uint64_t bits, double gap_ns)
{
	return gap_ns > 0 ? (double)bits * 1e9 / gap_ns : INFINITY;
}

struct window {
	size_t from, to; /* values [from, to) */
};

/* Values that belong to a mode already do not count. */
static struct window densest(const double *values, const bool *taken, size_t count, double width)
{
	struct window best = { 0, 0 };
	size_t to = 0;

	for (size_t from = 0; from < count; from++) {
		if (taken[from])
			continue;
		to = to > from ? to : from;
		while (to < count && !taken[to] && values[to] - values[from] <= width)
			to++;
		if (to - from > best.to - best.from)
			best = (struct window){ from, to };
	}
	return best;
}

/* The mode reaches as far as the windows beside it do not become denser. */
static struct window spread(const double *values, const bool *taken, size_t count, double width, struct window center)
{
	struct window mode = center;
	size_t before = center.to - center.from;

	while (mode.to < count && !taken[mode.to]) {
		size_t end = mode.to;

		while (end < count && !taken[end] && values[end] - values[mode.to] <= width)
			end++;
		if (end - mode.to > before || values[mode.to] - values[mode.to - 1] > width)
			break;
		before = end - mode.to;
		mode.to = end;
	}
	before = center.to - center.from;
	while (mode.from > 0 && !taken[mode.from - 1]) {
		size_t begin = mode.from;

		while (begin > 0 && !taken[begin - 1] && values[mode.from - 1] - values[begin - 1] <= width)
			begin--;
		if (mode.from - begin > before || values[mode.from] - values[mode.from - 1] > width)
			break;
		before = mode.from - begin;
		mode.from = begin;
	}
	return mode;
}

static double mean(const double *values, struct window w)
{
	double sum = 0;

	for (size_t i = w.from; i < w.to; i++)
		sum += values[i];
	return sum / (double)(w.to - w.from);
}

int capacity_find_modes(int64_t *gaps_ns, size_t count, uint64_t bits, uint32_t resolution_ns, struct capacity_modes *r)
{
	size_t n = 0, least;
	double *values, step;
	bool *taken;

	*r = (struct capacity_modes){ 0 };
	estimate_sort(gaps_ns, count);
	while (r->left_out < count && gaps_ns[r->left_out] <= 0)
		r->left_out++;
	r->used = count - r->left_out;
	if (!r->used || !bits)
		return -EINVAL;
	values = calloc(r->used, sizeof *values);
	taken = calloc(r->used, sizeof *taken);
	if (!values || !taken) {
		free(values);
		free(taken);
		return -ENOMEM;
	}
	for (size_t i = count; i > r->left_out; i--)
		values[n++] = rate(bits, (double)gaps_ns[i - 1]);
	step = values[n / 2] - rate(bits, (double)bits * 1e9 / values[n / 2] + resolution_ns);
	r->window_bit_s = (values[n * 3 / 4] - values[n / 4]) / 10;
	r->window_bit_s = r->window_bit_s > step ? r->window_bit_s : step;
	least = n / 50 > 2 ? n / 50 : 2;
	while (r->count < CAPACITY_MODES_MAX) {
		struct window center = densest(values, taken, n, r->window_bit_s), mode;

		if (center.to - center.from < least && r->count)
			break;
		mode = spread(values, taken, n, r->window_bit_s, center);
		r->modes[r->count++] =
			(struct capacity_mode){ values[mode.from], values[mode.to - 1], mean(values, center),
						mode.to - mode.from, center.to - center.from };
		for (size_t i = mode.from; i < mode.to; i++)
			taken[i] = true;
		if (center.to - center.from < least)
			break;
	}
	free(values);
	free(taken);
	return 0;
}
