/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer abw`. */
#include "abw_command.h"

#include "fields_trains.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>

enum { LATE_PERCENT = 1, OVERTAKEN_MAX = 2, MISFIT_MAX = 4, LOST_PERCENT = 10, WIDE_PERCENT = 15 };

const char *const abw_methods[] = { "auto", "slops", "chirp", NULL };

void abw_say_what(const struct abw_run *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->train.cli, "abw %s (%s) from %s on %s: method %s, packets of %u bytes", run->o->train.host,
		 ktrxer_addr_format(&run->train.plan.to, to), ktrxer_addr_format(&run->train.path.source, from),
		 run->train.path.device.name, abw_methods[run->o->method], run->estimate.large_bytes);
}

void abw_say_step(void *context, const struct abw_plan *plan, const struct train_session *session)
{
	const struct abw_way *way = context;
	const struct abw_result *r = &way->trains.abw.result;
	struct json *sample = out_sample(way->run->train.cli, "abw_step");
	uint64_t sent = 0, arrived = 0;

	if (!sample)
		return;
	for (uint32_t i = 0; i < session->flows; i++) {
		sent += session->packets[i].sent;
		arrived += session->packets[i].arrived;
	}
	abw_step_direction(sample, train_ways[way->way]);
	abw_step_step(sample, abw_step_names[plan->step]);
	abw_step_trains(sample, (uint64_t)plan->flows * plan->trains);
	abw_step_packets(sample, plan->packets);
	abw_step_ip_bytes(sample, plan->ip_bytes);
	abw_step_gap_ns(sample, plan->gap_ns);
	abw_step_period_ns(sample, plan->period_ns);
	abw_step_sent(sample, sent);
	abw_step_arrived(sample, arrived);
	abw_step_capacity_bit_s(sample, r->capacity_bit_s);
	out_put(way->run->train.cli, sample);
}

static void say_how(const struct abw_run *run, const char *name, const struct abw_result *r)
{
	if (r->by == ABW_IDLE)
		out_text(run->train.cli,
			 "%s: the queues of the path were empty for %.0f %% of the time "
			 "(99 %%: %.0f to %.0f %%), by small probes; streams at several rates agree with one loaded "
			 "link, the narrow one",
			 name, 100 * r->idle.share, 100 * r->idle.low, 100 * r->idle.high);
	else if (r->by == ABW_STREAMS)
		out_text(run->train.cli, "%s: by streams at several rates", name);
	else if (r->by == ABW_CHIRPS)
		out_text(run->train.cli, "%s: by chirps", name);
	else
		out_text(run->train.cli, "%s: by %u fleets of streams, each at one rate", name, r->fleets);
	if (r->fleets_by_loss)
		out_text(run->train.cli,
			 "%s: %u of the fleets lost %d %% of a stream, or %d %% of half of their streams, while their "
			 "delays did not rise: their rates count as too high",
			 name, r->fleets_by_loss, ABW_LOSS_PERCENT, ABW_LOSS_MODERATE_PERCENT);
}

static bool has_range(const struct abw_result *r)
{
	return r->reading == ABW_RESOLVED || r->reading == ABW_OPEN;
}

static void say_way(const struct abw_way *way)
{
	const struct abw_run *run = way->run;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way];
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT], load[KTRXER_UNITS_TEXT], lasted[KTRXER_UNITS_TEXT];

	if (has_range(r)) {
		out_text(run->train.cli, "%s: available bandwidth from %s to %s, for IP packets of %u bytes", name,
			 out_rate(low, r->low_bit_s), out_rate(high, r->high_bit_s), run->estimate.large_bytes);
		say_how(run, name, r);
	}
	if (r->capacity_bit_s > 0)
		out_text(run->train.cli, "%s: capacity of the narrow link %s, with %.0f bytes more a packet", name,
			 out_rate(low, r->capacity_bit_s), r->overhead_bytes);
	out_text(run->train.cli,
		 "%s: %" PRIu64 " probes, %" PRIu64 " of them lost, %" PRIu64 " bytes in %s: a load of %s", name,
		 r->packets, r->lost, r->bytes, ktrxer_format_ns(lasted, (int64_t)way->trains.lasted_ns),
		 out_rate(load, way->trains.load_bit_s));
	if (r->capacity_bit_s > 0)
		out_text(run->train.cli, "%s: the load of the probes was %.1f %% of the capacity on average", name,
			 100 * way->trains.load_share);
}

static void way_json(struct json *json, const struct abw_way *way)
{
	const struct abw_result *r = &way->trains.abw.result;

	json_object(json, train_ways[way->way]);
	abw_way_reading(json, abw_reading_names[r->reading]);
	if (has_range(r)) {
		abw_way_available_bit_s_open(json);
		abw_range_low(json, r->low_bit_s);
		abw_range_high(json, r->high_bit_s);
		json_object_end(json);
		abw_way_by(json, abw_step_names[r->by]);
	} else {
		abw_way_available_bit_s_null(json);
	}
	if (r->capacity_bit_s > 0) {
		abw_way_capacity_bit_s(json, r->capacity_bit_s);
		abw_way_overhead_bytes(json, r->overhead_bytes);
		abw_way_load_share(json, way->trains.load_share);
	} else {
		abw_way_capacity_bit_s_null(json);
	}
	if (has_range(r))
		abw_way_misfit(json, r->misfit);
	if (r->reading == ABW_CHANGED)
		abw_way_capacity_end_bit_s(json, r->capacity_end_bit_s);
	if (r->reading == ABW_SHAPED) {
		abw_way_shaper_open(json);
		shaper_line_bit_s(json, r->shaper.line_bit_s);
		shaper_sustained_bit_s(json, r->shaper.sustained_bit_s);
		shaper_bucket_bytes(json, r->shaper.bucket_bytes);
		json_object_end(json);
	}
	if (r->idle_tried) {
		abw_way_empty_queue_open(json);
		abw_idle_resolved(json, r->idle.resolved);
		abw_idle_share(json, r->idle.share);
		abw_idle_low(json, r->idle.low);
		abw_idle_high(json, r->idle.high);
		abw_idle_skew_ppm(json, r->idle.skew_ppm);
		json_object_end(json);
	}
	abw_way_fleets(json, r->fleets);
	abw_way_fleets_by_loss(json, r->fleets_by_loss);
	abw_way_steps(json, way->trains.sessions);
	abw_way_probes(json, r->packets);
	abw_way_probes_lost(json, r->lost);
	abw_way_gaps_not_on_time(json, r->late);
	abw_way_probe_bytes(json, r->bytes);
	abw_way_lasted_ns(json, way->trains.lasted_ns);
	abw_way_load_bit_s(json, way->trains.load_bit_s);
	abw_way_stamp_noise_ns(json, r->tolerance_ns);
	json_object_end(json);
}

static void judge_range(const struct abw_way *way)
{
	struct cli *cli = way->run->train.cli;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way];

	if (r->by == ABW_CHIRPS)
		reason_abw_chirps(cli, name);
	if (r->misfit > MISFIT_MAX)
		reason_abw_misfit(cli, name);
	if (r->fleets_by_loss)
		reason_abw_by_loss(cli, name, r->fleets_by_loss, r->fleets);
	if ((r->high_bit_s - r->low_bit_s) * 100 > r->capacity_bit_s * WIDE_PERCENT)
		reason_abw_wide(cli, name, WIDE_PERCENT);
}

static void judge(const struct abw_way *way)
{
	struct cli *cli = way->run->train.cli;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way], *sender = train_hosts[way->way], *receiver = train_hosts[!way->way];
	char shaper[48];

	switch (r->reading) {
	case ABW_RESOLVED:
		judge_range(way);
		break;
	case ABW_OPEN:
		reason_abw_open(cli, name, r->fleets);
		break;
	case ABW_COALESCED:
		reason_abw_coalesced(cli, name, receiver,
				     train_shaper(&way->trains.info, &way->trains.qdiscs, receiver, shaper));
		break;
	case ABW_SENDER:
		if (r->late)
			reason_abw_sender_slow(cli, name, sender);
		else
			reason_abw_sender_narrow(cli, name, sender,
						 train_shaper(&way->trains.info, &way->trains.qdiscs, receiver,
							      shaper));
		break;
	case ABW_CHANGED:
		reason_abw_changed(cli, name, r->capacity_bit_s, r->capacity_end_bit_s);
		break;
	case ABW_SHAPED:
		reason_abw_shaped(cli, name, (uint64_t)r->shaper.bucket_bytes, r->shaper.line_bit_s,
				  r->shaper.sustained_bit_s);
		break;
	default:
		reason_abw_lost(cli, name, r->lost, r->packets);
	}
	if (r->reading != ABW_SENDER && r->late * 100 > r->packets * LATE_PERCENT)
		reason_abw_late(cli, name, r->late, r->packets, sender);
	if (r->reading == ABW_RESOLVED && r->overtaken > OVERTAKEN_MAX)
		reason_overtaken(cli, name, r->overtaken, r->packets);
	if (r->reading != ABW_LOST && r->lost * 100 > r->packets * LOST_PERCENT)
		reason_train_lost(cli, name, r->lost, r->packets);
}

int abw_finish(struct abw_run *run)
{
	struct cli *cli = run->train.cli;
	struct json *end;

	cli->no_figure = true;
	for (int i = 0; i < TRAIN_WAYS; i++) {
		const struct abw_way *way = &run->ways[i];

		if (!way->measured)
			continue;
		verdict_bypass(cli, &way->trains.info, &way->trains.qdiscs, "udp");
		if (way->trains.stopped) { /* with the range of the other direction, or with none */
			reason_abw_stopped(cli, i && run->ways[TRAIN_UP].measured ? VERDICT_DEGRADED : VERDICT_INVALID,
					   train_ways[i]);
		} else {
			say_way(way);
			judge(way);
			if (has_range(&way->trains.abw.result))
				cli->no_figure = false;
		}
		if (way->trains.remote_missing)
			reason_abw_ends_missing(cli, train_ways[i], way->trains.remote_missing);
	}
	train_run_judge(&run->train, "probes");
	end = out_end(cli);
	train_run_json(&run->train, end);
	abw_end_method(end, abw_methods[run->o->method]);
	abw_end_ip_bytes(end, run->estimate.large_bytes);
	for (int i = 0; i < TRAIN_WAYS; i++)
		if (run->ways[i].measured && !run->ways[i].trains.stopped)
			way_json(end, &run->ways[i]);
	return out_finish(cli, end);
}
