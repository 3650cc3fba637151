/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_command.h"

#include "fields_trains.h"
#include "error.h"
#include "flow.h"
#include "path_find.h"
#include "path_report.h"
#include "reasons.h"
#include "server_address.h"
#include "units.h"

#include <sys/socket.h>

enum { READY_MS = 3000 /* before --start-at: connection and introductions */ };

const char *const train_directions[] = { "both", "up", "down", NULL };
const char *const train_ways[TRAIN_WAYS] = { "up", "down" };
const char *const train_hosts[TRAIN_WAYS] = { "this host", "the far host" };

int train_run_find_path(struct train_run *run, struct ktrxer_error *err)
{
	const struct train_options *o = run->o;
	int rc = server_address_find(run->cli, o->host, &o->from, o->v4, o->v6, (uint16_t)o->port, &run->plan.to, err);

	run->plan.from = o->from;
	return rc < 0 ? rc : path_find(&run->path, o->device, &o->from, &run->plan.to, false, err);
}

int train_run_prepare(struct train_run *run, struct ktrxer_error *err)
{
	const struct train_options *o = run->o;
	int rc;

	run->plan = (struct train_session_options){ .port = (uint16_t)o->port,
						    .token = &run->token,
						    .device = o->device,
						    .engine = o->engine,
						    .precise = o->precise,
						    .cpu = (int)o->cpu,
						    .specs = run->specs,
						    .witness = &run->witness,
						    .stop_fd = run->cli->stop_fd,
						    .describe = flow_failure_describe };
	rc = flow_token_read(&run->token, o->token_file, err);
	return rc < 0 ? rc : train_run_find_path(run, err);
}

bool train_run_wants(const struct train_options *o, enum train_way way)
{
	return o->direction != (way == TRAIN_UP ? 2 : 1);
}

uint32_t train_run_head(const struct train_run *run)
{
	return run->plan.to.family == AF_INET6 ? 48 : 28;
}

uint32_t train_run_room(const struct train_run *run)
{
	const uint32_t head = train_run_head(run);

	return run->path.mtu > head ? run->path.mtu - head : 0;
}

void train_run_add(struct train_run *run, enum train_way way, uint32_t kind, uint32_t kinds, const uint32_t payloads[2],
		   uint64_t period_ns)
{
	train_pair_spec(&run->specs[run->plan.flows++], way == TRAIN_DOWN, payloads, period_ns,
			(uint64_t)(TRAIN_WAYS * kind + way) * (period_ns / (TRAIN_WAYS * kinds)));
}

int train_run_wait(struct train_run *run)
{
	uint64_t start_ns;

	if (cli_wait_start_ahead(run->cli, READY_MS, &start_ns) < 0)
		return -1;
	run->plan.start_ns = run->cli->common.start_at_real_ns ? start_ns : 0;
	return 0;
}

int train_run_go(struct train_run *run, uint64_t pairs)
{
	struct ktrxer_error err = { 0 };

	if (train_run_wait(run) < 0)
		return EXIT_NO_RESULT;
	run->plan.trains = (uint32_t)pairs;
	if (train_session_run(&run->session, &run->plan, &err) == 0)
		return EXIT_VALID;
	cli_fail(run->cli, &err);
	return EXIT_NO_RESULT;
}

void train_run_samples(const struct train_run *run, const char *kind, const char *direction,
		       const struct train_samples *s)
{
	static const char *const names[] = { "first_sent_ns", "second_sent_ns", "first_arrived_ns",
					     "second_arrived_ns" };

	for (size_t i = 0; i < s->count; i++) {
		struct json *sample = out_sample(run->cli, kind);

		if (!sample)
			return;
		train_pair_direction(sample, direction);
		train_pair_number(sample, i);
		json_u64(sample, s->bytes_name, s->bytes);
		for (int half = 0; half < 4; half++) {
			const struct pair_times *p = &s->times[i];
			const uint64_t time_ns = half < 2 ? p->sent_ns[half] : p->arrived_ns[half - 2];

			json_u64_or_null(sample, names[half], time_ns, time_ns);
		}
		out_put(run->cli, sample);
	}
}

static const struct {
	const char *key, *text;
} outcomes_shown[PAIR_OUTCOMES] = {
	[PAIR_LOST] = { "lost", "with a packet lost" },
	[PAIR_UNSENT] = { "unsent", "without a send time" },
	[PAIR_REORDERED] = { "reordered", "reordered" },
	[PAIR_TOGETHER] = { "one_stamp", "with one stamp for both arrivals" },
	[PAIR_SPREAD] = { "not_back_to_back", "not back to back" },
	[PAIR_USABLE] = { "usable", NULL },
};

