/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "hop_queues.h"

#include "error_bound.h"
#include "estimate_sort.h"

#include <errno.h>
#include <math.h>

#define NORMAL_QUANTILE 2.5758293035489004 /* of HOP_QUEUES_LEVEL, both sides */

struct median {
	size_t count;
	int64_t value, uncertainty;
};

static struct median median_of(int64_t *values, size_t count)
{
	struct median m = { .count = count };
	struct bound_ranks ranks;
	int64_t low, high;

	if (!bound_sampling_ranks(&ranks, count, NORMAL_QUANTILE))
		return m;
	estimate_sort(values, count);
	m.value = (values[(count - 1) / 2] + values[count / 2]) / 2;
	low = m.value - values[ranks.low - 1];
	high = values[ranks.high - 1] - m.value;
	m.uncertainty = low > high ? low : high;
	return m;
}

/* The median of hop minus base, over the repetitions with both answers. Without a base: of the hop alone. */
static struct median difference(const int64_t *hop, const int64_t *base, size_t count, int64_t *room)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if ((hop && hop[i] < 0) || (base && base[i] < 0))
			continue;
		room[n++] = (hop ? hop[i] : 0) - (base ? base[i] : 0);
	}
	return median_of(room, n);
}

static int64_t both(int64_t a, int64_t b)
{
	return llround(sqrt((double)a * (double)a + (double)b * (double)b));
}

static void hop_alone(struct hop_queue *q, const struct hop_times *hop, size_t idle_count, size_t loaded_count,
		      int64_t *room)
{
	const struct median idle = difference(hop->idle_ns, NULL, idle_count, room),
			    loaded = difference(hop->loaded_ns, NULL, loaded_count, room);

	*q = (struct hop_queue){ .idle_answers = idle.count,
				 .loaded_answers = loaded.count,
				 .known = idle.count >= HOP_QUEUES_LEAST && loaded.count >= HOP_QUEUES_LEAST };
	if (!q->known)
		return;
	q->idle_ns = idle.value;
	q->loaded_ns = loaded.value;
	q->added_ns = loaded.value - idle.value;
	q->added_uncertainty_ns = both(idle.uncertainty, loaded.uncertainty);
}

/* The hop with the least added delay from `hop` on: the delay that is added before `hop` is at most that. */
static size_t least_from(const struct hop_queue *queues, size_t count, size_t hop)
{
	size_t least = hop;

	for (size_t i = hop + 1; i < count; i++)
		if (queues[i].known && queues[i].added_ns <= queues[least].added_ns)
			least = i;
	return least;
}

static void queue_set(struct hop_queue *q, int64_t queue_ns, int64_t uncertainty_ns)
{
	q->measured = true;
	q->queue_ns = queue_ns > 0 ? queue_ns : 0;
	q->queue_uncertainty_ns = uncertainty_ns;
	q->fills = queue_ns > HOP_QUEUES_FLOOR_NS && queue_ns > uncertainty_ns;
}

int hop_queues_estimate(const struct hop_times *hops, size_t count, size_t idle_count, size_t loaded_count,
			struct hop_queue *queues, size_t *fullest)
{
	const size_t most = idle_count > loaded_count ? idle_count : loaded_count;
	int64_t *room = malloc((most ? most : 1) * sizeof *room);
	size_t after = 0;

	if (!room)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		hop_alone(&queues[i], &hops[i], idle_count, loaded_count, room);
	if (queues[0].known)
		queue_set(&queues[0], queues[0].added_ns, queues[0].added_uncertainty_ns);
	for (size_t i = 1; i < count; i++) {
		struct median idle, loaded;
		size_t far, near;

		if (!queues[i].known)
			continue;
		far = least_from(queues, count, i);
		near = queues[after].known ? least_from(queues, count, after) : after;
		/* The answers of the hop before are slower under load than those of a hop behind it. */
		if (near >= i)
			near = after;
		idle = difference(hops[far].idle_ns, hops[near].idle_ns, idle_count, room);
		loaded = difference(hops[far].loaded_ns, hops[near].loaded_ns, loaded_count, room);
		queues[i].after = after;
		after = i;
		if (idle.count >= HOP_QUEUES_LEAST && loaded.count >= HOP_QUEUES_LEAST)
			queue_set(&queues[i], loaded.value - idle.value, both(idle.uncertainty, loaded.uncertainty));
		else /* too few repetitions have both answers, as where routers limit them: the hops apart */
			queue_set(&queues[i], queues[far].added_ns - queues[near].added_ns,
				  both(queues[far].added_uncertainty_ns, queues[near].added_uncertainty_ns));
	}
	*fullest = count;
	for (size_t i = 0; i < count; i++)
		if (queues[i].fills && (*fullest == count || queues[i].queue_ns > queues[*fullest].queue_ns))
			*fullest = i;
	for (size_t i = 0; *fullest < count && i < count; i++)
		queues[i].fills &= queues[i].queue_ns > queues[*fullest].queue_ns / HOP_QUEUES_SHARE;
	free(room);
	return 0;
}
