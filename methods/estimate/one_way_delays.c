/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "one_way_delays.h"

/* The time in the reflector at most, of rows that do not have it: in that time the offset may change. */
#define DWELL_NS 100000
/* Room of an estimator: some megabytes. */
#define LIMITS_MAX (1 << 16)
#define STAMP_ERROR_NS 1000
/* Limits of times in a file of unknown origin, relative to its first row: 63 years of the far clock, 4 of ours. */
#define FAR_MAX 2000000000000000000
#define OUR_MAX ((int64_t)1 << 57)

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static uint64_t change_in(uint64_t ns)
{
	return ns / 1000000 * CLOCK_OFFSET_RATE_PPM + ns % 1000000 * CLOCK_OFFSET_RATE_PPM / 1000000 + 1;
}

uint64_t one_way_delays(const struct clock_offset *clock, enum clock_offset_segment which, const struct one_way_trip *t,
			int64_t low_ns, int64_t high_ns, int64_t *up_ns, int64_t *down_ns)
{
	const int64_t change = (int64_t)(clock_offset_rate(clock, which) * (double)t->trip_ns) + 1;
	uint64_t at_t1, at_t4;

	/* The offset is at most T2 - T1 at T1, and at least T3 - T4 at T4. */
	*up_ns = t->up_ns - clock_offset_within(clock, which, t->t1_ns, larger(low_ns, -t->down_ns - change),
						smaller(high_ns, t->up_ns), &at_t1);
	*down_ns = t->down_ns + clock_offset_within(clock, which, t->t1_ns + t->trip_ns, larger(low_ns, -t->down_ns),
						    smaller(high_ns, t->up_ns + change), &at_t4);
	if (at_t1 == UINT64_MAX || at_t4 == UINT64_MAX)
		return UINT64_MAX;
	/* The offset changes while the probe is under way. */
	return (at_t1 > at_t4 ? at_t1 : at_t4) + (uint64_t)change;
}

/* Relative to the first row; INT64_MIN: out of range. */
static int64_t relative(int64_t ns, int64_t first_ns, int64_t most)
{
	const int64_t apart = (int64_t)((uint64_t)ns - (uint64_t)first_ns);

	return apart > most || apart < -most ? INT64_MIN : apart;
}

static bool is_length(int64_t ns)
{
	return ns >= 0 && ns <= OUR_MAX;
}

struct made {
	struct clock_exchange exchange;
	struct one_way_trip trip;
};

/*
 * The limits are without the queues of the two hosts, which only widen the interval that the offset lies in.
 * Adjustments were read at the arrival of the answer; a slew may have changed the clocks since T1. False: a time is out
 * of range.
 */
static bool make(const struct one_way_row *rows, size_t i, const struct one_way_clocks *clocks, struct made *made)
{
	const struct one_way_row *r = &rows[i];
	const int64_t far_ns = (int64_t)((uint64_t)r->far_ns - (uint64_t)(clocks->adjusted ? r->adjusted_ns : 0)),
		      far_at_ns = relative(far_ns, rows->far_ns, FAR_MAX),
		      sent_ns = relative(r->sent_ns, rows->sent_ns, OUR_MAX);
	uint64_t t1_ns, t4_ns;

	if (far_at_ns == INT64_MIN || sent_ns == INT64_MIN || !is_length(r->rtt_ns) || !is_length(r->own_queue_ns) ||
	    !is_length(r->far_queue_ns) || !is_length(r->dwell_ns))
		return false;
	/* A row may be earlier than the first one. */
	t1_ns = (uint64_t)(sent_ns + OUR_MAX);
	t4_ns = t1_ns + (uint64_t)r->rtt_ns + (uint64_t)r->dwell_ns;
	made->trip = (struct one_way_trip){ .t1_ns = t1_ns,
					    .trip_ns = t4_ns - t1_ns,
					    .up_ns = far_at_ns - (int64_t)t1_ns,
					    .down_ns = (int64_t)t4_ns - far_at_ns - r->dwell_ns };
	made->exchange = (struct clock_exchange){
		.t1_ns = t1_ns + (uint64_t)r->own_queue_ns,
		.t4_ns = t4_ns,
		.t2_ns = far_at_ns,
		.t3_ns = far_at_ns + r->dwell_ns + r->far_queue_ns,
		.widen_ns = 1 + (r->dwell_ns ? 0 : change_in(DWELL_NS)) +
			    (clocks->adjusted ? change_in(made->trip.trip_ns) + STAMP_ERROR_NS : 0),
		.free_running = clocks->free_running,
	};
	return true;
}

static void find(const struct one_way_row *rows, size_t from, size_t to, const struct one_way_clocks *clocks,
		 struct clock_offset *clock, struct one_way_row_delays *delays)
{
	struct clock_offset_result offset;
	struct made made;

	clock_offset_settle(clock);
	clock_offset_result(clock, CLOCK_OFFSET_OPEN, &offset);
	for (size_t i = from; i < to; i++) {
		struct one_way_row_delays *d = &delays[i];
		uint64_t bound_ns = UINT64_MAX;

		if (offset.points && make(rows, i, clocks, &made))
			bound_ns = one_way_delays(clock, CLOCK_OFFSET_OPEN, &made.trip, INT64_MIN, INT64_MAX, &d->up_ns,
						  &d->down_ns);
		if (bound_ns > INT64_MAX)
			*d = (struct one_way_row_delays){ INT64_MIN, INT64_MIN, INT64_MIN };
		else
			d->bound_ns = (int64_t)bound_ns;
	}
}

/* The estimator has seen no rows but those before the step. */
static int find_closed(const struct one_way_row *rows, size_t from, size_t to, const struct one_way_clocks *clocks,
		       struct one_way_row_delays *delays)
{
	struct clock_offset *clock;
	struct made made;
	int rc = clock_offset_new_of(&clock, LIMITS_MAX);

	if (rc < 0)
		return rc;
	for (size_t i = from; i < to; i++)
		if (make(rows, i, clocks, &made))
			clock_offset_add(clock, &made.exchange);
	find(rows, from, to, clocks, clock, delays);
	clock_offset_free(clock);
	return 0;
}

/* The first row of the open segment, which the row `i` has confirmed. */
static size_t segment_first(const struct one_way_row *rows, size_t i, const struct one_way_clocks *clocks,
			    const struct clock_offset *clock)
{
	struct clock_offset_result open;
	struct made made;

	clock_offset_result(clock, CLOCK_OFFSET_OPEN, &open);
	while (i && (!make(rows, i, clocks, &made) || made.exchange.t1_ns != open.from_ns))
		i--;
	return i;
}

int one_way_of_rows(const struct one_way_row *rows, size_t count, const struct one_way_clocks *clocks,
		    struct one_way_row_delays *delays)
{
	struct clock_offset *clock;
	struct made made;
	size_t from = 0;
	int rc = clock_offset_new_of(&clock, LIMITS_MAX), steps = 0;

	for (size_t i = 0; i < count && rc == 0; i++) {
		size_t first;

		if (!make(rows, i, clocks, &made) || clock_offset_add(clock, &made.exchange) != CLOCK_OFFSET_STEPPED)
			continue;
		first = segment_first(rows, i, clocks, clock);
		rc = find_closed(rows, from, first, clocks, delays);
		from = first;
		steps++;
	}
	if (rc == 0)
		find(rows, from, count, clocks, clock, delays);
	clock_offset_free(clock);
	return rc < 0 ? rc : steps;
}
