/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The rules of RFC 4656 for the records of a session that has ended. A packet is lost if it arrives later than the
 * time-out, or has a send time further than the time-out from its schedule (4.2). A packet that was sent within the
 * time-out of the end is neither arrived nor lost (3.8).
 *
 * The RFC subtracts times of two clocks. Where one of them is not synchronised, the least difference of the session
 * stands for their offset, so that an offset above the time-out is not reported as the loss of all packets.
 */
#ifndef KTRXER_METHODS_OWAMP_JUDGE_H
#define KTRXER_METHODS_OWAMP_JUDGE_H

#include "owamp_receiver.h"
#include "owamp_schedule.h"

struct owamp_judge_plan {
	uint8_t sid[OWAMP_SID];
	const struct owamp_slot *slots;
	uint32_t slot_count;
	int64_t start_ns;   /* CLOCK_REALTIME of the sender */
	int64_t timeout_ns; /* up to 2^62 */
	int64_t end_ns;     /* CLOCK_REALTIME of the receiver; INT64_MAX: all packets had their time-out */
};

struct owamp_judge {
	struct owamp_receiver *receiver;
	struct owamp_judge_plan plan;
	struct owamp_schedule schedule;
	int64_t *due_ns; /* by number */
	int64_t least_ns, limit_ns;
	int step;
	bool synchronised; /* both hosts report that for each packet */
	uint32_t at, kept;
	uint32_t decided;  /* numbers below have arrived or are lost; in any case if their record is kept */
	uint32_t too_late; /* arrivals after their time-out, and those with a send time off the schedule */
	uint32_t unsure;   /* arrivals with numbers below `decided` that were sent within the time-out of the end */
};

/* `receiver` has stopped. 0 or -ENOMEM. owamp_judge_end() in any case. */
int owamp_judge_begin(struct owamp_judge *judge, struct owamp_receiver *receiver, const struct owamp_judge_plan *plan);
/*
 * Looks at up to `looks` packets. False at the end: the receiver has the records that count, in their order, and
 * `seen` has a bit for each number that is not lost.
 */
bool owamp_judge_some(struct owamp_judge *judge, uint32_t looks);
void owamp_judge_end(struct owamp_judge *judge);

#endif
