/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The end of a result: host, output, verdict and reasons. */
#include "bounds.h"
#include "host.h"

#include "fields_common.h"
#include "out.h"
#include "reasons.h"
#include "verdict.h"

/* Into the open `end` object, and for people as text. The exit status. */
static int record_verdict(struct cli *cli, struct json *end)
{
	const int reasons = verdict_reasons(cli);

	bounds_report(cli, end);
	verdict_verdict(end, verdict_names[verdict_now(cli)]);
	verdict_reasons_open(end);
	for (int i = 0; i < reasons; i++)
		verdict_reason_json(cli, i, end);
	json_array_end(end);
	if (!cli->no_result)
		out_text(cli, "verdict: %s", verdict_names[verdict_now(cli)]);
	for (int i = 0; i < reasons && !cli->no_result; i++)
		out_text(cli, "  - %s", verdict_reason(cli, i));
	return cli->no_result || cli->no_figure    ? EXIT_NO_RESULT
	       : verdict_now(cli) == VERDICT_VALID ? EXIT_VALID
						   : EXIT_DOUBTFUL;
}

/* The objects of both measurements have one output, and each may have lost some. */
static void say_dropped(struct cli *cli, uint64_t dropped)
{
	reason_reader_slow(cli, dropped);
#ifndef KTRXER_SMALL
	if (cli->second)
		say_dropped(cli->second, dropped);
#endif
}

static int record_end(struct cli *cli, struct json *end)
{
	uint64_t dropped = out_dropped(cli);

	ended_end_ns(end, ktrxer_now_ns());
	if (!cli->command->measures)
		return EXIT_VALID;
	host_watch_stop(cli, end);
	measured_output_open(end);
	output_dropped(end, dropped);
	json_object_end(end);
	if (dropped)
		say_dropped(cli, dropped);
	return record_verdict(cli, end);
}

#ifndef KTRXER_SMALL
static int record_part(struct cli *part)
{
	int status;

	ended_end_ns(part->part_end, ktrxer_now_ns());
	status = record_verdict(part, part->part_end);
	return out_put_part(part, part->part_end) ? status : EXIT_NO_RESULT;
}
#endif

int out_finish(struct cli *cli, struct json *object)
{
	int status = record_end(cli, object);

#ifndef KTRXER_SMALL
	if (cli->second && record_part(cli->second) != status)
		status = EXIT_DOUBTFUL; /* one of two results */
#endif
	if (out_finished(cli))
		return status;
	if (!out_put_end(cli, object)) {
		cli_complain(cli, "the end object could not be made: out of memory, or a fault of ktrxer");
		status = EXIT_NO_RESULT;
	}
	return status;
}

#ifndef KTRXER_SMALL
int cli_part_open(struct cli *part, const struct cli *command, const char *name)
{
	*part = *command;
	part->part = name;
	part->bounds = NULL;
	return verdict_open(part);
}

void cli_part_close(struct cli *part)
{
	verdict_close(part);
}

struct json *out_part_end(struct cli *part)
{
	struct json *end = json_new(false);

	if (!end)
		return NULL;
	out_start(part);
	json_object(end, NULL);
	line_type(end, "end");
	line_of(end, part->part);
	return end;
}

void out_part_finish(struct cli *command, struct cli *part, struct json *end)
{
	part->part_end = end;
	command->second = part;
}
#endif
