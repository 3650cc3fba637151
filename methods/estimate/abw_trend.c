/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_trend.h"

#include "estimate_sort.h"

#include <math.h>

/* Constants of pathload 1.3.3; each threshold has a zone of ambiguity of a tenth around it. */
#define PCT_THRESHOLD 0.55
#define PDT_THRESHOLD 0.4
#define AMBIGUOUS 0.1
#define FLEET_SHARE 0.6
/*
 * Skew of two clocks is a trend as well, and is less than this. A rate above the available bandwidth by a thousandth
 * of the capacity is more.
 */
#define DRIFT_MIN 5e-4

enum { GROUPS_MAX = 32 };

static int64_t delay_of(const struct abw_train *t, uint32_t i)
{
	return (int64_t)(t->arrived_ns[i] - t->arrived_ns[0] - (t->sent_ns[i] - t->sent_ns[0]));
}

/* Medians of sqrt(n) groups of the delays that are known, in the order of sending. */
static uint32_t medians_of(const struct abw_train *t, uint32_t known, double medians[GROUPS_MAX])
{
	const uint32_t by_root = (uint32_t)sqrt((double)known), groups = by_root < GROUPS_MAX ? by_root : GROUPS_MAX;
	int64_t values[1024];
	uint32_t at = 0;

	for (uint32_t g = 0, done = 0; g < groups; g++) {
		const uint32_t wanted = (g + 1) * known / groups - done;
		uint32_t n = 0;

		for (; n < wanted && at < t->packets; at++)
			if (t->sent_ns[at] && t->arrived_ns[at] && n < sizeof values / sizeof *values)
				values[n++] = delay_of(t, at);
		done += n;
		estimate_sort(values, n);
		medians[g] = n ? (double)(values[(n - 1) / 2] + values[n / 2]) / 2 : 0;
	}
	return groups;
}

static enum abw_trend classify(double value, double threshold)
{
	return value > threshold * (1 + AMBIGUOUS)   ? ABW_RISING
	       : value < threshold * (1 - AMBIGUOUS) ? ABW_NO_TREND
						     : ABW_AMBIGUOUS;
}

static void drift_of(const struct abw_train *t, uint32_t known, struct abw_trend_result *r)
{
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < t->packets; i++) {
			const double x = (double)(int64_t)(t->sent_ns[i] - t->sent_ns[0]), y = (double)delay_of(t, i);

			if (!t->sent_ns[i] || !t->arrived_ns[i])
				continue;
			if (pass == 0) {
				mean_x += x / known;
				mean_y += y / known;
			} else {
				xx += (x - mean_x) * (x - mean_x);
				xy += (x - mean_x) * (y - mean_y);
			}
		}
	r->drift = xx > 0 ? xy / xx : 0;
}

