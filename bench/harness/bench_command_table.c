/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_command_table.h"

#include <stddef.h>

extern const struct command cmd_bench, cmd_bench_pairs, cmd_bench_rate, cmd_bench_receive, cmd_bench_schedule,
	cmd_bench_stamps;

const struct command *const bench_command_table[] = {
	&cmd_bench,          &cmd_bench_pairs,  &cmd_bench_rate,
#ifdef KTRXER_HAVE_RULES
	&cmd_bench_receive,
#endif
	&cmd_bench_schedule, &cmd_bench_stamps, NULL,
};
