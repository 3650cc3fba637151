/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `send`: each probe to a CSV file or as samples, and the accounts at the end. */
#include "send.h"

#include "fields_common.h"
#include "fields_packets.h"
#include "error.h"
#include "hist.h"
#include "path_report.h"
#include "reasons.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

static uint64_t network_errors(const struct send_run *run)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < run->workers_count; i++)
		count += run->workers[i].network_errors;
	return count;
}

static bool is_unreachable(const struct send_run *run)
{
	for (uint32_t i = 0; i < run->workers_count; i++)
		if (run->workers[i].unreachable)
			return true;
	return false;
}

static const struct send_worker *failed_worker(const struct send_run *run)
{
	for (uint32_t i = 0; i < run->workers_count; i++)
		if (run->workers[i].failure)
			return &run->workers[i];
	return NULL;
}

static const char *const status_names[] = { "pending", "sent", "failed", "skipped", "cancelled" };
static const char *const departure_names[] = { "", "queued", "driver", "nic" };

int send_csv_open(struct send_run *run, struct ktrxer_error *err)
{
	run->csv = fopen(run->o->reports, "we");
	if (!run->csv)
		return ktrxer_fail(err, -errno, "--reports %s: %m", run->o->reports);
	fputs("id,scheduled_ns,planned_ns,sent_ns,lateness_ns,status,departure_stamp,tries,"
	      "error,bound_ns,sent_stamp,departure_ns,own_queue_ns\n",
	      run->csv);
	return 0;
}

static bool has_lateness(const struct ktx_report *r)
{
	return r->status == KTX_SENT && r->at_ns && r->sent_source != KTX_SENT_NONE;
}

static const char *error_text(const struct ktx_report *r, char *text, size_t size)
{
	return r->error == -ENOSR ? verdict_send_error(r->error, text, size) : ktrxer_strerror(r->error, text, size);
}

static void csv_line(FILE *csv, const struct ktx_report *r)
{
	char text[64];
	const char *word = r->error ? error_text(r, text, sizeof text) : "";

	fprintf(csv, "%" PRIu64 ",", r->id);
	if (r->at_ns)
		fprintf(csv, "%" PRIu64 ",%" PRIu64 ",", r->at_ns, r->planned_ns);
	else
		fputs(",,", csv);
	if (r->status == KTX_SENT)
		fprintf(csv, "%" PRIu64 ",", r->sent_ns);
	else
		fputc(',', csv);
	if (has_lateness(r))
		fprintf(csv, "%" PRId64 ",", (int64_t)(r->sent_ns - r->at_ns));
	else
		fputc(',', csv);
	fprintf(csv, "%s,%s,%u,%s,%u,%s,", status_names[r->status], departure_names[r->departure_source], r->tries,
		word, r->bound_ns, sent_source_names[r->sent_source]);
	if (r->departure_ns)
		fprintf(csv, "%" PRIu64, r->departure_ns);
	fputc(',', csv);
	if (r->own_queue_ns >= 0)
		fprintf(csv, "%" PRId64, r->own_queue_ns);
	fputc('\n', csv);
}

void send_report(struct send_run *run, const struct ktx_report *r)
{
	struct json *sample = out_sample(run->cli, "probe");

	if (run->csv)
		csv_line(run->csv, r);
	if (!sample)
		return;
	send_probe_id(sample, r->id);
	send_probe_scheduled_ns_or_null(sample, r->at_ns, r->at_ns);
	send_probe_status(sample, status_names[r->status]);
	if (r->status == KTX_SENT) {
		send_probe_sent_ns(sample, r->sent_ns);
		send_probe_departure_stamp(sample, departure_names[r->departure_source]);
		send_probe_sent_stamp(sample, sent_source_names[r->sent_source]);
		if (has_lateness(r))
			send_probe_lateness_ns(sample, (int64_t)(r->sent_ns - r->at_ns));
		if (r->departure_ns)
			send_probe_departure_ns(sample, r->departure_ns);
		if (r->own_queue_ns >= 0)
			send_probe_own_queue_ns(sample, r->own_queue_ns);
		send_probe_bound_ns(sample, r->bound_ns);
	}
	send_probe_tries(sample, r->tries);
	if (r->error) {
		char word[64];

		send_probe_error(sample, error_text(r, word, sizeof word));
	}
	out_put(run->cli, sample);
}

