/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command is one file that defines one `const struct command cmd_NAME`; here is the list of them. */
#include "commands.h"

#include <stddef.h>

extern const struct command cmd_config, cmd_doctor, cmd_flow, cmd_ping, cmd_recv, cmd_send, cmd_serve, cmd_stamp;

#ifdef KTRXER_HAVE_ESTIMATE
extern const struct command cmd_abw, cmd_capacity, cmd_owamp, cmd_pair, cmd_tcp, cmd_trace;
extern const struct command cmd_ppt_direct, cmd_ppt_estimate, cmd_ppt_measure, cmd_ppt_plan;
#endif

#ifdef KTRXER_HAVE_BENCH
static const struct command cmd_bench = {
	.name = "bench",
	.summary = "Engines and frozen baselines against each other: rate, schedule, pairs, stamps",
	.program = "ktrxer-bench",
	.tables = true,
};
#endif

/* clang-format off */

const struct command *const command_table[] = {
#ifdef KTRXER_HAVE_ESTIMATE
	&cmd_abw,
#endif
#ifdef KTRXER_HAVE_BENCH
	&cmd_bench,
#endif
#ifdef KTRXER_HAVE_ESTIMATE
	&cmd_capacity,
#endif
	&cmd_config,
	&cmd_doctor,
	&cmd_flow,
#ifdef KTRXER_HAVE_ESTIMATE
	&cmd_owamp,
	&cmd_pair,
#endif
	&cmd_ping,
#ifdef KTRXER_HAVE_ESTIMATE
	&cmd_ppt_direct,
	&cmd_ppt_estimate,
	&cmd_ppt_measure,
	&cmd_ppt_plan,
#endif
	&cmd_recv,
	&cmd_send,
	&cmd_serve,
	&cmd_stamp,
#ifdef KTRXER_HAVE_ESTIMATE
	&cmd_tcp,
	&cmd_trace,
#endif
	NULL,
};
/* clang-format on */