void train_run_say_left_out(const struct train_run *run, const char *direction, const char *what, uint32_t bytes,
			    const size_t outcomes[PAIR_OUTCOMES])
{
	for (int i = 0; i < PAIR_USABLE; i++)
		if (outcomes[i])
			out_text(run->cli, "%s: %zu %s of %u bytes left out: %s", direction, outcomes[i], what, bytes,
				 outcomes_shown[i].text);
}

void train_run_outcomes_json(struct json *json, const size_t outcomes[PAIR_OUTCOMES])
{
	for (int i = 0; i < PAIR_OUTCOMES; i++)
		json_u64(json, outcomes_shown[i].key, outcomes[i]);
}

const char *train_shaper(const struct ktx_info *info, const struct ktrxer_qdiscs *qdiscs, const char *receiver,
			 char text[48])
{
	const bool up = receiver != train_hosts[TRAIN_UP]; /* also of echo requests */

	*text = '\0';
	if (up && !(info->features & KTX_CAN_BYPASS) && *qdiscs->shaper)
		snprintf(text, 48, "this host's qdisc %s or ", qdiscs->shaper);
	return text;
}

struct train_size train_size_of(uint32_t bytes, const struct pair_times *times, size_t count, int which)
{
	struct train_size size = { .bytes = bytes, .sent = count };

	for (size_t i = 0; i < count; i++)
		size.arrived += times[i].arrived_ns[which] != 0;
	return size;
}

bool train_run_judge_sizes(const struct train_run *run, const char *name, const struct train_size *sizes, size_t count)
{
	uint32_t lost = UINT32_MAX, arrived = 0, largest = 0;

	for (size_t i = 0; i < count; i++)
		if (sizes[i].sent >= PAIRS_LEAST && !sizes[i].arrived && sizes[i].bytes < lost)
			lost = sizes[i].bytes;
	for (size_t i = 0; i < count; i++) {
		if (sizes[i].arrived && sizes[i].bytes > largest)
			largest = sizes[i].bytes;
		if (sizes[i].arrived * 2 >= sizes[i].sent && sizes[i].bytes < lost && sizes[i].bytes > arrived)
			arrived = sizes[i].bytes;
	}
	if (!arrived || lost == UINT32_MAX || largest > lost)
		return false;
	reason_train_size_lost(run->cli, name, lost, arrived);
	return true;
}

void train_run_judge_coalesced(const struct train_run *run, const char *name, const char *receiver, double period_ns)
{
	char groups[64] = "both packets of a pair at once", period[KTRXER_UNITS_TEXT], shaper[48];

	if (period_ns > 0)
		snprintf(groups, sizeof groups, "packets in groups, one every %s",
			 ktrxer_format_ns(period, (int64_t)period_ns));
	reason_train_coalesced(run->cli, name, receiver, groups,
			       train_shaper(&run->session.info, &run->session.qdiscs, receiver, shaper));
}

static struct path_report path_of(const struct train_run *run)
{
	return (struct path_report){ .cli = run->cli,
				     .witness = &run->witness,
				     .claim = &run->path,
				     .host = run->o->host,
				     .from_named = run->o->from.family };
}

void train_run_judge(struct train_run *run, const char *what)
{
	const struct path_report path = path_of(run);

	path_witness_end(&run->witness, &(struct path_claim){ .path = &run->path,
							      .device = run->o->device,
							      .from = &run->o->from,
							      .sent = run->session.flows || run->witness.left_count });
	path_report_judge(&path);
	path_report_text(&path);
	if (run->session.stopped)
		reason_stopped(run->cli, what);
	verdict_bypass(run->cli, &run->session.info, &run->session.qdiscs, "udp");
	if (run->session.result.remote_missing)
		reason_train_ends_missing(run->cli, run->session.result.remote_missing, run->session.flows, what);
}

void train_run_json(const struct train_run *run, struct json *end)
{
	const struct path_report path = path_of(run);

	json_target(end, run->o->host, &run->path);
	path_report_json(&path, end);
}

void train_run_free(struct train_run *run)
{
	train_session_free(&run->session);
	secret_forget(&run->token, sizeof run->token);
}