static struct path_report path_of(const struct send_run *run)
{
	return (struct path_report){ .cli = run->cli,
				     .witness = &run->witness,
				     .claim = &run->path,
				     .host = run->o->host,
				     .from_named = run->o->from.family };
}

/* Parts in a million by which the mean rate missed; only where it can be said. */
static bool rate_error_ppm(const struct send_run *run, const struct ktx_accounts *a, int64_t *ppm)
{
	const struct send_options *o = run->o;
	long double wanted, got;

	if (o->model == MODEL_POISSON || run->list || o->pcap || !run->interval_ns || a->sent < 2 ||
	    a->sent != a->requested || o->train > 1 || a->last_ns <= a->first_ns)
		return false;
	wanted = o->interval_ns ? 1e9L / (long double)o->interval_ns
				: (long double)o->rate.num / (long double)o->rate.den;
	got = (long double)(a->sent - 1) * 1e9L / (long double)(a->last_ns - a->first_ns);
	*ppm = (int64_t)((got / wanted - 1) * 1e6L);
	return true;
}

/* " (990 by the driver's stamp, 10 without a stamp)" */
static void departures_list(const struct ktx_accounts *a, char *text, size_t size)
{
	const struct {
		uint64_t count;
		const char *words;
	} departures[] = { { a->nic, "by the NIC's stamp" },
			   { a->driver, "by the driver's stamp" },
			   { a->queued, "without a stamp" } };
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < 3; i++)
		if (departures[i].count && used < size)
			used += (size_t)snprintf(text + used, size - used, "%s%" PRIu64 " %s", used ? ", " : " (",
						 departures[i].count, departures[i].words);
	if (used && used + 1 < size)
		strcpy(text + used, ")");
}

static void finish_text(struct send_run *run, const struct ktx_accounts *a, const struct ktrxer_hist *lateness,
			uint64_t duration, uint64_t rate_milli)
{
	struct cli *cli = run->cli;
	const struct path_report path = path_of(run);
	char x[1][KTRXER_UNITS_TEXT], text[HIST_TEXT], departures[160], late[KTRXER_UNITS_TEXT + 32] = "";
	int64_t ppm;

	if (run->timed)
		snprintf(late, sizeof late, "%" PRIu64 " late (by more than %s), ", a->late,
			 ktrxer_format_ns(x[0], (int64_t)run->late_ns));

	departures_list(a, departures, sizeof departures);
	out_text(cli,
		 "%" PRIu64 " requested: %" PRIu64 " sent%s, %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64
		 " cancelled; %s%" PRIu64 " tries",
		 a->requested, a->sent, departures, a->failed, a->skipped, a->cancelled, late, a->tries);
	if (ktrxer_hist_count(lateness))
		out_text(cli, "lateness: %s", hist_text(text, lateness, HIST_TAIL | HIST_IQR));
	if (a->sent > 1) {
		char miss[64] = "";

		/* The rate over less than a second adds nothing to the lateness of the first and the last probe. */
		if (duration >= (uint64_t)KTRXER_NS_PER_S && rate_error_ppm(run, a, &ppm))
			snprintf(miss, sizeof miss, ", %+" PRId64 " ppm off the schedule's", ppm);
		out_text(cli, "rate: %" PRIu64 ".%03" PRIu64 " probes/s over %s%s", rate_milli / 1000,
			 rate_milli % 1000, ktrxer_format_ns(x[0], (int64_t)duration), miss);
	}
	path_report_text(&path);
	if (network_errors(run))
		out_text(cli, "%" PRIu64 " errors came back from the network", network_errors(run));
	if (run->info.notes[0])
		out_text(cli, "note: %s", run->info.notes);
}

static void finish_notes(struct json *json, const char *notes)
{
	char line[512];

	send_waiter_notes_open(json);
	for (const char *at = notes; *at;) {
		size_t n = strcspn(at, "\n");

		memcpy(line, at, n);
		line[n] = '\0';
		json_string(json, NULL, line);
		at += n + (at[n] == '\n');
	}
	json_array_end(json);
}

static void replay_json(struct send_run *run, struct json *end)
{
	const struct replay *r = &run->replay;

	send_end_replay_open(end);
	send_replay_file(end, run->o->pcap);
	send_replay_cut_short(end, r->refused_cut);
	send_replay_oversized(end, r->refused_size);
	send_replay_other_link(end, r->refused_link);
	send_replay_backwards(end, r->scan.backwards);
	json_object_end(end);
}

