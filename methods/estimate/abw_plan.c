/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_plan.h"

#include <ktrxer.h>
#include <math.h>

#define NS_PER_S 1e9
#define PERIOD_MIN_NS 20e6
#define IDLE_LASTS_NS 2e9
#define IDLE_LOAD 0.01     /* of the capacity */
#define STREAMS_ABOVE 0.1 /* of the capacity, from the range to the rate of streams */
#define STREAMS_BESIDE 0.03
#define STREAMS_MOST 0.97 /* an idle narrow link must not be full */
#define STREAMS_LEAST 0.1
#define BURST_MOST_S 0.5 /* of the time, at the mean rate that is allowed */
#define STREAMS_SHARE 0.25 /* of the time */
#define CHIRP_FACTOR 1.15 /* between two gaps */
#define CHIRP_FROM 0.05   /* of the capacity */
#define CHIRP_TO 1.3
#define FLEET_GAP_MIN_NS 100e3

enum {
	LINE_AGAIN_TRAINS = 3,
	IDLE_TRAINS = 20,
	IDLE_PACKETS = 16,
	IDLE_PACKETS_QUIET = 12,
	STREAMS_FIRST = 2,
	STREAM_PACKETS = 48,
	BURST_PACKETS = 64,
	FLEET_PACKETS = 100,
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
	const bool again = step == ABW_LINE_AGAIN || step == ABW_LINE_MIDWAY;

	a->plan = (struct abw_plan){ .step = step, .flows = 1, .packets = ABW_LINE_PACKETS };
	a->plan.trains = again                    ? LINE_AGAIN_TRAINS
			 : step == ABW_LINE_SMALL ? a->lines[0].trains - a->lines[1].trains
						  : ABW_LINE_ROUND_TRAINS;
	a->plan.ip_bytes = step == ABW_LINE_SMALL || (again && a->quiet) ? a->line_bytes : a->options.large_bytes;
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
}

static void plan_rate(struct abw *a, enum abw_step step, double rate, uint32_t trains, uint32_t packets, uint32_t bytes)
{
	a->plan =
		(struct abw_plan){ .step = step, .flows = 1, .trains = trains, .packets = packets, .ip_bytes = bytes };
	a->plan.gap_ns = (uint64_t)gap_of(a, rate, bytes);
	set_period(a, (double)a->plan.gap_ns * packets, step == ABW_FLEET ? 0.1 : STREAMS_SHARE);
}

void abw_plan_chirps(struct abw *a)
{
	const double gap = gap_of(a, CHIRP_FROM * a->result.capacity_bit_s, a->options.large_bytes);

	a->plan = (struct abw_plan){ .step = ABW_CHIRPS,
				     .flows = 1,
				     .trains = ABW_CHIRPS_MOST,
				     .packets = 2 + (uint32_t)(log(CHIRP_TO / CHIRP_FROM) / log(CHIRP_FACTOR)),
				     .ip_bytes = a->options.large_bytes,
				     .gap_ns = (uint64_t)gap,
				     .shrink = (uint16_t)(65536 / CHIRP_FACTOR) };
	set_period(a, gap * a->plan.packets, 0.5);
}

void abw_plan_burst(struct abw *a)
{
	/* One burst alone is a load above the limit. */
	if (a->options.max_load_bit_s > 0 &&
	    8.0 * BURST_PACKETS * a->options.large_bytes > BURST_MOST_S * a->options.max_load_bit_s) {
		abw_plan_line(a, ABW_LINE_MIDWAY);
		return;
	}
	a->plan = (struct abw_plan){ .step = ABW_BURST,
				     .flows = 1,
				     .trains = a->bursts ? 2 : 1,
				     .packets = BURST_PACKETS,
				     .ip_bytes = a->options.large_bytes };
	/* The bucket is full again before the last burst. */
	set_period(a,
		   a->bursts ? 8 * NS_PER_S * a->plan.ip_bytes / a->result.shaper.sustained_bit_s * BURST_PACKETS
			     : a->line_gap_ns * BURST_PACKETS,
		   STREAMS_SHARE);
}

void abw_plan_streams(struct abw *a)
{
	const struct abw_bend *b = &a->bend;
	double rate;

	if (!a->rounds)
		abw_bend(NULL, 0, &a->given, &a->bend);
	/* The growth is clear above the range; the capacity of the tight link does not matter beside the bend. */
	rate = a->rounds % 2 ? b->middle + STREAMS_BESIDE : b->high + STREAMS_ABOVE;
	if (!a->rounds && a->given.empty_error > 0)
		rate = a->given.empty + 2 * a->given.empty_error + STREAMS_ABOVE;
	rate = fmin(fmax(rate, STREAMS_LEAST), STREAMS_MOST) * a->result.capacity_bit_s;
	plan_rate(a, ABW_STREAMS, rate, a->rounds ? ABW_ROUND_TRAINS : STREAMS_FIRST, STREAM_PACKETS,
		  a->options.large_bytes);
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
	const double rate = abw_search_rate(&a->search);
	double gap, bytes;

	if (abw_search_over(&a->search) || a->result.fleets == FLEETS_MAX) {
		abw_plan_last(a, abw_search_over(&a->search) ? ABW_RESOLVED : ABW_OPEN);
		a->result.by = ABW_FLEET;
		a->result.low_bit_s = a->search.low;
		a->result.high_bit_s = a->search.high;
		return;
	}
	gap = gap_of(a, rate, a->options.large_bytes);
	bytes = fmax(a->options.large_bytes * FLEET_GAP_MIN_NS / gap, FLEET_BYTES_MIN);
	plan_rate(a, ABW_FLEET, rate, ABW_FLEET_STREAMS, FLEET_PACKETS,
		  (uint32_t)fmin(bytes, (double)a->options.large_bytes));
}

void abw_plan_search(struct abw *a)
{
	a->scale = a->result.capacity_bit_s;
	a->search = (struct abw_search){ .high = a->scale * (1 + ABW_CAPACITY_ERROR),
					 .resolution = ABW_FLEET_RESOLUTION * a->scale };
	abw_plan_fleet(a);
}
