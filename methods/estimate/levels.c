/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "levels.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	BESIDE = 3, /* values on both sides of a division, which differ by the share JUMP of the change; on a ramp by
		       less */
	BURST_WINDOWS_MIN = 8,
	LEAST_MS = 2000,
	LEAST_PARTS = 10, /* of the time */
	WINDOW_MS = 400,
};
#define FACTOR 1.3 /* between the medians of two neighbours */
#define WIDTH 0.05 /* of the median: the interquartile range of a level */
#define STEP 0.15  /* of the median: the largest step that may add to it */
#define JUMP 0.7
#define BURST 1.3         /* the first second's rate, of the highest later one */
#define LEAST_SHARE 0.001 /* of the largest value: less is none */
#define MS 1000000ull

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* It is interpolated between two ranks. */
static double quantile(const double *values, size_t count, double share)
{
	double sorted[LEVELS_POINTS], place, part;
	size_t first, second;

	memcpy(sorted, values, count * sizeof *values);
	qsort(sorted, count, sizeof *sorted, by_value);
	place = (double)(count - 1) * share;
	first = (size_t)place;
	second = first + 1 < count ? first + 1 : first;
	part = place - (double)first;
	return sorted[first] + (sorted[second] - sorted[first]) * part;
}

static double median(const double *values, size_t count)
{
	return quantile(values, count, 0.5);
}

static bool narrow(const double *values, size_t count, double step)
{
	const double middle = median(values, count), more = step < STEP * middle ? step : STEP * middle;

	return quantile(values, count, 0.75) - quantile(values, count, 0.25) <= WIDTH * middle + more;
}

static bool apart(const double *values, double step, const struct level *a, const struct level *b)
{
	/* The value beside the change is of both, unless it is the only one. */
	const double *before = values + a->first, *after = values + (b->first + 1 < b->end ? b->first + 1 : b->first);
	const size_t befores = a->end - a->first > 1 ? a->end - a->first - 1 : 1,
		     afters = (size_t)(values + b->end - after), last = befores < BESIDE ? befores : BESIDE;
	const bool rises = a->median < b->median;
	double jump, change;

	if (!narrow(before, befores, step) || !narrow(after, afters, step))
		return false;
	jump = fabs(log(median(after, afters < BESIDE ? afters : BESIDE) / median(before + befores - last, last)));
	change = fabs(log(b->median / a->median));
	return change > log(FACTOR) && jump > JUMP * change &&
	       (rises ? quantile(after, afters, 0.1) > quantile(before, befores, 0.9)
		      : quantile(before, befores, 0.1) > quantile(after, afters, 0.9));
}

struct sums {
	double one[LEVELS_POINTS + 1], two[LEVELS_POINTS + 1]; /* of the logarithms, and of their squares */
	size_t least;
};

/* The squared deviations of the values from..to-1 from their mean. */
static double cost(const struct sums *s, size_t from, size_t to)
{
	const double sum = s->one[to] - s->one[from];

	if (to < from + s->least)
		return HUGE_VAL;
	return s->two[to] - s->two[from] - sum * sum / (double)(to - from);
}

/* The best division into one part more than `before` has, for each end. */
static void divide(const struct sums *s, size_t count, const double *before, double *after, uint8_t *cuts)
{
	for (size_t to = 0; to <= count; to++) {
		after[to] = HUGE_VAL;
		cuts[to] = 0;
		for (size_t from = s->least; from + s->least <= to; from++) {
			const double total = before[from] + cost(s, from, to);

			if (total < after[to]) {
				after[to] = total;
				cuts[to] = (uint8_t)from;
			}
		}
	}
}

static bool all_apart(const double *values, double step, const struct level *parts, size_t count)
{
	for (size_t i = 1; i < count; i++)
		if (!apart(values, step, &parts[i - 1], &parts[i]))
			return false;
	return true;
}

