/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "schedmap.h"

#include <errno.h>
#include <stdlib.h>

struct schedmap_call {
	uint64_t call_ns, after_ns;
	uint32_t first, count;
	uint32_t matched; /* probes of the call with a stamp */
	uint32_t refused; /* datagrams refused before this call, whose stamp was not seen */
};

struct schedmap_key {
	uint32_t key, probe;
	bool used;
};

int ktrxer_schedmap_init(struct schedmap *map, uint32_t size)
{
	*map = (struct schedmap){ .mask = size - 1 };
	map->calls = calloc(size, sizeof *map->calls);
	map->keys = calloc(size, sizeof *map->keys);
	if (map->calls && map->keys)
		return 0;
	ktrxer_schedmap_free(map);
	return -ENOMEM;
}

void ktrxer_schedmap_free(struct schedmap *map)
{
	free(map->calls);
	free(map->keys);
	map->calls = NULL;
	map->keys = NULL;
}

void ktrxer_schedmap_sent(struct schedmap *map, uint32_t first, uint32_t count, uint64_t call_ns, uint64_t after_ns)
{
	map->calls[map->end++ & map->mask] = (struct schedmap_call){
		.call_ns = call_ns, .after_ns = after_ns, .first = first, .count = count, .refused = map->refused
	};
	map->refused = 0;
	if (map->end - map->begin > map->mask)
		map->begin = map->end - map->mask;
}

void ktrxer_schedmap_refused(struct schedmap *map)
{
	map->refused++;
}

static struct schedmap_call *oldest(struct schedmap *map)
{
	return map->begin == map->end ? NULL : &map->calls[map->begin & map->mask];
}

static bool take(struct schedmap *map, struct schedmap_call *call, uint32_t key, uint32_t *probe)
{
	*probe = call->first + call->matched;
	map->keys[key & map->mask] = (struct schedmap_key){ .key = key, .probe = *probe, .used = true };
	map->next_key = key + 1;
	map->was_refused = false;
	if (++call->matched == call->count)
		map->begin++;
	return true;
}

/* Takes the stamp of a datagram that the queue refused. */
static bool take_refused(struct schedmap *map, struct schedmap_call *next, uint32_t key)
{
	uint32_t *refused = next ? &next->refused : &map->refused;

	if (*refused)
		--*refused;
	map->next_key = key + 1;
	map->was_refused = true;
	return false;
}

/*
 * Whether the next number identifies the oldest probe, whatever the time of its stamp. False beside a refusal, and
 * where that time is neither of its call nor after all calls. Where devices are stacked, a stamp after the call may be
 * the second one, and the first one lost.
 */
static bool follows(const struct schedmap *map, const struct schedmap_call *call, uint64_t early, uint64_t late)
{
	const struct schedmap_call *newest = &map->calls[(map->end - 1) & map->mask];

	if (map->refused || map->was_refused || call->refused || late < call->call_ns)
		return false;
	return early <= call->after_ns || (!map->stacked && early > newest->after_ns);
}

bool ktrxer_schedmap_sched(struct schedmap *map, uint32_t key, uint64_t stamp_ns, uint32_t bound_ns, uint32_t *probe)
{
	/* Newer kernels reuse the number of a refused datagram. */
	const bool again = map->was_refused && key + 1 == map->next_key;
	const int32_t ahead = again ? 0 : (int32_t)(key - map->next_key);
	int32_t skipped = 0;
	struct schedmap_call *call = oldest(map);
	const uint64_t late = stamp_ns + bound_ns, early = stamp_ns > bound_ns ? stamp_ns - bound_ns : 0;

	if (call && !ahead && follows(map, call, early, late))
		return take(map, call, key, probe);
	/* A device above this one has stamped the datagram already. */
	if (ahead < 0) {
		map->stacked = true;
		return false;
	}
	while (call && call->after_ns < early) { /* its stamps were lost */
		skipped += (int32_t)(call->count - call->matched);
		map->begin++;
		call = oldest(map);
	}
	/* Each probe has a number: this one belongs to a probe that was skipped. */
	if (skipped > ahead + map->was_refused)
		return false;
	if (!call || late < call->call_ns)
		return again ? false : take_refused(map, call, key);
	if (call->count > 1 && ahead) {
		/* Some stamps of the call were lost. After its first stamp the numbers identify their probes. */
		if (!call->matched || call->matched + (uint32_t)ahead >= call->count) {
			map->begin++;
			map->next_key = key + 1;
			return false;
		}
		call->matched += (uint32_t)ahead;
	}
	return take(map, call, key, probe);
}

bool ktrxer_schedmap_driver(const struct schedmap *map, uint32_t key, uint32_t *probe)
{
	const struct schedmap_key *known = &map->keys[key & map->mask];

	*probe = known->probe;
	return known->used && known->key == key;
}
