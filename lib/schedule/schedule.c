/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * When probes are due. Times are kept as whole nanoseconds and an exact remainder, never as a sum of rounded gaps, so
 * the millionth deadline is as good as the first.
 *
 *   periodic  train i begins at start + floor(i * num / den).
 *   Poisson   train i begins at start + floor(S * num / den), S the exact sum of its first i + 1 deviates (32.32): also
 *             the first one waits, for a process that begins with an event is not Poisson. A train that is due before
 *             the one ahead of it has ended waits for its end (PASTA holds for the times of the schedule, not for such
 *             a train); nothing else moves.
 *   list      train i begins at start + offset i.
 *
 * Deadlines never decrease. They are rounded down, once, at the end: early by less than a nanosecond, never late.
 */
#include "error.h"
#include "options.h"
#include "poisson.h"
#include "wide.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { KTRXER_TRAIN_MAX = 1 << 20 };

struct ktrxer_schedule {
	enum ktrxer_schedule_kind kind;
	uint32_t train;
	uint64_t train_gap;
	uint64_t start;
	uint64_t whole, part, den; /* mean gap in ns = whole + part / den, part < den */

	uint64_t at;       /* the schedule's own time of the present train, whole ns since start */
	uint64_t fraction; /* Poisson: and this many 2^-32 ns */
	uint64_t rest;     /* and rest / den of the unit above (periodic: ns, Poisson: 2^-32 ns) */
	struct poisson poisson;
	const uint64_t *offsets;
	uint64_t offset_count, offset_next;

	uint64_t last; /* the deadline before this one */
	uint64_t index;
	uint32_t place; /* in the train */
	int end;        /* 0, or what every further call returns */
};

static uint64_t train_length(const struct ktrxer_schedule *schedule)
{
	return (schedule->train - 1) * schedule->train_gap;
}

static int check_list(const struct ktrxer_schedule *schedule, struct ktrxer_error *err)
{
	const uint64_t *at = schedule->offsets;
	uint64_t length = train_length(schedule);

	if (!at || !schedule->offset_count)
		return ktrxer_fail(err, -EINVAL, "schedule: the list has no offsets; give at least one");
	for (uint64_t i = 1; i < schedule->offset_count; i++) {
		if (at[i] < at[i - 1])
			return ktrxer_fail(err, -EINVAL,
					   "schedule: offset %" PRIu64 " of the list (%" PRIu64
					   " ns) comes before the one ahead of it (%" PRIu64 " ns); sort them",
					   i + 1, at[i], at[i - 1]);
		if (at[i] - at[i - 1] < length)
			return ktrxer_fail(err, -EINVAL,
					   "schedule: a train lasts %" PRIu64 " ns, but offset %" PRIu64
					   " of the list is only %" PRIu64 " ns after the one ahead of it",
					   length, i + 1, at[i] - at[i - 1]);
	}
	return 0;
}

static int set_up(struct ktrxer_schedule *schedule, const struct ktrxer_schedule_options *options,
		  struct ktrxer_error *err)
{
	uint64_t divisor, length;

	if (options->train > KTRXER_TRAIN_MAX)
		return ktrxer_fail(err, -EINVAL, "schedule: a train of %" PRIu32 " probes; the most is %d",
				   options->train, KTRXER_TRAIN_MAX);
	schedule->kind = options->kind;
	schedule->start = options->start_ns;
	schedule->train = options->train ? options->train : 1;
	schedule->train_gap = options->train_gap_ns;
	if (__builtin_mul_overflow((uint64_t)(schedule->train - 1), schedule->train_gap, &length))
		return ktrxer_fail(err, -EINVAL,
				   "schedule: a train of %" PRIu32 " probes %" PRIu64 " ns apart lasts for centuries",
				   schedule->train, schedule->train_gap);

	switch (options->kind) {
	case KTRXER_SCHEDULE_LIST:
		schedule->offsets = options->offsets_ns;
		schedule->offset_count = options->offsets;
		return check_list(schedule, err);
	case KTRXER_SCHEDULE_PERIODIC:
	case KTRXER_SCHEDULE_POISSON:
		break;
	default:
		return ktrxer_fail(err, -EINVAL, "schedule: kind %d is unknown", (int)options->kind);
	}

