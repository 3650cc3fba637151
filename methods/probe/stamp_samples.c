/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_samples.h"

#include <stdlib.h>

enum { ROOM = 1 << 18 }; /* 8 MiB at most */

struct kept {
	uint64_t t1;
	int64_t up, down;
	uint32_t trip; /* T4 - T1 in 256 ns */
};

struct stamp_samples {
	struct kept *kept;
	uint32_t count, room;
	uint64_t seen, stride, resolution;
};

struct stamp_samples *stamp_samples_new(void)
{
	struct stamp_samples *s = calloc(1, sizeof *s);

	if (s) {
		s->stride = 1;
		s->resolution = KTRXER_NS_PER_MS;
	}
	return s;
}

void stamp_samples_free(struct stamp_samples *s)
{
	if (!s)
		return;
	free(s->kept);
	free(s);
}

static bool room_make(struct stamp_samples *s)
{
	uint32_t room = s->room ? 2 * s->room : 1024;
	struct kept *kept;

	if (s->room == ROOM) {
		for (uint32_t i = 0; i < s->count / 2; i++)
			s->kept[i] = s->kept[2 * i];
		s->count /= 2;
		s->stride *= 2;
		return true;
	}
	kept = realloc(s->kept, room * sizeof *kept);
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
	if (s->seen++ % s->stride)
		return true;
	if (s->count == s->room && !room_make(s))
		return false;
	s->kept[s->count++] = (struct kept){ p->t1_ns, p->up_ns, p->down_ns, (uint32_t)((p->t4_ns - p->t1_ns) >> 8) };
	return true;
}

uint64_t stamp_samples_stride(const struct stamp_samples *s)
{
	return s->stride;
}

uint64_t stamp_samples_resolution(const struct stamp_samples *s)
{
	return s->seen < 8 ? 1 : s->resolution;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static void delays_add(struct stamp_delays *d, const struct clock_offset *clock, const struct kept *k, int64_t low_ns,
		       int64_t high_ns)
{
	const uint64_t trip = (uint64_t)k->trip << 8;
	const int64_t change = (int64_t)(trip / 1000000 * CLOCK_OFFSET_RATE_PPM) + CLOCK_OFFSET_RATE_PPM;
	uint64_t at_t1, at_t4;
	int64_t up, down;

	/* The offset is at most T2 - T1 at T1, and at least T3 - T4 at T4. */
	up = k->up - clock_offset_within(clock, CLOCK_OFFSET_LONGEST, k->t1, larger(low_ns, -k->down - change),
					 smaller(high_ns, k->up), &at_t1);
	down = k->down + clock_offset_within(clock, CLOCK_OFFSET_LONGEST, k->t1 + trip, larger(low_ns, -k->down),
					     smaller(high_ns, k->up + change), &at_t4);
	if (at_t1 == UINT64_MAX || at_t4 == UINT64_MAX) {
		d->contradicted++;
		return;
	}
	ktrxer_hist_record(d->up, up);
	ktrxer_hist_record(d->down, down);
	/* The offset changes while the probe is under way. */
	at_t1 = (at_t1 > at_t4 ? at_t1 : at_t4) + (uint64_t)change;
	d->bound_ns = at_t1 > d->bound_ns ? at_t1 : d->bound_ns;
}

void stamp_samples_delays(const struct stamp_samples *s, const struct clock_offset *clock, int64_t low_ns,
			  int64_t high_ns, struct stamp_delays *delays)
{
	struct clock_offset_result r;

	clock_offset_result(clock, CLOCK_OFFSET_LONGEST, &r);
	for (uint32_t i = 0; i < s->count; i++)
		if (s->kept[i].t1 >= r.from_ns && s->kept[i].t1 <= r.to_ns)
			delays_add(delays, clock, &s->kept[i], low_ns, high_ns);
}
