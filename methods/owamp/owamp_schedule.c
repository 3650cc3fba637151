/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_schedule.h"

#include "wide.h"

#include <errno.h>
#include <string.h>

#define LATEST (1ULL << 63) /* 2^31 s */

int owamp_schedule_begin(struct owamp_schedule *s, const uint8_t sid[OWAMP_SID], const struct owamp_slot *slots,
			 uint32_t count)
{
	struct ktrxer_schedule_options o = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct ktrxer_error err;

	*s = (struct owamp_schedule){ .count = count };
	if (!count || count > OWAMP_SLOTS_MOST)
		return -EINVAL;
	for (uint32_t i = 0; i < count; i++) {
		if (slots[i].type > OWAMP_SLOT_FIXED)
			return -EINVAL;
		s->slots[i] = slots[i];
	}
	/* With a mean gap of 2^32 ns the times are the sums of the deviates themselves, in 2^-32. */
	o.kind = KTRXER_SCHEDULE_POISSON;
	o.gap_num = 1ULL << 32;
	memcpy(o.seed, sid, OWAMP_SID);
	return ktrxer_schedule_new(&s->deviates, &o, &err);
}

int owamp_schedule_next(struct owamp_schedule *s, uint64_t *at)
{
	const struct owamp_slot *slot = &s->slots[s->next];
	uint64_t wait = slot->time;

	if (slot->type == OWAMP_SLOT_EXPONENTIAL) {
		struct ktrxer_deadline deviate;
		struct wide product;

		if (ktrxer_schedule_next(s->deviates, &deviate) < 0)
			return -EOVERFLOW;
		product = wide_multiply(deviate.at_ns - s->last, slot->time);
		s->last = deviate.at_ns;
		if (product.high >> 32)
			return -EOVERFLOW;
		wait = product.high << 32 | product.low >> 32;
	}
	if (wait >= LATEST || s->at + wait >= LATEST)
		return -EOVERFLOW;
	s->at += wait;
	s->next = (s->next + 1) % s->count;
	*at = s->at;
	return 0;
}

void owamp_schedule_end(struct owamp_schedule *s)
{
	ktrxer_schedule_free(s->deviates);
	s->deviates = NULL;
}
