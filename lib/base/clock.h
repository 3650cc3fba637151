/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stamps of other clocks become CLOCK_MONOTONIC here, at the edge, and keep the error of the conversion.
 *
 * CLOCK_REALTIME and CLOCK_MONOTONIC are slewed alike, so their difference is a constant but for steps: each sample
 * narrows the interval that the constant must lie in, to a nanosecond where the coarse clocks agree with the sample; a
 * sample that contradicts the interval is a step.
 */
#ifndef KTRXER_LIB_CLOCK_H
#define KTRXER_LIB_CLOCK_H

#include <ktrxer.h>

#include <time.h>

/* CLOCK_REALTIME. */
int64_t ktrxer_real_now_ns(void);
/* Such a time as a field of 64 bits. */
uint64_t ktrxer_time_field(int64_t real_ns, enum ktx_send_time format);

struct ktrxer_clock_map {
	clockid_t clock;         /* CLOCK_REALTIME below stands for it */
	int64_t low_ns, high_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC lies in [low, high] */
	int64_t last_ns;         /* the difference before the last step; == middle when there was none */
	uint64_t sampled_ns;
	uint64_t steps;
	uint64_t unstepped_ns; /* the last sample before the last step */
	uint64_t stepped_ns;   /* the sample that found it: the step came between these two */
};

void ktrxer_clock_map_init(struct ktrxer_clock_map *map);
/* Maps another clock that is slewed like these two: CLOCK_TAI. */
void ktrxer_clock_map_init_of(struct ktrxer_clock_map *map, clockid_t clock);
/* That clock less CLOCK_MONOTONIC. */
int64_t ktrxer_clock_map_offset(const struct ktrxer_clock_map *map);
/* Takes one more sample (about 0.1 us). True when it shows that CLOCK_REALTIME was stepped. */
bool ktrxer_clock_map_sample(struct ktrxer_clock_map *map);
/* The same when the last sample is older than `age_ns`. */
bool ktrxer_clock_map_refresh(struct ktrxer_clock_map *map, uint64_t now_ns, uint64_t age_ns);
/* Returns the size of the last step, which is the error of a stamp that was converted by the wrong difference. */
uint32_t ktrxer_clock_map_step(const struct ktrxer_clock_map *map);
/* Half the width of the interval, 1 ns at least. */
uint32_t ktrxer_clock_map_bound(const struct ktrxer_clock_map *map);
uint64_t ktrxer_clock_map_mono(const struct ktrxer_clock_map *map, int64_t real_ns);
/*
 * The same for a stamp that is known to lie between `earliest` and `latest`: when a step came between stamp and sample,
 * the difference from before the step is the right one. A stamp that the one difference puts behind the step, or the
 * other one before it, was not made with it. Where both are left, the later time is taken, since stamps are read soon
 * after they are made.
 */
uint64_t ktrxer_clock_map_mono_within(const struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest_ns,
				      uint64_t latest_ns);

/*
 * The same, but an impossible stamp is the first sign of a clock step: a new sample is taken, and the stamp converted
 * again. False: it is still impossible, for example because the clock was stepped twice between two samples, or both
 * offsets are possible and differ. The stamp then has no meaning.
 */
bool ktrxer_clock_map_mono_checked(struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest_ns,
				   uint64_t latest_ns, uint64_t *mono_ns);

/* A step was found within the last second: stamps around it may be converted by the wrong difference. */
static inline bool ktrxer_clock_map_stepped(const struct ktrxer_clock_map *map, uint64_t now_ns)
{
	/* Signed: `now` may have been read before the sample that found the step. */
	return map->steps && (int64_t)(now_ns - map->stepped_ns) < KTRXER_NS_PER_S;
}

/* ppoll() gets a day at most, since the seconds of an old C library have 32 bits; each caller sleeps in a loop. */
static inline struct timespec ktrxer_span(uint64_t ns)
{
	const uint64_t most = 86400 * (uint64_t)KTRXER_NS_PER_S, span = ns < most ? ns : most;

	return (struct timespec){ .tv_sec = (time_t)(span / KTRXER_NS_PER_S),
				  .tv_nsec = (long)(span % KTRXER_NS_PER_S) };
}

static inline int64_t ktrxer_timespec_ns(int64_t seconds, int64_t nanoseconds)
{
	return seconds * KTRXER_NS_PER_S + nanoseconds;
}

#endif
