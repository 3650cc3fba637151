/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "shared.h"

#include "capacity.h"
#include "error_bound.h"
#include "hop_queues.h"
#include "levels.h"
#include "mda.h"
#include "ppt_checks.h"
#include "tcp_pair.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

struct figures {
	struct figure *to;
	int count, most;
};

static void put(struct figures *f, const char *name, double number)
{
	if (f->count < f->most)
		f->to[f->count++] = (struct figure){ name, number, NULL };
}

static void put_text(struct figures *f, const char *name, const char *text)
{
	if (f->count < f->most)
		f->to[f->count++] = (struct figure){ name, NAN, text };
}

EXPORT int ktrxer_py_pairs(const struct pair_times *large, size_t large_count, uint32_t large_bytes,
			   const struct pair_times *small, size_t small_count, uint32_t small_bytes,
			   uint32_t resolution_ns, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct pairs_set sets[2] = { { .pairs = large, .count = large_count, .bits = 8ull * large_bytes },
				     { .pairs = small, .count = small_count, .bits = 8ull * small_bytes } };
	struct pairs_result r;
	const int rc = pairs_estimate(sets, resolution_ns, &r);

	if (rc < 0)
		return rc;
	put_text(&f, "reading", pairs_reading_names[r.reading]);
	put(&f, "usable", (double)(sets[0].outcomes[PAIR_USABLE] + sets[1].outcomes[PAIR_USABLE]));
	put(&f, "lost", (double)(sets[0].outcomes[PAIR_LOST] + sets[1].outcomes[PAIR_LOST]));
	put(&f, "reordered", (double)(sets[0].outcomes[PAIR_REORDERED] + sets[1].outcomes[PAIR_REORDERED]));
	if (r.reading == PAIRS_COALESCED && r.period_ns > 0)
		put(&f, "coalescing_period_ns", r.period_ns);
	if (r.reading != PAIRS_RESOLVED)
		return f.count;
	put(&f, "capacity_bit_s", r.large->capacity_bit_s);
	put(&f, "capacity_low_bit_s", r.large->low_bit_s);
	put(&f, "capacity_high_bit_s", r.large->high_bit_s);
	put(&f, "undisturbed", (double)r.large->undisturbed);
	put(&f, "link_bit_s", r.link_bit_s);
	put(&f, "overhead_bytes", r.overhead_bytes);
	put(&f, "skew_ppm", r.skew_ppm);
	return f.count;
}

EXPORT int ktrxer_py_modes(const int64_t *gaps_ns, size_t count, uint64_t bits, uint32_t resolution_ns,
			   struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	int64_t *gaps = malloc((count ? count : 1) * sizeof *gaps);
	struct capacity_modes r;
	int rc;

	if (!gaps)
		return -ENOMEM;
	if (count)
		memcpy(gaps, gaps_ns, count * sizeof *gaps);
	rc = capacity_find_modes(gaps, count, bits, resolution_ns, &r);
	free(gaps);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < r.count; i++)
		put(&f, "mode_bit_s", r.modes[i].bit_s);
	return f.count;
}

EXPORT int ktrxer_py_coalescing(const struct pair_times *one, size_t one_count, const struct pair_times *two,
				size_t two_count, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct gap_clusters clusters[2];
	int64_t gaps = pairs_clusters(one, one_count, &clusters[0]);

	if (gaps >= 0)
		gaps = pairs_clusters(two, two_count, &clusters[1]);
	if (gaps < 0)
		return (int)gaps;
	put(&f, "period_ns", gap_clusters_period(clusters));
	put(&f, "together", (double)(clusters[0].low_count + clusters[1].low_count));
	put(&f, "apart", (double)(clusters[0].high_count + clusters[1].high_count));
	put(&f, "separate", clusters[0].separate && clusters[1].separate);
	return f.count;
}

static int failed(int rc, const struct ktrxer_error *err, char *text, size_t size)
{
	snprintf(text, size, "%s", err->text);
	return rc;
}

