/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The next trains of a search for the available bandwidth (abw.h). Each function puts a plan into abw->plan: of one
 * step, or that nothing more is to be sent.
 */
#ifndef KTRXER_METHODS_ABW_PLAN_H
#define KTRXER_METHODS_ABW_PLAN_H

#include "abw.h"

#define ABW_CAPACITY_ERROR 0.01 /* of the capacity that the trains give */
#define ABW_FLEET_RESOLUTION 0.05 /* of the capacity */

enum {
	ABW_LINE_ROUND_TRAINS = 4,
	ABW_BURSTS = 2, /* after a burst that ends slower than it begins: so many more, until two agree */
	ABW_CHIRPS_MOST = 32,
	ABW_FLEET_STREAMS = 12,
};

/* Packets of `bytes` with this gap load the link as large packets at this bit rate do. */
double abw_rate_of(const struct abw *a, double gap_ns, uint32_t bytes);

/* Of the small packets, as many trains as of the large ones. */
void abw_plan_line(struct abw *a, enum abw_step step);
void abw_plan_idle(struct abw *a);
void abw_plan_burst(struct abw *a);
/* The next trains at one rate, by the range so far. */
void abw_plan_streams(struct abw *a);
void abw_plan_chirps(struct abw *a);
void abw_plan_fleet(struct abw *a);
/* The first fleet of a search. */
void abw_plan_search(struct abw *a);

/* There is a result, unless the capacity has changed meanwhile. */
void abw_plan_last(struct abw *a, enum abw_reading reading);
void abw_plan_over(struct abw *a, enum abw_reading reading);

#endif
