/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The marks (DSCP and ECN) with which packets of one direction arrived: reasons, a line of text, and JSON. */
#ifndef KTRXER_CLI_MARKS_REPORT_H
#define KTRXER_CLI_MARKS_REPORT_H

#include "cli.h"
#include "marks.h"

struct json;

struct marks_report {
	struct cli *cli;
	const struct marks *arrived;
	const char *direction, *packets; /* "up"; "probes" */
	uint8_t sent;
	bool known;    /* `arrived` is of all that arrived */
	bool compared; /* with packets of other marks: then best effort is a class, too */
};

/*
 * A changed mark is a reason where the measurement claims it: a DSCP or an ECN mark that was set, or a class beside
 * others. Otherwise it is a line of text (marks_report_text()).
 */
#ifndef KTRXER_SMALL
void marks_report_judge(const struct marks_report *report);
void marks_report_text(const struct marks_report *report);
void marks_report_json(const struct marks_report *report, const char *key, struct json *json);
#else
static inline void marks_report_judge(const struct marks_report *report)
{
	(void)report;
}
static inline void marks_report_text(const struct marks_report *report)
{
	(void)report;
}
static inline void marks_report_json(const struct marks_report *report, const char *key, struct json *json)
{
	(void)report, (void)key, (void)json;
}
#endif

#endif
