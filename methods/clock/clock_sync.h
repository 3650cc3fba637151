/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How well CLOCK_REALTIME of this host keeps UTC, by the kernel's record (adjtimex(2)), which chronyd, ntpd and phc2sys
 * write.
 */
#ifndef KTRXER_METHODS_CLOCK_SYNC_H
#define KTRXER_METHODS_CLOCK_SYNC_H

#include <ktrxer.h>

struct clock_sync {
	bool synchronised;
	uint64_t bound_ns; /* UINT64_MAX: unknown */
};

void clock_sync_read(struct clock_sync *sync);

#endif
