/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Losses by a limit of the rate of answers (ICMP, for example), as routers and hosts have it: a bucket of tokens. After
 * its burst a bucket passes answers at even intervals, whatever is sent. Random losses do not do so. Pure.
 */
#ifndef KTRXER_METHODS_ANSWER_LIMIT_H
#define KTRXER_METHODS_ANSWER_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* The probes that were answered, by their numbers. */
struct answer_log {
	uint64_t *answered; /* a bit for each */
	uint32_t end, room; /* the highest number + 1, and the bits that there is room for */
};

/* Of a number that is too high, or without memory, the log takes no note. */
void answer_log_add(struct answer_log *log, uint64_t number);
void answer_log_free(struct answer_log *log);
/*
 * Whether from the first probe without an answer on the answers come at even intervals. *share: that of the answered
 * ones, of these probes. All probes have the same distance.
 */
bool answer_limit(const struct answer_log *log, double *share);

#endif
