/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The path that probes took (methods/path/path_witness.h): its line of text, its field `path`, its reasons. */
#ifndef KTRXER_CLI_PATH_REPORT_H
#define KTRXER_CLI_PATH_REPORT_H

#include "cli.h"
#include "path_witness.h"

struct json;

struct path_report {
	struct cli *cli;
	const struct path_witness *witness;
	const struct ktrxer_path *claim;
	const char *host;
	bool from_named; /* the user has chosen the source address, and with it a path */
};

#ifndef KTRXER_SMALL
void path_report_judge(const struct path_report *report);
/* One line, where it has more than the first line of the output: other devices, or nothing was observed. */
void path_report_text(const struct path_report *report);
void path_report_json(const struct path_report *report, struct json *end);
#else
static inline void path_report_judge(const struct path_report *report)
{
	(void)report;
}
static inline void path_report_text(const struct path_report *report)
{
	(void)report;
}
static inline void path_report_json(const struct path_report *report, struct json *end)
{
	(void)report, (void)end;
}
#endif

#endif
