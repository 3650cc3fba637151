/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Levels and outages of `flow`, for people and in JSON. */
#include "fields_flow.h"
#include "flow.h"
#include "units.h"

#include <string.h>

enum { OUTAGES_SHOWN = 5 };

static const char *const names[] = { "up", "down" };

static double seconds(const struct flow_run *run, int64_t at_ns)
{
	return (double)(at_ns - (int64_t)run->result.start_ns) / 1e9;
}

/* `of`: the flow, or "" for all of the direction. */
static void outage_text(struct flow_run *run, bool down, const struct byte_outage *o, const char *of)
{
	char least[KTRXER_UNITS_TEXT], most[KTRXER_UNITS_TEXT];

	ktrxer_format_ns(least, o->at_least_ns);
	if (o->to_end)
		out_text(run->cli, "outage: no byte %s%s for at least %s, from %.2f s on, up to the end", names[down],
			 of, least, seconds(run, o->from_ns));
	else
		out_text(run->cli, "outage: no byte %s%s for %s to %s, from %.2f s on", names[down], of, least,
			 ktrxer_format_ns(most, o->at_most_ns), seconds(run, o->from_ns));
}

void flow_findings_text(struct flow_run *run, bool down)
{
	const struct flow_findings *f = &run->findings[down];
	char text[RATE_LEVELS_MOST * 64], rate[KTRXER_UNITS_TEXT];
	size_t length = 0;

	for (uint32_t i = 0; i < f->outage_count && i < OUTAGES_SHOWN; i++)
		outage_text(run, down, &f->outages[i], "");
	if (f->outage_count > OUTAGES_SHOWN)
		out_text(run->cli, "outage: and %u more %s", f->outage_count - OUTAGES_SHOWN, names[down]);
	for (uint32_t i = 0; i < f->stall_count && i < OUTAGES_SHOWN; i++) {
		snprintf(text, sizeof text, " of flow %u, while others went on,", f->stalls[i].flow);
		outage_text(run, down, &f->stalls[i].outage, text);
	}
	if (!f->level_count)
		return;
	text[0] = '\0';
	for (uint32_t i = 0; i < f->level_count && length < sizeof text; i++) {
		ktrxer_format_bitrate(rate, (uint64_t)(f->levels[i].median + 0.5));
		length += (size_t)snprintf(text + length, sizeof text - length, "%s%s from %.1f s to %.1f s",
					   i ? ", " : "", rate, seconds(run, (int64_t)f->levels[i].from_ns),
					   seconds(run, (int64_t)f->levels[i].to_ns));
	}
	out_text(run->cli, "levels: the rate %s was %s (medians)", names[down], text);
}

static void outage_json(struct json *end, int down, bool single, uint32_t flow, const struct byte_outage *o)
{
	json_object(end, NULL);
	flow_outage_direction(end, names[down]);
	flow_outage_flow_or_null(end, single, flow);
	flow_outage_from_ns(end, (uint64_t)o->from_ns);
	flow_outage_low_ns(end, (uint64_t)o->at_least_ns);
	flow_outage_high_ns_or_null(end, !o->to_end, (uint64_t)o->at_most_ns);
	json_object_end(end);
}

void flow_findings_json(const struct flow_run *run, struct json *end)
{
	flow_end_outages_open(end);
	for (int down = 0; down < 2; down++) {
		const struct flow_findings *f = &run->findings[down];

		for (uint32_t i = 0; i < f->outage_count; i++)
			outage_json(end, down, false, 0, &f->outages[i]);
		for (uint32_t i = 0; i < f->stall_count; i++)
			outage_json(end, down, true, f->stalls[i].flow, &f->stalls[i].outage);
	}
	json_array_end(end);
	flow_end_levels_open(end);
	for (int down = 0; down < 2; down++)
		for (uint32_t i = 0; i < run->findings[down].level_count; i++) {
			const struct rate_level *l = &run->findings[down].levels[i];

			json_object(end, NULL);
			flow_level_direction(end, names[down]);
			flow_level_from_ns(end, l->from_ns);
			flow_level_to_ns(end, l->to_ns);
			flow_level_rate_bps(end, (uint64_t)(l->median + 0.5));
			json_object_end(end);
		}
	json_array_end(end);
}
