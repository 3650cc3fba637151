/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "clock.h"

#include "options.h"

#include <time.h>

static int64_t clock_ns(clockid_t clock)
{
	struct timespec ts = { 0 };

	clock_gettime(clock, &ts);
	return ktrxer_timespec_ns(ts.tv_sec, ts.tv_nsec);
}

uint64_t ktrxer_now_ns(void)
{
	return (uint64_t)clock_ns(CLOCK_MONOTONIC);
}

int64_t ktrxer_real_now_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#define NTP_EPOCH 2208988800LL /* 1900 to 1970, in seconds */

uint64_t ktrxer_time_field(int64_t real_ns, enum ktx_send_time format)
{
	int64_t seconds = real_ns / KTRXER_NS_PER_S, ns = real_ns % KTRXER_NS_PER_S;

	if (ns < 0) {
		ns += KTRXER_NS_PER_S;
		seconds--;
	}
	if (format == KTX_SEND_TIME_UNIX)
		return (uint64_t)(uint32_t)seconds << 32 | (uint32_t)ns;
	/* To the nearest 2^-32 s, so that reading gives the same nanosecond again. */
	return (uint64_t)(uint32_t)(seconds + NTP_EPOCH) << 32 |
	       (((uint64_t)ns << 32) + KTRXER_NS_PER_S / 2) / KTRXER_NS_PER_S;
}

struct sandwich {
	int64_t before, real, after;
};

/*
 * The coarse clocks are those of the kernel's last tick: their difference is exact, unless a tick came between two of
 * the readings. It gives the time of CLOCK_MONOTONIC at which `real` was read. Without it two maps of one process
 * differ by up to half the width of a sandwich, and a round trip between stamps that they convert may be below 0.
 */
static void sandwich_close(struct sandwich *s)
{
	const int64_t mono = clock_ns(CLOCK_MONOTONIC_COARSE);
	const int64_t exact = s->real - (clock_ns(CLOCK_REALTIME_COARSE) - mono);

	if (clock_ns(CLOCK_MONOTONIC_COARSE) == mono && exact >= s->before && exact <= s->after)
		s->before = s->after = exact;
}

/* The narrowest of a few tries: an interrupt between two reads widens one of them, seldom all. */
static struct sandwich sandwich_take(clockid_t clock, int tries)
{
	struct sandwich best = { 0 };

	for (int i = 0; i < tries; i++) {
		struct sandwich s;

		s.before = clock_ns(CLOCK_MONOTONIC);
		s.real = clock_ns(clock);
		s.after = clock_ns(CLOCK_MONOTONIC);
		if (i == 0 || s.after - s.before < best.after - best.before)
			best = s;
	}
	if (clock == CLOCK_REALTIME)
		sandwich_close(&best);
	return best;
}

void ktrxer_clock_pair_read_sized(struct ktrxer_clock_pair *to, size_t size)
{
	struct ktrxer_clock_pair pair;
	struct sandwich s;
	int64_t width;

	if (!to)
		return;
	s = sandwich_take(CLOCK_REALTIME, 5);
	width = s.after - s.before;
	pair.mono_ns = (uint64_t)(s.before + width / 2);
	pair.real_ns = s.real;
	/* + 1: each of the two clocks is rounded to nanoseconds */
	pair.bound_ns = width / 2 + 1 > UINT32_MAX ? UINT32_MAX : (uint32_t)(width / 2 + 1);
	ktrxer_result_write(to, size, &pair, sizeof pair);
}

static void map_restart(struct ktrxer_clock_map *map, const struct sandwich *s)
{
	map->low_ns = s->real - s->after - 1;
	map->high_ns = s->real - s->before + 1;
	map->sampled_ns = (uint64_t)s->after;
}

int64_t ktrxer_clock_map_offset(const struct ktrxer_clock_map *map)
{
	return map->low_ns + (map->high_ns - map->low_ns) / 2;
}

void ktrxer_clock_map_init(struct ktrxer_clock_map *map)
{
	ktrxer_clock_map_init_of(map, CLOCK_REALTIME);
}

void ktrxer_clock_map_init_of(struct ktrxer_clock_map *map, clockid_t clock)
{
	struct sandwich s = sandwich_take(clock, 16);

	map->clock = clock;
	map->steps = 0;
	map->stepped_ns = 0;
	map_restart(map, &s);
	map->last_ns = ktrxer_clock_map_offset(map);
}

