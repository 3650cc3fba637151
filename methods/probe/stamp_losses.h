/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * In which direction probes were lost, by the counts of a stateful reflector. It counts each request that it answers,
 * so a count that no answer brought belongs to an answer that was lost. Each count is noted once, in whatever order the
 * answers come. A missing answer may be that of a copy of a request: the reflector reports how many copies it had
 * (stamp_packet.h), or, once a copy was seen, the missing answers prove no loss down.
 */
#ifndef KTRXER_METHODS_STAMP_LOSSES_H
#define KTRXER_METHODS_STAMP_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

/* An epoch lasts from one start of the reflector to the next. */
struct stamp_epoch {
	uint32_t number;
	int64_t base;                           /* its count before our first probe */
	int64_t highest;                        /* its highest count seen, -1: none */
	int64_t first;                          /* the lowest count seen */
	int64_t first_real_ns, highest_real_ns; /* T2 of the answers with the lowest and the highest count */
	uint64_t highest_probe;                 /* the highest number answered + 1 */
	uint64_t distinct;                      /* counts that were seen, each once */
	uint64_t copies_seen;                   /* of them those of further answers to one probe */
	/* that the reflector had, by its answer of the count `copies_at`; -1: no answer contains it */
	uint64_t copies;
	int64_t copies_at;
};

struct stamp_losses {
	uint64_t *seen; /* counts of this epoch: sequence_set.h */
	uint32_t bits, next;
	struct stamp_epoch epoch;
	int64_t past_highest, past_real_ns; /* of the epoch before this one: the highest count seen, and its T2 */
	uint64_t missing;                   /* counts that no answer brought, of the epochs before this one */
	uint64_t missing_copies;            /* of them those that are known to be of copies */
	uint64_t missing_open;              /* of them those of epochs in which copies were not counted */
	uint64_t unplaced; /* lost probes that a count is not known to cover: the session counts them */
	bool copies_up;    /* a copy was seen */
	bool stateful;     /* it was seen to count */
};

/* `window`: probes that may wait at once, a power of two. -ENOMEM, or 0. */
int stamp_losses_new(struct stamp_losses *losses, uint32_t window);
void stamp_losses_free(struct stamp_losses *losses);

struct stamp_counted {
	uint64_t number;          /* of the probe */
	uint32_t seq;             /* the reflector's count */
	int64_t received_real_ns; /* T2 */
};
enum stamp_counted_as {
	STAMP_COUNTED,
	STAMP_COUNTED_DOWN, /* reordered down: an answer with a larger count came before */
	STAMP_COUNTED_UP,   /* reordered up: no count was seen so far, and T2 is later than that of a later probe */
	STAMP_COUNTED_ANEW, /* the reflector has begun to count anew */
};
struct stamp_place {
	int64_t count;
	uint32_t epoch;
	bool unplaced; /* lost probes before this one may have been counted or not */
};
/* The first answer of its probe. */
enum stamp_counted_as stamp_losses_first(struct stamp_losses *losses, const struct stamp_counted *answer,
					 struct stamp_place *place);
/* A further answer of a probe. *place: in, that of its first answer; out, its own. True: the request was copied (up);
 * else the answer was (down). */
bool stamp_losses_again(struct stamp_losses *losses, const struct stamp_counted *answer, struct stamp_place *place);
/* The copies that the reflector has had so far, by the answer at this place. */
void stamp_losses_copies(struct stamp_losses *losses, const struct stamp_place *place, uint32_t copies);

struct stamp_split {
	uint64_t up, down, unknown;
};
/*
 * Splits `lost` probes. `open`: those among them behind the last answer. `closing`: others, that do not count, which
 * may have been lost before it.
 */
struct stamp_split stamp_losses_split(const struct stamp_losses *losses, uint64_t lost, uint64_t open,
				      uint64_t closing);

#endif
