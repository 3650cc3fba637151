/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* E1: how many packets a second arrive, in trains of 100, for as long as a flood lasts, and from a template. */
#include "bench.h"

#include <errno.h>

enum { TRAIN, FLOOD, TEMPLATE, POOLS };

#define TRAINS 10
#define TRAIN_INTERVAL_NS (5 * KTRXER_NS_PER_MS)

static const struct bench_who baselines[] = {
	{ .name = "raw sendmmsg", .socket = "raw-sendmmsg" },
	{ .name = "raw sendmmsg FIFO", .socket = "raw-sendmmsg", .realtime = true },
	{ .name = "udp sendmmsg", .socket = "udp-sendmmsg" },
	{ .name = "udp sendto", .socket = "udp-sendto" },
	{ .name = "udp sendto FIFO", .socket = "udp-sendto", .realtime = true },
	{ .name = "" },
};

static const struct bench_column columns[] = {
	BENCH_COLUMNS_WHO,
	{ .key = "rounds", .head = NULL },
	{ .key = "stalled_rounds", .head = "stalled" },
	{ .key = "train_kpps", .head = "train kpps", .decimals = 3, .shown = 0, .better = 1, .spread = "train_spread_kpps" },
	{ .key = "train_spread_kpps", .head = "IQR", .decimals = 3, .shown = 0 },
	{ .key = "rate_kpps", .head = "flood kpps", .decimals = 3, .shown = 0, .better = 1, .spread = "rate_spread_kpps" },
	{ .key = "rate_spread_kpps", .head = "IQR", .decimals = 3, .shown = 0 },
	{ .key = "template_kpps", .head = "template kpps", .decimals = 3, .shown = 0, .better = 1, .spread = "template_spread_kpps" },
	{ .key = "template_spread_kpps", .head = "IQR", .decimals = 3, .shown = 0 },
	{ .key = "rate_mbps", .head = "Mbit/s", .decimals = 3, .shown = 0, .better = 0 },
	BENCH_COLUMNS_LOSS,
	{ .key = NULL },
};

static void train_rates(const struct farend_result *far, uint32_t train, struct bench_pool *pool)
{
	for (uint32_t t = 0; (t + 1) * train <= far->slots && t < TRAINS; t++) {
		uint64_t first = 0, last = 0, count = 0;

		for (uint32_t i = t * train; i < (t + 1) * train; i++) {
			uint64_t at = far->arrivals[i];

			if (!at)
				continue;
			first = !count || at < first ? at : first;
			last = at > last ? at : last;
			count++;
		}
		/* Of a train that arrived in good part; in thousandths of a packet a second, kept as packets a second. */
		if (count >= train - train / 10) {
			int64_t rate = bench_rate_milli(count, first, last);

			if (rate != BENCH_NONE)
				bench_pool_add(pool, rate / 1000);
		}
	}
}

static int turn(struct bench_run *run, const struct bench_who *who, const struct bench_point *point, struct bench_pool *pools,
		struct bench_gather *g, struct bench_quiet *quiet, struct ktrxer_error *err)
{
	struct bench_job job = { .pattern = BENCH_TIMED, .payload = point->payload, .count = TRAINS, .train = (uint32_t)run->o->train,
				 .interval_ns = TRAIN_INTERVAL_NS, .trains_matter = true };
	struct bench_turn t, made;
	int64_t rate;
	int rc = bench_turn(run, who, &job, &t, err);

	if (rc < 0)
		return rc;
	*quiet = t.quiet;
	train_rates(&t.far, job.train, &pools[TRAIN]);

	job = (struct bench_job){ .pattern = BENCH_FLOOD, .payload = point->payload, .train = 1, .for_ns = run->o->for_ns };
	rc = bench_turn(run, who, &job, &t, err);
	if (rc < 0)
		return rc;
	bench_quiet_join(quiet, &t.quiet);
	rate = bench_rate_milli(t.far.timed, t.far.first_ns, t.far.last_ns);
	if (rate != BENCH_NONE)
		bench_pool_add(&pools[FLOOD], rate / 1000);
	if (who->engine) {
		job.pattern = BENCH_TEMPLATE;
		job.threads = run->o->threads ? (uint32_t)run->o->threads : 1;
		if ((rc = bench_turn(run, who, &job, &made, err)) < 0)
			return rc;
		bench_quiet_join(quiet, &made.quiet);
		rate = bench_rate_milli(made.far.timed, made.far.first_ns, made.far.last_ns);
		if (rate != BENCH_NONE)
			bench_pool_add(&pools[TEMPLATE], rate / 1000);
	}
	if (t.sent != UINT64_MAX) {
		g->expected += t.sent;
		g->arrived += t.far.probes;
	}
	if (t.cross_milli != BENCH_NONE)
		bench_pool_add(&g->cross, t.cross_milli / 1000);
	return 0;
}

static void row(struct bench_run *run, struct bench_row *r, struct bench_set *set, struct bench_gather *g)
{
	const struct bench_table *table = &run->table;
	int64_t rate = bench_pool_median(&set->medians[FLOOD]), payload = r->cells[bench_table_column(table, "payload")].number;

	(void)g;
	bench_set(table, r, "train_kpps", bench_pool_median(&set->medians[TRAIN]));
	bench_set(table, r, "train_spread_kpps", bench_pool_iqr(&set->medians[TRAIN]));
	bench_set(table, r, "rate_kpps", rate);
	bench_set(table, r, "rate_spread_kpps", bench_pool_iqr(&set->medians[FLOOD]));
	bench_set(table, r, "template_kpps", bench_pool_median(&set->medians[TEMPLATE]));
	bench_set(table, r, "template_spread_kpps", bench_pool_iqr(&set->medians[TEMPLATE]));
	if (rate != BENCH_NONE) /* of IP packets, in kbit/s */
		bench_set(table, r, "rate_mbps", rate * (payload + 28) * 8 / 1000);
}

const struct bench_kind bench_rate = {
	.name = "rate",
	.columns = columns,
	.explains = "kpps: thousand packets a second at the far end, (n-1)/(last-first); median over the rounds and how far these are apart (IQR). "
		    "Mbit/s: of IP packets, the flood's. template: number, source port and checksum differ, engines only.",
	.pools = POOLS,
	.rate = true,
	.baselines = baselines,
	.turn = turn,
	.row = row,
};
