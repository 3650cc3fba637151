/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer ppt measure`. */
#include "ppt_measure.h"

#include "fields_ppt.h"
#include "ppt_report.h"
#include "reasons.h"

#include <inttypes.h>
#include <stdio.h>

enum { WIDE_PERCENT = 15 };

struct ppt_probes *ppt_way_set(struct ppt_way *way, uint32_t kind)
{
	return kind == PPT_MIDDLE ? &way->checks.middle : kind == PPT_SHORTER ? &way->checks.shorter : &way->sets[kind];
}

void ppt_measure_say_what(const struct ppt_measure *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT], load[KTRXER_UNITS_TEXT];

	out_text(run->train.cli,
		 "ppt measure %s (%s) from %s on %s: %" PRIu64 " compound probes of %u and %u bytes and as many of %u "
		 "and %u, %u and %u, and %u and %u in each direction, one every %s; load %s on the wire",
		 run->o->train.host, ktrxer_addr_format(&run->train.plan.to, to),
		 ktrxer_addr_format(&run->train.path.source, from), run->train.path.device.name, run->o->count,
		 run->heading, run->sizes[0], run->heading, run->sizes[1], run->heading, run->sizes[PPT_MIDDLE],
		 run->shorter_heading, run->sizes[PPT_SHORTER], ktrxer_format_duration(interval, run->o->interval_ns),
		 out_rate(load, run->probe_bit_s));
}

/* Returns the share of the end link; below 0: not known. */
static double link_share(const struct ppt_measure *run, const struct ppt_way *way)
{
	return way->result.reading == PPT_RESOLVED ? run->probe_bit_s / way->result.capacity_bit_s : -1;
}

static void say_set(const struct train_run *run, const char *name, const struct ppt_probes *s,
		    const struct ppt_gaps *gaps)
{
	char x[4][KTRXER_UNITS_TEXT];

	out_text(run->cli,
		 "%s: %zu probes with trailing packets of %u bytes, %zu of them usable; gap between send times %s "
		 "(median)",
		 name, s->count, s->size_bytes, s->outcomes[PAIR_USABLE], ppt_ns_text(x[0], (double)s->send_gap_ns));
	train_run_say_left_out(run, name, "probes with trailing packets", s->size_bytes, s->outcomes);
	if (gaps->kept)
		out_text(run->cli, "%s: %zu gaps after the filter (up to %s): mean %s, standard deviation %s", name,
			 gaps->kept, ppt_ns_text(x[1], (double)gaps->limit_ns), ppt_ns_text(x[2], gaps->average_ns),
			 ppt_ns_text(x[3], gaps->sigma_ns));
}

static void say_way(const struct ppt_measure *run, const char *name, const struct ppt_way *way)
{
	static const struct ppt_gaps none = { 0 };
	struct cli *cli = run->train.cli;
	char prefix[8];

	for (int i = 0; i < 2; i++)
		say_set(&run->train, name, &way->sets[i], &way->result.gaps[i]);
	say_set(&run->train, name, &way->checks.middle, &none);
	say_set(&run->train, name, &way->checks.shorter, &none);
	snprintf(prefix, sizeof prefix, "%s: ", name);
	ppt_say_reading(cli, prefix, &way->result);
	if (way->result.reading == PPT_RESOLVED)
		out_text(cli, "%s: the probes took %.2f %% of the end link", name, 100 * link_share(run, way));
}

static void set_json(struct json *json, const struct ppt_probes *s, uint32_t heading, const struct ppt_gaps *gaps)
{
	json_object(json, NULL);
	ppt_train_trailing_wire_bytes(json, s->size_bytes);
	ppt_train_heading_wire_bytes(json, heading);
	ppt_probes_probes(json, s->count);
	train_run_outcomes_json(json, s->outcomes);
	ppt_probes_send_gap_ns(json, s->send_gap_ns);
	if (gaps && gaps->kept)
		ppt_gaps_json(json, gaps);
	json_object_end(json);
}

static void way_json(struct json *json, const struct ppt_measure *run, const char *name, const struct ppt_way *way)
{
	const double share = link_share(run, way);

	json_object(json, name);
	ppt_result_reading(json, ppt_reading_names[way->result.reading]);
	if (way->result.resolution_ns)
		ppt_result_clock_resolution_ns(json, way->result.resolution_ns);
	ppt_result_trains_open(json);
	for (int i = 0; i < 2; i++)
		set_json(json, &way->sets[i], run->heading, &way->result.gaps[i]);
	set_json(json, &way->checks.middle, run->heading, NULL);
	set_json(json, &way->checks.shorter, run->shorter_heading, NULL);
	json_array_end(json);
	ppt_figures_json(json, &way->result);
	if (share >= 0)
		ppt_way_link_share(json, share);
	else
		ppt_way_link_share_null(json);
	json_object_end(json);
}

static size_t fewest(const struct ppt_way *way)
{
	const struct ppt_probes *sets[] = { &way->sets[0], &way->sets[1], &way->checks.middle, &way->checks.shorter };
	size_t least = sets[0]->outcomes[PAIR_USABLE];

	for (int i = 1; i < PPT_KINDS; i++)
		if (sets[i]->outcomes[PAIR_USABLE] < least)
			least = sets[i]->outcomes[PAIR_USABLE];
	return least;
}

static bool judge_sizes(struct ppt_measure *run, int direction)
{
	struct train_size sizes[2 * PPT_KINDS];

	for (uint32_t kind = 0; kind < PPT_KINDS; kind++) {
		const struct ppt_probes *set = ppt_way_set(&run->ways[direction], kind);
		const uint32_t heading = kind == PPT_SHORTER ? run->shorter_heading : run->heading;

		sizes[2 * kind] = train_size_of(heading, set->probes, set->count, 0);
		sizes[2 * kind + 1] = train_size_of(set->size_bytes, set->probes, set->count, 1);
	}
	return train_run_judge_sizes(&run->train, train_ways[direction], sizes, 2 * PPT_KINDS);
}

static void judge(struct ppt_measure *run, int direction)
{
	struct cli *cli = run->train.cli;
	const char *name = train_ways[direction], *sender = train_hosts[direction], *receiver = train_hosts[!direction];
	const struct ppt_way *way = &run->ways[direction];
	const struct ppt_result *r = &way->result;

	if (r->reading != PPT_RESOLVED && judge_sizes(run, direction))
		return;
	switch (r->reading) {
	case PPT_RESOLVED:
		if (r->capacity.high - r->capacity.low > r->capacity_bit_s * WIDE_PERCENT / 100)
			reason_ppt_wide(cli, name, WIDE_PERCENT);
		break;
	case PPT_UNRESOLVED:
		reason_ppt_unresolved(cli, name);
		break;
	case PPT_SERVICE_TIME:
		reason_ppt_service_time(cli, name, receiver);
		break;
	case PPT_DECREASING:
		reason_ppt_decreasing(cli, name);
		break;
	case PPT_COALESCED:
		train_run_judge_coalesced(&run->train, name, receiver, r->coalescing_ns);
		break;
	case PPT_SPREAD:
		reason_ppt_sender_slow(cli, name, sender);
		break;
	case PPT_CHANGED:
		reason_ppt_changed(cli, name);
		break;
	case PPT_UNCOVERED:
		reason_ppt_not_covered(cli, name, run->sizes[1]);
		break;
	case PPT_BENT:
		reason_ppt_bent(cli, name);
		break;
	default:
		reason_ppt_few(cli, name, fewest(way), PPT_PROBES_LEAST);
	}
}

int ppt_measure_finish(struct ppt_measure *run)
{
	struct cli *cli = run->train.cli;
	bool resolved = false;
	struct json *end;

	for (int i = 0; i < TRAIN_WAYS; i++) {
		struct ppt_way *way = &run->ways[i];

		if (!way->estimated)
			continue;
		for (uint32_t kind = 0; kind < PPT_KINDS; kind++) {
			const struct ppt_probes *set = ppt_way_set(way, kind);

			train_run_samples(&run->train, "compound_probe", train_ways[i],
					  &(struct train_samples){ .bytes_name = "trailing_wire_bytes",
								   .bytes = set->size_bytes,
								   .times = set->probes,
								   .count = set->count });
		}
		say_way(run, train_ways[i], way);
		judge(run, i);
		resolved |= way->result.reading == PPT_RESOLVED;
	}
	cli->no_figure = !resolved;
	out_text(cli, "this process kept %.2f %% of a processor busy", 100 * run->train.session.cpu_share);
	train_run_judge(&run->train, "probes");
	end = out_end(cli);
	train_run_json(&run->train, end);
	ppt_measure_interval_ns(end, run->o->interval_ns);
	ppt_measure_heading_wire_bytes(end, run->heading);
	ppt_measure_probe_bit_s(end, run->probe_bit_s);
	ppt_measure_cpu_share(end, run->train.session.cpu_share);
	for (int i = 0; i < TRAIN_WAYS; i++)
		if (run->ways[i].estimated)
			way_json(end, run, train_ways[i], &run->ways[i]);
	return out_finish(cli, end);
}
