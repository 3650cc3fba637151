/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * E2: probes at a fixed interval; how far are the intervals at the far end from the one that was meant? E3 and E4: the same by the methods of
 * the OMware paper, which differ in when a probe is handed over and who waits for its time.
 */
#include "bench.h"

enum { ERROR, GAP, OFFSET, POOLS };

static const struct bench_who baselines[] = {
	{ .name = "usleep", .sleep = "usleep" },
	{ .name = "raw usleep", .sleep = "raw-usleep" },
	{ .name = "usleep FIFO", .sleep = "usleep", .realtime = true },
	{ .name = "absolute sleep", .sleep = "absolute" },
	{ .name = "absolute sleep FIFO", .sleep = "absolute", .realtime = true },
	{ .name = "SO_TXTIME fq", .sleep = "txtime", .needs_fq = true },
	{ .name = "" },
};

/* RSM: of the methods the one without an engine. */
static const struct bench_who method_baselines[] = {
	{ .name = "RSM", .sleep = "raw-usleep", .method = BENCH_RSM },
	{ .name = "" },
};

static const struct bench_column columns[] = {
	BENCH_COLUMNS_WHO,
	{ .key = "interval_us", .head = "interval us", .is_key = true, .decimals = 3, .shown = 0 },
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "median_us", .head = "median us", .decimals = 3, .shown = 2, .better = -1, .spread = "spread_us" },
	{ .key = "spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "p90_us", .head = "p90 us", .decimals = 3, .shown = 2 },
	{ .key = "p99_us", .head = "p99 us", .decimals = 3, .shown = 2 },
	{ .key = "offset_iqr_us", .head = "offset IQR", .decimals = 3, .shown = 2 },
	{ .key = "offset_p99_us", .head = "p99", .decimals = 3, .shown = 2 },
	{ .key = "stalled_median_us", .head = NULL, .decimals = 3 },
	{ .key = "stalled_p90_us", .head = NULL, .decimals = 3 },
	BENCH_COLUMNS_LOSS,
	{ .key = NULL },
};

static const struct bench_column method_columns[] = {
	{ .key = "engine", .head = "sender", .text = true, .is_key = true },
	{ .key = "payload", .head = "payload B", .is_key = true },
	{ .key = "cross", .head = "cross pps", .is_key = true },
	{ .key = "interval_us", .head = "interval us", .is_key = true, .decimals = 3, .shown = 0 },
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "gap_p10_us", .head = "gap p10 us", .decimals = 3, .shown = 2 },
	{ .key = "gap_p25_us", .head = "p25", .decimals = 3, .shown = 2 },
	{ .key = "gap_median_us", .head = "median", .decimals = 3, .shown = 2, .spread = "gap_spread_us" },
	{ .key = "gap_spread_us", .head = NULL, .decimals = 3 },
	{ .key = "gap_p75_us", .head = "p75", .decimals = 3, .shown = 2 },
	{ .key = "gap_p90_us", .head = "p90", .decimals = 3, .shown = 2 },
	{ .key = "median_us", .head = "error median us", .decimals = 3, .shown = 2, .better = -1, .spread = "spread_us" },
	{ .key = "spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "p90_us", .head = NULL, .decimals = 3 },
	{ .key = "p99_us", .head = NULL, .decimals = 3 },
	{ .key = "stalled_median_us", .head = NULL, .decimals = 3 },
	{ .key = "stalled_p90_us", .head = NULL, .decimals = 3 },
	{ .key = "lost_percent", .head = "lost %", .decimals = 3, .shown = 2 },
	{ .key = "cross_arrived_kpps", .head = "cross kpps", .decimals = 3, .shown = 2 },
	{ .key = NULL },
};

/*
 * How far each arrival is from its place in the schedule, against the turn's median: the way there is the same for all, and which clock
 * reading the first place had does not matter.
 */
static void offsets_add(struct bench_pool *pool, const uint64_t *arrivals, uint64_t count, uint64_t interval_ns)
{
	struct bench_pool turn = { 0 };
	int64_t middle;

	for (uint64_t i = BENCH_WARM; i < count; i++)
		if (arrivals[i])
			bench_pool_add(&turn, (int64_t)(arrivals[i] - i * interval_ns));
	middle = bench_pool_median(&turn);
	for (size_t i = 0; i < turn.count; i++)
		turn.values[i] -= middle;
	bench_pool_join(pool, &turn);
	bench_pool_free(&turn);
}

static int turn(struct bench_run *run, const struct bench_who *who, const struct bench_point *point, struct bench_pool *pools,
		struct bench_gather *g, struct bench_quiet *quiet, struct ktrxer_error *err)
{
	const uint64_t count = run->o->count + BENCH_WARM;
	struct bench_job job = { .pattern = BENCH_TIMED, .payload = point->payload, .count = count, .train = 1,
				 .interval_ns = run->o->interval_ns, .method = who->method, .ahead_ns = who->ahead_ns,
				 .kernel_waits = who->kernel_waits };
	struct bench_turn t;
	int rc = bench_turn(run, who, &job, &t, err);

	if (rc < 0)
		return rc;
	*quiet = t.quiet;
	for (uint64_t i = BENCH_WARM; i + 1 < count; i++) {
		/* Of neighbours alone: where one is lost there is no interval. */
		if (t.far.arrivals[i] && t.far.arrivals[i + 1]) {
			const int64_t gap = (int64_t)(t.far.arrivals[i + 1] - t.far.arrivals[i]), error = gap - (int64_t)job.interval_ns;

			bench_pool_add(&pools[GAP], gap);
			bench_pool_add(&pools[ERROR], error < 0 ? -error : error);
		}
	}
	offsets_add(&pools[OFFSET], t.far.arrivals, count, job.interval_ns);
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
	bench_figures(&run->table, r, "gap_", set, GAP);
	bench_figures(&run->table, r, "offset_", set, OFFSET);
	bench_set(&run->table, r, "stalled_median_us", bench_pool_median(&g->stalled.pooled[ERROR]));
	bench_set(&run->table, r, "stalled_p90_us", bench_pool_quantile(&g->stalled.pooled[ERROR], 900000));
}

const struct bench_kind bench_schedule = {
	.name = "schedule",
	.columns = columns,
	.explains = "|interval at the far end - interval meant|. median: the median of the rounds' medians; +-: how far these are apart (IQR); IQR, p90, "
		    "p99: of all intervals. offset: arrival - place in the schedule, against its median.",
	.pools = POOLS,
	.baselines = baselines,
	.turn = turn,
	.row = row,
};

const struct bench_kind bench_methods = {
	.name = "schedule",
	.columns = method_columns,
	.explains = "gap: between neighbours at the far end (of all rounds). error: |gap - interval meant|; +-: how far the rounds' medians are apart (IQR). "
		    "OIR: all handed over at the start; OFR: each that long before its time; OSM: by the engine when a sleep ends; RSM: by a raw socket.",
	.pools = POOLS,
	.baselines = method_baselines,
	.turn = turn,
	.row = row,
};
