/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Time for which a thread of this process was ready to run and had no processor (Linux: "run delay"). */
#ifndef KTRXER_CLI_RUN_DELAY_H
#define KTRXER_CLI_RUN_DELAY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef KTRXER_SMALL
enum { RUN_DELAY = 0 };
static inline bool run_delay_longest(uint64_t *waited_ns, pid_t except)
{
	*waited_ns = 0;
	(void)except;
	return false;
}
#else
enum { RUN_DELAY = 1 }; /* the small program is without it */
/*
 * Of the thread that waited longest since its start; the thread `except` is not counted. False: not known, because
 * this kernel has no schedstat or /proc is not mounted.
 */
bool run_delay_longest(uint64_t *waited_ns, pid_t except);
#endif

#endif