	if (!options->gap_den || !options->gap_num)
		return ktrxer_fail(err, -EINVAL,
				   "schedule: a gap of %" PRIu64 "/%" PRIu64
				   " ns; it must be above zero (probes that leave as fast as "
				   "they can need no schedule)",
				   options->gap_num, options->gap_den);
	divisor = common_divisor(options->gap_num, options->gap_den);
	schedule->den = options->gap_den / divisor;
	schedule->whole = options->gap_num / options->gap_den;
	schedule->part = options->gap_num / divisor % schedule->den;
	if (options->kind == KTRXER_SCHEDULE_PERIODIC && length > schedule->whole)
		return ktrxer_fail(err, -EINVAL,
				   "schedule: a train lasts %" PRIu64 " ns, but the next one begins after %" PRIu64
				   " ns; fewer probes, a smaller gap in the train, or more time between trains",
				   length, schedule->whole);
	ktrxer_poisson_init(&schedule->poisson, options->seed);
	return 0;
}

int ktrxer_schedule_new(struct ktrxer_schedule **schedule, const struct ktrxer_schedule_options *given,
			struct ktrxer_error *err)
{
	struct ktrxer_schedule_options options;
	struct ktrxer_schedule *s;
	int ret;

	if (!schedule)
		return ktrxer_fail(err, -EINVAL, "ktrxer_schedule_new: no place for the schedule (NULL)");
	*schedule = NULL;
	ret = ktrxer_options_read(&options, sizeof(options), given,
				  offsetof(struct ktrxer_schedule_options, offsets) + sizeof(options.offsets),
				  "schedule", err);
	if (ret)
		return ret;
	s = calloc(1, sizeof(*s));
	if (!s)
		return ktrxer_fail(err, -ENOMEM, "schedule: out of memory");
	ret = set_up(s, &options, err);
	if (ret) {
		free(s);
		return ret;
	}
	*schedule = s;
	return 0;
}

void ktrxer_schedule_free(struct ktrxer_schedule *schedule)
{
	free(schedule);
}

static bool add(uint64_t *sum, uint64_t more)
{
	return !__builtin_add_overflow(*sum, more, sum);
}

static bool step_periodic(struct ktrxer_schedule *s)
{
	if (!add(&s->at, s->whole))
		return false;
	if (s->rest < s->den - s->part) { /* rest + part may pass 64 bits */
		s->rest += s->part;
		return true;
	}
	s->rest -= s->den - s->part;
	return add(&s->at, 1);
}

static bool step_poisson(struct ktrxer_schedule *s)
{
	uint64_t deviate = ktrxer_poisson_next(&s->poisson), more;
	struct wide units; /* of 2^-32 ns */

	/* deviate * part + rest < (deviate + 1) * den, so the quotient fits */
	more = wide_divide(wide_add(wide_multiply(deviate, s->part), s->rest), s->den, &s->rest);
	units = wide_multiply(deviate, s->whole);
	units = wide_add(wide_add(units, more), s->fraction);
	s->fraction = (uint32_t)units.low;
	return !(units.high >> 32) && add(&s->at, units.high << 32 | units.low >> 32);
}

/* The schedule's time of the next train, into s->at. */
static int step(struct ktrxer_schedule *s)
{
	switch (s->kind) {
	case KTRXER_SCHEDULE_PERIODIC:
		return s->index == 0 || step_periodic(s) ? 0 : -EOVERFLOW;
	case KTRXER_SCHEDULE_POISSON:
		return step_poisson(s) ? 0 : -EOVERFLOW;
	default:
		if (s->offset_next == s->offset_count)
			return -ENODATA;
		s->at = s->offsets[s->offset_next++];
		return 0;
	}
}

int ktrxer_schedule_next_sized(struct ktrxer_schedule *s, struct ktrxer_deadline *to, size_t size)
{
	struct ktrxer_deadline deadline;
	uint64_t at;

	if (!s || !to || !size)
		return -EINVAL;
	if (s->end)
		return s->end;
	if (s->place == 0) {
		s->end = step(s);
		if (s->end)
			return s->end;
		at = s->start;
		if (!add(&at, s->at))
			goto overflow;
		if (at < s->last)
			at = s->last; /* the train before is not over */
	} else {
		at = s->last;
		if (!add(&at, s->train_gap))
			goto overflow;
	}
	if (at == KTRXER_NEVER)
		goto overflow;

	s->last = at;
	s->place = s->place + 1 == s->train ? 0 : s->place + 1;
	deadline = (struct ktrxer_deadline){ .at_ns = at,
					     .index = s->index++,
					     .train_goes_on = s->place != 0 && s->train_gap == 0 };
	ktrxer_result_write(to, size, &deadline, sizeof deadline);
	return 0;

overflow:
	s->end = -EOVERFLOW;
	return s->end;
}
