/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The options that commands have in common. */
#include "cli.h"

#include <stddef.h>

#define FIELD(name) offsetof(struct cli_common, name)

#define JSON_OPTION                                                                                                    \
	{                                                                                                              \
		"json", 0, OPT_FLAG, FIELD(json), .help = "Print one JSON object at the end instead of text",          \
						  .heading = "Output"                                                  \
	}
#define JSONL_OPTION                                                                                                   \
	{                                                                                                              \
		"jsonl", 0, OPT_FLAG, FIELD(jsonl),                                                                    \
			.help = "Print one JSON object a line while it happens: start, samples and events, end"        \
	}
#define QUIET_OPTION                                                                                                   \
	{ "quiet", 'q', OPT_FLAG, FIELD(quiet), .help = "Print no text; the exit status says whether it was valid" }

static const struct opt report_options[] = { JSON_OPTION, QUIET_OPTION, { NULL } };

static const struct opt serve_options[] = { JSON_OPTION, JSONL_OPTION, QUIET_OPTION, { NULL } };

static const struct opt measure_options[] = {
	JSON_OPTION,
	JSONL_OPTION,
	QUIET_OPTION,
	{ "start-at", 0, OPT_UINT, FIELD(start_at_real_ns), .argument = "NS",
	  .help = "Begin at this time, in nanoseconds since 1970, so that several processes begin together",
	  .heading = "Control" },
	{ "stop-on-eof", 0, OPT_FLAG, FIELD(stop_on_eof),
	  .help = "Stop at the end of standard input, so that a dead SSH connection leaves nothing running" },
	{ NULL },
};

const struct opt_set *cli_common_sets(const struct command *command)
{
	static const struct opt_set none[] = { { NULL } }, report[] = { { report_options }, { NULL } },
				    measure[] = { { measure_options }, { NULL } },
				    serve[] = { { serve_options }, { NULL } };

	return command->measures ? measure : command->serves ? serve : command->reports ? report : none;
}
