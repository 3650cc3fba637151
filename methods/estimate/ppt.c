/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt.h"

#include "error.h"
#include "error_bound.h"
#include "estimate_sort.h"
#include "gap_clusters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { BINS_MAX = 4096 };

const char *const ppt_reading_names[PPT_READINGS] = {
	[PPT_RESOLVED] = "resolved",         [PPT_UNRESOLVED] = "unresolved",
	[PPT_SERVICE_TIME] = "service_time", [PPT_DECREASING] = "decreasing",
	[PPT_COALESCED] = "coalesced",       [PPT_TOO_FEW] = "too_few",
	[PPT_SPREAD] = "not_back_to_back",   [PPT_CHANGED] = "changed",
	[PPT_UNCOVERED] = "not_covered",     [PPT_BENT] = "bent",
};

struct bin {
	double mean_ns;
	uint64_t count;
};

struct bins {
	struct bin *bins; /* those that are not empty, ascending */
	size_t count;
	size_t from, to; /* those of the gaps within the shortest half, or as far from it as it is wide */
	int64_t width_ns;
};

static int64_t round_up(int64_t value, int64_t step)
{
	return (value + step - 1) / step * step;
}

static size_t bins_needed(const int64_t *sorted, size_t count, int64_t width)
{
	size_t needed = 1;

	for (size_t i = 1; i < count; i++)
		needed += sorted[i] / width != sorted[i - 1] / width;
	return needed;
}

/*
 * Finds the shortest interval with half of the gaps. It is among the undisturbed gaps as long as cross traffic
 * lengthens fewer than half. Its width is that of the interquartile range for gaps that are distributed symmetrically.
 */
static size_t shortest_half(const int64_t *sorted, size_t count)
{
	size_t shortest = 0;

	for (size_t i = 0; i + count / 2 < count; i++)
		if (sorted[i + count / 2] - sorted[i] < sorted[shortest + count / 2] - sorted[shortest])
			shortest = i;
	return shortest;
}

static int bins_make(struct bins *b, const int64_t *sorted, size_t count, uint32_t resolution_ns)
{
	const size_t half = shortest_half(sorted, count);
	const int64_t low = sorted[half], high = sorted[half + count / 2], wide = high - low;
	int64_t width = (int64_t)(2 * (double)wide / cbrt((double)count)), base = 0;
	size_t n = 0;

	/* A multiple of the resolution: otherwise some bins would hold more steps of the clock than others. */
	b->width_ns = round_up(width > (int64_t)resolution_ns ? width : (int64_t)resolution_ns, resolution_ns);
	while ((b->count = bins_needed(sorted, count, b->width_ns)) > BINS_MAX)
		b->width_ns *= 2;
	b->bins = calloc(b->count, sizeof *b->bins);
	if (!b->bins)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		if (i && sorted[i] / b->width_ns != sorted[i - 1] / b->width_ns)
			n++;
		if (!b->bins[n].count++)
			base = sorted[i];
		if (sorted[i] >= low - wide && (!i || sorted[i - 1] < low - wide))
			b->from = n;
		if (sorted[i] <= high + wide)
			b->to = n;
		b->bins[n].mean_ns += (double)(sorted[i] - base);
		if (i + 1 == count || sorted[i + 1] / b->width_ns != sorted[i] / b->width_ns)
			b->bins[n].mean_ns = (double)base + b->bins[n].mean_ns / (double)b->bins[n].count;
	}
	return 0;
}

static const struct bin *bins_peak(const struct bins *b)
{
	const struct bin *peak = &b->bins[b->from];

	for (size_t i = b->from + 1; i <= b->to; i++)
		if (b->bins[i].count > peak->count)
			peak = &b->bins[i];
	return peak;
}

static void average(const int64_t *sorted, struct ppt_gaps *r)
{
	double sum = 0, squares = 0;

	for (r->kept = 0; r->kept < r->count && sorted[r->kept] <= r->limit_ns; r->kept++) {
		double x = (double)(sorted[r->kept] - r->small_ns);

		sum += x;
		squares += x * x;
	}
	sum /= (double)r->kept;
	squares = squares / (double)r->kept - sum * sum;
	r->average_ns = (double)r->small_ns + sum;
	r->sigma_ns = squares > 0 ? sqrt(squares) : 0;
	r->low_ns = r->average_ns - r->sigma_ns;
	r->high_ns = r->average_ns + r->sigma_ns;
}