static int put_ppt(struct figures *f, const struct ppt_result *r)
{
	put_text(f, "reading", ppt_reading_names[r->reading]);
	if (r->reading == PPT_RESOLVED) {
		put(f, "capacity_bit_s", r->capacity_bit_s);
		put(f, "capacity_low_bit_s", r->capacity.low);
		put(f, "capacity_high_bit_s", r->capacity.high);
		put(f, "delta_ns", r->delta_ns);
		put(f, "delta_low_ns", r->delta.low);
		put(f, "delta_high_ns", r->delta.high);
		put(f, "fixed_trailing_ns", r->phase2.trailing_ns);
		put(f, "fixed_heading_ns", r->phase2.heading_ns);
	}
	if (r->reading == PPT_SERVICE_TIME || (r->reading == PPT_RESOLVED && r->serial))
		put(f, "service_ns", r->service_ns);
	if (r->reading == PPT_COALESCED && r->coalescing_ns > 0)
		put(f, "coalescing_period_ns", r->coalescing_ns);
	return f->count;
}

EXPORT int ktrxer_py_ppt_gaps(const int64_t *one_ns, size_t one_count, uint32_t one_bytes, const int64_t *two_ns,
			      size_t two_count, uint32_t two_bytes, uint32_t resolution_ns, struct figure *to, int most,
			      char *text, size_t size)
{
	struct figures f = { .to = to, .most = most };
	int64_t *gaps = malloc((one_count + two_count + 1) * sizeof *gaps);
	struct ppt_train trains[2] = { { .size_bytes = one_bytes, .gaps_ns = gaps, .count = one_count },
				       { .size_bytes = two_bytes, .gaps_ns = gaps + one_count, .count = two_count } };
	struct ktrxer_error err = { 0 };
	struct ppt_result r;
	int rc;

	if (!gaps)
		return -ENOMEM;
	if (one_count)
		memcpy(gaps, one_ns, one_count * sizeof *gaps);
	if (two_count)
		memcpy(gaps + one_count, two_ns, two_count * sizeof *gaps);
	rc = ppt_estimate(trains, resolution_ns ? resolution_ns : ppt_resolution_ns(gaps, one_count + two_count), -1,
			  &r, &err);
	free(gaps);
	return rc < 0 ? failed(rc, &err, text, size) : put_ppt(&f, &r);
}

EXPORT int ktrxer_py_ppt_four_probes(const struct pair_times *one, size_t one_count, uint32_t one_bytes,
				     const struct pair_times *two, size_t two_count, uint32_t two_bytes,
				     const struct pair_times *middle, size_t middle_count, uint32_t middle_bytes,
				     const struct pair_times *shorter, size_t shorter_count, uint32_t shorter_bytes,
				     uint32_t shorter_heading_bytes, uint32_t heading_bytes, uint32_t resolution_ns,
				     struct figure *to, int most, char *text, size_t size)
{
	struct figures f = { .to = to, .most = most };
	struct ppt_probes sets[2] = { { .probes = one, .count = one_count, .size_bytes = one_bytes },
				      { .probes = two, .count = two_count, .size_bytes = two_bytes } };
	struct ktrxer_error err = { 0 };
	struct ppt_result r;
	struct ppt_checks checks = {
		.middle = { .probes = middle, .count = middle_count, .size_bytes = middle_bytes },
		.shorter = { .probes = shorter, .count = shorter_count, .size_bytes = shorter_bytes },
		.heading_bytes = heading_bytes,
		.shorter_heading_bytes = shorter_heading_bytes
	};
	int rc = ppt_probes_estimate(sets, heading_bytes, resolution_ns, &r, &err);

	if (rc == 0 && middle_bytes)
		rc = ppt_probes_check(sets, &checks, resolution_ns, &r, &err);
	return rc < 0 ? failed(rc, &err, text, size) : put_ppt(&f, &r);
}

EXPORT int ktrxer_py_ppt_plan(const uint64_t *capacity_bit_s, size_t links, uint32_t heading_bytes,
			      uint32_t resolution_ns, uint32_t gap_bits, struct figure *to, int most, char *text,
			      size_t size)
{
	struct figures f = { .to = to, .most = most };
	struct ppt_path path = { .links = links > PPT_LINKS_MAX ? PPT_LINKS_MAX + 1 : (uint32_t)links,
				 .gap_bits = gap_bits };
	struct ktrxer_error err = { 0 };
	struct ppt_sizing r;
	int rc;

	memcpy(path.capacity_bit_s, capacity_bit_s,
	       (links < PPT_LINKS_MAX ? links : PPT_LINKS_MAX) * sizeof *capacity_bit_s);
	rc = ppt_size(&path, heading_bytes, resolution_ns, NULL, &r, &err);
	if (rc < 0)
		return failed(rc, &err, text, size);
	put(&f, "narrow_link", r.narrow);
	put(&f, "trailing_max_bytes", r.trailing_max_bytes);
	put(&f, "least_ratio", r.alpha_min);
	put(&f, "least_ratio_by_rule", r.alpha_rule);
	put(&f, "size1_bytes", r.size1);
	put(&f, "size2_bytes", r.size2);
	put(&f, "least_step_bytes", r.step_min);
	return f.count;
}

