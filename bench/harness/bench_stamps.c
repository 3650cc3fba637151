/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* E6: is it true what the reports say? The gap between two reported send times less the gap at the far end, the same two probes. */
#include "bench.h"

#include <stddef.h>

enum { DIFFERENCE, SIZE, AT_DRIVER, POOLS };

#define SPACE_NS (2 * KTRXER_NS_PER_MS) /* between pairs, at least */
#define TURN_NS (2 * KTRXER_NS_PER_S)   /* of a turn, about: pairs of long gaps are fewer */
#define PAIRS_MIN 5

static const struct bench_who baselines[] = { { .name = "" } }; /* they report nothing */

static const struct bench_column columns[] = {
	BENCH_COLUMNS_WHO,
	{ .key = "gap_us", .head = "gap us", .is_key = true, .decimals = 3, .shown = 0 },
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "pairs", .head = "pairs" },
	{ .key = "proof", .head = "stamp", .text = true },
	{ .key = "p10_us", .head = "p10 us", .decimals = 3, .shown = 2 },
	{ .key = "median_us", .head = "median us", .decimals = 3, .shown = 2, .spread = "spread_us" },
	{ .key = "spread_us", .head = "+-", .decimals = 3, .shown = 2 },
	{ .key = "iqr_us", .head = "IQR us", .decimals = 3, .shown = 2 },
	{ .key = "p90_us", .head = "p90 us", .decimals = 3, .shown = 2 },
	{ .key = "size_median_us", .head = "|median| us", .decimals = 3, .shown = 2, .better = -1, .spread = "size_spread_us" },
	{ .key = "size_spread_us", .head = NULL, .decimals = 3 },
	{ .key = "size_p90_us", .head = "|p90| us", .decimals = 3, .shown = 2 },
	{ .key = "size_p99_us", .head = "|p99| us", .decimals = 3, .shown = 2 },
	{ .key = "driver_median_us", .head = "at driver: median us", .decimals = 3, .shown = 2 },
	{ .key = "driver_p90_us", .head = NULL, .decimals = 3 },
	{ .key = "lost_percent", .head = "lost %", .decimals = 3, .shown = 2 },
	{ .key = "cross_arrived_kpps", .head = NULL, .decimals = 3 },
	{ .key = NULL },
};

static int turn(struct bench_run *run, const struct bench_who *who, const struct bench_point *point, struct bench_pool *pools,
		struct bench_gather *g, struct bench_quiet *quiet, struct ktrxer_error *err)
{
	const uint64_t interval = 2 * point->gap_ns > SPACE_NS ? 2 * point->gap_ns : SPACE_NS;
	uint64_t pairs = run->o->count, most = TURN_NS / interval;
	struct bench_job job = { .pattern = BENCH_TIMED, .payload = point->payload, .train = 2, .train_gap_ns = point->gap_ns,
				 .interval_ns = interval, .reports = true };
	struct bench_turn t;
	int rc;

	if (pairs > most)
		pairs = most < PAIRS_MIN ? PAIRS_MIN : most;
	pairs += BENCH_WARM;
	job.count = pairs;
	rc = bench_turn(run, who, &job, &t, err);
	if (rc < 0)
		return rc;
	*quiet = t.quiet;
	for (uint64_t i = 2 * BENCH_WARM; i < 2 * pairs; i += 2) {
		const uint64_t *a = t.far.arrivals, *s = t.sent_ns, *c = t.far.calls;
		int64_t reported, difference;

		if (!s[i] || !s[i + 1] || !a[i] || !a[i + 1])
			continue;
		reported = (int64_t)(s[i + 1] - s[i]);
		difference = reported - (int64_t)(a[i + 1] - a[i]);
		bench_pool_add(&pools[DIFFERENCE], difference);
		bench_pool_add(&pools[SIZE], difference < 0 ? -difference : difference);
		if (c && c[i] && c[i + 1]) {
			difference = reported - (int64_t)(c[i + 1] - c[i]);
			bench_pool_add(&pools[AT_DRIVER], difference < 0 ? -difference : difference);
		}
	}
	g->expected += 2 * pairs;
	g->arrived += t.far.probes;
	g->driver += t.driver;
	g->wire += t.wire;
	g->queued += t.queued;
	if (t.cross_milli != BENCH_NONE)
		bench_pool_add(&g->cross, t.cross_milli / 1000);
	return 0;
}

static void row(struct bench_run *run, struct bench_row *r, struct bench_set *set, struct bench_gather *g)
{
	const struct bench_table *table = &run->table;

	bench_set(table, r, "pairs", (int64_t)set->pooled[DIFFERENCE].count);
	bench_set_text(table, r, "proof", g->wire > g->driver + g->queued ? "wire" : g->driver > g->queued ? "driver" : "queued");
	bench_figures(table, r, "", set, DIFFERENCE);
	bench_figures(table, r, "size_", set, SIZE);
	bench_figures(table, r, "driver_", set, AT_DRIVER);
}

const struct bench_kind bench_stamps = {
	.name = "stamps",
	.columns = columns,
	.explains = "gap by the reported send times less the gap of the arrivals, signed; | |: its size. at driver: the same against the calls of the "
		    "device's driver, which is where a `driver` stamp is taken.",
	.pools = POOLS,
	.calls = true,
	.gaps = true,
	.baselines = baselines,
	.turn = turn,
	.row = row,
};
