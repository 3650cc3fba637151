/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* One-way delay, loss, copies and order of the packets of a session (RFC 7679, 7680, 5560, 4737), from its records. */
#ifndef KTRXER_METHODS_OWAMP_DELAYS_H
#define KTRXER_METHODS_OWAMP_DELAYS_H

#include "owamp_packet.h"

#include <ktrxer.h>

struct owamp_delays {
	uint32_t sent, arrived, lost, duplicates;
	uint32_t reordered;    /* arrived after a packet with a higher number */
	int64_t least_ns;      /* the least delay: with an unknown offset of the clocks, if they are not synchronised */
	bool synchronised;     /* both hosts report synchronised clocks for each packet */
	uint64_t bound_ns;     /* uncertainty of a delay, as both hosts report it; UINT64_MAX: not known */
	uint8_t hops[2];       /* least and most: 255 - TTL; both 255: not known */
	uint32_t sched;        /* delays that begin in the sender's packet scheduler, not before its system call */
	uint64_t contradicted; /* send times that are more than 68 years away from the arrival */
	struct ktrxer_hist *delay;     /* ns */
	struct ktrxer_hist *variation; /* ns above the least delay (RFC 5481) */
};

struct owamp_times {
	int64_t sent_ns, received_ns; /* CLOCK_REALTIME of both hosts */
	bool sched;                   /* sent_ns is the stamp of the packet scheduler, not the time in the packet */
};

/*
 * `sched_real_ns`: as in owamp_delays_of(); it has the number of the record. False: the two times are not within 68
 * years of each other.
 */
bool owamp_record_times(const struct owamp_record *record, const int64_t *sched_real_ns, struct owamp_times *times);

/*
 * `next`: packets that were to be sent, of which `skipped` were not. `sched_real_ns`: by number, NULL or 0 where the
 * time in the packet counts. 0 or -ENOMEM. owamp_delays_free() in any case.
 */
int owamp_delays_of(struct owamp_delays *delays, const struct owamp_record *records, uint32_t count, uint32_t next,
		    uint32_t skipped, const int64_t *sched_real_ns);
void owamp_delays_free(struct owamp_delays *delays);

#endif