EXPORT int ktrxer_py_mda_probes(uint32_t hops, double failure)
{
	const uint32_t probes = mda_probes(hops, failure);

	return probes ? (int)probes : -EINVAL;
}

static void put_hop(struct figures *f, const struct hop_queue *q)
{
	put(f, "idle_answers", (double)q->idle_answers);
	put(f, "loaded_answers", (double)q->loaded_answers);
	if (q->known) {
		put(f, "idle_ns", (double)q->idle_ns);
		put(f, "loaded_ns", (double)q->loaded_ns);
		put(f, "added_ns", (double)q->added_ns);
		put(f, "added_uncertainty_ns", (double)q->added_uncertainty_ns);
		put(f, "after", (double)q->after);
	}
	if (q->measured) {
		put(f, "queue_ns", (double)q->queue_ns);
		put(f, "queue_uncertainty_ns", (double)q->queue_uncertainty_ns);
	}
	put(f, "fills", q->fills);
}

EXPORT int ktrxer_py_hop_queues(const int64_t *idle_ns, size_t idle_count, const int64_t *loaded_ns,
				size_t loaded_count, uint32_t hops, uint32_t own, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct hop_times *times = calloc(hops ? hops : 1, sizeof *times);
	struct hop_queue *queues = calloc(hops ? hops : 1, sizeof *queues);
	size_t fullest;
	int rc = times && queues ? 0 : -ENOMEM;

	if (rc == 0 && !hops)
		rc = -EINVAL;
	for (size_t i = own ? 0 : 1; rc == 0 && i < hops; i++)
		times[i] = (struct hop_times){ idle_ns + i * idle_count, loaded_ns + i * loaded_count };
	if (rc == 0)
		rc = hop_queues_estimate(times, hops, idle_count, loaded_count, queues, &fullest);
	if (rc == 0) {
		if (fullest < hops)
			put(&f, "fullest", (double)fullest);
		for (size_t i = 0; i < hops; i++)
			put_hop(&f, &queues[i]);
	}
	free(queues);
	free(times);
	return rc < 0 ? rc : f.count;
}

static void put_range(struct figures *f, const char *min, const char *max, const struct ip_capacity_range *r)
{
	if (r->max_ns == IP_CAPACITY_UNKNOWN)
		return;
	put(f, min, (double)r->min_ns);
	put(f, max, (double)r->max_ns);
}

static void put_mode(struct figures *f, const struct ip_capacity_mode *m)
{
	put(f, "first", m->first);
	put(f, "count", m->count);
	put(f, "at", m->at);
	put(f, "bit_s", m->bit_s);
	if (!isnan(m->loss))
		put(f, "loss", m->loss);
	put_range(f, "variation_min_ns", "variation_max_ns", &m->variation);
	put_range(f, "rtt_min_ns", "rtt_max_ns", &m->rtt);
}

EXPORT int ktrxer_py_ip_capacity(const struct ip_capacity_interval *intervals, size_t count, uint32_t first_mode,
				 uint64_t low_ns, uint64_t late_ns, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct ip_capacity_result r;
	const int rc = count > UINT32_MAX
			       ? -EINVAL
			       : ip_capacity_of(&r, intervals, (uint32_t)count, first_mode, low_ns, late_ns, 0);

	if (rc < 0)
		return rc;
	put(&f, "mean_bit_s", r.mean_bit_s);
	if (!isnan(r.loss))
		put(&f, "mean_loss", r.loss);
	put(&f, "datagrams", (double)r.datagrams);
	put(&f, "lost", (double)r.lost);
	put(&f, "reordered", (double)r.reordered);
	put(&f, "duplicates", (double)r.duplicates);
	put(&f, "late", r.late);
	put(&f, "rising", r.rising);
	put(&f, "unfilled", r.unfilled);
	put_range(&f, "variation_min_ns", "variation_max_ns", &r.variation);
	put_range(&f, "rtt_min_ns", "rtt_max_ns", &r.rtt);
	put_mode(&f, &r.whole);
	for (int i = 0; i < 2; i++)
		if (r.modes[i].count)
			put_mode(&f, &r.modes[i]);
	return f.count;
}