size_t levels_find(const double *values, size_t count, size_t least, double step, struct level found[LEVELS_MOST])
{
	uint8_t cuts[LEVELS_MOST][LEVELS_POINTS + 1];
	double best[2][LEVELS_POINTS + 1];
	struct sums s = { .least = least ? least : 1 };
	size_t levels = 1;

	if (!count)
		return 0;
	found[0] = (struct level){ 0, count, count <= LEVELS_POINTS ? median(values, count) : NAN };
	if (count > LEVELS_POINTS || count / 2 < s.least)
		return 1;
	for (size_t i = 0; i < count; i++) {
		const double of = values[i] > 0 ? log(values[i]) : NAN;

		if (!(values[i] > 0))
			return 1;
		s.one[i + 1] = s.one[i] + of;
		s.two[i + 1] = s.two[i] + of * of;
	}
	for (size_t to = 0; to <= count; to++)
		best[0][to] = cost(&s, 0, to);
	for (size_t parts = 2; parts <= LEVELS_MOST; parts++) {
		struct level made[LEVELS_MOST];
		size_t end = count;

		divide(&s, count, best[parts % 2], best[(parts + 1) % 2], cuts[parts - 1]);
		if (!isfinite(best[(parts + 1) % 2][count]))
			break;
		for (size_t i = parts; i-- > 0; end = made[i].first) {
			made[i].end = end;
			made[i].first = i ? cuts[i][end] : 0;
			made[i].median = median(values + made[i].first, end - made[i].first);
		}
		if (all_apart(values, step, made, parts)) {
			memcpy(found, made, parts * sizeof *made);
			levels = parts;
		}
	}
	return levels;
}

uint64_t levels_window_ns(uint64_t begin_ns, uint64_t end_ns, uint64_t sample_ns)
{
	const uint64_t span = end_ns > begin_ns ? end_ns - begin_ns : 0;
	uint64_t window = (span + LEVELS_POINTS - 1) / LEVELS_POINTS;

	window = window > WINDOW_MS * MS ? window : WINDOW_MS * MS;
	return window > 2 * sample_ns ? window : 2 * sample_ns;
}

static size_t least_windows(const struct rate_windows *w)
{
	const uint64_t whole = w->window_ns * w->count, share = whole / LEAST_PARTS,
		       least = share > LEAST_MS * MS ? share : LEAST_MS * MS;

	return (size_t)((least + w->window_ns - 1) / w->window_ns);
}

size_t levels_of_rate(const struct rate_windows *w, struct rate_level found[RATE_LEVELS_MOST])
{
	/* Receivers acknowledge each second packet. */
	const double step = w->window_ns ? 2 * 8e9 * (double)w->packet_bytes / (double)w->window_ns : 0;
	double values[LEVELS_POINTS], most = 0;
	struct level parts[LEVELS_MOST];
	size_t count = 0, made = 0;

	if (!w->count || w->count > LEVELS_POINTS || !w->window_ns)
		return 0;
	for (size_t i = 0; i < w->count; i++)
		most = w->values[i] > most ? w->values[i] : most;
	for (size_t i = 0; i < w->count; i++)
		values[i] = w->values[i] > LEAST_SHARE * most ? w->values[i] : LEAST_SHARE * most;
	if (most > 0)
		count = levels_find(values, w->count, least_windows(w), step, parts);
	if (w->count >= BURST_WINDOWS_MIN && w->first > BURST * most)
		found[made++] = (struct rate_level){ w->begin_ns - RATE_SETTLED_NS, w->begin_ns, w->first };
	else if (count < 2)
		return 0;
	for (size_t i = 0; i < count; i++, made++)
		found[made] = (struct rate_level){ w->begin_ns + parts[i].first * w->window_ns,
						   w->begin_ns + parts[i].end * w->window_ns,
						   median(w->values + parts[i].first, parts[i].end - parts[i].first) };
	return made > 1 ? made : 0;
}