bool ktrxer_clock_map_sample(struct ktrxer_clock_map *map)
{
	struct sandwich s = sandwich_take(map->clock, 1);
	int64_t low = s.real - s.after - 1, high = s.real - s.before + 1;
	const uint64_t last_ns = map->sampled_ns;

	map->sampled_ns = (uint64_t)s.after;
	if (low > map->high_ns || high < map->low_ns) {
		map->unstepped_ns = last_ns;
		map->last_ns = ktrxer_clock_map_offset(map);
		map->steps++;
		map->stepped_ns = map->sampled_ns;
		s = sandwich_take(map->clock, 16);
		map_restart(map, &s);
		return true;
	}
	if (low > map->low_ns)
		map->low_ns = low;
	if (high < map->high_ns)
		map->high_ns = high;
	return false;
}

bool ktrxer_clock_map_refresh(struct ktrxer_clock_map *map, uint64_t now_ns, uint64_t age_ns)
{
	return now_ns - map->sampled_ns >= age_ns && ktrxer_clock_map_sample(map);
}

uint32_t ktrxer_clock_map_bound(const struct ktrxer_clock_map *map)
{
	int64_t half = (map->high_ns - map->low_ns + 1) / 2;

	return half > UINT32_MAX ? UINT32_MAX : half < 1 ? 1 : (uint32_t)half;
}

uint32_t ktrxer_clock_map_step(const struct ktrxer_clock_map *map)
{
	const int64_t step = ktrxer_clock_map_offset(map) - map->last_ns;
	const uint64_t size = (uint64_t)(step < 0 ? -step : step) + ktrxer_clock_map_bound(map);

	return size > UINT32_MAX ? UINT32_MAX : (uint32_t)size;
}

uint64_t ktrxer_clock_map_mono(const struct ktrxer_clock_map *map, int64_t real_ns)
{
	return (uint64_t)(real_ns - ktrxer_clock_map_offset(map));
}

static uint64_t distance(uint64_t t, uint64_t earliest, uint64_t latest)
{
	return t < earliest ? earliest - t : t > latest ? t - latest : 0;
}

/* Clocks without a fine counter tick in microseconds; a stamp may lie that far outside for no other reason. */
#define GRAIN_NS 1000

struct choice {
	uint64_t now, before;
	bool can_now, can_before;
};

static struct choice choose(const struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest, uint64_t latest)
{
	struct choice c = { .now = ktrxer_clock_map_mono(map, real_ns), .before = (uint64_t)(real_ns - map->last_ns) };
	const uint64_t slack = ktrxer_clock_map_bound(map) + GRAIN_NS;

	c.can_now = distance(c.now, earliest, latest) <= slack && (!map->steps || c.now + slack >= map->unstepped_ns);
	c.can_before =
		distance(c.before, earliest, latest) <= slack && map->steps && c.before <= map->stepped_ns + slack;
	return c;
}

uint64_t ktrxer_clock_map_mono_within(const struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest_ns,
				      uint64_t latest_ns)
{
	const struct choice c = choose(map, real_ns, earliest_ns, latest_ns);
	const uint64_t now_off = distance(c.now, earliest_ns, latest_ns),
		       before_off = distance(c.before, earliest_ns, latest_ns);

	if (c.can_now != c.can_before)
		return c.can_now ? c.now : c.before;
	if (now_off == before_off)
		return ktrxer_clock_map_stepped(map, latest_ns) && c.before > c.now ? c.before : c.now;
	return before_off < now_off ? c.before : c.now;
}

static bool decided(const struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest, uint64_t latest)
{
	const struct choice c = choose(map, real_ns, earliest, latest);
	const uint64_t apart = c.now > c.before ? c.now - c.before : c.before - c.now;

	return c.can_now && c.can_before ? apart <= GRAIN_NS : c.can_now || c.can_before;
}

bool ktrxer_clock_map_mono_checked(struct ktrxer_clock_map *map, int64_t real_ns, uint64_t earliest_ns,
				   uint64_t latest_ns, uint64_t *mono_ns)
{
	*mono_ns = ktrxer_clock_map_mono_within(map, real_ns, earliest_ns, latest_ns);
	if (decided(map, real_ns, earliest_ns, latest_ns))
		return true;
	if (!ktrxer_clock_map_sample(map))
		return false;
	*mono_ns = ktrxer_clock_map_mono_within(map, real_ns, earliest_ns, latest_ns);
	return decided(map, real_ns, earliest_ns, latest_ns);
}
