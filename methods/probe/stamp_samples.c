/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_samples.h"

#include "one_way_delays.h"

#include <stdlib.h>

enum {
	ROOM = 1 << 18, /* 8 MiB at most */
	PART = 32,      /* of them are settled at once: in milliseconds, and rarely */
};

struct kept {
	uint64_t t1;
	int64_t up, down;
	uint32_t trip;    /* T4 - T1 in 256 ns */
	int32_t adjusted; /* of the clocks, in 64 ns: up to 137 s */
};

struct stamp_samples {
	struct kept *kept; /* a ring once it has ROOM places */
	uint32_t first, count, room;
	uint64_t seen, resolution;
	/* Of the segment with the most round trips, at `longest`, and of the one since the last step. */
	struct stamp_delays delays[2];
	int longest;
};

struct stamp_samples *stamp_samples_new(void)
{
	struct stamp_samples *s = calloc(1, sizeof *s);

	if (s)
		s->resolution = KTRXER_NS_PER_MS;
	return s;
}

static void delays_free(struct stamp_delays *d)
{
	ktrxer_hist_free(d->up);
	ktrxer_hist_free(d->down);
}

void stamp_samples_free(struct stamp_samples *s)
{
	if (!s)
		return;
	delays_free(&s->delays[0]);
	delays_free(&s->delays[1]);
	free(s->kept);
	free(s);
}

bool stamp_samples_full(const struct stamp_samples *s)
{
	return s->count == ROOM;
}

static bool room_make(struct stamp_samples *s)
{
	const uint32_t room = s->room ? 2 * s->room : 1024;
	struct kept *kept = realloc(s->kept, room * sizeof *kept);

	if (!kept)
		return false;
	s->kept = kept;
	s->room = room;
	return true;
}

bool stamp_samples_add(struct stamp_samples *s, const struct stamp_sample *p)
{
	while (s->resolution > 1 && (p->t2_real_ns % (int64_t)s->resolution || p->t3_real_ns % (int64_t)s->resolution))
		s->resolution /= 1000;
	s->seen++;
	if (s->count == s->room && (stamp_samples_full(s) || !room_make(s)))
		return false;
	s->kept[(s->first + s->count++) % ROOM] =
		(struct kept){ .t1 = p->t1_ns,
			       .up = (int64_t)((uint64_t)p->up_ns - (uint64_t)p->adjusted_ns),
			       .down = (int64_t)((uint64_t)p->down_ns + (uint64_t)p->adjusted_ns),
			       .trip = (uint32_t)((p->t4_ns - p->t1_ns) >> 8),
			       .adjusted = (int32_t)(p->adjusted_ns / 64) };
	return true;
}

uint64_t stamp_samples_resolution(const struct stamp_samples *s)
{
	return s->seen < 8 ? 1 : s->resolution;
}

static uint64_t delays_find(const struct clock_offset *clock, enum clock_offset_segment which, const struct kept *k,
			    int64_t low_ns, int64_t high_ns, int64_t *up, int64_t *down)
{
	const struct one_way_trip trip = {
		.t1_ns = k->t1, .trip_ns = (uint64_t)k->trip << 8, .up_ns = k->up, .down_ns = k->down
	};

	return one_way_delays(clock, which, &trip, low_ns, high_ns, up, down);
}

static void delays_add(struct stamp_delays *d, const struct clock_offset *clock, enum clock_offset_segment which,
		       const struct kept *k, int64_t low_ns, int64_t high_ns)
{
	int64_t up, down, claimed_up, claimed_down;
	uint64_t bound_ns = delays_find(clock, which, k, INT64_MIN, INT64_MAX, &up, &down), unclaimed_ns = bound_ns,
		 claimed_ns;

	if (bound_ns == UINT64_MAX) {
		d->contradicted++;
		return;
	}
	if (low_ns != INT64_MIN) {
		const int64_t adjusted = (int64_t)k->adjusted * 64;

		claimed_ns =
			delays_find(clock, which, k, low_ns - adjusted, high_ns - adjusted, &claimed_up, &claimed_down);
		d->claims_wrong |= claimed_ns == UINT64_MAX;
		if (claimed_ns != UINT64_MAX) {
			bound_ns = claimed_ns;
			up = claimed_up;
			down = claimed_down;
			/* Claims may be wrong: this delay and the true one lie in the interval without them. */
			unclaimed_ns *= 2;
		}
	}
	ktrxer_hist_record(d->up, up);
	ktrxer_hist_record(d->down, down);
	d->bound_ns = bound_ns > d->bound_ns ? bound_ns : d->bound_ns;
	d->unclaimed_ns = unclaimed_ns > d->unclaimed_ns ? unclaimed_ns : d->unclaimed_ns;
}

/* The delays of the segment that begins there. */
static bool delays_begin(struct stamp_delays *d, uint64_t from_ns)
{
	if (d->up && d->from_ns == from_ns)
		return true;
	delays_free(d);
	*d = (struct stamp_delays){ .up = ktrxer_hist_new(), .down = ktrxer_hist_new(), .from_ns = from_ns };
	return d->up && d->down;
}

static bool is_in(const struct clock_offset_result *segment, const struct kept *k)
{
	return k->t1 >= segment->from_ns && k->t1 <= segment->to_ns;
}

bool stamp_samples_settle(struct stamp_samples *s, const struct clock_offset *clock, int64_t low_ns, int64_t high_ns,
			  bool all)
{
	struct clock_offset_result longest, open;
	struct stamp_delays *of_longest, *of_open;

	clock_offset_result(clock, CLOCK_OFFSET_LONGEST, &longest);
	clock_offset_result(clock, CLOCK_OFFSET_OPEN, &open);
	if (longest.from_ns == s->delays[!s->longest].from_ns)
		s->longest = !s->longest;
	of_longest = &s->delays[s->longest];
	of_open = &s->delays[!s->longest];
	if (!delays_begin(of_longest, longest.from_ns) ||
	    (open.from_ns != longest.from_ns && !delays_begin(of_open, open.from_ns)))
		return false;
	for (uint32_t n = all ? s->count : s->count / PART; n; n--) {
		const struct kept *k = &s->kept[s->first];
		const bool in_longest = is_in(&longest, k);

		if (in_longest || is_in(&open, k))
			delays_add(in_longest ? of_longest : of_open, clock,
				   in_longest ? CLOCK_OFFSET_LONGEST : CLOCK_OFFSET_OPEN, k, low_ns, high_ns);
		s->first = (s->first + 1) % ROOM;
		s->count--;
	}
	if (!s->count)
		s->first = 0;
	return true;
}

const struct stamp_delays *stamp_samples_delays(const struct stamp_samples *s)
{
	return &s->delays[s->longest];
}
