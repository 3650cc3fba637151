/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `owamp`: the records of packets, and the figures of each direction with their verdict. */
#include "owamp_command.h"

#include "bounds.h"
#include "fields_common.h"
#include "fields_owamp.h"
#include "path_report.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>

enum { HOPS_UNKNOWN = 255 };

const char *const owamp_directions[] = { "both", "up", "down", NULL };
static const char *const way_names[OWAMP_WAYS] = { "up", "down" };

void owamp_say_what(const struct owamp_run *run)
{
	char to[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT];

	out_text(run->cli, "owamp %s (%s) port %u: %u packets of %" PRIu64 " bytes %s, %s intervals of %s",
		 run->o->host, ktrxer_addr_format(&run->client.to, to), run->client.port, run->client.packets,
		 run->o->payload, run->o->direction ? owamp_directions[run->o->direction] : "in each direction",
		 shared_models[run->o->model], ktrxer_format_ns(interval, (int64_t)run->o->interval_ns));
}

static void samples(const struct owamp_run *run, int way)
{
	const struct owamp_way *w = &run->result.ways[way];

	for (uint32_t i = 0; i < w->count; i++) {
		const struct owamp_record *r = &w->records[i];
		struct json *sample = out_sample(run->cli, "owamp");
		struct owamp_times times;

		if (!sample)
			return;
		if (!owamp_record_times(r, r->seq < w->next ? w->sched_real_ns : NULL, &times))
			times = (struct owamp_times){ 0 };
		owamp_record_direction(sample, way_names[way]);
		owamp_record_number(sample, r->seq);
		owamp_record_sent_ns(sample, times.sent_ns);
		owamp_record_sent_stamp(sample, sent_source_names[times.sched ? KTX_SENT_SCHED : KTX_SENT_USER]);
		owamp_record_received_ns(sample, times.received_ns);
		owamp_record_ttl_or_null(sample, r->ttl, r->ttl);
		out_put(run->cli, sample);
	}
}

static void say_hist(const struct owamp_run *run, const char *name, const char *what, const struct ktrxer_hist *h,
		     const char *more)
{
	char text[HIST_TEXT];

	out_text(run->cli, "%s: %s: %s%s", name, what, hist_text(text, h, HIST_MIN | HIST_TAIL), more);
}

static bool has_delay(const struct owamp_delays *d)
{
	return d->synchronised && d->bound_ns != UINT64_MAX && ktrxer_hist_count(d->delay);
}

static void say_way(const struct owamp_run *run, int way)
{
	const struct owamp_delays *d = &run->delays[way];
	char bound[KTRXER_UNITS_TEXT], more[KTRXER_UNITS_TEXT + 48];

	out_text(run->cli, "%s: %u packets sent, %u arrived, %u lost, %u copies, %u reordered", way_names[way], d->sent,
		 d->arrived, d->lost, d->duplicates, d->reordered);
	if (way == OWAMP_UP && d->lost)
		out_text(run->cli, CLI_FAR_SOCKET);
	if (!ktrxer_hist_count(d->variation))
		return;
	if (has_delay(d)) {
		snprintf(more, sizeof more, " (+- %s by the clocks' own reports)",
			 ktrxer_format_ns(bound, (int64_t)d->bound_ns));
		say_hist(run, way_names[way], "one-way delay", d->delay, more);
	} else {
		out_text(run->cli,
			 "%s: one-way delay not known: the clocks of both hosts are not reported to be synchronised",
			 way_names[way]);
	}
	say_hist(run, way_names[way], "delay above the least one", d->variation, "");
}

static void way_json(struct json *json, const struct owamp_run *run, int way)
{
	const struct owamp_way *w = &run->result.ways[way];
	const struct owamp_delays *d = &run->delays[way];

	json_object(json, way_names[way]);
	owamp_way_sent(json, d->sent);
	owamp_way_not_sent(json, w->skipped);
	owamp_way_undecided(json, w->undecided);
	owamp_way_arrived(json, d->arrived);
	owamp_way_lost(json, d->lost);
	owamp_way_loss(json, d->sent ? (double)d->lost / d->sent : 0);
	owamp_way_duplicates(json, d->duplicates);
	owamp_way_reordered(json, d->reordered);
	if (has_delay(d)) {
		owamp_way_delay_us(json, d->delay);
		owamp_way_delay_uncertainty_ns(json, d->bound_ns);
	} else {
		owamp_way_delay_us_null(json);
		owamp_way_delay_uncertainty_ns_null(json);
	}
	owamp_way_delay_variation_us(json, d->variation);
	if (d->hops[0] == HOPS_UNKNOWN) {
		owamp_way_hops_min_null(json);
		owamp_way_hops_max_null(json);
	} else {
		owamp_way_hops_min(json, d->hops[0]);
		owamp_way_hops_max(json, d->hops[1]);
	}
	json_late(json, way == OWAMP_UP ? w->accounts.late : w->late, run->client.late_ns);
	if (way == OWAMP_UP) {
		owamp_way_from_packet_scheduler(json, d->sched);
		owamp_way_lateness_us(json, w->lateness);
	} else {
		owamp_way_lost_in_socket(json, w->socket_drops);
		owamp_way_without_kernel_stamp(json, w->user_stamped);
		owamp_way_ignored(json, w->ignored);
		owamp_way_too_late(json, w->too_late);
	}
	json_object_end(json);
}

