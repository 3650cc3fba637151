/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The path as the IP headers of probes and answers show it: its verdict, and its fields in the end object. */
#include "stamp_command.h"

#include "fields_stamp.h"

#include "marks_report.h"
#include "reasons.h"

#include <inttypes.h>

#ifndef KTRXER_SMALL

static const struct stamp_ttl *ttl_of(const struct stamp_class_result *class, bool up)
{
	return up ? &class->ttl_up : &class->ttl_down;
}

/* All classes together; `apart`: two of them have no TTL in common. */
static struct stamp_ttl ttl_sum(const struct stamp_class_result *classes, uint32_t count, bool up, bool *apart)
{
	struct stamp_ttl sum = { 0 };
	uint8_t lows_most = 0, highs_least = UINT8_MAX;

	for (uint32_t i = 0; i < count; i++) {
		const struct stamp_ttl *ttl = ttl_of(&classes[i], up);

		if (!ttl->high) /* nothing of this class was answered */
			continue;
		sum.changes += ttl->changes;
		sum.low = sum.low && sum.low < ttl->low ? sum.low : ttl->low;
		sum.high = sum.high > ttl->high ? sum.high : ttl->high;
		lows_most = lows_most > ttl->low ? lows_most : ttl->low;
		highs_least = highs_least < ttl->high ? highs_least : ttl->high;
	}
	*apart = lows_most > highs_least;
	return sum;
}

void stamp_ttl_json(struct json *json, const struct stamp_class_result *classes, uint32_t count)
{
	for (int up = 1; up >= 0; up--) {
		const char *key = up ? "ttl_up" : "ttl_down";
		bool apart;
		const struct stamp_ttl ttl = ttl_sum(classes, count, up, &apart);

		if (!ttl.high) {
			json_null(json, key);
			continue;
		}
		json_object(json, key);
		stamp_ttl_min(json, ttl.low);
		stamp_ttl_max(json, ttl.high);
		stamp_ttl_changes(json, ttl.changes);
		json_object_end(json);
	}
}

static void judge_ttl(const struct stamp_command *run, bool up)
{
	const char *way = up ? "up" : "down";
	bool apart;
	const struct stamp_ttl ttl = ttl_sum(run->result->classes, run->result->class_count, up, &apart);

	if (ttl.changes)
		reason_ttl_changed(run->report.cli, way, ttl.low, ttl.high, ttl.changes);
	if (apart)
		reason_ttl_of_classes(run->report.cli, way, ttl.low, ttl.high);
}

static struct marks_report marks_of(const struct stamp_command *run, const struct stamp_class_result *class, bool up)
{
	const struct marks *arrived = up ? &class->marks_up : &class->marks_down;

	/* Answers have no ECN mark. */
	return (struct marks_report){ .cli = run->report.cli,
				      .arrived = arrived,
				      .direction = up ? "up" : "down",
				      .packets = up ? "probes" : "answers",
				      .sent = up ? class->tos : class->tos & 0xfc,
				      .known = arrived->packets[0] != 0,
				      .compared = run->result->class_count > 1 };
}

static void each_mark(const struct stamp_command *run, void (*report)(const struct marks_report *))
{
	for (uint32_t i = 0; i < run->result->class_count; i++)
		for (int up = 1; up >= 0; up--) {
			const struct marks_report m = marks_of(run, &run->result->classes[i], up);

			report(&m);
		}
}

void stamp_marks_text(const struct stamp_command *run)
{
	each_mark(run, marks_report_text);
}

void stamp_marks_json(struct json *json, const struct stamp_class_result *classes, uint32_t count)
{
	for (int up = 1; up >= 0; up--) {
		struct marks sum = { 0 };

		for (uint32_t i = 0; i < count; i++)
			marks_add(&sum, up ? &classes[i].marks_up : &classes[i].marks_down);
		marks_report_json(&(struct marks_report){ .arrived = &sum, .known = sum.packets[0] != 0 },
				  up ? "marks_up" : "marks_down", json);
	}
}

void stamp_judge_path(const struct stamp_command *run)
{
	each_mark(run, marks_report_judge);
	judge_ttl(run, true);
	judge_ttl(run, false);
}
#endif
