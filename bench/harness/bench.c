/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The run of a bench: points (payload, cross traffic, gap), at each of them rounds, in each round each sender once, in
 * rotated order.
 */
#include "bench.h"

#include "bench_progress.h"
#include "error.h"
#include "fields_bench.h"
#include "reasons.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	STALLED_MANY_PERCENT = 50,
	FAILURES_IN_A_ROW = 3, /* then the sender is left out at this point */
};

static int plan(struct bench_run *run, struct ktrxer_error *err)
{
	const struct bench_options *o = run->o;
	int rc = bench_list_parse(run->cross_pps, &run->crosses, o->cross, false, "--cross", err);

	if (rc < 0)
		return rc;
	run->gaps = 1;
	if (run->kind->gaps && (rc = bench_list_parse(run->gaps_ns, &run->gaps, o->gaps, true, "--gaps", err)) < 0)
		return rc;
	if ((rc = bench_methods_parse(run, err)) < 0)
		return rc;
	for (int i = 0; i < run->crosses; i++)
		if (run->cross_pps[i] > 1000000)
			return ktrxer_fail(err, -ERANGE, "--cross: at most 1M packets a second");
	if (o->payload.from < 8 || o->payload.to > 1472)
		return ktrxer_fail(err, -ERANGE,
				   "--payload: from 8 (the probe's number) to 1472 bytes (an Ethernet frame)");
	return 0;
}

static int open_all(struct bench_run *run, struct ktrxer_error *err)
{
	const struct bench_options *o = run->o;
	struct bench_net_options net = {
		.device = o->device, .far_device = o->far_device, .far_netns = o->far_netns, .to = o->to
	};
	struct ktrxer_path_options path = KTRXER_PATH_OPTIONS_INIT;
	struct farend_options far = { .calls = run->kind->calls, .no_bpf = o->no_bpf };
	int rc;

	if (o->compare || o->csv || o->fq)
		return ktrxer_fail(err, -EINVAL, "--%s: the Python part of ktrxer does this, and is not installed",
				   o->compare ? "compare"
				   : o->csv   ? "csv"
					      : "fq");
	if ((rc = plan(run, err)) < 0)
		return rc;
	if (!o->no_baselines && run->kind->baselines[0].name[0] && (rc = bench_baselines_find(run, err)) < 0)
		return rc;
	if ((rc = bench_net_open(&run->net, &net, err)) < 0)
		return rc;
	path.device = run->net.near_device;
	path.to = run->net.to;
	if ((rc = ktrxer_path_resolve(&run->path, &path, err)) < 0)
		return rc;
	run->slots = (uint32_t)(2 * (o->count + BENCH_WARM) + 16 * o->train);
	run->sent_ns = calloc(run->slots, sizeof *run->sent_ns);
	run->watch = bench_watch_open();
	if (!run->sent_ns || !run->watch)
		return ktrxer_fail(err, -ENOMEM, "no memory for the bench");
	far.slots = run->slots;
	if ((rc = farend_open(&run->far, &run->net, &far, err)) < 0)
		return rc;
	return bench_who_list(run, err);
}

static void close_all(struct bench_run *run)
{
	bench_cross_stop(run);
	farend_close(run->far);
	bench_watch_close(run->watch);
	bench_net_close(&run->net);
	free(run->sent_ns);
}

static void one_turn(struct bench_run *run, const struct bench_point *point, int number, struct bench_tally *tally,
		     int64_t round)
{
	const struct bench_who *who = &run->who[number];
	struct json *sample = bench_sample(run->cli, "turn");
	struct bench_job jobs[BENCH_JOBS] = { { 0 } };
	int count = run->kind->jobs(run, who, point, jobs), rc = 0;
	struct ktrxer_error err = { 0 };
	struct bench_quiet quiet = { 0 };

	if (!sample)
		return;
	bench_turn_engine(sample, who->name);
	bench_turn_payload(sample, point->payload);
	bench_turn_cross(sample, point->cross_pps);
	bench_turn_gap_ns(sample, point->gap_ns);
	bench_turn_round(sample, round);
	bench_turn_jobs_open(sample);
	for (int i = 0; i < count && rc == 0; i++) {
		struct bench_turn turn;

		rc = bench_turn(run, who, &jobs[i], &turn, &err);
		if (rc < 0)
			break;
		bench_quiet_join(&quiet, &turn.quiet);
		bench_sample_job(sample, &jobs[i], &turn);
	}
	json_array_end(sample);
	bench_turn_stalled(sample, quiet.stalled);
	bench_turn_failed(sample, rc < 0 ? err.text : NULL);
	out_put(run->cli, sample);
	if (rc < 0) {
		tally->failures++;
		memcpy(tally->why, err.text, sizeof tally->why);
	} else if (round >= 0) {
		tally->failures = 0;
		tally->rounds++;
		run->measured++;
		run->stalled_turns += quiet.stalled;
	}
	run->done++;
	bench_progress(run);
}

