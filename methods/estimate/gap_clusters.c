/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "gap_clusters.h"

#include <math.h>

#define SIZES_ALIKE 0.15 /* the periods by both sizes differ by this share at most */

struct moments {
	double sum, squares;
};

static double sum_of_squares(double count, const struct moments *m)
{
	return m->squares - m->sum * m->sum / count;
}

static double sigma(double count, const struct moments *m)
{
	double rest = sum_of_squares(count, m);

	return rest > 0 ? sqrt(rest / count) : 0;
}

/*
 * Values are taken relative to `base`, because the squares of large equal values leave no digits for their differences.
 */
static struct moments moments_of(const int64_t *values, size_t count, int64_t base)
{
	struct moments m = { 0, 0 };

	for (size_t i = 0; i < count; i++) {
		double x = (double)values[i] - (double)base;

		m.sum += x;
		m.squares += x * x;
	}
	return m;
}

/* 0 where all are equal. */
static size_t best_split(const int64_t *values, size_t count, int64_t base)
{
	struct moments all = moments_of(values, count, base), low = { 0, 0 };
	double best = 0;
	size_t split = 0;

	for (size_t i = 0; i + 1 < count; i++) {
		double x = (double)values[i] - (double)base, n = (double)(i + 1), rest = (double)(count - i - 1);
		struct moments high;
		double between;

		low.sum += x;
		low.squares += x * x;
		if (values[i] == values[i + 1])
			continue;
		high = (struct moments){ all.sum - low.sum, all.squares - low.squares };
		between = low.sum * low.sum / n +
			  high.sum * high.sum / rest; /* the larger, the smaller is the sum of squares within */
		if (!split || between > best) {
			best = between;
			split = i + 1;
		}
	}
	return split;
}

static void describe(const int64_t *values, size_t count, size_t split, struct gap_clusters *r)
{
	struct moments low = moments_of(values, split, values[0]),
		       high = moments_of(values + split, count - split, values[split]);

	r->low_count = split;
	r->high_count = count - split;
	r->low_ns = (double)values[0] + low.sum / (double)split;
	r->high_ns = (double)values[split] + high.sum / (double)(count - split);
	r->low_sigma_ns = sigma((double)split, &low);
	r->high_sigma_ns = sigma((double)(count - split), &high);
}

void gap_clusters(const int64_t *values, size_t count, struct gap_clusters *r)
{
	enum { ROUNDS = 16 }; /* each leaves out up to 5 % of the gaps: half of them in all */
	size_t least = count / 20 > 3 ? count / 20 : 3, left = count;

	*r = (struct gap_clusters){ 0 };
	for (int round = 0; round < ROUNDS && left > 2 * least; round++) {
		size_t split = best_split(values, left, values[0]);

		if (!split)
			return;
		if (left - split < least) {
			r->left_out += left - split;
			left = split;
			continue;
		}
		describe(values, left, split, r);
		r->separate = split >= least && r->low_ns <= r->high_ns / 10 &&
			      r->high_ns - r->low_ns >= 4 * (r->low_sigma_ns + r->high_sigma_ns);
		return;
	}
}

double gap_clusters_period(const struct gap_clusters clusters[2])
{
	const struct gap_clusters *one = &clusters[0], *other = &clusters[1];

	if (!one->separate || !other->separate)
		return one->separate ? one->high_ns : other->separate ? other->high_ns : 0;
	if (fabs(one->high_ns - other->high_ns) > SIZES_ALIKE * (one->high_ns + other->high_ns) / 2)
		return 0;
	return (one->high_ns + other->high_ns) / 2;
}
