/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where a long bench is: one line on standard error that writes over itself, on a terminal only. */
#ifndef KTRXER_CLI_BENCH_PROGRESS_H
#define KTRXER_CLI_BENCH_PROGRESS_H

#include "bench.h"

void bench_progress(const struct bench_run *run);
void bench_progress_end(const struct bench_run *run);

#endif