EXPORT int ktrxer_py_tcp_pair(const int64_t *rows, size_t count, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct tcp_pair_answer *answers = calloc(count ? count : 1, sizeof *answers);
	struct tcp_pair_result r;

	if (!answers)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		answers[i] = (struct tcp_pair_answer){ .data = (int32_t)rows[3 * i],
						       .acknowledged = (uint8_t)rows[3 * i + 1],
						       .again = rows[3 * i + 2] != 0 };
	tcp_pair_read(answers, count, &r);
	put(&f, "up", r.up);
	put(&f, "down", r.down);
	put(&f, "whole", tcp_pair_is_whole(answers, count));
	free(answers);
	return f.count;
}

static void put_share(struct figures *f, uint64_t count, uint64_t of)
{
	const struct tcp_pair_share s = tcp_pair_share(count, of);

	put(f, "count", (double)count);
	put(f, "of", (double)of);
	put(f, "share", s.share);
	put(f, "low", s.low);
	put(f, "high", s.high);
}

EXPORT int ktrxer_py_tcp_losses(const int64_t *events, size_t count, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	struct tcp_pair_totals totals[2] = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct tcp_pair_result r = { .up = (enum tcp_pair_event)events[2 * i],
						   .down = (enum tcp_pair_event)events[2 * i + 1] };

		tcp_pair_count(totals, &r);
	}
	for (int i = 0; i < 2; i++) {
		put_share(&f, totals[i].lost, totals[i].sent);
		put_share(&f, totals[i].reordered, totals[i].ordered);
	}
	return f.count;
}

static int put_bound(struct figures *f, double value, int64_t bound, const struct bound_interval *i, double unit)
{
	put(f, "value", value);
	if (bound != BOUND_UNKNOWN)
		put(f, "bound", (double)bound / unit);
	if (i->known) {
		put(f, "low", (double)i->low / unit);
		put(f, "high", (double)i->high / unit);
	}
	return f->count;
}

EXPORT int ktrxer_py_median_bound(const int64_t *values, size_t count, uint64_t unknown, uint64_t delayed,
				  struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	const struct bound_median m = bound_of_median(values, count, unknown, delayed);

	if (!count)
		return 0;
	put(&f, "value", (double)m.value);
	if (m.bound != BOUND_UNKNOWN)
		put(&f, "bound", (double)m.bound);
	return f.count;
}

EXPORT int ktrxer_py_loss_bound(uint64_t sent, uint64_t lost, uint64_t unknown, uint64_t unsent, struct figure *to,
				int most)
{
	struct figures f = { .to = to, .most = most };
	const struct bound_interval i = bound_loss_interval(sent, lost);

	if (lost > sent)
		return -EINVAL;
	return sent ? put_bound(&f, 100.0 * (double)lost / (double)sent, bound_of_loss(sent, unknown, unsent), &i,
				BOUND_WHOLE / 100.0)
		    : 0;
}

EXPORT int ktrxer_py_rate_bound(double rate, uint64_t uncovered_ns, uint64_t whole_ns, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };
	int64_t bound;

	if (!(rate >= 0 && rate < 9e18))
		return -EINVAL;
	bound = bound_of_rate((int64_t)rate, uncovered_ns, whole_ns);
	if (bound != BOUND_UNKNOWN)
		put(&f, "bound", (double)bound);
	return f.count;
}

EXPORT int ktrxer_py_tolerances(struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };

	put(&f, "default_percent", BOUND_TOLERANCE * 100.0 / BOUND_WHOLE);
	put(&f, "least_ns", BOUND_TOLERANCE_NS);
	put(&f, "loss_points", BOUND_TOLERANCE_LOSS * 100.0 / BOUND_WHOLE);
	return f.count;
}

EXPORT int ktrxer_py_levels(const double *values, size_t count, uint64_t begin_ns, uint64_t window_ns,
			    uint32_t packet_bytes, double first, struct figure *to, int most)
{
	const struct rate_windows windows = { .values = values,
					      .count = count,
					      .begin_ns = begin_ns,
					      .window_ns = window_ns,
					      .packet_bytes = packet_bytes,
					      .first = first };
	struct figures f = { .to = to, .most = most };
	struct rate_level found[RATE_LEVELS_MOST];
	const size_t levels = levels_of_rate(&windows, found);

	for (size_t i = 0; i < levels; i++) {
		put(&f, "from_ns", (double)found[i].from_ns);
		put(&f, "to_ns", (double)found[i].to_ns);
		put(&f, "median", found[i].median);
	}
	return f.count;
}