/* Packets of the file that no engine was given: each is a failed probe, with its reason. */
static uint64_t replay_refused(const struct send_run *run)
{
	return run->replay.refused_cut + run->replay.refused_size + run->replay.refused_link;
}

static void replay_verdict(struct send_run *run)
{
	const struct replay *r = &run->replay;

	if (r->refused_cut)
		reason_replay_cut(run->cli, r->refused_cut);
	if (r->refused_size)
		reason_replay_size(run->cli, r->refused_size, run->path.device.mtu, run->path.device.name);
	if (r->refused_link)
		reason_replay_link(run->cli, r->refused_link, run->path.device.name);
}

static void vary_json(const struct send_run *run, struct json *end)
{
	if (!run->vary.count)
		return;
	send_end_vary_open(end);
	for (int i = 0; i < run->o->vary.count; i++)
		json_string(end, NULL, run->o->vary.items[i]);
	json_array_end(end);
}

static void finish_json(struct send_run *run, struct json *end, const struct ktx_accounts *a,
			const struct ktrxer_hist *lateness, uint64_t duration, uint64_t rate_milli)
{
	const struct path_report path = path_of(run);
	char address[KTRXER_ADDR_TEXT];
	int64_t ppm;

	send_end_engine(end, run->info.engine);
	send_end_engine_reason(end, run->reason);
	send_end_device(end, run->path.device.name);
	if (run->o->pcap) {
		replay_json(run, end);
	} else {
		send_end_from(end, ktrxer_addr_format(&run->path.source, address));
		send_end_to(end, ktrxer_addr_format(&run->path.to, address));
		send_end_frame_bytes(end, run->workers[0].probe.length);
	}
	vary_json(run, end);
	send_end_threads(end, run->o->threads);
	accounts_requested(end, a->requested);
	accounts_sent(end, a->sent);
	accounts_failed(end, a->failed);
	accounts_skipped(end, a->skipped);
	accounts_cancelled(end, a->cancelled);
	json_late(end, a->late, run->timed ? run->late_ns : 0);
	send_end_tries(end, a->tries);
	path_report_json(&path, end);
	send_end_network_errors(end, network_errors(run));
	send_end_duration_ns(end, duration);
	send_end_rate_pps(end, (int64_t)rate_milli);
	if (rate_error_ppm(run, a, &ppm))
		send_end_rate_error_ppm(end, ppm);
	send_end_lateness_us(end, lateness);
	send_end_departure_stamp_open(end);
	send_departures_nic(end, a->nic);
	send_departures_driver(end, a->driver);
	send_departures_queued(end, a->queued);
	json_object_end(end);
	send_end_waiter_open(end);
	send_waiter_precise(end, run->precise);
	send_waiter_realtime(end, run->info.realtime);
	send_waiter_memory_locked(end, run->info.locked);
	send_waiter_wakeup_margin_ns(end, run->info.wakeup_margin_ns);
	send_waiter_compensation_ns(end, run->info.compensation_ns);
	finish_notes(end, run->info.notes);
	json_object_end(end);
}

/*
 * The host's stack takes a packet for a neighbour that never answers, and drops it without a word. Without any stamp of
 * the driver the neighbour is looked up once more; with --no-stamps it is not known how many probes left before.
 */
static void judge_neighbour(struct send_run *run, const struct ktx_accounts *a)
{
	struct ktrxer_path_options path = KTRXER_PATH_OPTIONS_INIT;
	struct ktrxer_path found = { 0 };
	struct ktrxer_error err = { 0 };

	const bool no_stamps = run->o->no_stamps;
	bool away;

	if (!a->sent || a->driver + a->nic || (!no_stamps && a->stamps_missing < a->sent) || run->path.needs_stack)
		return;
	path.device = run->path.device.name;
	path.from = run->path.source;
	path.to = run->path.to;
	away = ktrxer_path_resolve(&found, &path, &err) == -EHOSTUNREACH;
	if (no_stamps && (away || is_unreachable(run))) {
		reason_next_hop_away(run->cli, a->sent, away ? err.text : "the next hop was away for a time");
	} else if (away) {
		reason_none_left(run->cli, a->sent, err.text);
		run->cli->no_figure = true;
	}
}

/* Frames of a file have addresses of their own, and leave by the device that the user has named. */
static void witness_end(struct send_run *run, uint64_t sent)
{
	for (uint32_t i = 0; i < run->workers_count; i++) {
		struct ktx_accounts a;

		ktx_accounts(run->workers[i].tx, &a);
		path_witness_sent(&run->witness, run->workers[i].tx, &run->path, a.sent);
	}
	path_witness_end(&run->witness, &(struct path_claim){ .path = &run->path,
							      .device = run->o->device,
							      .from = &run->o->from,
							      .sent = sent,
							      .any_source = vary_has(&run->vary, KTX_FIELD_SOURCE) });
}

