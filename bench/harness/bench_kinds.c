/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The kinds of bench: what one sender sends in one turn. The figures are computed from the time stamps in
 * lab/ktrxer_lab/bench.
 */
#include "bench.h"

#define TRAIN_INTERVAL_NS (5 * KTRXER_NS_PER_MS)
#define SPACE_NS (2 * KTRXER_NS_PER_MS) /* between pairs, at least */
#define TURN_NS (2 * KTRXER_NS_PER_S)   /* the duration of a turn, about: pairs with long gaps are fewer */

enum { TRAINS = 10, PAIRS_MIN = 5 };

static const struct bench_who rate_baselines[] = {
	{ .name = "raw sendmmsg", .socket = "raw-sendmmsg" },
	{ .name = "raw sendmmsg FIFO", .socket = "raw-sendmmsg", .realtime = true },
	{ .name = "udp sendmmsg", .socket = "udp-sendmmsg" },
	{ .name = "udp sendto", .socket = "udp-sendto" },
	{ .name = "udp sendto FIFO", .socket = "udp-sendto", .realtime = true },
	{ .name = "" },
};

static int rate_jobs(const struct bench_run *run, const struct bench_who *who, const struct bench_point *point,
		     struct bench_job *jobs)
{
	jobs[0] = (struct bench_job){ .pattern = BENCH_TIMED,
				      .payload = point->payload,
				      .count = TRAINS,
				      .train = (uint32_t)run->o->train,
				      .interval_ns = TRAIN_INTERVAL_NS,
				      .trains_matter = true };
	jobs[1] = (struct bench_job){
		.pattern = BENCH_FLOOD, .payload = point->payload, .train = 1, .for_ns = run->o->for_ns
	};
	if (!who->engine)
		return 2;
	jobs[2] = jobs[1];
	jobs[2].pattern = BENCH_TEMPLATE;
	jobs[2].threads = run->o->threads ? (uint32_t)run->o->threads : 1;
	return 3;
}

const struct bench_kind bench_rate = { .name = "rate", .baselines = rate_baselines, .jobs = rate_jobs };

static const struct bench_who schedule_baselines[] = {
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

static int schedule_jobs(const struct bench_run *run, const struct bench_who *who, const struct bench_point *point,
			 struct bench_job *jobs)
{
	jobs[0] = (struct bench_job){ .pattern = BENCH_TIMED,
				      .payload = point->payload,
				      .count = run->o->count + BENCH_WARM,
				      .train = 1,
				      .interval_ns = run->o->interval_ns,
				      .method = who->method,
				      .ahead_ns = who->ahead_ns,
				      .kernel_waits = who->kernel_waits };
	return 1;
}

const struct bench_kind bench_schedule = { .name = "schedule", .baselines = schedule_baselines, .jobs = schedule_jobs };
const struct bench_kind bench_methods = { .name = "schedule", .baselines = method_baselines, .jobs = schedule_jobs };

static const struct bench_who pairs_baselines[] = {
	{ .name = "raw sendto twice", .socket = "raw-sendto" },
	{ .name = "raw sendto twice FIFO", .socket = "raw-sendto", .realtime = true },
	{ .name = "udp sendto twice", .socket = "udp-sendto" },
	{ .name = "" },
};

static int pairs_jobs(const struct bench_run *run, const struct bench_who *who, const struct bench_point *point,
		      struct bench_job *jobs)
{
	(void)who;
	jobs[0] = (struct bench_job){ .pattern = BENCH_TIMED,
				      .payload = point->payload,
				      .count = run->o->count + BENCH_WARM,
				      .train = 2,
				      .interval_ns = run->o->interval_ns };
	return 1;
}

const struct bench_kind bench_pairs = {
	.name = "pairs", .calls = true, .baselines = pairs_baselines, .jobs = pairs_jobs
};

static const struct bench_who no_baselines[] = { { .name = "" } }; /* the frozen programs report no send times */

static int stamps_jobs(const struct bench_run *run, const struct bench_who *who, const struct bench_point *point,
		       struct bench_job *jobs)
{
	const uint64_t interval = 2 * point->gap_ns > SPACE_NS ? 2 * point->gap_ns : SPACE_NS,
		       most = TURN_NS / interval;
	uint64_t pairs = run->o->count;

	(void)who;
	if (pairs > most)
		pairs = most < PAIRS_MIN ? PAIRS_MIN : most;
	jobs[0] = (struct bench_job){ .pattern = BENCH_TIMED,
				      .payload = point->payload,
				      .count = pairs + BENCH_WARM,
				      .train = 2,
				      .train_gap_ns = point->gap_ns,
				      .interval_ns = interval,
				      .reports = true };
	return 1;
}

const struct bench_kind bench_stamps = {
	.name = "stamps", .calls = true, .gaps = true, .baselines = no_baselines, .jobs = stamps_jobs
};
