/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stampmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct stampmap_entry {
	uint64_t slot;
	uint64_t call_ns;
	uint64_t segment;
};

static struct stampmap_segment *segment_at(struct stampmap *map, uint64_t number)
{
	return &map->segments[number & (STAMPMAP_SEGMENTS - 1)];
}

static struct stampmap_entry *entry_at(struct stampmap *map, uint64_t probe)
{
	return &map->entries[probe & map->mask];
}

static void begin(struct stampmap *map, uint32_t base)
{
	map->base = base;
	map->next = map->withheld = 0;
	map->segment = 0;
	map->segments[0] = (struct stampmap_segment){ 0 };
	memset(map->marks, 0, sizeof(map->marks));
	map->unsettled = 0;
	map->lost = false;
}

int ktrxer_stampmap_init(struct stampmap *map, uint32_t size, uint32_t first_key)
{
	*map = (struct stampmap){ .mask = size - 1 };
	map->entries = calloc(size, sizeof(*map->entries));
	if (!map->entries)
		return -ENOMEM;
	begin(map, first_key);
	return 0;
}

void ktrxer_stampmap_free(struct stampmap *map)
{
	free(map->entries);
	map->entries = NULL;
}

void ktrxer_stampmap_sent(struct stampmap *map, uint64_t slot, uint64_t call_ns)
{
	*entry_at(map, map->next++) =
		(struct stampmap_entry){ .slot = slot, .call_ns = call_ns, .segment = map->segment };
	map->last_call_ns = call_ns;
	if (call_ns - map->marks[map->mark].call_ns > 2 * STAMPMAP_OLD_NS / STAMPMAP_MARKS) {
		map->mark = (map->mark + 1) % STAMPMAP_MARKS;
		map->marks[map->mark].probe = map->next - 1;
		map->marks[map->mark].call_ns = call_ns;
	}
}

static void may_have_shifted(struct stampmap *map, uint32_t count)
{
	struct stampmap_segment *now = segment_at(map, map->segment), *eldest;

	if (now->first != map->next) { /* else nothing was sent since the last refusal: the same segment */
		struct stampmap_segment fresh = { .first = map->next, .low = now->low, .high = now->high };

		map->segment++;
		now = segment_at(map, map->segment);
		*now = fresh;
		/* the segment that gave its place away is forgotten, and its probes with it */
		if (map->segment >= STAMPMAP_SEGMENTS) {
			eldest = segment_at(map, map->segment + 1);
			if (map->withheld < eldest->first)
				map->withheld = eldest->first;
		}
	}
	if (count > STAMPMAP_SPREAD || now->high + count - now->low > STAMPMAP_SPREAD) {
		map->lost = true;
		return;
	}
	now->step += count;
	now->high += count;
}

void ktrxer_stampmap_ambiguous(struct stampmap *map)
{
	may_have_shifted(map, 1);
}

/*
 * Something was seen that no hypothesis allows: the pending datagrams are given up. `missing`: how far the numbers ran
 * ahead.
 */
static bool contradicted(struct stampmap *map, uint64_t missing)
{
	map->contradictions++;
	map->unsettled = 0;
	map->withheld = map->next;
	may_have_shifted(map, missing > STAMPMAP_SPREAD ? STAMPMAP_SPREAD + 1 : (uint32_t)missing);
	return false;
}

static uint64_t eldest_segment(const struct stampmap *map)
{
	return map->segment < STAMPMAP_SEGMENTS ? 0 : map->segment - STAMPMAP_SEGMENTS + 1;
}

/*
 * The shift of one segment is known; its neighbours' bounds follow from the refusals between them. False: they cannot
 * be met.
 */
static bool settle(struct stampmap *map, uint64_t number, uint32_t shift)
{
	uint64_t eldest = eldest_segment(map);
	struct stampmap_segment *known = segment_at(map, number), *other;
	uint32_t bound;

	if (known->low == shift && known->high == shift)
		return true;
	known->low = known->high = shift;
	for (uint64_t i = number; i > eldest; i--) {
		known = segment_at(map, i);
		other = segment_at(map, i - 1);
		bound = known->low > known->step ? known->low - known->step : 0;
		if (other->low < bound)
			other->low = bound;
		if (other->high > known->high)
			other->high = known->high;
		if (other->low > other->high)
			return false;
	}
	for (uint64_t i = number; i < map->segment; i++) {
		known = segment_at(map, i);
		other = segment_at(map, i + 1);
		if (other->low < known->low)
			other->low = known->low;
		bound = known->high + other->step;
		if (other->high > bound)
			other->high = bound;
		if (other->low > other->high)
			return false;
	}
	return true;
}

