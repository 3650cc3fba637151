/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* How long a call of a loop may take, and the clocks by which that is tested. */
#ifndef KTRXER_TESTS_LOOP_SHARE_HERE_H
#define KTRXER_TESTS_LOOP_SHARE_HERE_H

#include "clock.h"
#include "loop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SLOWER 20
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SLOWER 20
#endif
#endif
#ifndef SLOWER
#define SLOWER 1
#endif

static inline bool is_emulated(void)
{
	return getenv("KTRXER_EMULATED") != NULL;
}

/* The goal is 1 ms. A processor whose caches and second thread others use takes up to twice as long for each try. */
static inline uint64_t limit_ns(void)
{
	return 2 * (uint64_t)KTRXER_NS_PER_MS * SLOWER * (is_emulated() ? 20 : 1);
}

static inline uint64_t processor_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ktrxer_timespec_ns(ts.tv_sec, ts.tv_nsec);
}

/* Each look at it uses up the share of the call that runs. */
static inline uint64_t step_clock(void)
{
	static uint64_t at;

	return at += LOOP_SHARE_NS + 1;
}

#endif
