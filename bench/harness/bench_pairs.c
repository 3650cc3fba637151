/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* E5: two probes back to back; how far apart is the driver called with them, and how far apart do they arrive? */
#include "bench.h"

enum { CALL, ARRIVAL, POOLS };

static const struct bench_who baselines[] = {
	{ .name = "raw sendto twice", .socket = "raw-sendto" },
	{ .name = "raw sendto twice FIFO", .socket = "raw-sendto", .realtime = true },
	{ .name = "udp sendto twice", .socket = "udp-sendto" },
	{ .name = "" },
};

static const struct bench_column columns[] = {
	BENCH_COLUMNS_WHO,
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "pairs", .head = "pairs" },
	{ .key = "driver_p10_us", .head = NULL, .decimals = 3 },
	{ .key = "driver_p25_us", .head = NULL, .decimals = 3 },
	{ .key = "driver_median_us", .head = "driver median us", .decimals = 3, .shown = 2, .better = -1, .spread = "driver_spread_us" },
	{ .key = "driver_spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "driver_p75_us", .head = NULL, .decimals = 3 },
	{ .key = "driver_iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "driver_p90_us", .head = "p90 us", .decimals = 3, .shown = 2 },
	{ .key = "driver_p99_us", .head = "p99 us", .decimals = 3, .shown = 2 },
	{ .key = "arrival_median_us", .head = "arrival median us", .decimals = 3, .shown = 2, .better = -1, .spread = "arrival_spread_us" },
	{ .key = "arrival_spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "arrival_iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "arrival_p90_us", .head = "p90 us", .decimals = 3, .shown = 2 },
	{ .key = "arrival_p99_us", .head = NULL, .decimals = 3, .shown = 2 },
	BENCH_COLUMNS_LOSS,
	{ .key = NULL },
};

static void gap(const uint64_t *stamps, uint64_t first, struct bench_pool *pool)
{
	/* The second may be handed over first, or stamped by the same call: the gap is what it is, never less than nothing. */
	if (stamps && stamps[first] && stamps[first + 1])
		bench_pool_add(pool, stamps[first + 1] > stamps[first] ? (int64_t)(stamps[first + 1] - stamps[first])
								       : (int64_t)(stamps[first] - stamps[first + 1]));
}

static int turn(struct bench_run *run, const struct bench_who *who, const struct bench_point *point, struct bench_pool *pools,
		struct bench_gather *g, struct bench_quiet *quiet, struct ktrxer_error *err)
{
	const uint64_t pairs = run->o->count + BENCH_WARM;
	struct bench_job job = { .pattern = BENCH_TIMED, .payload = point->payload, .count = pairs, .train = 2,
				 .interval_ns = run->o->interval_ns };
	struct bench_turn t;
	int rc = bench_turn(run, who, &job, &t, err);

	if (rc < 0)
		return rc;
	*quiet = t.quiet;
	for (uint64_t i = BENCH_WARM; i < pairs; i++) {
		gap(t.far.calls, 2 * i, &pools[CALL]);
		gap(t.far.arrivals, 2 * i, &pools[ARRIVAL]);
	}
	g->expected += 2 * pairs;
	g->arrived += t.far.probes;
	if (t.cross_milli != BENCH_NONE)
		bench_pool_add(&g->cross, t.cross_milli / 1000);
	return 0;
}

static void row(struct bench_run *run, struct bench_row *r, struct bench_set *set, struct bench_gather *g)
{
	(void)g;
	bench_set(&run->table, r, "pairs", (int64_t)set->pooled[ARRIVAL].count);
	bench_figures(&run->table, r, "driver_", set, CALL);
	bench_figures(&run->table, r, "arrival_", set, ARRIVAL);
}

const struct bench_kind bench_pairs = {
	.name = "pairs",
	.columns = columns,
	.explains = "driver: between the two calls of the device's driver; probes that one call hands over in a bundle are 0 apart there. arrival: between "
		    "the two at the far end, which one poll of its device compresses.",
	.pools = POOLS,
	.calls = true,
	.baselines = baselines,
	.turn = turn,
	.row = row,
};