EXPORT int ktrxer_py_levels_window(uint64_t begin_ns, uint64_t end_ns, uint64_t sample_ns, struct figure *to, int most)
{
	struct figures f = { .to = to, .most = most };

	put(&f, "window_ns", (double)levels_window_ns(begin_ns, end_ns, sample_ns));
	return f.count;
}

EXPORT int ktrxer_py_one_way(const struct one_way_row *rows, size_t count, uint32_t adjusted, uint32_t free_running,
			     struct one_way_row_delays *delays)
{
	const struct one_way_clocks clocks = { .adjusted = adjusted, .free_running = free_running };

	return one_way_of_rows(rows, count, &clocks, delays);
}

EXPORT int ktrxer_py_loss_directions(struct loss_probe *probes, size_t count, uint32_t reflector, uint32_t copied_up,
				     uint32_t withdraw, const int64_t *split)
{
	struct loss_evidence evidence = {
		.reflector = reflector, .copied_up = copied_up, .withdraw = withdraw, .split = split != NULL
	};

	if (split) {
		evidence.up = (uint64_t)split[0];
		evidence.down = (uint64_t)split[1];
		evidence.unknown = (uint64_t)split[2];
	}
	return loss_directions(probes, count, &evidence);
}

EXPORT struct abw *ktrxer_py_abw_new(uint32_t method, uint32_t large_bytes, uint32_t small_bytes, double max_load_bit_s,
				     uint32_t resolution_ns)
{
	const struct abw_options o = { .method = method,
				       .large_bytes = large_bytes,
				       .small_bytes = small_bytes,
				       .max_load_bit_s = max_load_bit_s,
				       .resolution_ns = resolution_ns };
	struct abw *abw = malloc(sizeof *abw);
	int rc;

	if (!abw)
		return NULL;
	rc = abw_begin(abw, &o);
	if (rc < 0) {
		free(abw);
		errno = -rc;
		return NULL;
	}
	return abw;
}

EXPORT int ktrxer_py_abw_next(const struct abw *abw, struct figure *to, int most)
{
	const struct abw_plan *plan = abw_next(abw);
	struct figures f = { .to = to, .most = most };

	if (!plan)
		return 0;
	put_text(&f, "step", abw_step_names[plan->step]);
	put(&f, "flows", plan->flows);
	put(&f, "trains", plan->trains);
	put(&f, "packets", plan->packets);
	put(&f, "ip_bytes", plan->ip_bytes);
	put(&f, "gap_ns", (double)plan->gap_ns);
	put(&f, "period_ns", (double)plan->period_ns);
	put(&f, "shrink", plan->shrink ? plan->shrink / 65536.0 : 1);
	return f.count;
}

EXPORT int ktrxer_py_abw_take(struct abw *abw, const uint64_t *sent_ns, const uint64_t *arrived_ns, size_t count)
{
	const struct abw_plan *plan = abw_next(abw);

	if (!plan || count != (size_t)plan->flows * plan->trains * plan->packets)
		return -EINVAL;
	return abw_take(abw, sent_ns, arrived_ns);
}

EXPORT int ktrxer_py_abw_result(const struct abw *abw, struct figure *to, int most)
{
	const struct abw_result *r = &abw->result;
	struct figures f = { .to = to, .most = most };

	put_text(&f, "reading", abw_reading_names[r->reading]);
	put(&f, "packets", (double)r->packets);
	put(&f, "bytes", (double)r->bytes);
	put(&f, "lost", (double)r->lost);
	put(&f, "late", (double)r->late);
	if (r->capacity_bit_s > 0)
		put(&f, "capacity_bit_s", r->capacity_bit_s);
	if (r->reading == ABW_RESOLVED) {
		put_text(&f, "by", abw_step_names[r->by]);
		put(&f, "low_bit_s", r->low_bit_s);
		put(&f, "high_bit_s", r->high_bit_s);
		put(&f, "misfit", r->misfit);
	}
	if (r->reading == ABW_SHAPED) {
		put(&f, "line_bit_s", r->shaper.line_bit_s);
		put(&f, "sustained_bit_s", r->shaper.sustained_bit_s);
		put(&f, "bucket_bytes", r->shaper.bucket_bytes);
	}
	return f.count;
}

EXPORT void ktrxer_py_abw_free(struct abw *abw)
{
	abw_end(abw);
	free(abw);
}
