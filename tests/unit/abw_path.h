/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packets over a simulated path, with the truth beside them: FIFO links in a row, each with its own rate, cross
 * traffic, token bucket and change of the rate; stamps with noise; two clocks.
 */
#ifndef KTRXER_TESTS_ABW_PATH_H
#define KTRXER_TESTS_ABW_PATH_H

#include "abw.h"

enum { LARGE = 1500, SMALL = 52, FRAME = 14, SOURCES = 10, LINKS = 3 };

enum cross { POISSON, PARETO, CBR, CROSS };
extern const char *const cross_names[CROSS];

struct sim_link {
	double rate, load; /* bit/s of frames, 0: there is no such link; share that cross traffic takes */
	enum cross cross;
	double bucket_bits; /* the link is a token bucket, which passes so much at once; 0: it is none */
	double then_rate;   /* from change_s seconds after the beginning on; 0: the rate does not change */
	double change_s;
	double walk; /* the rate changes by up to this share every 100 ms; 0: never */
};

struct world {
	struct sim_link links[LINKS];
	double access;        /* of the sender's own link, in rates of the first link */
	double skew;          /* of the receiver's clock */
	double noise_ns;      /* stamps are later by up to so much */
	double step_ns;       /* of the receiver's clock; 0: 1 ns */
	double period_ns;     /* the receiver delivers in groups on this grid; 0: never */
	double loss, held;    /* shares of packets: lost; held up for up to 300 us, so that others overtake them */
	double send_noise_ns; /* packets leave later than planned by up to so much */
	uint64_t seed;
};

struct outcome {
	struct abw_result result;
	/* Of IP packets of the large size, in bit/s: available bandwidth on average, and capacity at the end. */
	double truth, capacity;
	double pathload_bytes; /* what pathload 1.3.3 sends for the same fleets */
	double lasted_s;
};

double uniform(uint64_t *seed);
/* A whole measurement. */
struct outcome measured(struct world world, enum abw_method method);

#endif