/* From before the last reset, for certain or perhaps. */
static bool is_old(const struct stampmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns)
{
	uint64_t now = stamp_ns == KTRXER_NEVER ? map->last_call_ns : stamp_ns;

	if (!map->was_reset)
		return false;
	/* 0 is what a datagram of before got if its stamp was taken just while OPT_ID was off */
	if (key == map->base)
		return true;
	if (stamp_ns != KTRXER_NEVER && stamp_ns < map->reset_ns && map->reset_ns - stamp_ns > bound_ns)
		return true;
	return now < map->old_until_ns && (uint32_t)(key - map->old_first) < map->old_count;
}

static bool before_its_call(const struct stampmap_entry *entry, uint64_t stamp_ns, uint32_t bound_ns)
{
	return entry->call_ns > stamp_ns && entry->call_ns - stamp_ns > bound_ns;
}

static bool search(struct stampmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns, uint64_t *slot)
{
	const struct stampmap_segment *now = segment_at(map, map->segment), *segment;
	uint64_t size = (uint64_t)map->mask + 1, floor = map->next > size ? map->next - size : 0;
	uint64_t number, probe, hit = 0, hits = 0, early = 0;
	uint32_t lowest = now->low, highest = now->high;
	int64_t ahead;

	if (map->lost || is_old(map, key, stamp_ns, bound_ns))
		return false;
	if (floor < map->withheld)
		floor = map->withheld;

	/* the number in full width, nearest to the next probe's */
	number = map->next + now->low;
	ahead = (int32_t)(key - map->base - (uint32_t)number);
	if (ahead < 0 && (uint64_t)-ahead > number)
		return false;
	number += (uint64_t)ahead;

	if (number >= map->next + highest)
		return contradicted(map, number - (map->next + highest) + 1);
	if (floor < map->next) {
		segment = segment_at(map, entry_at(map, floor)->segment);
		lowest = segment->low;
		/* no probe below the floor can have a number from here on: shifts never fall */
		if (floor > 0 && number < floor + segment->high)
			return false;
	} else if (number < floor + highest) {
		return false;
	}

	for (uint64_t shift = lowest; shift <= highest && shift <= number; shift++) {
		probe = number - shift;
		if (probe >= map->next)
			continue;
		if (probe < floor)
			break;
		segment = segment_at(map, entry_at(map, probe)->segment);
		if (shift < segment->low || shift > segment->high)
			continue;
		if (before_its_call(entry_at(map, probe), stamp_ns, bound_ns)) {
			early++;
			continue;
		}
		hit = probe;
		hits++;
	}
	if (hits > 1) {
		map->unsettled++;
		return false;
	}
	if (!hits)
		return early ? contradicted(map, 1) : false; /* a refused datagram's number, if it was not too early */
	if (!settle(map, entry_at(map, hit)->segment, (uint32_t)(number - hit)))
		return contradicted(map, 1);
	map->unsettled = 0;
	*slot = entry_at(map, hit)->slot;
	return true;
}

bool ktrxer_stampmap_find(struct stampmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns, uint64_t *slot)
{
	bool found = search(map, key, stamp_ns, bound_ns, slot);

	if (found)
		map->found++;
	else
		map->withheld_stamps++;
	return found;
}

bool ktrxer_stampmap_wants_reset(const struct stampmap *map)
{
	return map->lost || map->unsettled >= STAMPMAP_PATIENCE;
}

static uint64_t first_on_its_way(const struct stampmap *map, uint64_t now_ns)
{
	uint64_t first = 0;

	for (int i = 0; i < STAMPMAP_MARKS; i++)
		if (now_ns - map->marks[i].call_ns > STAMPMAP_OLD_NS && map->marks[i].probe > first)
			first = map->marks[i].probe;
	return first;
}

void ktrxer_stampmap_reset(struct stampmap *map, uint64_t now_ns)
{
	const struct stampmap_segment *now = segment_at(map, map->segment);
	uint64_t end = map->next + now->high + (map->lost ? STAMPMAP_SPREAD : 0), first = first_on_its_way(map, now_ns);

	if (map->was_reset && now_ns < map->old_until_ns) {
		/* two generations on their way: both are counted from 0, so one range covers them */
		uint64_t old_end = (uint64_t)map->old_first + map->old_count;

		first = first < map->old_first ? first : map->old_first;
		end = end > old_end ? end : old_end;
	}
	map->old_first = map->base + (uint32_t)first;
	map->old_count = end - first > UINT32_MAX ? UINT32_MAX : (uint32_t)(end - first);
	map->was_reset = true;
	map->reset_ns = now_ns;
	map->old_until_ns = now_ns + STAMPMAP_OLD_NS;
	map->resets++;
	begin(map, 0);
}
