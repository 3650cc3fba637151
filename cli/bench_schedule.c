/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* E2: probes at a fixed interval; how far are the intervals at the far end from the one that was meant? */
#include "bench.h"

enum { ERROR, POOLS };

static const struct bench_who baselines[] = {
	{ .name = "usleep", .sleep = "usleep" },
	{ .name = "usleep FIFO", .sleep = "usleep", .realtime = true },
	{ .name = "absolute sleep", .sleep = "absolute" },
	{ .name = "absolute sleep FIFO", .sleep = "absolute", .realtime = true },
	{ .name = "" },
};

static const struct bench_column columns[] = {
	{ .key = "engine", .head = "sender", .text = true, .is_key = true },
	{ .key = "payload", .head = "payload B", .is_key = true },
	{ .key = "cross", .head = "cross pps", .is_key = true },
	{ .key = "interval_us", .head = "interval us", .is_key = true, .decimals = 3, .shown = 0 },
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "median_us", .head = "median us", .decimals = 3, .shown = 2, .better = -1, .spread = "spread_us" },
	{ .key = "spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "p90_us", .head = "p90 us", .decimals = 3, .shown = 2 },
	{ .key = "p99_us", .head = "p99 us", .decimals = 3, .shown = 2 },
	{ .key = "stalled_median_us", .head = NULL, .decimals = 3 },
	{ .key = "stalled_p90_us", .head = NULL, .decimals = 3 },
	{ .key = "lost_percent", .head = "lost %", .decimals = 3, .shown = 2 },
	{ .key = "cross_arrived_kpps", .head = "cross kpps", .decimals = 3, .shown = 2 },
	{ .key = NULL },
};

static int turn(struct bench_run *run, const struct bench_who *who, const struct bench_point *point, struct bench_pool *pools,
		struct bench_gather *g, struct bench_quiet *quiet, struct ktrxer_error *err)
{
	const uint64_t count = run->o->count + BENCH_WARM;
	struct bench_job job = { .pattern = BENCH_TIMED, .payload = point->payload, .count = count, .train = 1,
				 .interval_ns = run->o->interval_ns };
	struct bench_turn t;
	int rc = bench_turn(run, who, &job, &t, err);

	if (rc < 0)
		return rc;
	*quiet = t.quiet;
	for (uint64_t i = BENCH_WARM; i + 1 < count; i++) {
		/* Of neighbours alone: where one is lost there is no interval. */
		if (t.far.arrivals[i] && t.far.arrivals[i + 1]) {
			int64_t error = (int64_t)(t.far.arrivals[i + 1] - t.far.arrivals[i]) - (int64_t)job.interval_ns;

			bench_pool_add(&pools[ERROR], error < 0 ? -error : error);
		}
	}
	g->expected += count;
	g->arrived += t.far.probes;
	if (t.cross_milli != BENCH_NONE)
		bench_pool_add(&g->cross, t.cross_milli / 1000);
	return 0;
}

static void row(struct bench_run *run, struct bench_row *r, struct bench_set *set, struct bench_gather *g)
{
	bench_set(&run->table, r, "interval_us", (int64_t)run->o->interval_ns);
	bench_figures(&run->table, r, "", set, ERROR);
	bench_set(&run->table, r, "stalled_median_us", bench_pool_median(&g->stalled.pooled[ERROR]));
	bench_set(&run->table, r, "stalled_p90_us", bench_pool_quantile(&g->stalled.pooled[ERROR], 900000));
}

const struct bench_kind bench_schedule = {
	.name = "schedule",
	.columns = columns,
	.explains = "|interval at the far end - interval meant|. median: the median of the rounds' medians; +-: how far these are apart (IQR); IQR, p90, "
		    "p99: of all intervals.",
	.pools = POOLS,
	.baselines = baselines,
	.turn = turn,
	.row = row,
};
