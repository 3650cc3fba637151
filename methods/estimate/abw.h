/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Available bandwidth of the tight link (RFC 5136) as a range: which trains to send next, by what the trains before
 * them have shown. No I/O. Rates are those of IP packets of the large size.
 *
 * ABW_SLOPS is pathload's search (abw_trend.h), ABW_CHIRP is pathChirp (abw_chirp.h). ABW_AUTO combines what exact
 * send times allow: trains sent back to back give the capacity of the narrow link and the noise of the stamps; small
 * probes give the share of the time in which all queues are empty, and so a lower bound, which is the available
 * bandwidth where the narrow link is the only loaded one; a burst shows a token bucket; streams at several rates give
 * the range (abw_bend.h), and end as soon as it is narrow.
 */
#ifndef KTRXER_METHODS_ABW_H
#define KTRXER_METHODS_ABW_H

#include "abw_bend.h"
#include "abw_idle.h"
#include "abw_line.h"
#include "abw_trend.h"
#include "shaper.h"

enum abw_method { ABW_AUTO, ABW_SLOPS, ABW_CHIRP, ABW_METHODS };

enum { ABW_BYTES_LEAST = 400 }; /* of the large size */

struct abw_options {
	enum abw_method method;
	uint32_t large_bytes, small_bytes; /* IP packets; the small ones are as small as they can be */
	double max_load_bit_s;             /* mean rate of the probes; 0: no limit but that of the method */
	uint32_t resolution_ns;            /* of the receiver's stamps */
};

enum abw_step {
	ABW_LINE_LARGE,
	ABW_LINE_SMALL, /* the same with packets of half the size, or a quarter */
	ABW_IDLE,
	ABW_BURST,       /* as long as the buckets of many shapers */
	ABW_LINE_MIDWAY, /* the capacity must still be that of the first step */
	ABW_STREAMS,
	ABW_CHIRPS,
	ABW_FLEET,
	ABW_LINE_AGAIN, /* the last step: the capacity must still be that of the first one */
	ABW_OVER,
	ABW_STEPS,
};

/* A plan: `trains` in each flow, one every period_ns. A second flow begins half a period after the first. */
struct abw_plan {
	enum abw_step step;
	uint32_t flows, trains, packets, ip_bytes;
	uint64_t gap_ns, period_ns; /* gap_ns 0: back to back */
	uint16_t shrink;            /* each gap in 1/65536 of the one before; 0: all are equal */
};

enum abw_reading {
	ABW_RESOLVED,
	ABW_COALESCED, /* the gaps do not depend on the size of the packets, or arrivals come in groups */
	ABW_SENDER,    /* most trains did not leave at their times: the sender is as slow as the path */
	ABW_LOST,      /* most packets did not arrive */
	ABW_OPEN,      /* the search has not converged */
	ABW_CHANGED,   /* the capacity is another one than at the beginning */
	ABW_SHAPED,    /* a bucket passes the first packets of a burst at another rate than the others */
	ABW_READINGS,
};

extern const char *const abw_reading_names[ABW_READINGS], *const abw_step_names[ABW_STEPS];

struct abw_result {
	enum abw_reading reading;
	enum abw_step by;             /* the step that gave the range: ABW_IDLE, ABW_STREAMS, ABW_CHIRPS or ABW_FLEET */
	double low_bit_s, high_bit_s; /* ABW_RESOLVED; ABW_OPEN: so far */
	double capacity_bit_s;        /* 0: not known */
	double capacity_end_bit_s;    /* by the last step; 0: not known */
	double overhead_bytes;        /* that the link adds to a packet, by both sizes */
	double tolerance_ns;          /* noise of the stamps of packets that follow each other */
	double noise_ns;              /* delays that grow by less over a stream are no trend */
	bool idle_tried;
	double misfit;        /* as of abw_bend.h */
	struct shaper shaper; /* ABW_SHAPED */
	struct abw_idle idle;
	uint64_t packets, bytes, lost, overtaken, /* by the next one of their train */
		late; /* late: gaps between send times that are a tenth off, and more than 20 us */
	uint32_t fleets;
	uint32_t fleets_by_loss; /* of them: above the available bandwidth by their losses, not by their delays */
};

enum { ABW_LINE_TRAINS = 16, ABW_LINE_PACKETS = 5 }; /* back to back, of each size: the most */

/* Packets sent back to back, of one size. */
struct abw_line_part {
	uint64_t sent_ns[ABW_LINE_TRAINS * ABW_LINE_PACKETS], arrived_ns[ABW_LINE_TRAINS * ABW_LINE_PACKETS];
	uint32_t trains; /* so far */
	struct abw_line line;
};

enum { ABW_ROUNDS = 12, ABW_ROUND_TRAINS = 4 }; /* of trains at one rate */

struct abw {
	struct abw_options options;
	struct abw_plan plan;
	struct abw_result result;
	struct abw_search search;
	struct timed_delay *delays;
	size_t delay_count;
	struct abw_line_part lines[2]; /* of large packets, and of those of line_bytes */
	uint32_t line_bytes;
	struct abw_streams streams[ABW_ROUNDS];
	struct abw_bend_given given;
	struct abw_bend bend;
	uint32_t rounds, bursts;
	uint64_t streams_ns;
	double line_gap_ns;       /* of large packets */
	double scale;             /* bit/s: at most the capacity, and what the widths of ranges are measured in */
	enum abw_reading reading; /* of the result, if the last step does not show a change */
	bool quiet; /* the noise of the stamps is small beside a packet's time on the link: small packets do, too */
};

/* -EINVAL: the sizes do not fit each other. */
int abw_begin(struct abw *abw, const struct abw_options *options);
/* NULL: there is nothing more to send, and abw->result is complete. */
const struct abw_plan *abw_next(const struct abw *abw);
/* The packets of the plan: flow after flow, train after train. 0 or -ENOMEM. */
int abw_take(struct abw *abw, const uint64_t *sent_ns, const uint64_t *arrived_ns);
void abw_end(struct abw *abw);

#endif