static int filter(int64_t *gaps_ns, size_t count, uint32_t resolution_ns, struct ppt_gaps *r, struct bins *bins)
{
	const int64_t most = (int64_t)1 << 61;
	int rc;

	*r = (struct ppt_gaps){ .count = count };
	if (!count || !resolution_ns)
		return -EINVAL;
	estimate_sort(gaps_ns, count);
	if (gaps_ns[0] < 0 || gaps_ns[count - 1] > most)
		return -ERANGE;
	rc = bins_make(bins, gaps_ns, count, resolution_ns);
	if (rc < 0)
		return rc;
	r->bin_ns = bins->width_ns;
	r->small_ns = gaps_ns[0];
	r->peak_ns = (int64_t)bins_peak(bins)->mean_ns;
	r->limit_ns = 2 * r->peak_ns - r->small_ns;
	average(gaps_ns, r);
	return 0;
}

int ppt_filter(int64_t *gaps_ns, size_t count, uint32_t resolution_ns, struct ppt_gaps *r)
{
	struct bins bins = { 0 };
	int rc = filter(gaps_ns, count, resolution_ns, r, &bins);

	free(bins.bins);
	return rc;
}

/* 96 bit times at c = 8 / m: 12 m. */
static double gamma_of(double gamma_ns, double slope)
{
	return gamma_ns < 0 ? PPT_GAMMA_BITS / 8 * slope : gamma_ns;
}

void ppt_phase1(const struct ppt_gaps *one, uint32_t size1, const struct ppt_gaps *two, uint32_t size2, double gamma_ns,
		struct ppt_phase1 *r)
{
	const double step = (double)size2 - (double)size1;

	r->m_low = (two->high_ns - one->low_ns) / step;
	r->m_high = (two->low_ns - one->high_ns) / step;
	r->m_avg = (r->m_low + r->m_high) / 2;
	r->gamma_ns = gamma_of(gamma_ns, r->m_avg);
	r->expected1_ns = r->m_avg * size1 + r->gamma_ns;
	r->expected2_ns = r->m_avg * size2 + r->gamma_ns;
	r->delta1_ns = one->average_ns - r->expected1_ns;
	r->delta2_ns = two->average_ns - r->expected2_ns;
}

void ppt_phase2(double average1_ns, double average2_ns, double delta_ns, struct ppt_phase2 *r)
{
	r->trailing_ns = average2_ns - average1_ns;
	r->heading_ns = r->trailing_ns - delta_ns;
	r->average_ns = (r->trailing_ns + r->heading_ns) / 2;
}

uint32_t ppt_resolution_ns(const int64_t *gaps_ns, size_t count)
{
	uint32_t resolution = count ? 1000000 : 1;

	for (size_t i = 0; i < count && resolution > 1; i++)
		while (gaps_ns[i] % (int64_t)resolution)
			resolution /= 1000;
	return resolution;
}

struct random {
	uint64_t state;
};

