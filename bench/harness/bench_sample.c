/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A turn as JSON: the counts of the far end, and the time stamps of each probe. */
#include "bench.h"
#include "fields_bench.h"

#include <time.h>

enum { PAUSE_NS = 2 * 1000 * 1000 };

static const char *const patterns[] = { [BENCH_TIMED] = "timed",
					[BENCH_FLOOD] = "flood",
					[BENCH_TEMPLATE] = "template" };

/* The bench waits for a slow reader between turns: a lost sample would be a lost turn. */
struct json *bench_sample(struct cli *cli, const char *kind)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	while (!out_room(cli) && !cli_stopped(cli))
		nanosleep(&pause, NULL);
	return out_sample(cli, kind);
}

typedef void field_writer(struct json *json);

static void put_stamps(struct json *json, field_writer *array, field_writer *null, const uint64_t *stamps,
		       uint64_t count)
{
	if (!stamps) {
		null(json);
		return;
	}
	array(json);
	for (uint64_t i = 0; i < count; i++)
		json_u64(json, NULL, stamps[i]);
	json_array_end(json);
}

void bench_sample_job(struct json *json, const struct bench_job *job, const struct bench_turn *turn)
{
	const struct farend_result *far = &turn->far;

	json_object(json, NULL);
	bench_job_pattern(json, patterns[job->pattern]);
	if (turn->sent == UINT64_MAX)
		bench_job_sent_null(json);
	else
		bench_job_sent(json, turn->sent);
	bench_job_arrived(json, far->probes);
	/* The rate of a flood: the probes up to the one at last_ns. */
	bench_job_timed(json, far->timed);
	bench_job_first_ns(json, far->first_ns);
	bench_job_last_ns(json, far->last_ns);
	bench_job_cross(json, far->cross);
	bench_job_cross_first_ns(json, far->cross_first_ns);
	bench_job_cross_last_ns(json, far->cross_last_ns);
	if (job->pattern == BENCH_TIMED) {
		uint64_t count = job->count * job->train;

		if (count > far->slots)
			count = far->slots;
		bench_job_train(json, job->train);
		bench_job_interval_ns(json, job->interval_ns);
		put_stamps(json, bench_job_arrivals_ns_open, bench_job_arrivals_ns_null, far->arrivals, count);
		put_stamps(json, bench_job_calls_ns_open, bench_job_calls_ns_null, far->calls, count);
		put_stamps(json, bench_job_sent_ns_open, bench_job_sent_ns_null, job->reports ? turn->sent_ns : NULL,
			   count);
		bench_job_driver(json, turn->driver);
		bench_job_wire(json, turn->wire);
		bench_job_queued(json, turn->queued);
	}
	json_object_end(json);
}
