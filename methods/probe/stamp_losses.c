/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_losses.h"

#include "sequence_set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * An answer with a smaller count that the reflector received later by more than this is of a new start. T2 of one flow
 * is in its order, but for this.
 */
#define ANEW_NS 20000

int stamp_losses_new(struct stamp_losses *l, uint32_t window)
{
	memset(l, 0, sizeof *l);
	l->bits = window < 512 ? 1024 : 2 * window; /* copies have counts, too */
	l->seen = calloc(l->bits / 64, sizeof *l->seen);
	l->epoch.highest = l->epoch.copies_at = -1;
	return l->seen ? 0 : -ENOMEM;
}

void stamp_losses_free(struct stamp_losses *l)
{
	free(l->seen);
}

/* Finds the number near `near` whose low 32 bits these are. */
static int64_t unfold(uint32_t low, int64_t near)
{
	const int64_t number = near + (int32_t)(low - (uint32_t)near);

	return number < 0 ? low : number;
}

static uint64_t missing_of(const struct stamp_epoch *e)
{
	const uint64_t arrived = e->highest < 0 ? 0 : (uint64_t)(e->highest + 1 - e->base);

	return arrived > e->distinct ? arrived - e->distinct : 0;
}

/* Of what it counted before our first probe, some were copies; and it does not know what its predecessor received. */
static bool copies_known(const struct stamp_epoch *e)
{
	return !e->number && !e->base && e->copies_at == e->highest;
}

static uint64_t missing_copies_of(const struct stamp_epoch *e)
{
	const uint64_t missing = missing_of(e);
	const uint64_t copies = copies_known(e) && e->copies > e->copies_seen ? e->copies - e->copies_seen : 0;

	return copies < missing ? copies : missing;
}

static void epoch_end(struct stamp_losses *l)
{
	const struct stamp_epoch *e = &l->epoch;

	l->missing += missing_of(e);
	l->missing_copies += missing_copies_of(e);
	l->missing_open += copies_known(e) ? 0 : missing_of(e);
	l->past_highest = e->highest;
	l->past_real_ns = e->highest_real_ns;
	memset(l->seen, 0, l->bits / 8);
	l->epoch = (struct stamp_epoch){
		.number = e->number + 1, .highest = -1, .copies_at = -1, .highest_probe = e->highest_probe
	};
}

/* A count is noted; false: it was there before. */
static bool note(struct stamp_losses *l, int64_t count, int64_t real_ns)
{
	struct stamp_epoch *e = &l->epoch;

	if (e->highest < 0)
		l->next = (uint32_t)count;
	if (sequence_add(l->seen, l->bits, &l->next, (uint32_t)count) == SEQUENCE_SEEN)
		return false;
	if (e->highest < 0 || count < e->first) {
		e->first = count;
		e->first_real_ns = real_ns;
	}
	if (count > e->highest) {
		e->highest = count;
		e->highest_real_ns = real_ns;
	}
	if (count < e->base)
		e->base = count;
	e->distinct++;
	return true;
}

static bool seen_before(const struct stamp_losses *l, int64_t count)
{
	return l->epoch.highest - count < l->bits && l->seen[(uint32_t)count % l->bits / 64] >> (count % 64) & 1;
}

/*
 * Received by the reflector before the first request of this epoch: an answer of the epoch before, overtaken by those
 * of this one.
 */
static bool is_past(const struct stamp_losses *l, const struct stamp_counted *a, int64_t count)
{
	return l->epoch.number && a->received_real_ns < l->epoch.first_real_ns &&
	       (count > l->epoch.first || a->received_real_ns <= l->past_real_ns);
}

static void take_past(struct stamp_losses *l, uint32_t seq)
{
	const int64_t count = unfold(seq, l->past_highest);

	if (count > l->past_highest) {
		l->missing += (uint64_t)(count - l->past_highest - 1);
		l->missing_open += (uint64_t)(count - l->past_highest - 1);
		l->past_highest = count;
		return;
	}
	l->missing -= l->missing > 0;
	l->missing_open = l->missing_open < l->missing ? l->missing_open : l->missing;
	l->missing_copies = l->missing_copies < l->missing ? l->missing_copies : l->missing;
}

