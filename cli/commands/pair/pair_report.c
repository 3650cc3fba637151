/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer pair`. */
#include "pair_command.h"

#include "fields_trains.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>

enum { FEW_UNDISTURBED = 10, WIDE_PERCENT = 15, MODES_SHOWN = 4 };

void pair_say_what(const struct pair_run *run)
{
	const struct pair_way *way = &run->ways[!run->ways[0].wanted];
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT], load[KTRXER_UNITS_TEXT];

	out_text(run->train.cli,
		 "pair %s (%s) from %s on %s: %" PRIu64
		 " pairs of %u bytes and as many of %u %s, one of each size every %s; load %s",
		 run->o->train.host, ktrxer_addr_format(&run->train.plan.to, to),
		 ktrxer_addr_format(&run->train.path.source, from), run->train.path.device.name, run->o->count,
		 way->ip_bytes[0], way->ip_bytes[1], run->o->echo ? "by ICMP echo" : "in each direction",
		 ktrxer_format_duration(interval, run->o->interval_ns), out_rate(load, run->probe_bit_s));
}

static void say_sets(const struct pair_run *run, const struct pair_way *way)
{
	for (int i = 0; i < 2; i++) {
		const struct pairs_set *s = &way->sets[i];

		out_text(run->train.cli, "%s: %zu pairs of %u bytes, %zu of them usable, %zu undisturbed", way->name,
			 s->count, way->ip_bytes[i], s->outcomes[PAIR_USABLE], s->undisturbed);
		train_run_say_left_out(&run->train, way->name, "pairs", way->ip_bytes[i], s->outcomes);
	}
}

static void say_modes(const struct pair_run *run, const struct pair_way *way)
{
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT];

	for (size_t i = 0; i < way->modes.count && i < MODES_SHOWN; i++)
		out_text(run->train.cli, "%s: %zu of %zu large pairs from %s to %s", way->name,
			 way->modes.modes[i].count, way->modes.used, out_rate(low, way->modes.modes[i].low_bit_s),
			 out_rate(high, way->modes.modes[i].high_bit_s));
}

static void say_way(const struct pair_run *run, const struct pair_way *way)
{
	const struct pairs_set *large = way->result.large;
	char x[4][KTRXER_UNITS_TEXT];

	say_sets(run, way);
	say_modes(run, way);
	if (way->result.reading == PAIRS_SHAPED)
		out_text(run->train.cli, "%s: token bucket: %.0f kB at %s, then %s", way->name,
			 way->shaper.bucket_bytes / 1000, out_rate(x[0], way->shaper.line_bit_s),
			 out_rate(x[1], way->shaper.sustained_bit_s));
	if (way->result.reading != PAIRS_RESOLVED)
		return;
	if (run->o->echo)
		out_text(run->train.cli,
			 "one-sided: the capacity of the narrower direction, by replies of the far host");
	out_text(run->train.cli,
		 "%s: capacity %s (95 %%: %s to %s) for IP packets of %u bytes; link rate %s, by both sizes, with %.0f "
		 "bytes more a packet",
		 way->name, out_rate(x[0], large->capacity_bit_s), out_rate(x[1], large->low_bit_s),
		 out_rate(x[2], large->high_bit_s), way->ip_bytes[0], out_rate(x[3], way->result.link_bit_s),
		 way->result.overhead_bytes);
}

static void set_json(struct json *json, const struct pairs_set *s, uint32_t ip_bytes)
{
	json_object(json, NULL);
	pair_set_ip_bytes(json, ip_bytes);
	pair_set_pairs(json, s->count);
	train_run_outcomes_json(json, s->outcomes);
	pair_set_undisturbed(json, s->undisturbed);
	if (s->undisturbed) {
		pair_set_gap_ns(json, s->gap_ns);
		pair_set_gap_low_ns(json, s->low_ns);
		pair_set_gap_high_ns(json, s->high_ns);
		pair_set_excess_ns(json, s->excess_ns);
	}
	json_object_end(json);
}

static void way_json(struct json *json, const struct pair_way *way)
{
	const struct pairs_result *r = &way->result;

	json_object(json, way->key);
	pair_way_reading(json, pairs_reading_names[r->reading]);
	if (r->reading == PAIRS_RESOLVED) {
		pair_way_capacity_bit_s_open(json);
		pair_capacity_value(json, r->large->capacity_bit_s);
		pair_capacity_low(json, r->large->low_bit_s);
		pair_capacity_high(json, r->large->high_bit_s);
		json_object_end(json);
		pair_way_link_bit_s(json, r->link_bit_s);
		pair_way_overhead_bytes(json, r->overhead_bytes);
		pair_way_skew_ppm(json, r->skew_ppm);
	} else {
		pair_way_capacity_bit_s_null(json);
	}
	if (r->reading == PAIRS_COALESCED && r->period_ns > 0)
		pair_way_coalescing_ns(json, r->period_ns);
	if (r->reading == PAIRS_SHAPED) {
		pair_way_shaper_open(json);
		shaper_line_bit_s(json, way->shaper.line_bit_s);
		shaper_sustained_bit_s(json, way->shaper.sustained_bit_s);
		shaper_bucket_bytes(json, way->shaper.bucket_bytes);
		json_object_end(json);
	}
	pair_way_sizes_open(json);
	for (int i = 0; i < 2; i++)
		set_json(json, &way->sets[i], way->ip_bytes[i]);
	json_array_end(json);
	pair_way_modes_open(json);
	for (size_t i = 0; i < way->modes.count; i++) {
		json_object(json, NULL);
		pair_mode_pairs(json, way->modes.modes[i].count);
		pair_mode_low_bit_s(json, way->modes.modes[i].low_bit_s);
		pair_mode_high_bit_s(json, way->modes.modes[i].high_bit_s);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void judge_resolved(struct cli *cli, const struct pair_way *way)
{
	const struct pairs_set *large = way->result.large;

	if (way->sets[0].undisturbed < FEW_UNDISTURBED || way->sets[1].undisturbed < FEW_UNDISTURBED)
		reason_pair_few_undisturbed(cli, way->name, way->sets[0].undisturbed, way->sets[1].undisturbed,
					    FEW_UNDISTURBED);
	else if (large->high_bit_s - large->low_bit_s > large->capacity_bit_s * WIDE_PERCENT / 100)
		reason_pair_wide(cli, way->name, WIDE_PERCENT);
}

static bool judge_sizes(const struct train_run *run, const struct pair_way *way)
{
	struct train_size sizes[4];

	for (int i = 0; i < 4; i++)
		sizes[i] = train_size_of(way->ip_bytes[i / 2], way->sets[i / 2].pairs, way->sets[i / 2].count, i % 2);
	return train_run_judge_sizes(run, way->name, sizes, 4);
}

static void judge(const struct train_run *run, const struct pair_way *way)
{
	struct cli *cli = run->cli;
	char shaper[48];

	if (way->result.reading != PAIRS_RESOLVED && judge_sizes(run, way))
		return;
	switch (way->result.reading) {
	case PAIRS_RESOLVED:
		judge_resolved(cli, way);
		break;
	case PAIRS_COALESCED:
		train_run_judge_coalesced(run, way->name, way->receiver, way->result.period_ns);
		break;
	case PAIRS_SPREAD:
		reason_pair_sender_narrow(cli, way->name, way->sender,
					  train_shaper(&run->session.info, &run->session.qdiscs, way->receiver,
						       shaper));
		break;
	case PAIRS_DISTURBED:
		reason_pair_disturbed(cli, way->name);
		break;
	case PAIRS_SHAPED:
		reason_pair_shaped(cli, way->name, (uint64_t)way->shaper.bucket_bytes, way->shaper.line_bit_s,
				   way->shaper.sustained_bit_s);
		break;
	case PAIRS_CHANGED:
		reason_pair_changed(cli, way->name);
		break;
	default:
		reason_pair_few(cli, way->name, way->sets[0].outcomes[PAIR_USABLE], way->sets[1].outcomes[PAIR_USABLE],
				PAIRS_LEAST);
	}
}

int pair_finish(struct pair_run *run)
{
	bool resolved = false;
	struct json *end;

	for (int i = 0; i < TRAIN_WAYS; i++)
		if (run->ways[i].estimated) {
			for (int size = 0; size < 2; size++)
				train_run_samples(&run->train, "pair", run->ways[i].key,
						  &(struct train_samples){ .bytes_name = "ip_bytes",
									   .bytes = run->ways[i].ip_bytes[size],
									   .times = run->ways[i].times[size],
									   .count = run->ways[i].sets[size].count });
			say_way(run, &run->ways[i]);
			judge(&run->train, &run->ways[i]);
			resolved |= run->ways[i].result.reading == PAIRS_RESOLVED;
		}
	run->train.cli->no_figure = !resolved;
	train_run_judge(&run->train, "pairs");
	end = out_end(run->train.cli);
	train_run_json(&run->train, end);
	pair_end_one_sided(end, run->o->echo);
	pair_end_interval_ns(end, run->o->interval_ns);
	pair_end_probe_bit_s(end, run->probe_bit_s);
	for (int i = 0; i < TRAIN_WAYS; i++)
		if (run->ways[i].estimated)
			way_json(end, &run->ways[i]);
	return out_finish(run->train.cli, end);
}
