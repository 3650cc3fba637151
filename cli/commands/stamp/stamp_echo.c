/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp --echo`: ICMP echo beside the probes, in one loop with them. */
#include "ping_command.h"
#include "stamp_command.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>

struct stamp_echo {
	struct ping_run run; /* first: the context of its calls */
	struct ping_options options;
	struct cli cli;
};

int stamp_echo_open(struct stamp_command *run, const struct probe_spec *spec, struct ktrxer_error *err)
{
	struct ping_events events = { .probe = probe_report_events, .answer = ping_say_answer };
	struct ping_spec ping = { .probe = *spec };
	struct stamp_echo *echo = calloc(1, sizeof *echo);
	int rc;

	run->echo = echo;
	if (!echo || cli_part_open(&echo->cli, run->report.cli, "ping") < 0)
		return ktrxer_fail(err, -ENOMEM, "no memory for the echo");
	echo->options.p = run->o->p;
	echo->run.o = &echo->options;
	echo->run.report = (struct probe_report){ .cli = &echo->cli, .o = &echo->options.p, .each = 1 };
	ping_batch_open(&echo->run.report);
	ping.probe.payload = STAMP_ECHO_PAYLOAD;
	rc = ping_new(&echo->run.ping, &ping, err);
	if (rc < 0)
		return rc;
	echo->run.report.prober = ping_prober(echo->run.ping);
	events.probe.context = &echo->run;
	stamp_join(run->stamp, echo->run.ping, &events);
	ping_say_what(&echo->run);
	return 0;
}

void stamp_echo_finish(struct stamp_command *run)
{
	struct stamp_echo *echo = run->echo;
	struct json *end;

	probe_batch_flush(&echo->run.report);
	end = out_part_end(&echo->cli);
	if (!end) {
		cli_complain(run->report.cli, "no memory for the result of the echo");
		return;
	}
	ping_report(&echo->run, end);
	out_part_finish(run->report.cli, &echo->cli, end);
}

void stamp_echo_free(struct stamp_echo *echo)
{
	if (!echo)
		return;
	ping_run_free(&echo->run);
	cli_part_close(&echo->cli);
	free(echo);
}
