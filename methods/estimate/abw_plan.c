/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_plan.h"

#include <ktrxer.h>
#include <math.h>

#define NS_PER_S 1e9
#define PERIOD_MIN_NS 20e6
#define IDLE_LASTS_NS 2e9
#define IDLE_LOAD 0.01     /* of the capacity */
#define CHECK_APART 0.15  /* of the capacity, from the range to the rates of the checks */
#define BRACKET 0.2       /* of the capacity, from the chirps' estimate to the first rates of the search */
#define SEARCH_ABOVE 1.3  /* of the capacity: noise of the stamps may have hidden some of it */
#define CHIRP_FACTOR 1.15 /* between two gaps */
#define CHIRP_FROM 0.05   /* of the capacity */
#define CHIRP_TO 1.3
#define FLEET_GAP_MIN_NS 100e3
#define SHORT_WIDTH 0.14/* of the capacity: what the short streams see of the cross traffic varies by as much */

enum {
	LINE_AGAIN_TRAINS = 3,
	IDLE_TRAINS = 20,
	IDLE_PACKETS = 16,
	IDLE_PACKETS_QUIET = 12,
	CHECK_PACKETS = 12,
	CHIRPS_FIRST = 8,
	FLEET_PACKETS = 100,
	SHORT_STREAMS = 8,
	SHORT_PACKETS = 50,
	FLEETS_MAX = 24,
	FLEET_BYTES_MIN = 576,
};

/* Trains that last so long come so seldom that they take `share` of their own rate, and keep the limit. */
static void set_period(struct abw *a, double lasts_ns, double share)
{
	struct abw_plan *p = &a->plan;
	double period = fmax(lasts_ns / share, PERIOD_MIN_NS);

	if (a->options.max_load_bit_s > 0)
		period = fmax(period, 8.0 * p->flows * p->packets * p->ip_bytes * NS_PER_S / a->options.max_load_bit_s);
	p->period_ns = (uint64_t)period;
}

static double gap_of(const struct abw *a, double rate, uint32_t bytes)
{
	const double large = a->options.large_bytes, more = a->result.overhead_bytes;

	return 8 * large * NS_PER_S / rate * (bytes + more) / (large + more);
}

double abw_rate_of(const struct abw *a, double gap_ns, uint32_t bytes)
{
	return gap_of(a, 1, bytes) / gap_ns;
}

void abw_plan_line(struct abw *a, enum abw_step step)
{
	a->plan = (struct abw_plan){ .step = step, .flows = 1, .packets = ABW_LINE_PACKETS };
	a->plan.trains = step == ABW_LINE_AGAIN   ? LINE_AGAIN_TRAINS
			 : step == ABW_LINE_SMALL ? a->lines[0].trains - a->lines[1].trains
						  : ABW_LINE_ROUND_TRAINS;
	a->plan.ip_bytes =
		step == ABW_LINE_SMALL || (step == ABW_LINE_AGAIN && a->quiet) ? a->line_bytes : a->options.large_bytes;
	set_period(a, 0, 1);
}

void abw_plan_idle(struct abw *a)
{
	const uint32_t packets = a->quiet ? IDLE_PACKETS_QUIET : IDLE_PACKETS;
	const double bits = 8.0 * 2 * IDLE_TRAINS * packets * a->options.small_bytes;

	a->plan = (struct abw_plan){ .step = ABW_IDLE,
				     .flows = 2,
				     .trains = IDLE_TRAINS,
				     .packets = packets,
				     .ip_bytes = a->options.small_bytes };
	set_period(a, fmax(IDLE_LASTS_NS, bits * NS_PER_S / (IDLE_LOAD * a->result.capacity_bit_s)) / IDLE_TRAINS, 1);
	a->plan.gap_ns = a->plan.period_ns / 2 / packets;
	a->result.idle_tried = true;
	a->idle_rounds++;
}

static void plan_rate(struct abw *a, enum abw_step step, double rate, uint32_t trains, uint32_t packets, uint32_t bytes)
{
	a->plan =
		(struct abw_plan){ .step = step, .flows = 1, .trains = trains, .packets = packets, .ip_bytes = bytes };
	a->plan.gap_ns = (uint64_t)gap_of(a, rate, bytes);
	set_period(a, (double)a->plan.gap_ns * packets, step == ABW_FLEET && !a->short_fleets ? 0.1 : 0.25);
}

