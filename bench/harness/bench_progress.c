/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static bool wanted(const struct bench_run *run)
{
	return !run->cli->common.quiet && isatty(STDERR_FILENO) == 1;
}

void bench_progress(const struct bench_run *run)
{
	if (wanted(run))
		dprintf(STDERR_FILENO, "\r%s: %" PRIu64 " of %" PRIu64 " turns, %" PRIu64 " stalled ", run->kind->name,
			run->done, run->planned, run->stalled_turns);
}

void bench_progress_end(const struct bench_run *run)
{
	if (wanted(run))
		dprintf(STDERR_FILENO, "\r%60s\r", "");
}