void abw_trend(const struct abw_train *t, double noise_ns, struct abw_trend_result *r)
{
	double medians[GROUPS_MAX], sum = 0;
	uint32_t known = 0, groups, rising = 0, first = t->packets, last = 0, first_came = t->packets, last_came = 0;
	enum abw_trend pct, pdt;

	*r = (struct abw_trend_result){ .trend = ABW_UNUSABLE };
	for (uint32_t i = 0; i < t->packets; i++) {
		r->lost += t->sent_ns[i] && !t->arrived_ns[i];
		known += t->sent_ns[i] && t->arrived_ns[i];
		if (t->arrived_ns[i]) {
			first_came = first_came == t->packets ? i : first_came;
			last_came = i;
		}
		if (!t->sent_ns[i])
			continue;
		first = first == t->packets ? i : first;
		last = i;
	}
	if (last > first)
		r->gap_ns = (double)(int64_t)(t->sent_ns[last] - t->sent_ns[first]) / (last - first);
	if (last_came > first_came)
		r->came_ns = (double)(int64_t)(t->arrived_ns[last_came] - t->arrived_ns[first_came]) /
			     (last_came - first_came);
	if (r->lost * 100 > t->packets * ABW_LOSS_PERCENT) {
		r->trend = ABW_RISING;
		return;
	}
	if (known < ABW_TREND_LEAST)
		return;
	drift_of(t, known, r);
	groups = medians_of(t, known, medians);
	for (uint32_t g = 1; g < groups; g++) {
		rising += medians[g] > medians[g - 1];
		sum += fabs(medians[g] - medians[g - 1]);
	}
	r->pct = (double)rising / (groups - 1);
	r->pdt = sum > 0 ? (medians[groups - 1] - medians[0]) / sum : 0;
	pct = classify(r->pct, PCT_THRESHOLD);
	pdt = classify(r->pdt, PDT_THRESHOLD);
	/* One test decides where the other is ambiguous; tests that contradict each other decide nothing. */
	r->trend = r->drift < DRIFT_MIN || r->drift * r->gap_ns * (last - first) < noise_ns ? ABW_NO_TREND
		   : pct == pdt                                                             ? pct
		   : pct == ABW_AMBIGUOUS                                                   ? pdt
		   : pdt == ABW_AMBIGUOUS                                                   ? pct
											    : ABW_AMBIGUOUS;
}

enum abw_fleet abw_fleet(const struct abw_trend_result *streams, size_t count)
{
	size_t rising = 0, level = 0, usable = 0;

	for (size_t i = 0; i < count; i++) {
		usable += streams[i].trend != ABW_UNUSABLE;
		rising += streams[i].trend == ABW_RISING;
		level += streams[i].trend == ABW_NO_TREND;
	}
	if (!count || usable * 2 < count)
		return ABW_FLEET_UNUSABLE;
	if ((double)rising >= FLEET_SHARE * (double)(rising + level) && rising)
		return ABW_FLEET_ABOVE;
	if ((double)level >= FLEET_SHARE * (double)(rising + level) && level)
		return ABW_FLEET_BELOW;
	return ABW_FLEET_GREY;
}

bool abw_fleet_is_lossy(const struct abw_trend_result *streams, size_t count, uint32_t packets)
{
	size_t moderate = 0;

	for (size_t i = 0; i < count; i++) {
		const uint64_t lost = 100ull * streams[i].lost;

		if (lost && lost >= (uint64_t)packets * ABW_LOSS_PERCENT)
			return true;
		moderate += lost && lost >= (uint64_t)packets * ABW_LOSS_MODERATE_PERCENT;
	}
	return moderate && moderate * 2 >= count;
}

double abw_search_rate(const struct abw_search *s)
{
	if (s->grey_high <= 0)
		return (s->low + s->high) / 2;
	return s->high - s->grey_high > s->grey_low - s->low ? (s->high + s->grey_high) / 2
							     : (s->low + s->grey_low) / 2;
}

void abw_search_take(struct abw_search *s, double rate, enum abw_fleet fleet)
{
	/* The rate that was sent may differ from the one that was asked for. */
	rate = fmin(fmax(rate, s->low), s->high);
	if (fleet == ABW_FLEET_ABOVE) {
		s->high = rate;
	} else if (fleet == ABW_FLEET_BELOW) {
		s->low = rate;
	} else {
		s->grey_low = s->grey_high <= 0 || rate < s->grey_low ? rate : s->grey_low;
		s->grey_high = fmax(s->grey_high, rate);
	}
	/* A later fleet may contradict the grey region of earlier ones. */
	if (s->grey_high <= s->low || s->grey_low >= s->high)
		s->grey_low = s->grey_high = 0;
	else
		s->grey_low = fmax(s->grey_low, s->low), s->grey_high = fmin(s->grey_high, s->high);
}

int abw_search_over(const struct abw_search *s)
{
	return s->high - s->low <= s->resolution ||
	       (s->grey_high > 0 && s->high - s->grey_high <= s->resolution && s->grey_low - s->low <= s->resolution);
}