/* splitmix64 (Steele, Lea, Flood 2014). */
static uint64_t random_bits(struct random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static double random_unit(struct random *random)
{
	return (double)(random_bits(random) >> 11) / 9007199254740992.0;
}

/*
 * Poisson with mean `count`: by products of uniform numbers, above 30 by the normal distribution (a sum of twelve
 * uniform numbers).
 */
static uint64_t random_poisson(struct random *random, uint64_t count)
{
	double sum = -6, product = 1, end;
	uint64_t n = 0;

	if (count <= 30) {
		for (end = exp(-(double)count); (product *= random_unit(random)) > end; n++)
			;
		return n;
	}
	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	sum = (double)count + sum * sqrt((double)count) + 0.5;
	return sum > 0 ? (uint64_t)sum : 0;
}

/*
 * G_avg of one resample. Each bin's count is replaced by a Poisson number: that is the bootstrap for many gaps, and its
 * cost does not grow with their number. The variance inside a bin, which it leaves out, is 4 % of the whole with 50
 * gaps, and less with more. NAN: an empty resample.
 */
static double resample_average(const struct bins *bins, uint64_t *counts, struct random *random)
{
	double limit, sum = 0, kept = 0;
	size_t small = bins->count, peak = bins->from;

	for (size_t i = 0; i < bins->count; i++) {
		counts[i] = random_poisson(random, bins->bins[i].count);
		if (counts[i] && small == bins->count)
			small = i;
		if (i > bins->from && i <= bins->to && counts[i] > counts[peak])
			peak = i;
	}
	if (small == bins->count || !counts[peak])
		return NAN;
	limit = 2 * bins->bins[peak].mean_ns - bins->bins[small].mean_ns;
	for (size_t i = small; i < bins->count && bins->bins[i].mean_ns <= limit; i++) {
		sum += (double)counts[i] * (bins->bins[i].mean_ns - bins->bins[small].mean_ns);
		kept += (double)counts[i];
	}
	return bins->bins[small].mean_ns + sum / kept;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The standard error, from the 2.5 % and 97.5 % quantiles of the resamples. Not their standard deviation: one resample
 * in a thousand whose mode is a gap behind cross traffic would decide on it.
 */
static double standard_error(double *values, size_t count)
{
	const size_t tail = count / 40;

	if (count < 2)
		return INFINITY;
	qsort(values, count, sizeof *values, by_value);
	return (values[count - 1 - tail] - values[tail]) / (2 * BOUND_QUANTILE_95);
}

/*
 * The 97.5 % quantile of Student's t, by the first terms of its expansion around the normal one (Cornish, Fisher): 0.3
 * % low at 4 degrees of freedom, 3 % at 2.
 */
static double student(double freedom)
{
	return BOUND_QUANTILE_95 + 2.372271 / freedom + 2.822499 / (freedom * freedom) +
	       2.555863 / (freedom * freedom * freedom);
}

/*
 * The error of G_avg by half a step of the clock where the gaps do not spread over several steps: the filter then keeps
 * one step alone.
 */
static double quantisation(const struct ppt_gaps *gaps, uint32_t resolution_ns)
{
	return gaps->sigma_ns < resolution_ns / 2.0 ? resolution_ns / 2.0 : 0;
}

struct errors {
	double slope, delta; /* half the width of their intervals */
};

/* dPPT = mean(G) - m (mean(s) + 12), or - m mean(s) where gamma is given. */
static double delta_of(double one_ns, double two_ns, double step, double arm)
{
	return (one_ns + two_ns) / 2 - (two_ns - one_ns) / step * arm;
}

static int bootstrap(const struct bins bins[2], const uint32_t sizes[2], double gamma_ns, uint32_t resolution_ns,
		     const struct ppt_gaps gaps[2], struct errors *errors)
{
	const double step = (double)sizes[1] - (double)sizes[0], middle = ((double)sizes[0] + (double)sizes[1]) / 2;
	const double clock = quantisation(&gaps[0], resolution_ns) + quantisation(&gaps[1], resolution_ns);
	const double arm = middle + (gamma_ns < 0 ? PPT_GAMMA_BITS / 8.0 : 0);
	size_t least = gaps[0].kept < gaps[1].kept ? gaps[0].kept : gaps[1].kept, room;
	struct random random = { 47 };
	double *slopes = calloc(2 * PPT_RESAMPLES, sizeof *slopes), *deltas = slopes + PPT_RESAMPLES, t;
	uint64_t *counts;
	size_t n = 0;

	room = bins[0].count > bins[1].count ? bins[0].count : bins[1].count;
	counts = calloc(room, sizeof *counts);
	if (!slopes || !counts) {
		free(slopes);
		free(counts);
		return -ENOMEM;
	}
	for (int i = 0; i < PPT_RESAMPLES; i++) {
		double one = resample_average(&bins[0], counts, &random),
		       two = resample_average(&bins[1], counts, &random);

		if (isnan(one) || isnan(two))
			continue;
		slopes[n] = (two - one) / step;
		deltas[n++] = delta_of(one, two, step, arm);
	}
	t = least > 1 ? student((double)(least - 1)) : INFINITY;
	errors->slope = t * standard_error(slopes, n) + clock / step;
	errors->delta = t * standard_error(deltas, n) + clock / 2 + clock / step * arm;
	/* The filter leaves out long gaps rather than short ones, which lowers dPPT; the resamples show by how much. */
	if (n)
		errors->delta += fabs(deltas[n / 2] - delta_of(gaps[0].average_ns, gaps[1].average_ns, step, arm));
	free(counts);
	free(slopes);
	return 0;
}

/* The slope that G would have if all of it were the transmission time of (8 s + 96) bits. */
static double proportional_slope(double gap_ns, uint32_t size)
{
	return gap_ns / ((double)size + PPT_GAMMA_BITS / 8.0);
}

/*
 * Two groups of gaps in both trains, whose lower one does not grow with the packet's size: a link's transmission time
 * does. Cross traffic makes two groups as well; their lower one grows.
 */
static bool coalesced(const struct gap_clusters c[2], const uint32_t sizes[2])
{
	double expected = proportional_slope(c[0].low_ns, sizes[0]) * ((double)sizes[1] - (double)sizes[0]);

	return c[0].separate && c[1].separate &&
	       fabs(c[1].high_ns - c[0].high_ns) <= (c[0].high_ns + c[1].high_ns) / 10 &&
	       c[1].low_ns - c[0].low_ns < expected / 4;
}

static enum ppt_reading reading_of(const struct ppt_result *r, uint32_t size1)
{
	if (r->slope.high < 0)
		return PPT_DECREASING;
	if (r->slope.low > 0)
		return PPT_RESOLVED;
	return r->slope.high < proportional_slope(r->gaps[0].average_ns, size1) / 4 ? PPT_SERVICE_TIME : PPT_UNRESOLVED;
}

static void set_results(struct ppt_result *r, const uint32_t sizes[2], double gamma_ns, const struct errors *errors)
{
	ppt_phase1(&r->gaps[0], sizes[0], &r->gaps[1], sizes[1], gamma_ns, &r->phase1);
	r->delta_ns = (r->phase1.delta1_ns + r->phase1.delta2_ns) / 2;
	ppt_phase2(r->gaps[0].average_ns, r->gaps[1].average_ns, r->delta_ns, &r->phase2);
	r->slope = (struct ppt_interval){ r->phase1.m_avg - errors->slope, r->phase1.m_avg + errors->slope };
	r->delta = (struct ppt_interval){ r->delta_ns - errors->delta, r->delta_ns + errors->delta };
	r->capacity_bit_s = r->phase1.m_avg > 0 ? 8e9 / r->phase1.m_avg : INFINITY;
	r->capacity.low = r->slope.high > 0 ? 8e9 / r->slope.high : INFINITY;
	r->capacity.high = r->slope.low > 0 ? 8e9 / r->slope.low : INFINITY;
	r->service_ns = (r->gaps[0].average_ns + r->gaps[1].average_ns) / 2;
}

static int leave_out(struct ppt_train *train, struct ktrxer_error *err)
{
	size_t kept = 0;

	train->negative = train->zero = 0;
	for (size_t i = 0; i < train->count; i++) {
		train->negative += train->gaps_ns[i] < 0;
		train->zero += train->gaps_ns[i] == 0;
		if (train->gaps_ns[i] > 0)
			train->gaps_ns[kept++] = train->gaps_ns[i];
	}
	train->count = kept;
	if (kept < 2)
		return ktrxer_fail(
			err, -EINVAL,
			"size %u: %zu gaps above zero (%zu negative and %zu zero ones are left out): give two or more",
			train->size_bytes, kept, train->negative, train->zero);
	return 0;
}

int ppt_estimate(struct ppt_train trains[2], uint32_t resolution_ns, double gamma_ns, struct ppt_result *r,
		 struct ktrxer_error *err)
{
	struct gap_clusters clusters[2];
	struct bins bins[2] = { { 0 } };
	uint32_t sizes[2];
	struct errors errors;
	int rc;

	*r = (struct ppt_result){ .resolution_ns = resolution_ns };
	if (trains[0].size_bytes == trains[1].size_bytes)
		return ktrxer_fail(err, -EINVAL,
				   "both trains have trailing packets of %u bytes: the slope needs two sizes",
				   trains[0].size_bytes);
	if (trains[0].size_bytes > trains[1].size_bytes) {
		struct ppt_train larger = trains[0];

		trains[0] = trains[1];
		trains[1] = larger;
	}
	for (int i = 0; i < 2; i++) {
		sizes[i] = trains[i].size_bytes;
		if ((rc = leave_out(&trains[i], err)) < 0)
			goto end;
		rc = filter(trains[i].gaps_ns, trains[i].count, resolution_ns, &r->gaps[i], &bins[i]);
		if (rc < 0) {
			ktrxer_fail(err, rc, "size %u: %s", sizes[i],
				    rc == -ENOMEM   ? "no memory for the histogram"
				    : rc == -ERANGE ? "a gap is longer than 2^61 ns"
						    : "the resolution of the clock is 0");
			goto end;
		}
		gap_clusters(trains[i].gaps_ns, trains[i].count, &clusters[i]);
	}
	rc = bootstrap(bins, sizes, gamma_ns, resolution_ns, r->gaps, &errors);
	if (rc < 0) {
		ktrxer_fail(err, rc, "no memory for the bootstrap");
		goto end;
	}
	set_results(r, sizes, gamma_ns, &errors);
	r->reading = reading_of(r, sizes[0]);
	if (coalesced(clusters, sizes)) {
		r->reading = PPT_COALESCED;
		r->coalescing_ns = (clusters[0].high_ns + clusters[1].high_ns) / 2;
		r->together = clusters[0].low_count + clusters[1].low_count;
	}
end:
	free(bins[0].bins);
	free(bins[1].bins);
	return rc;
}
