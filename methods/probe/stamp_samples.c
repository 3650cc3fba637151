/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_samples.h"

#include <stdlib.h>

enum { ROOM = 1 << 18 }; /* 8 MiB at most */

struct kept {
	uint64_t t1;
	int64_t up, down;
	uint32_t segment, trip; /* trip: T4 - T1 in 256 ns, for the time of the answer */
};

struct stamp_samples {
	struct kept *kept;
	uint32_t count, room;
	uint64_t seen, stride, resolution;
};

struct stamp_samples *stamp_samples_new(void)
{
	struct stamp_samples *s = calloc(1, sizeof *s);

	if (s) {
		s->stride = 1;
		s->resolution = KTRXER_NS_PER_MS;
	}
	return s;
}

void stamp_samples_free(struct stamp_samples *s)
{
	if (!s)
		return;
	free(s->kept);
	free(s);
}

static bool room_make(struct stamp_samples *s)
{
	uint32_t room = s->room ? 2 * s->room : 1024;
	struct kept *kept;

	if (s->room == ROOM) {
		for (uint32_t i = 0; i < s->count / 2; i++)
			s->kept[i] = s->kept[2 * i];
		s->count /= 2;
		s->stride *= 2;
		return true;
	}
	kept = realloc(s->kept, room * sizeof *kept);
	if (!kept)
		return false;
	s->kept = kept;
	s->room = room;
	return true;
}

bool stamp_samples_add(struct stamp_samples *s, const struct stamp_sample *p, uint32_t segment)
{
	while (s->resolution > 1 && (p->t2_real_ns % (int64_t)s->resolution || p->t3_real_ns % (int64_t)s->resolution))
		s->resolution /= 1000;
	if (s->seen++ % s->stride)
		return true;
	if (s->count == s->room && !room_make(s))
		return false;
	s->kept[s->count++] = (struct kept){ p->t1_ns, p->up_ns, p->down_ns, segment, (uint32_t)((p->t4_ns - p->t1_ns) >> 8) };
	return true;
}

uint64_t stamp_samples_stride(const struct stamp_samples *s)
{
	return s->stride;
}

uint64_t stamp_samples_resolution(const struct stamp_samples *s)
{
	return s->seen < 8 ? 1 : s->resolution;
}

void stamp_samples_delays(const struct stamp_samples *s, uint32_t segment, const struct clockest_result *clock,
			  struct ktrxer_hist *up, struct ktrxer_hist *down)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const struct kept *k = &s->kept[i];

		if (k->segment != segment)
			continue;
		ktrxer_hist_record(up, k->up - clockest_offset_at(clock, k->t1));
		ktrxer_hist_record(down, k->down + clockest_offset_at(clock, k->t1 + ((uint64_t)k->trip << 8)));
	}
}
