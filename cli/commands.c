/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command is one file that defines one `const struct command cmd_NAME`; here is the list of them. */
#include "commands.h"

#include <stddef.h>

extern const struct command cmd_doctor, cmd_flow, cmd_ping, cmd_recv, cmd_send, cmd_serve, cmd_stamp;
#ifdef KTRXER_HAVE_BENCH
extern const struct command cmd_bench, cmd_bench_pairs, cmd_bench_rate, cmd_bench_receive, cmd_bench_schedule, cmd_bench_stamps;
#endif

const struct command *const command_table[] = {
#ifdef KTRXER_HAVE_BENCH
	&cmd_bench,
	&cmd_bench_pairs,
	&cmd_bench_rate,
#ifdef KTRXER_HAVE_RULES
	&cmd_bench_receive,
#endif
	&cmd_bench_schedule,
	&cmd_bench_stamps,
#endif
	&cmd_doctor,
	&cmd_flow,
	&cmd_ping,
	&cmd_recv,
	&cmd_send,
	&cmd_serve,
	&cmd_stamp,
	NULL,
};
