/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_bend.h"

#include <math.h>

#define ONE_LINK 0.5     /* prior probability that the narrow link is the only loaded one */
#define TAIL 0.01        /* outside of the range, on each side */
#define MODEL_ERROR 0.01 /* of the growth that the model gives: absolute, and a share of the growth */
#define MODEL_SHARE 0.08

/*
 * Capacities of the tight link, in those of the narrow one: a smaller one stands for two links that are tight
 * alike.
 */
static const double tight[] = { 0.5, 0.7, 1, 1.4, 2, 3, 5, 9, 16, 32 };
/* Variances of the cross traffic, in those of a Poisson process of large packets. */
static const double bursts[] = { 0.001, 0.1, 0.5, 1.2, 3, 8, 24, 80 };

enum { RATES = 64, TIGHT = sizeof tight / sizeof *tight, BURSTS = sizeof bursts / sizeof *bursts, ONE = 2 };

static double below(double x) /* of the normal distribution */
{
	return erfc(-x / M_SQRT2) / 2;
}

/*
 * The mean growth of a queue in `lasts`, whose work changes by x a second with the variance v, and by -rest without
 * the train: a Brownian motion that is reflected at an empty queue.
 */
static double growth(double x, double rest, double v, double lasts)
{
	const double spread = sqrt(v * lasts), a = x * lasts / spread, fluid = fmax(x, 0) * lasts;
	double most;

	if (fabs(a) > 6 || spread <= 0)
		most = x > 0 ? fluid + v / (2 * x) : v / (-2 * x);
	else if (fabs(a) < 1e-3)
		most = spread * 2 * M_2_SQRTPI / 2 * M_SQRT1_2;
	else
		most = spread * exp(-a * a / 2) * M_2_SQRTPI / 2 * M_SQRT1_2 + x * lasts * below(a) +
		       v / (2 * x) * (2 * below(a) - 1);
	/* The queue that the train meets. */
	most -= v / (2 * (rest + fmax(x, 0)));
	return fmax(most, fluid) / lasts;
}

struct point {
	double available, capacity, bursts;
};

static double log_likelihood(const struct abw_streams *s, const struct point *p, const struct abw_bend_given *given,
			     double *misfit)
{
	const double v = p->bursts * fmax(1 - p->available / p->capacity, 1e-4) * given->packet_s / p->capacity;
	const double mean = growth((s->rate - p->available) / p->capacity, p->available / p->capacity, v, s->lasts_s);
	const double one = v / s->lasts_s + 2 * given->noise_s * given->noise_s / (s->lasts_s * s->lasts_s),
		     model = MODEL_ERROR + MODEL_SHARE * mean, all = one / s->trains + model * model,
		     off = s->mean - mean;

	*misfit = fabs(off) / sqrt(all);
	return -0.5 * ((s->trains - 1) * log(one) + s->squares / one + log(all) + off * off / all);
}

/* Logarithm of the prior density. */
static double log_prior(const struct abw_bend_given *given, double available, bool one)
{
	const double z = given->empty_error > 0 ? (available - given->empty) / given->empty_error : 0;

	if (given->empty_error <= 0)
		return one ? -INFINITY : 0;
	if (one)
		return log(
			ONE_LINK * RATES *
			fmax(below(z + 0.5 / RATES / given->empty_error) - below(z - 0.5 / RATES / given->empty_error),
			     1e-30));
	return log((1 - ONE_LINK) / TIGHT * fmax(below(z), 1e-30) / (1 - fmin(given->empty, 0.95)));
}

static double quantile(const double *weights, double sum, double share)
{
	double seen = 0;

	for (int i = 0; i < RATES; i++) {
		if (seen + weights[i] >= share * sum)
			return (i + (share * sum - seen) / weights[i]) / RATES;
		seen += weights[i];
	}
	return 1;
}

void abw_bend(const struct abw_streams *streams, uint32_t count, const struct abw_bend_given *given, struct abw_bend *r)
{
	double weights[RATES] = { 0 }, one = 0, sum = 0, most = -INFINITY;

	*r = (struct abw_bend){ 0 };
	for (int i = 0; i < RATES; i++)
		for (int t = 0; t < TIGHT; t++)
			for (int b = 0; b < BURSTS; b++) {
				const struct point p = { (i + 0.5) / RATES, tight[t], bursts[b] };
				double all = log_prior(given, p.available, false), only, misfit = 0, weight;

				if (p.available > p.capacity)
					continue;
				only = t == ONE ? log_prior(given, p.available, true) : -INFINITY;
				all = only > -INFINITY ? fmax(all, only) + log1p(exp(-fabs(all - only))) : all;
				only = t == ONE && only > -INFINITY ? exp(only - all) : 0;
				for (uint32_t s = 0; s < count; s++) {
					double own;

					all += log_likelihood(&streams[s], &p, given, &own);
					misfit = fmax(misfit, own);
				}
				if (all > most) { /* the weights so far are of this one from now on */
					const double less = exp(most - all);

					for (int k = 0; k < RATES; k++)
						weights[k] *= less;
					one *= less;
					most = all;
					r->misfit = misfit;
				}
				weight = exp(all - most);
				weights[i] += weight;
				one += weight * only;
			}
	for (int i = 0; i < RATES; i++)
		sum += weights[i];
	r->low = quantile(weights, sum, TAIL);
	r->middle = quantile(weights, sum, 0.5);
	r->high = quantile(weights, sum, 1 - TAIL);
	r->one = one / sum;
}