static struct bound_parts parts_of(const struct owamp_run *run, int way)
{
	const struct owamp_way *w = &run->result.ways[way];
	const struct owamp_delays *d = &run->delays[way];
	const struct ktx_accounts *a = &w->accounts;
	static char error[KTRXER_ERROR_TEXT];
	struct bound_parts p = { .tolerance = run->o->tolerance };

	p.count[BOUND_BY_LEFT_OUT] = d->contradicted;
	p.count[BOUND_BY_RECEIVE_TIME] = w->user_stamped;
	p.count[BOUND_BY_RECEIVE_BUFFER] = w->socket_drops < d->lost ? w->socket_drops : d->lost;
	p.ns[BOUND_BY_CLOCK] = has_delay(d) && d->bound_ns < INT64_MAX ? (int64_t)d->bound_ns : 0;
	if (way == OWAMP_UP) {
		p.count[BOUND_BY_SEND_TIME] = d->arrived - d->sched;
		p.count[BOUND_BY_SKIPPED] = a->skipped;
		p.count[BOUND_BY_UNSENT] = a->failed;
		p.unseen = verdict_unseen(a, d->arrived);
		p.error = verdict_last_error(a, error, sizeof error);
		p.late = a->late;
	} else {
		p.count[BOUND_BY_UNSENT] = w->skipped;
		p.error = "the server reports that it did not send them";
		p.late = w->late;
	}
	return p;
}

static void judge(const struct owamp_run *run, int way)
{
	const char *const name = way_names[way];
	const struct bound_name delay = way == OWAMP_UP
						? (struct bound_name){ "up_p50", "p50 of the delay up", NULL }
						: (struct bound_name){ "down_p50", "p50 of the delay down", NULL },
				loss = { "loss", "loss", name };
	const struct owamp_way *w = &run->result.ways[way];
	const struct owamp_delays *d = &run->delays[way];
	const struct bound_parts parts = parts_of(run, way);
	struct cli *cli = run->cli;

	if (!d->arrived && !w->undecided)
		reason_owamp_nothing_arrived(cli, name);
	if (way == OWAMP_UP)
		verdict_probes(cli, &w->accounts);
	if (way == OWAMP_DOWN && w->next < run->client.packets && !run->result.stopped && !run->result.stopped_by_peer)
		reason_owamp_server_behind(cli, name, w->next, run->client.packets);
	if (has_delay(d) && d->least_ns + (int64_t)(d->bound_ns < INT64_MAX / 2 ? d->bound_ns : INT64_MAX / 2) < 0)
		reason_owamp_not_synchronised(cli, name);
	if (has_delay(d))
		bound_delay(cli, &delay, d->delay, &parts);
	bound_loss(cli, &loss, d->sent, d->lost, &parts);
}

int owamp_finish(struct owamp_run *run)
{
	const struct owamp_client_result *r = &run->result;
	const struct path_report path = { .cli = run->cli,
					  .witness = &r->path,
					  .claim = &r->route,
					  .host = run->o->host,
					  .from_named = run->o->from.family };
	struct json *end;

	run->cli->no_figure = !run->delays[OWAMP_UP].arrived && !run->delays[OWAMP_DOWN].arrived;
	for (int way = 0; way < OWAMP_WAYS; way++)
		if (r->ways[way].measured) {
			if (out_wants_samples(run->cli))
				samples(run, way);
			say_way(run, way);
			judge(run, way);
		}
	path_report_judge(&path);
	path_report_text(&path);
	if (r->stopped)
		reason_owamp_stopped(run->cli);
	if (r->stopped_by_peer)
		reason_owamp_server_stopped(run->cli);
	end = out_end(run->cli);
	json_target(end, run->o->host, &r->route);
	path_report_json(&path, end);
	owamp_end_port(end, run->client.port);
	owamp_end_model(end, shared_models[run->o->model]);
	owamp_end_interval_ns(end, run->o->interval_ns);
	owamp_end_payload(end, run->o->payload);
	owamp_end_dscp(end, run->o->dscp);
	owamp_end_timeout_ns(end, run->o->timeout_ns);
	owamp_end_lasted_ns(end, r->lasted_ns);
	for (int way = 0; way < OWAMP_WAYS; way++)
		if (r->ways[way].measured)
			way_json(end, run, way);
	return out_finish(run->cli, end);
}
