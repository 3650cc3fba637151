/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The usual options of the search for a rate, by algorithm B of RFC 9097. */
#ifndef KTRXER_RATE_SEARCH_HERE_H
#define KTRXER_RATE_SEARCH_HERE_H

#include "rate_search.h"

static const struct rate_search_options usual = { .algorithm = RATE_SEARCH_B,
						  .high_speed = 1000,
						  .last = 1090,
						  .low_ms = 30,
						  .upper_ms = 90,
						  .delta = 10,
						  .slow_after = 3,
						  .sequence_errors = 10,
						  .ignore_reordering = true };

#endif
