/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The send times of an OWAMP session (RFC 4656, 3.6): its slots, one for each packet, again from the first one after
 * the last. A slot is a wait before its packet. The exponential deviates are those of the library's Poisson schedule
 * with the session's identifier as seed, so both ends know each send time to the last bit.
 */
#ifndef KTRXER_METHODS_OWAMP_SCHEDULE_H
#define KTRXER_METHODS_OWAMP_SCHEDULE_H

#include "owamp_packet.h"

#include <ktrxer.h>

enum { OWAMP_SLOTS_MOST = 16 };

struct owamp_schedule {
	struct ktrxer_schedule *deviates;
	struct owamp_slot slots[OWAMP_SLOTS_MOST];
	uint32_t count, next;
	uint64_t last; /* time of the deviate before */
	uint64_t at;   /* of the last packet, since the start time: 32 bits of seconds, 32 of their fraction */
};

/* -EINVAL: no slot, too many, or of an unknown type; -ENOMEM. owamp_schedule_end() in any case. */
int owamp_schedule_begin(struct owamp_schedule *schedule, const uint8_t sid[OWAMP_SID], const struct owamp_slot *slots,
			 uint32_t count);
/* The next packet's time since the start time, as `at`. -EOVERFLOW: later than 2^31 s. */
int owamp_schedule_next(struct owamp_schedule *schedule, uint64_t *at);
void owamp_schedule_end(struct owamp_schedule *schedule);

#endif
