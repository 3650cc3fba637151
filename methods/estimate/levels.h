/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Did a rate or a delay change from one level to another and stay there, as when a shaper is added, changed or removed?
 * One mean over two levels describes neither. The series is divided into at most LEVELS_MOST parts with the least
 * squared deviations of the logarithms. A division counts if each two neighbours are apart: nine of ten values of the
 * one are beyond nine of ten of the other, their medians differ by a factor, the change is beside the division, and
 * p25 and p75 of each level are nearly the same. Ramps, sawtooths, single bursts, and the rates of flows that compete
 * are no levels. Pure.
 */
#ifndef KTRXER_METHODS_LEVELS_H
#define KTRXER_METHODS_LEVELS_H

#include <stddef.h>
#include <stdint.h>

enum {
	LEVELS_MOST = 4,
	LEVELS_POINTS = 200, /* a longer series is one level */
};

struct level {
	size_t first, end; /* of its values; the value at `end` is not in it */
	double median;
};

/*
 * Values above 0 at equal distances, without gaps; `least` of a level, at least 1. `step`: values differ by so much
 * because they are counts of few packets; 0: they do not. Returns the number of levels. One: there was no change. 0:
 * there are no values.
 */
size_t levels_find(const double *values, size_t count, size_t least, double step, struct level found[LEVELS_MOST]);

#define RATE_SETTLED_NS 1000000000ull /* of flows, in which they begin: no window is in it */

/* The rate of the flows of one direction in bits per second, or a delay, in windows of one length. */
struct rate_windows {
	const double *values; /* not negative */
	size_t count;
	uint64_t begin_ns, window_ns; /* of the first value, and of each */
	uint32_t packet_bytes;        /* of bits per second; 0: of delays */
	double first;                 /* the rate in the RATE_SETTLED_NS before `begin_ns`; negative: not known */
};

enum { RATE_LEVELS_MOST = LEVELS_MOST + 1 };

struct rate_level {
	uint64_t from_ns, to_ns;
	double median;
};

/*
 * The levels of a rate, or of a delay (`first` negative). Each lasts two seconds, and a tenth of the time, at least,
 * with one exception: flows begin slowly, so a first second whose rate is 1.3 times that of any later window is a
 * level, as a rule that of a token bucket that was full. Returns their number, 0: there was no change.
 */
size_t levels_of_rate(const struct rate_windows *windows, struct rate_level found[RATE_LEVELS_MOST]);

/* The length of the windows of a rate between two times with samples each `sample_ns`. */
uint64_t levels_window_ns(uint64_t begin_ns, uint64_t end_ns, uint64_t sample_ns);

#endif
