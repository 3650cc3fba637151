/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "loss_directions.h"

#include <errno.h>
#include <stdlib.h>

/* Probes: up to this distance a reordered probe may affect the counts of others. */
enum { REACH = 100 };

static bool has_count(const struct loss_probe *p)
{
	return (p->state == LOSS_ANSWERED || p->state == LOSS_TOO_LATE) && p->count >= 0;
}

/* Numbers of a file of unknown origin: no difference may overflow. */
static bool is_far_before(int64_t a, int64_t b)
{
	return a < b && (uint64_t)b - (uint64_t)a > REACH;
}

static size_t next_counted(const struct loss_probe *probes, size_t count, size_t from, uint64_t *lost)
{
	*lost = 0;
	while (from < count && !has_count(&probes[from]))
		*lost += probes[from++].state == LOSS_LOST;
	return from;
}

/* A reflector that copies the probe's number cannot be distinguished from one that counts and received every probe. */
static bool counts_apart(const struct loss_probe *probes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (has_count(&probes[i]) && probes[i].count != probes[i].number)
			return true;
	return false;
}

/*
 * Numbers near which probes overtook each other: a count smaller than the one before, or more missing counts than
 * losses.
 */
static size_t find_overtaken(const struct loss_probe *probes, size_t count, int64_t *numbers)
{
	uint64_t lost;
	size_t a = next_counted(probes, count, 0, &lost), found = 0;

	if (a < count && (uint64_t)probes[a].count > lost)
		numbers[found++] = probes[a].number;
	while (a < count) {
		const size_t b = next_counted(probes, count, a + 1, &lost);

		if (b < count &&
		    (probes[b].count <= probes[a].count || (uint64_t)(probes[b].count - probes[a].count - 1) > lost))
			numbers[found++] = probes[b].number;
		a = b;
	}
	return found;
}

static void set(struct loss_probe *probes, size_t from, size_t to, enum loss_state before, enum loss_state after)
{
	for (size_t i = from; i < to; i++)
		if (probes[i].state == before)
			probes[i].state = after;
}

/*
 * The counts between two answers decide: as many missing counts as losses: all were lost down; none: all were lost up;
 * fewer: only their number is known.
 */
static void place(struct loss_probe *probes, size_t count, const int64_t *overtaken, size_t overtaken_count,
		  bool copied_up)
{
	uint64_t lost;
	size_t a = next_counted(probes, count, 0, &lost), near = 0;

	while (a < count) {
		const size_t b = next_counted(probes, count, a + 1, &lost);

		if (b == count)
			return;
		while (near < overtaken_count && is_far_before(overtaken[near], probes[a].number))
			near++;
		if (lost && (uint64_t)probes[b].number - (uint64_t)probes[a].number - 1 == lost &&
		    (near == overtaken_count || is_far_before(probes[b].number, overtaken[near]))) {
			const uint64_t missing = (uint64_t)(probes[b].count - probes[a].count - 1);

			if (!missing)
				set(probes, a + 1, b, LOSS_LOST, LOSS_UP);
			else if (missing == lost && !copied_up)
				set(probes, a + 1, b, LOSS_LOST, LOSS_DOWN);
		}
		a = b;
	}
}

static uint64_t count_of(const struct loss_probe *probes, size_t count, enum loss_state state)
{
	uint64_t found = 0;

	for (size_t i = 0; i < count; i++)
		found += probes[i].state == state;
	return found;
}

/* The session knows how many there were: what is left after the others belongs to one direction. */
static void agree(struct loss_probe *probes, size_t count, const struct loss_evidence *e)
{
	const uint64_t up = count_of(probes, count, LOSS_UP), down = count_of(probes, count, LOSS_DOWN),
		       left = count_of(probes, count, LOSS_LOST);

	if (!e->unknown && up + down + left == e->up + e->down) {
		if (down == e->down)
			set(probes, 0, count, LOSS_LOST, LOSS_UP);
		else if (up == e->up)
			set(probes, 0, count, LOSS_LOST, LOSS_DOWN);
	}
	if (e->withdraw && up > e->up)
		set(probes, 0, count, LOSS_UP, LOSS_LOST);
	if (e->withdraw && down > e->down)
		set(probes, 0, count, LOSS_DOWN, LOSS_LOST);
}

int loss_directions(struct loss_probe *probes, size_t count, const struct loss_evidence *e)
{
	int64_t *overtaken;
	size_t overtaken_count;

	if (e->reflector == LOSS_COUNTS || (e->reflector == LOSS_MAY_COUNT && counts_apart(probes, count))) {
		overtaken = malloc((count + 1) * sizeof *overtaken);
		if (!overtaken)
			return -ENOMEM;
		overtaken_count = find_overtaken(probes, count, overtaken);
		place(probes, count, overtaken, overtaken_count, e->copied_up);
		free(overtaken);
	}
	if (e->split)
		agree(probes, count, e);
	return 0;
}
