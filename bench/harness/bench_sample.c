/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A turn as JSON: the counts of the far end, and the time stamps of each probe. */
#include "bench.h"

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

static void put_stamps(struct json *json, const char *key, const uint64_t *stamps, uint64_t count)
{
	if (!stamps) {
		json_null(json, key);
		return;
	}
	json_array(json, key);
	for (uint64_t i = 0; i < count; i++)
		json_u64(json, NULL, stamps[i]);
	json_array_end(json);
}

void bench_sample_job(struct json *json, const struct bench_job *job, const struct bench_turn *turn)
{
	const struct farend_result *far = &turn->far;

	json_object(json, NULL);
	json_string(json, "pattern", patterns[job->pattern]);
	if (turn->sent == UINT64_MAX)
		json_null(json, "sent");
	else
		json_u64(json, "sent", turn->sent);
	json_u64(json, "arrived", far->probes);
	/* The rate of a flood: the probes up to the one at last_ns. */
	json_u64(json, "timed", far->timed);
	json_u64(json, "first_ns", far->first_ns);
	json_u64(json, "last_ns", far->last_ns);
	json_u64(json, "cross", far->cross);
	json_u64(json, "cross_first_ns", far->cross_first_ns);
	json_u64(json, "cross_last_ns", far->cross_last_ns);
	if (job->pattern == BENCH_TIMED) {
		uint64_t count = job->count * job->train;

		if (count > far->slots)
			count = far->slots;
		json_u64(json, "train", job->train);
		json_u64(json, "interval_ns", job->interval_ns);
		put_stamps(json, "arrivals_ns", far->arrivals, count);
		put_stamps(json, "calls_ns", far->calls, count);
		put_stamps(json, "sent_ns", job->reports ? turn->sent_ns : NULL, count);
		json_u64(json, "driver", turn->driver);
		json_u64(json, "wire", turn->wire);
		json_u64(json, "queued", turn->queued);
	}
	json_object_end(json);
}
