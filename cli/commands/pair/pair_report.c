/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer pair`. */
#include "pair_command.h"

#include "units.h"

#include <inttypes.h>
#include <math.h>

static const char *const way_names[PAIR_DIRECTIONS] = { "up", "down" };
static const char *const reading_names[PAIRS_READINGS] = {
	[PAIRS_RESOLVED] = "resolved",   [PAIRS_TOO_FEW] = "too_few",     [PAIRS_SPREAD] = "not_back_to_back",
	[PAIRS_COALESCED] = "coalesced", [PAIRS_DISTURBED] = "disturbed", [PAIRS_CHANGED] = "changed",
};

enum { FEW_UNDISTURBED = 10, WIDE_PERCENT = 15, MODES_SHOWN = 4 };

static const char *rate(char text[KTRXER_UNITS_TEXT], double bit_s)
{
	return bit_s < 1e18 ? ktrxer_format_bitrate(text, (uint64_t)bit_s) : "no limit";
}

void pair_say_what(const struct pair_run *run)
{
	const struct pair_way *way = &run->ways[!run->ways[0].wanted];
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT], load[KTRXER_UNITS_TEXT];

	out_text(run->cli,
		 "pair %s (%s) from %s on %s: %" PRIu64
		 " pairs of %u bytes and as many of %u in each direction, one of each size every %s; "
		 "load %s",
		 run->o->host, ktrxer_addr_format(&run->plan.to, to), ktrxer_addr_format(&run->path.source, from),
		 run->path.device.name, run->o->count, way->ip_bytes[0], way->ip_bytes[1],
		 ktrxer_format_duration(interval, run->o->interval_ns), ktrxer_format_bitrate(load, run->probe_bps));
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void say_sets(const struct pair_run *run, const char *name, const struct pair_way *way)
{
	for (int i = 0; i < 2; i++) {
		const struct pairs_set *s = &way->sets[i];
		const struct {
			size_t count;
			const char *text;
		} left_out[] = {
			{ s->lost, "with a packet lost" },    { s->reordered, "reordered" },
			{ s->spread, "not back to back" },    { s->together, "with one stamp for both arrivals" },
			{ s->unsent, "without a send time" },
		};

		out_text(run->cli, "%s: %zu pairs of %u bytes, %zu of them usable, %zu undisturbed", name, s->count,
			 way->ip_bytes[i], s->usable, s->undisturbed);
		for (size_t reason = 0; reason < sizeof left_out / sizeof *left_out; reason++)
			if (left_out[reason].count)
				out_text(run->cli, "%s: %zu pairs of %u bytes left out: %s", name,
					 left_out[reason].count, way->ip_bytes[i], left_out[reason].text);
	}
}

static void say_modes(const struct pair_run *run, const char *name, const struct pair_way *way)
{
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT];

	for (size_t i = 0; i < way->modes.count && i < MODES_SHOWN; i++)
		out_text(run->cli, "%s: %zu of %zu large pairs from %s to %s", name, way->modes.modes[i].count,
			 way->modes.used, rate(low, way->modes.modes[i].low_bit_s),
			 rate(high, way->modes.modes[i].high_bit_s));
}

static void say_way(const struct pair_run *run, const char *name, const struct pair_way *way)
{
	const struct pairs_set *large = way->result.large;
	char x[4][KTRXER_UNITS_TEXT];

	say_sets(run, name, way);
	say_modes(run, name, way);
	if (way->result.reading != PAIRS_RESOLVED)
		return;
	out_text(run->cli,
		 "%s: capacity %s (95 %%: %s to %s) for IP packets of %u bytes; link rate %s, by both sizes, with %.0f "
		 "bytes more a packet",
		 name, rate(x[0], large->capacity_bit_s), rate(x[1], large->low_bit_s), rate(x[2], large->high_bit_s),
		 way->ip_bytes[0], rate(x[3], way->result.link_bit_s), way->result.overhead_bytes);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static void set_json(struct json *json, const struct pairs_set *s, uint32_t ip_bytes)
{
	json_object(json, NULL);
	json_u64(json, "ip_bytes", ip_bytes);
	json_u64(json, "pairs", s->count);
	json_u64(json, "lost", s->lost);
	json_u64(json, "unsent", s->unsent);
	json_u64(json, "reordered", s->reordered);
	json_u64(json, "one_stamp", s->together);
	json_u64(json, "not_back_to_back", s->spread);
	json_u64(json, "usable", s->usable);
	json_u64(json, "undisturbed", s->undisturbed);
	if (s->undisturbed) {
		json_rounded(json, "gap_ns", s->gap_ns, 0);
		json_rounded(json, "gap_low_ns", s->low_ns, 0);
		json_rounded(json, "gap_high_ns", s->high_ns, 0);
		json_rounded(json, "excess_ns", s->excess_ns, 0);
	}
	json_object_end(json);
}

static void way_json(struct json *json, const char *name, const struct pair_way *way)
{
	const struct pairs_result *r = &way->result;

	json_object(json, name);
	json_string(json, "reading", reading_names[r->reading]);
	if (r->reading == PAIRS_RESOLVED) {
		json_object(json, "capacity_bit_s");
		json_rounded(json, "value", r->large->capacity_bit_s, 0);
		json_rounded(json, "low", r->large->low_bit_s, 0);
		json_rounded(json, "high", r->large->high_bit_s, 0);
		json_object_end(json);
		json_rounded(json, "link_bit_s", r->link_bit_s, 0);
		json_rounded(json, "overhead_bytes", r->overhead_bytes, 1);
		json_rounded(json, "skew_ppm", r->skew_ppm, 3);
	} else {
		json_null(json, "capacity_bit_s");
	}
	if (r->reading == PAIRS_COALESCED && r->period_ns > 0)
		json_rounded(json, "coalescing_ns", r->period_ns, 0);
	json_array(json, "sizes");
	for (int i = 0; i < 2; i++)
		set_json(json, &way->sets[i], way->ip_bytes[i]);
	json_array_end(json);
	json_array(json, "modes");
	for (size_t i = 0; i < way->modes.count; i++) {
		json_object(json, NULL);
		json_u64(json, "pairs", way->modes.modes[i].count);
		json_rounded(json, "low_bit_s", way->modes.modes[i].low_bit_s, 0);
		json_rounded(json, "high_bit_s", way->modes.modes[i].high_bit_s, 0);
		json_object_end(json);
	}
	json_array_end(json);
	json_object_end(json);
}

static void samples(const struct pair_run *run, const char *name, const struct pair_way *way)
{
	for (int size = 0; size < 2; size++)
		for (size_t i = 0; i < way->sets[size].count; i++) {
			struct json *sample = out_sample(run->cli, "pair");

			if (!sample)
				return;
			json_string(sample, "direction", name);
			json_u64(sample, "number", i);
			json_u64(sample, "ip_bytes", way->ip_bytes[size]);
			for (int half = 0; half < 4; half++) {
				static const char *const names[] = { "first_sent_ns", "second_sent_ns",
								     "first_arrived_ns", "second_arrived_ns" };
				const struct pair_times *p = &way->times[size][i];
				const uint64_t time_ns = half < 2 ? p->sent_ns[half] : p->arrived_ns[half - 2];

				if (time_ns)
					json_u64(sample, names[half], time_ns);
				else
					json_null(sample, names[half]);
			}
			out_put(run->cli, sample);
		}
}

/* ---------------------------------------------------------------------------------------------------------- verdict */

static void judge_resolved(struct cli *cli, const char *name, const struct pair_way *way)
{
	const struct pairs_set *large = way->result.large;

	if (way->sets[0].undisturbed < FEW_UNDISTURBED || way->sets[1].undisturbed < FEW_UNDISTURBED)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%s: cross traffic left %zu and %zu pairs undisturbed, fewer than %d: send more pairs "
			    "(--count)",
			    name, way->sets[0].undisturbed, way->sets[1].undisturbed, FEW_UNDISTURBED);
	else if (large->high_bit_s - large->low_bit_s > large->capacity_bit_s * WIDE_PERCENT / 100)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%s: the interval of the capacity is wider than %d %%: send more pairs (--count) or larger "
			    "packets (--payload)",
			    name, WIDE_PERCENT);
}

static void judge_coalesced(struct cli *cli, const char *name, const struct pair_way *way)
{
	const char *host = name[0] == 'u' ? "the far host" : "this host"; /* that receives */
	char period[KTRXER_UNITS_TEXT];

	if (way->result.period_ns > 0)
		verdict_say(cli, VERDICT_INVALID,
			    "%s: %s takes packets in groups, one every %s: its interrupts are coalesced (`ethtool -C "
			    "DEV rx-usecs 0` there), "
			    "or a device on the path sends in bursts",
			    name, host, ktrxer_format_ns(period, (int64_t)way->result.period_ns));
	else
		verdict_say(cli, VERDICT_INVALID,
			    "%s: %s takes both packets of a pair at once: its interrupts are coalesced (`ethtool -C "
			    "DEV rx-usecs 0` there), "
			    "or a device on the path sends in bursts",
			    name, host);
}

