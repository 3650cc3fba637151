/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The available bandwidth by the growth of the delay over trains of several rates. On a path of FIFO links, this growth
 * is a convex, piecewise linear function of the rate (Melander, Bjorkman, Gunningberg, "TOPP", GLOBECOM 2000): zero up
 * to the available bandwidth A of the tight link, then (rate - A) / C of the tight link. The two are estimated
 * together, on a grid, with the variance of the cross traffic; neither is taken from the narrow link. Rates are shares
 * of the capacity of the narrow link.
 */
#ifndef KTRXER_METHODS_ABW_BEND_H
#define KTRXER_METHODS_ABW_BEND_H

#include <stdbool.h>
#include <stdint.h>

/* Trains of one rate. */
struct abw_streams {
	uint32_t trains;
	double rate, lasts_s; /* of a train */
	double mean, squares; /* growth of the delay in a second: its mean, and the sum of the squares around it */
};

struct abw_bend_given {
	double packet_s; /* the time of a large packet on the narrow link */
	double noise_s;  /* of the stamps */
	/*
	 * The share of the time in which all queues of the path are empty, and its standard error. No link has less
	 * left than the narrow one has in this share. error 0: not known.
	 */
	double empty, empty_error;
};

struct abw_bend {
	double low, middle, high; /* 98 % */
	double one;               /* probability that the narrow link is the only loaded one */
	double misfit;            /* of the streams and the best point of the grid, in standard errors: the largest */
};

void abw_bend(const struct abw_streams *streams, uint32_t count, const struct abw_bend_given *given,
	      struct abw_bend *result);

#endif