void abw_plan_chirps(struct abw *a)
{
	const double gap = gap_of(a, CHIRP_FROM * a->result.capacity_bit_s, a->options.large_bytes);

	a->plan = (struct abw_plan){ .step = ABW_CHIRPS,
				     .flows = 1,
				     .trains = a->options.method == ABW_CHIRP ? ABW_CHIRPS_MOST : CHIRPS_FIRST,
				     .packets = 2 + (uint32_t)(log(CHIRP_TO / CHIRP_FROM) / log(CHIRP_FACTOR)),
				     .ip_bytes = a->options.large_bytes,
				     .gap_ns = (uint64_t)gap,
				     .shrink = (uint16_t)(65536 / CHIRP_FACTOR) };
	set_period(a, gap * a->plan.packets, 0.5);
}

void abw_plan_check(struct abw *a, enum abw_step step)
{
	const double capacity = a->result.capacity_bit_s, above = a->result.high_bit_s + CHECK_APART * capacity,
		     below = a->result.low_bit_s - CHECK_APART * capacity;

	if (step == ABW_CHECK_ABOVE && above < capacity * (1 + CHECK_APART))
		plan_rate(a, step, above, 1, CHECK_PACKETS, a->options.large_bytes);
	else if (below >= CHECK_APART * capacity)
		plan_rate(a, ABW_CHECK_BELOW, below, 1, CHECK_PACKETS, a->options.large_bytes);
	else
		abw_plan_last(a, ABW_RESOLVED);
}

void abw_plan_over(struct abw *a, enum abw_reading reading)
{
	a->result.reading = reading;
	a->plan = (struct abw_plan){ .step = ABW_OVER };
}

void abw_plan_last(struct abw *a, enum abw_reading reading)
{
	a->reading = reading;
	abw_plan_line(a, ABW_LINE_AGAIN);
}

void abw_plan_fleet(struct abw *a)
{
	double rate = abw_search_rate(&a->search), gap, bytes, middle, half;

	for (int i = 0; i < 2; i++)
		if (a->bracket[i] > a->search.low && a->bracket[i] < a->search.high && a->search.grey_high <= 0) {
			rate = a->bracket[i];
			a->bracket[i] = 0;
			break;
		}
	if (abw_search_over(&a->search) || a->result.fleets == FLEETS_MAX) {
		abw_plan_last(a, abw_search_over(&a->search) ? ABW_RESOLVED : ABW_OPEN);
		a->result.by = ABW_FLEET;
		middle = (a->search.low + a->search.high) / 2;
		half = fmax((a->search.high - a->search.low) / 2, (a->short_fleets ? SHORT_WIDTH : 0) / 2 * a->scale);
		a->result.low_bit_s = fmax(middle - half, 0);
		a->result.high_bit_s = middle + half;
		return;
	}
	gap = gap_of(a, rate, a->options.large_bytes);
	bytes = fmax(a->options.large_bytes * FLEET_GAP_MIN_NS / gap, FLEET_BYTES_MIN);
	plan_rate(a, ABW_FLEET, rate, a->short_fleets ? SHORT_STREAMS : ABW_FLEET_STREAMS,
		  a->short_fleets ? SHORT_PACKETS : FLEET_PACKETS,
		  (uint32_t)fmin(bytes, (double)a->options.large_bytes));
}

void abw_plan_search(struct abw *a, double chirp)
{
	a->bracket[0] = chirp > 0 ? chirp + BRACKET * a->result.capacity_bit_s : 0;
	a->bracket[1] = chirp > 0 ? chirp - BRACKET * a->result.capacity_bit_s : 0;
	a->scale = a->result.capacity_bit_s;
	a->search = (struct abw_search){ .high = a->scale * (a->short_fleets ? SEARCH_ABOVE : 1 + ABW_CAPACITY_ERROR),
					 .resolution = ABW_FLEET_RESOLUTION * a->scale };
	abw_plan_fleet(a);
}