static void judge(const struct pair_run *run, const char *name, const struct pair_way *way)
{
	struct cli *cli = run->cli;

	switch (way->result.reading) {
	case PAIRS_RESOLVED:
		judge_resolved(cli, name, way);
		break;
	case PAIRS_COALESCED:
		judge_coalesced(cli, name, way);
		break;
	case PAIRS_SPREAD:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: %s sends the packets of a pair as far apart as the path does: its link or its "
			    "processor is the narrow one",
			    name, way == &run->ways[PAIR_UP] ? "this host" : "the far host");
		break;
	case PAIRS_DISTURBED:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: no pair passed undisturbed: cross traffic, or arrivals in groups; send more pairs "
			    "(--count)",
			    name);
		break;
	case PAIRS_CHANGED:
		verdict_say(cli, VERDICT_INVALID,
			    "%s: the least delays of the first and the second half of the run differ: the path or its "
			    "rate changed",
			    name);
		break;
	default:
		verdict_say(cli, VERDICT_INVALID, "%s: %zu and %zu usable pairs: the estimate needs %d of each size",
			    name, way->sets[0].usable, way->sets[1].usable, PAIRS_LEAST);
	}
}

int pair_finish(struct pair_run *run)
{
	char address[KTRXER_ADDR_TEXT];
	struct json *end;

	for (int i = 0; i < PAIR_DIRECTIONS; i++)
		if (run->ways[i].estimated) {
			samples(run, way_names[i], &run->ways[i]);
			say_way(run, way_names[i], &run->ways[i]);
			judge(run, way_names[i], &run->ways[i]);
		}
	if (run->session.stopped)
		verdict_say(run->cli, VERDICT_DEGRADED, "it was stopped before all pairs were sent");
	if (run->session.result.remote_missing)
		verdict_say(run->cli, VERDICT_DEGRADED, "the server did not report the end of %u of %u flows of pairs",
			    run->session.result.remote_missing, run->session.flows);
	end = out_end(run->cli);
	json_string(end, "target", run->o->host);
	json_string(end, "to", ktrxer_addr_format(&run->plan.to, address));
	json_string(end, "from", ktrxer_addr_format(&run->path.source, address));
	json_string(end, "device", run->path.device.name);
	json_u64(end, "interval_ns", run->o->interval_ns);
	json_u64(end, "probe_bit_s", run->probe_bps);
	for (int i = 0; i < PAIR_DIRECTIONS; i++)
		if (run->ways[i].estimated)
			way_json(end, way_names[i], &run->ways[i]);
	return out_finish(run->cli, end);
}