static void finish_verdict(struct send_run *run, const struct ktx_accounts *a)
{
	run->cli->no_figure = !a->sent;
	verdict_packets(run->cli, a);
	replay_verdict(run);
	if (!run->o->pcap) {
		const struct path_report path = path_of(run);

		witness_end(run, a->sent);
		path_report_judge(&path);
	}
	if (a->uncounted)
		reason_uncounted(run->cli, a->uncounted, a->queued, run->path.device.name);
	judge_neighbour(run, a);
	if (failed_worker(run))
		reason_send_ended_early(run->cli, a->sent ? VERDICT_DEGRADED : VERDICT_INVALID,
					failed_worker(run)->failure_text);
	else if (cli_stopped(run->cli) && run->wanted != UINT64_MAX)
		reason_stopped(run->cli, "probes");
}

/* Some drivers bring their statistics up to date once a second. */
static void accounts_of(const struct send_worker *worker, struct ktx_accounts *a)
{
	const struct timespec nap = { .tv_sec = 1, .tv_nsec = 200000000 };

	ktx_accounts(worker->tx, a);
	if (!a->uncounted)
		return;
	clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	ktx_accounts(worker->tx, a);
}

static void accounts_join(struct ktx_accounts *sum, const struct ktx_accounts *a)
{
	sum->requested += a->requested;
	sum->sent += a->sent;
	sum->failed += a->failed;
	sum->skipped += a->skipped;
	sum->cancelled += a->cancelled;
	sum->pending += a->pending;
	sum->late += a->late;
	sum->tries += a->tries;
	sum->bytes += a->bytes;
	sum->nic += a->nic;
	sum->driver += a->driver;
	sum->queued += a->queued;
	sum->stamps_missing += a->stamps_missing;
	sum->uncounted += a->uncounted;
	if (a->sent && (!sum->first_ns || a->first_ns < sum->first_ns))
		sum->first_ns = a->first_ns;
	if (a->last_ns > sum->last_ns)
		sum->last_ns = a->last_ns;
	if (a->last_error)
		sum->last_error = a->last_error;
}

static struct ktrxer_hist *workers_join(const struct send_run *run, struct ktx_accounts *sum, uint64_t *committed)
{
	struct ktrxer_hist *all = NULL;

	*sum = (struct ktx_accounts){ 0 };
	*committed = 0;
	for (uint32_t i = 0; i < run->workers_count; i++) {
		const struct send_worker *worker = &run->workers[i];
		struct ktrxer_hist *lateness = ktx_lateness(worker->tx);
		struct ktx_accounts a;

		accounts_of(worker, &a);
		accounts_join(sum, &a);
		*committed += worker->committed;
		if (all && lateness)
			ktrxer_hist_merge(all, lateness);
		if (!all)
			all = lateness;
		else
			ktrxer_hist_free(lateness);
	}
	return all;
}

int send_finish(struct send_run *run)
{
	struct json *end = out_end(run->cli);
	struct ktx_accounts a;
	uint64_t duration, rate_milli = 0, committed, never = 0;
	struct ktrxer_hist *lateness = workers_join(run, &a, &committed);

	ktx_info(run->workers[0].tx, &run->info);
	/* Probes of a requested number that never reached the transmitter were cancelled, too. */
	if (run->wanted != UINT64_MAX && !run->o->pcap && (failed_worker(run) || cli_stopped(run->cli)))
		never = run->wanted - committed;
	a.requested += never + replay_refused(run);
	a.cancelled += never;
	a.failed += replay_refused(run);
	duration = a.sent > 1 ? a.last_ns - a.first_ns : 0;
	if (duration)
		rate_milli = (uint64_t)((long double)(a.sent - 1) * 1e12L / (long double)duration + 0.5L);
	finish_verdict(run, &a);
	finish_text(run, &a, lateness, duration, rate_milli);
	finish_json(run, end, &a, lateness, duration, rate_milli);
	ktrxer_hist_free(lateness);
	if (run->csv && (fflush(run->csv) != 0 || ferror(run->csv)))
		reason_reports_unwritten(run->cli, run->o->reports);
	return out_finish(run->cli, end);
}
