/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer bench` starts a program of its own. */
#include "opt.h"

const struct command cmd_bench_program = {
	.name = "bench",
	.summary = "Engines and frozen baselines against each other: rate, schedule, pairs, stamps",
	.program = "ktrxer-bench",
	.tables = true,
};