static int one_point(struct bench_run *run, const struct bench_point *point, struct ktrxer_error *err)
{
	struct bench_tally *tallies = calloc((size_t)run->whos, sizeof *tallies);

	if (!tallies)
		return ktrxer_fail(err, -ENOMEM, "no memory for the bench");
	/* Round -1 warms up: caches, neighbours, the processor's clock. */
	for (int64_t round = -1; round < (int64_t)run->o->rounds && !cli_stopped(run->cli); round++)
		for (int i = 0; i < run->whos && !cli_stopped(run->cli); i++) {
			int who = (int)((i + (round < 0 ? 0 : round)) % run->whos);

			if (tallies[who].failures < FAILURES_IN_A_ROW)
				one_turn(run, point, who, &tallies[who], round);
		}
	for (int who = 0; who < run->whos; who++)
		if (tallies[who].failures && !cli_stopped(run->cli))
			reason_bench_failed(run->cli, run->who[who].name, point->payload, tallies[who].why);
	free(tallies);
	return 0;
}

static int all_points(struct bench_run *run, struct ktrxer_error *err)
{
	const struct opt_range *p = &run->o->payload;
	int rc = 0;

	run->planned = ((p->to - p->from) / p->step + 1) * (uint64_t)run->crosses * (uint64_t)run->gaps *
		       (run->o->rounds + 1) * (uint64_t)run->whos;
	for (int c = 0; rc == 0 && c < run->crosses && !cli_stopped(run->cli); c++) {
		if ((rc = bench_cross_start(run, run->cross_pps[c], err)) < 0)
			break;
		for (uint64_t payload = p->from; rc == 0 && payload <= p->to && !cli_stopped(run->cli);
		     payload += p->step)
			for (int g = 0; rc == 0 && g < run->gaps && !cli_stopped(run->cli); g++) {
				struct bench_point point = { .payload = (uint32_t)payload,
							     .cross_pps = run->cross_pps[c],
							     .gap_ns = run->gaps_ns[g] };

				rc = one_point(run, &point, err);
			}
		bench_cross_stop(run);
	}
	bench_progress_end(run);
	return rc;
}

static void say_settings(struct bench_run *run, struct json *json)
{
	const struct bench_options *o = run->o;
	char text[KTRXER_UNITS_TEXT];

	bench_end_bench(json, run->kind->name);
	bench_end_settings_open(json);
	snprintf(text, sizeof text, "%" PRIu64 "..%" PRIu64 "/%" PRIu64, o->payload.from, o->payload.to,
		 o->payload.step);
	bench_settings_payload(json, text);
	bench_settings_cross(json, o->cross);
	if (run->kind->gaps)
		bench_settings_gaps(json, o->gaps);
	if (o->methods) {
		bench_settings_methods(json, o->methods);
		bench_settings_predispatch(json, o->predispatch);
	}
	bench_settings_both_ways(json, o->both_ways);
	bench_settings_rounds(json, o->rounds);
	bench_settings_count(json, o->count);
	bench_settings_interval_ns(json, o->interval_ns);
	bench_settings_for_ns(json, o->for_ns);
	bench_settings_train(json, o->train);
	bench_settings_threads(json, o->threads);
	bench_settings_seed(json, o->seed);
	json_object_end(json);
	bench_end_judge(json, farend_name(run->far));
	bench_end_driver_calls(json, farend_has_calls(run->far));
	bench_end_judge_note(json, farend_note(run->far)[0] ? farend_note(run->far) : NULL);
	bench_end_sees_stalls(json, bench_watch_sees_stalls(run->watch));
	bench_end_turns(json, run->done);
	bench_end_stalled_turns(json, run->stalled_turns);
}

static int finish(struct bench_run *run)
{
	struct json *json = out_end(run->cli);

	say_settings(run, json);
	if (cli_stopped(run->cli))
		reason_stopped_early(run->cli);
	run->cli->no_figure = !run->measured;
	if (!run->measured)
		reason_nothing_measured(run->cli);
	if (run->done && run->stalled_turns * 100 > run->done * STALLED_MANY_PERCENT)
		reason_bench_stalled(run->cli, run->stalled_turns, run->done);
	return out_finish(run->cli, json);
}

int bench_run_kind(struct cli *cli, const struct bench_kind *kind, const struct bench_options *options)
{
	struct bench_run run = {
		.cli = cli, .kind = kind, .o = options, .net = { .home_fd = -1, .near_fd = -1, .far_fd = -1 }
	};
	struct ktrxer_error err = { 0 };
	uint64_t start;
	int status, rc = open_all(&run, &err);

	if (rc < 0) {
		cli_complain(cli, "%s", err.text);
		status = rc == -EINVAL || rc == -ERANGE ? EXIT_USAGE : EXIT_NO_RESULT;
	} else if (cli_wait_start(cli, &start) != 0) {
		status = EXIT_NO_RESULT;
	} else {
		rc = all_points(&run, &err);
		if (rc < 0)
			reason_failure(cli, VERDICT_INVALID, rc, err.text[0] ? err.text : "no memory");
		status = finish(&run);
	}
	close_all(&run);
	return status;
}
