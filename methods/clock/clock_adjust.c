/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock_adjust.h"

/* Clocks without a fine counter tick in microseconds. */
#define STAMP_ERROR_NS 1000

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (int64_t)t.tv_sec * KTRXER_NS_PER_S + t.tv_nsec;
}

void clock_adjust_read(struct clock_adjust *adjust, clockid_t clock)
{
	const int64_t before = now(CLOCK_MONOTONIC_RAW), read = now(clock),
		      half = (now(CLOCK_MONOTONIC_RAW) - before) / 2;

	adjust->ns = read - before - half;
	adjust->at_ns = read;
	/* + 1: each clock is rounded to nanoseconds for itself. */
	adjust->bound_ns = half < INT32_MAX ? (uint32_t)half + 1 : INT32_MAX;
}

static uint64_t size_of(int64_t ns)
{
	return ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
}

static uint64_t apart_of(int64_t a, int64_t b)
{
	return size_of((int64_t)((uint64_t)a - (uint64_t)b));
}

/* A reflector may report any time: no sum may overflow. */
bool clock_watch_take(struct clock_watch *w, const struct clock_adjust *a)
{
	/* Answers come out of order: their distance counts. */
	const uint64_t apart = apart_of(a->at_ns, w->last.at_ns), change = apart_of(a->ns, w->last.ns),
		       most = apart / 1000000 * CLOCK_ADJUST_RATE_PPM + CLOCK_ADJUST_RATE_PPM + a->bound_ns +
			      w->last.bound_ns + STAMP_ERROR_NS;
	const bool moved = w->seen && change > most;
	int64_t sum;

	/* A slew is seen in many readings; it is one change. */
	if (moved && (!w->changes || apart_of(a->at_ns, w->moved_at_ns) > (uint64_t)KTRXER_NS_PER_S)) {
		w->changes++;
		w->before_ns = w->last.ns;
	}
	if (moved) {
		w->moved_at_ns = a->at_ns;
		sum = (int64_t)((uint64_t)a->ns - (uint64_t)w->before_ns);
		if (size_of(sum) > size_of(w->largest_ns))
			w->largest_ns = sum;
	}
	w->seen = true;
	w->last = *a;
	return moved;
}