enum stamp_counted_as stamp_losses_first(struct stamp_losses *l, const struct stamp_counted *a,
					 struct stamp_place *place)
{
	struct stamp_epoch *e = &l->epoch;
	enum stamp_counted_as as = STAMP_COUNTED;
	int64_t count = unfold(a->seq, e->highest >= 0 ? e->highest : (int64_t)a->number);

	l->stateful |= a->seq != (uint32_t)a->number;
	*place = (struct stamp_place){ .count = a->seq, .epoch = e->number - 1 };
	if (is_past(l, a, count)) {
		take_past(l, a->seq);
		return STAMP_COUNTED_DOWN;
	}
	/* A stateless reflector repeats the number of the probe (RFC 8762, 4.2), which is no count. */
	if (count < e->highest && !l->stateful && !seen_before(l, count)) {
		if (a->received_real_ns > e->highest_real_ns)
			as = STAMP_COUNTED_UP;
	} else if (count < e->highest &&
		   (seen_before(l, count) || a->received_real_ns > e->highest_real_ns + ANEW_NS)) {
		as = STAMP_COUNTED_ANEW;
		place->unplaced = true;
		epoch_end(l);
		count = a->seq;
	}
	/* It has counted others before us. */
	if (e->highest < 0 && !e->number && count > (int64_t)a->number) {
		e->base = count;
		place->unplaced = true;
	}
	if (as == STAMP_COUNTED && count < e->highest)
		as = STAMP_COUNTED_DOWN;
	note(l, count, a->received_real_ns);
	if (a->number >= e->highest_probe)
		e->highest_probe = a->number + 1;
	place->count = count;
	place->epoch = e->number;
	return as;
}

bool stamp_losses_again(struct stamp_losses *l, const struct stamp_counted *a, struct stamp_place *place)
{
	const int64_t count = unfold(a->seq, l->epoch.highest);

	if ((uint32_t)place->count == a->seq || (!l->stateful && a->seq == (uint32_t)a->number))
		return false;
	l->stateful = true;
	if (is_past(l, a, count))
		take_past(l, a->seq);
	else if (!note(l, count, a->received_real_ns))
		return false;
	else if (place->epoch == l->epoch.number)
		l->epoch.copies_seen++;
	place->count = count;
	l->copies_up = true;
	return true;
}

void stamp_losses_copies(struct stamp_losses *l, const struct stamp_place *place, uint32_t copies)
{
	if (place->epoch != l->epoch.number || place->count < l->epoch.copies_at)
		return;
	l->epoch.copies_at = place->count;
	l->epoch.copies = copies;
}

struct stamp_split stamp_losses_split(const struct stamp_losses *l, uint64_t lost, uint64_t open, uint64_t closing)
{
	const struct stamp_epoch *e = &l->epoch;
	const uint64_t missing = l->missing + missing_of(e), copies = l->missing_copies + missing_copies_of(e);
	const uint64_t uncounted = l->missing_open + (copies_known(e) ? 0 : missing_of(e));
	/* A base of 0 after all, and no restart: each count is ours. */
	const uint64_t unplaced = e->number || e->base ? l->unplaced : 0,
		       down_most = missing - copies + unplaced + open;
	struct stamp_split split = { 0 };
	uint64_t doubtful = copies + closing;

	/* More answers are missing than probes: copies, although none was seen. */
	if (l->copies_up || missing - copies > lost + closing)
		doubtful += uncounted;
	split.down = missing > doubtful ? missing - doubtful : 0;
	if (split.down > lost)
		split.down = lost;
	split.up = lost > down_most ? lost - down_most : 0;
	split.unknown = lost - split.down - split.up;
	return split;
}
