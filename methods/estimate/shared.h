/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The estimators of methods/estimate for Python: arrays in, named figures out. python/ktrxer/statistics/native.py loads
 * this library and is its only user, so it is no interface for others.
 */
#ifndef KTRXER_METHODS_ESTIMATE_SHARED_H
#define KTRXER_METHODS_ESTIMATE_SHARED_H

#include "abw.h"
#include "ip_capacity.h"
#include "loss_directions.h"
#include "one_way_delays.h"
#include "pairs.h"

/* `text` NULL: the value is the number. */
struct figure {
	const char *name;
	double number;
	const char *text;
};

/*
 * Each function writes at most `most` figures to `to`, and returns their number or a negative errno. A figure that the
 * reading does not support is left out.
 */

int ktrxer_py_pairs(const struct pair_times *large, size_t large_count, uint32_t large_bytes,
		    const struct pair_times *small, size_t small_count, uint32_t small_bytes, uint32_t resolution_ns,
		    struct figure *to, int most);
/* Of each mode that capacity_find_modes() finds one figure "mode_bit_s", the densest first. */
int ktrxer_py_modes(const int64_t *gaps_ns, size_t count, uint64_t bits, uint32_t resolution_ns, struct figure *to,
		    int most);
int ktrxer_py_coalescing(const struct pair_times *one, size_t one_count, const struct pair_times *two, size_t two_count,
			 struct figure *to, int most);
/* `text` of `size` bytes: the cause of an error. `resolution_ns` 0: by the gaps. */
int ktrxer_py_ppt_gaps(const int64_t *one_ns, size_t one_count, uint32_t one_bytes, const int64_t *two_ns,
		       size_t two_count, uint32_t two_bytes, uint32_t resolution_ns, struct figure *to, int most,
		       char *text, size_t size);
int ktrxer_py_ppt_four_probes(const struct pair_times *one, size_t one_count, uint32_t one_bytes,
			      const struct pair_times *two, size_t two_count, uint32_t two_bytes,
			      const struct pair_times *middle, size_t middle_count, uint32_t middle_bytes,
			      const struct pair_times *shorter, size_t shorter_count, uint32_t shorter_bytes,
			      uint32_t shorter_heading_bytes, uint32_t heading_bytes, uint32_t resolution_ns,
			      struct figure *to, int most, char *text, size_t size);
int ktrxer_py_ppt_plan(const uint64_t *capacity_bit_s, size_t links, uint32_t heading_bytes, uint32_t resolution_ns,
		       uint32_t gap_bits, struct figure *to, int most, char *text, size_t size);
int ktrxer_py_mda_probes(uint32_t hops, double failure);
/*
 * Round trips by hop and repetition, `hops` rows; the first hop is the host that probes: `own` false: its row is not
 * known, and left out. First "fullest", then the figures of each hop, which begin with "idle_answers".
 */
int ktrxer_py_hop_queues(const int64_t *idle_ns, size_t idle_count, const int64_t *loaded_ns, size_t loaded_count,
			 uint32_t hops, uint32_t own, struct figure *to, int most);
/* `intervals`: rows of struct ip_capacity_interval. The figures of a mode begin with "first". */
int ktrxer_py_ip_capacity(const struct ip_capacity_interval *intervals, size_t count, uint32_t first_mode,
			  uint64_t low_ns, uint64_t late_ns, struct figure *to, int most);
/* `answers`: rows of data, acknowledged, again, in the order of their arrival. */
int ktrxer_py_tcp_pair(const int64_t *answers, size_t count, struct figure *to, int most);
/* `events`: rows of up, down, numbers of enum tcp_pair_event. The figures up, then those down. */
int ktrxer_py_tcp_losses(const int64_t *events, size_t count, struct figure *to, int most);

/*
 * error_bound.h. Of a median of `values` in ascending order: "value", "bound", and the ends of the sampling interval
 * "low" and "high". "bound" is left out where there is none, "low" and "high" with too few samples.
 */
int ktrxer_py_median_bound(const int64_t *values, size_t count, uint64_t unknown, uint64_t delayed, struct figure *to,
			   int most);
/* Of a loss, in percent: the same. `unknown` of the lost probes may have passed, `unsent` others did not leave. */
int ktrxer_py_loss_bound(uint64_t sent, uint64_t lost, uint64_t unknown, uint64_t unsent, struct figure *to, int most);
/* "bound", as the rate. */
int ktrxer_py_rate_bound(double rate, uint64_t uncovered_ns, uint64_t whole_ns, struct figure *to, int most);
/* "default_percent", "least_ns" of delays, "loss_points". */
int ktrxer_py_tolerances(struct figure *to, int most);

/*
 * levels.h: of windows of a rate or a delay: "from_ns", "to_ns" and "median" of each level; none: there was no change.
 * `first` negative: not known.
 */
int ktrxer_py_levels(const double *values, size_t count, uint64_t begin_ns, uint64_t window_ns, uint32_t packet_bytes,
		     double first, struct figure *to, int most);
/* "window_ns" */
int ktrxer_py_levels_window(uint64_t begin_ns, uint64_t end_ns, uint64_t sample_ns, struct figure *to, int most);

/* The functions of arrays: see their headers. */
int ktrxer_py_one_way(const struct one_way_row *rows, size_t count, uint32_t adjusted, uint32_t free_running,
		      struct one_way_row_delays *delays);
/* `split`: up, down, unknown; NULL: not reported. */
int ktrxer_py_loss_directions(struct loss_probe *probes, size_t count, uint32_t reflector, uint32_t copied_up,
			      uint32_t withdraw, const int64_t *split);

struct abw *ktrxer_py_abw_new(uint32_t method, uint32_t large_bytes, uint32_t small_bytes, double max_load_bit_s,
			      uint32_t resolution_ns);
/* No figure: there is nothing more to send. */
int ktrxer_py_abw_next(const struct abw *abw, struct figure *to, int most);
/* The packets of the plan: flow after flow, train after train. 0, -EINVAL: it is another count; -ENOMEM. */
int ktrxer_py_abw_take(struct abw *abw, const uint64_t *sent_ns, const uint64_t *arrived_ns, size_t count);
int ktrxer_py_abw_result(const struct abw *abw, struct figure *to, int most);
void ktrxer_py_abw_free(struct abw *abw);

#endif
