/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock_sync.h"

#include <stdlib.h>
#include <sys/timex.h>

/*
 * systemd-timesyncd and phc2sys set maxerror and esterror to 0 at each update: they state no error. The time of a
 * server that is reached over a path of unknown asymmetry is then wrong by up to half of a round trip. chronyd and ntpd
 * state both.
 */
#define UNSTATED_NS ((uint64_t)KTRXER_NS_PER_S)
/* One unit of maxerror (1 us), and its growth in a second (500 ppm): the kernel adds to it once a second only. */
#define FLOOR_NS (501 * (uint64_t)KTRXER_NS_PER_US)

static void sync_of(struct clock_sync *sync, int state, const struct timex *tx)
{
	/* The part of the last correction that is still to be slewed. */
	const uint64_t pending =
		(uint64_t)llabs((long long)tx->offset) * (tx->status & STA_NANO ? 1 : (uint64_t)KTRXER_NS_PER_US);

	*sync = (struct clock_sync){ .bound_ns = UINT64_MAX };
	if (state < 0)
		return;
	sync->synchronised = state != TIME_ERROR && !(tx->status & STA_UNSYNC);
	sync->bound_ns = (uint64_t)tx->maxerror * (uint64_t)KTRXER_NS_PER_US + pending + FLOOR_NS +
			 (tx->esterror ? 0 : UNSTATED_NS);
}

void clock_sync_read(struct clock_sync *sync)
{
	struct timex tx = { 0 };
	const int state = adjtimex(&tx);

	sync_of(sync, state, &tx);
}
