/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Error bounds of the headline figures of a command: the verdict compares each with its tolerance (decision 77). A
 * command fills struct bound_parts, and calls one of the functions for each figure, in the order of the output.
 */
#ifndef KTRXER_CLI_BOUNDS_H
#define KTRXER_CLI_BOUNDS_H

#include "cli.h"
#include "reasons.h"

struct bound_parts {
	uint64_t count[BOUND_CAUSES]; /* probes that this part concerns */
	int64_t ns[BOUND_CAUSES];     /* errors of each delay: CLOCK, DWELL */
	int64_t dwell_ns;   /* the error of the DWELL of all but `count` probes; ns[] is that of the longest */
	uint64_t unseen;    /* probes that count as lost and perhaps did not leave: no stamp of the driver */
	const char *far;    /* NULL: RECEIVE_BUFFER is that of this host; else of that */
	const char *error;  /* of the last probe that could not be sent; NULL: none is known */
	uint64_t late;      /* probes that left late, for the sentence */
	uint64_t tolerance; /* percent; 0: the default */
};

/* `figure`: as results name it; `words`: "p50 of the round trip"; `probes`: their kind, NULL if there is one. */
struct bound_name {
	const char *figure, *words, *probes;
};

void bound_delay(struct cli *cli, const struct bound_name *name, const struct ktrxer_hist *hist,
		 const struct bound_parts *parts);
void bound_loss(struct cli *cli, const struct bound_name *name, uint64_t sent, uint64_t lost,
		const struct bound_parts *parts);
/*
 * COVERAGE: `count` thousandths of the time have no counts. RECEIVE_BUFFER: `count` of `packets` were dropped.
 * RESOLUTION: `count` thousandths of a percent of the bytes are perhaps of another time.
 */
void bound_rate(struct cli *cli, const struct bound_name *name, uint64_t bit_s, uint64_t packets,
		const struct bound_parts *parts);

#ifdef KTRXER_SMALL
static inline void bounds_report(struct cli *cli, struct json *end)
{
	(void)cli;
	(void)end;
}
#else
/* The array `bounds` into the end object, and a line of text with the widest bound. For out_finish(). */
void bounds_report(struct cli *cli, struct json *end);
#endif

#endif
