/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer abw`. */
#include "abw_command.h"

#include "fields_trains.h"
#include "units.h"

#include <inttypes.h>

enum { LATE_PERCENT = 1, OVERTAKEN_MOST = 2, LOST_PERCENT = 10, WIDE_PERCENT = 15 };

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

/* ------------------------------------------------------------------------------------------------------------- text */

static void say_how(const struct abw_run *run, const char *name, const struct abw_result *r)
{
	if (r->by == ABW_IDLE)
		out_text(run->train.cli,
			 "%s: the queue of the tight link was empty for %.0f %% of the time (99 %%: %.0f to %.0f %%), "
			 "by small probes; trains beside the range do not contradict it",
			 name, 100 * r->idle.share, 100 * r->idle.low, 100 * r->idle.high);
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

static void say_way(const struct abw_way *way)
{
	const struct abw_run *run = way->run;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way];
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT], load[KTRXER_UNITS_TEXT], lasted[KTRXER_UNITS_TEXT];

	if (r->reading == ABW_RESOLVED || r->reading == ABW_OPEN) {
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

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void way_json(struct json *json, const struct abw_way *way)
{
	const struct abw_result *r = &way->trains.abw.result;

	json_object(json, train_ways[way->way]);
	abw_way_reading(json, abw_reading_names[r->reading]);
	if (r->reading == ABW_RESOLVED || r->reading == ABW_OPEN) {
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
	if (r->capacity_bit_s > 0)
		abw_way_later_load(json, r->later_load);
	if (r->reading == ABW_CHANGED)
		abw_way_capacity_end_bit_s(json, r->capacity_end_bit_s);
	if (r->idle_tried) {
		abw_way_empty_queue_open(json);
		abw_idle_resolved(json, r->idle.resolved);
		abw_idle_share(json, r->idle.share);
		abw_idle_low(json, r->idle.low);
		abw_idle_high(json, r->idle.high);
		abw_idle_skew_ppm(json, r->idle.skew_ppm);
		abw_idle_contradicted(json, r->contradicted);
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

/* ---------------------------------------------------------------------------------------------------------- verdict */

static void judge_range(const struct abw_way *way, const char *receiver)
{
	struct cli *cli = way->run->train.cli;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way];
	char noise[KTRXER_UNITS_TEXT];

	if (r->by == ABW_CHIRPS)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%s: the range is that of the estimates of chirps, which are biased: use another --method",
			    name);
	else if (r->by == ABW_FLEET && r->contradicted)
		verdict_say(
			cli, VERDICT_DEGRADED,
			"%s: streams %s the range of the empty queue contradict it, so the path is not one link that "
			"serves packets in order: the range is that of short fleets",
			name, r->check_step == ABW_CHECK_ABOVE ? "above" : "below");
	else if (r->by == ABW_FLEET && way->run->o->method == ABW_AUTO)
		verdict_say(
			cli, VERDICT_DEGRADED,
			"%s: the noise of the arrival stamps of %s (%s) hides whether a queue is empty: the range is "
			"that of short fleets; its interrupts may be coalesced (`ethtool -C DEV rx-usecs 0` there)",
			name, receiver, ktrxer_format_ns(noise, (int64_t)r->tolerance_ns));
	if (r->fleets_by_loss)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%s: %u of %u fleets count as too fast by their losses, not by their delays: if the losses "
			    "have another cause than a full queue, the range is too low: compare with another --method",
			    name, r->fleets_by_loss, r->fleets);
	if (r->by == ABW_IDLE && r->several)
		verdict_say(
			cli, VERDICT_DEGRADED,
			"%s: cross traffic came between packets that were sent back to back (a load of %.0f %%), so "
			"several links may be loaded, and the range is then too low: compare with another --method",
			name, 100 * r->later_load);
	if ((r->high_bit_s - r->low_bit_s) * 100 > r->capacity_bit_s * WIDE_PERCENT)
		verdict_say(cli, VERDICT_DEGRADED, "%s: the range is wider than %d %% of the capacity", name,
			    WIDE_PERCENT);
}

static void judge(const struct abw_way *way)
{
	struct cli *cli = way->run->train.cli;
	const struct abw_result *r = &way->trains.abw.result;
	const char *name = train_ways[way->way], *sender = train_hosts[way->way], *receiver = train_hosts[!way->way];
	char before[KTRXER_UNITS_TEXT], after[KTRXER_UNITS_TEXT], shaper[48];

	switch (r->reading) {
	case ABW_RESOLVED:
		judge_range(way, receiver);
		break;
	case ABW_OPEN:
		verdict_say(cli, VERDICT_INVALID, "%s: the search over rates has not converged after %u fleets", name,
			    r->fleets);
		break;
	case ABW_COALESCED:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: the gaps between arrivals at %s do not grow with the packets: its interrupts are "
			    "coalesced (`ethtool -C DEV rx-usecs 0` there) or packets merged (`ethtool -K DEV gro "
			    "off`), or %sa device on the path sends in bursts",
			    name, receiver, train_shaper(&way->trains.info, &way->trains.qdiscs, receiver, shaper));
		break;
	case ABW_SENDER:
		if (r->late)
			verdict_say(cli, VERDICT_INVALID,
				    "%s: %s does not send packets at their times: its link or its processor is the "
				    "narrow one",
				    name, sender);
		else
			verdict_say(
				cli, VERDICT_INVALID,
				"%s: packets arrive as far apart as %s sends them back to back: its link or its "
				"processor is the narrow one, or %sa shaper of the path lets them pass in one burst",
				name, sender, train_shaper(&way->trains.info, &way->trains.qdiscs, receiver, shaper));
		break;
	case ABW_CHANGED:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: the capacity of the narrow link changed from %s to %s during the measurement: measure "
			    "again",
			    name, out_rate(before, r->capacity_bit_s), out_rate(after, r->capacity_end_bit_s));
		break;
	default:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: too many probes were lost or overtaken by others: %" PRIu64 " of %" PRIu64, name,
			    r->lost, r->packets);
	}
	if (r->reading != ABW_SENDER && r->late * 100 > r->packets * LATE_PERCENT)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%s: %" PRIu64 " of %" PRIu64
			    " gaps between probes that %s sent are wrong by more than a tenth",
			    name, r->late, r->packets, sender);
	if (r->reading == ABW_RESOLVED && r->overtaken > OVERTAKEN_MOST)
		verdict_say(
			cli, VERDICT_DEGRADED,
			"%s: %" PRIu64 " of %" PRIu64
			" probes were overtaken: the path delays probes without a queue, so the range may be too low",
			name, r->overtaken, r->packets);
	if (r->reading != ABW_LOST && r->lost * 100 > r->packets * LOST_PERCENT)
		verdict_say(cli, VERDICT_DEGRADED, "%s: %" PRIu64 " of %" PRIu64 " probes were lost", name, r->lost,
			    r->packets);
}

int abw_finish(struct abw_run *run)
{
	struct cli *cli = run->train.cli;
	struct json *end;

	for (int i = 0; i < TRAIN_WAYS; i++) {
		const struct abw_way *way = &run->ways[i];

		if (!way->measured)
			continue;
		verdict_bypass(cli, &way->trains.info, &way->trains.qdiscs, "udp");
		if (way->trains.stopped) { /* with the range of the other direction, or with none */
			verdict_say(cli, i && run->ways[TRAIN_UP].measured ? VERDICT_DEGRADED : VERDICT_INVALID,
				    "%s: it was stopped before the range was known", train_ways[i]);
		} else {
			say_way(way);
			judge(way);
		}
		if (way->trains.remote_missing)
			verdict_say(cli, VERDICT_DEGRADED,
				    "%s: the server did not report the end of %u flows of probes", train_ways[i],
				    way->trains.remote_missing);
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
