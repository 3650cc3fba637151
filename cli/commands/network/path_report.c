/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "path_report.h"

#ifndef KTRXER_SMALL
#include "fields_common.h"
#include "reasons.h"

#include <inttypes.h>
#include <stdio.h>

void path_report_judge(const struct path_report *r)
{
	const struct path_witness *w = r->witness;
	const enum verdict most = 2 * w->elsewhere > w->probes && r->from_named ? VERDICT_INVALID : VERDICT_DEGRADED;
	char a[KTRXER_ADDR_TEXT], b[KTRXER_ADDR_TEXT];

	if (w->changed && w->elsewhere)
		reason_path_device(r->cli, most, w->elsewhere, w->probes, w->left[w->way].name, r->claim->device.name);
	else if (w->changed)
		reason_path_source(r->cli, w->other_from, w->probes, ktrxer_addr_format(&w->left[w->way].from, a),
				   ktrxer_addr_format(&r->claim->source, b));
	if (w->rerouted)
		reason_path_next_hop(r->cli, r->host, ktrxer_addr_format(&r->claim->next_hop, a),
				     ktrxer_addr_format(&w->next_hop, b));
}

enum { LIST_TEXT = 256 };

/* "12 by w1, 8 by w2" */
static const char *ways_text(char text[LIST_TEXT], const struct path_way *ways, int count)
{
	size_t at = 0;

	text[0] = '\0';
	for (int i = 0; i < count && at < LIST_TEXT; i++) {
		char from[KTRXER_ADDR_TEXT];
		const bool with = ways[i].from.family;

		at += (size_t)snprintf(text + at, LIST_TEXT - at, "%s%" PRIu64 " by %s%s%s", i ? ", " : "",
				       ways[i].count, ways[i].name, with ? " from " : "",
				       with ? ktrxer_addr_format(&ways[i].from, from) : "");
	}
	return text;
}

void path_report_text(const struct path_report *r)
{
	const struct path_witness *w = r->witness;
	char left[LIST_TEXT], arrived[LIST_TEXT];

	if (w->departs && !w->left_count)
		out_text(r->cli, "path: not observed, because no stamp of a departure names a device");
	else if (w->compared && (w->elsewhere || w->other_from || w->answers_elsewhere))
		out_text(r->cli, "path: %s%s%s%s%s", w->left_count ? "packets left " : "",
			 ways_text(left, w->left, w->left_count), w->left_count && w->answers ? "; " : "",
			 w->answers ? "answers arrived " : "", ways_text(arrived, w->arrived, w->arrived_count));
}

void path_report_json(const struct path_report *r, struct json *end)
{
	const struct path_witness *w = r->witness;
	char text[KTRXER_ADDR_TEXT];

	if (!w->compared)
		return;
	path_path_open(end);
	path_taken_left_open(end);
	for (int i = 0; i < w->left_count; i++) {
		const struct path_way *way = &w->left[i];

		json_object(end, NULL);
		path_left_device(end, way->name);
		if (way->from.family)
			path_left_from(end, ktrxer_addr_format(&way->from, text));
		if (way->next_hop.family)
			path_left_next_hop(end, ktrxer_addr_format(&way->next_hop, text));
		path_left_probes(end, way->count);
		json_object_end(end);
	}
	json_array_end(end);
	path_taken_arrived_open(end);
	for (int i = 0; i < w->arrived_count; i++) {
		if (!w->arrived[i].count)
			continue;
		json_object(end, NULL);
		path_arrived_device(end, w->arrived[i].name);
		path_arrived_answers(end, w->arrived[i].count);
		json_object_end(end);
	}
	json_array_end(end);
	json_object_end(end);
}
#endif
