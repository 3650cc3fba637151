/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "rate_search.h"

enum { BACK = 3 /* times the fast step */, RETRY_AFTER = 5 };

void rate_search_begin(struct rate_search *s, const struct rate_search_options *options, uint32_t index)
{
	*s = (struct rate_search){ .options = *options, .retry_after = RETRY_AFTER };
	s->index = index < options->last ? index : options->last;
}

static void up_fast(struct rate_search *s)
{
	const struct rate_search_options *o = &s->options;

	if (o->algorithm == RATE_SEARCH_B) {
		s->index = s->index + o->delta > o->high_speed ? o->high_speed : s->index + o->delta;
	} else if (s->index * 2 > o->high_speed) {
		s->index = o->high_speed;
	} else {
		s->index += !s->index;
		if (s->doubles)
			s->index *= 2;
		s->doubles = !s->doubles;
	}
	if (s->index > o->last)
		s->index = o->last;
	s->slow = 0;
}

/* Algorithm C: after so many small steps the next one is fast again. */
static void retry_later(struct rate_search *s, uint32_t more)
{
	if (s->options.algorithm != RATE_SEARCH_C || ++s->retry < s->retry_after)
		return;
	s->slow = 0;
	s->retry = 0;
	s->retry_after += more;
}

void rate_search_step(struct rate_search *s, const struct rate_search_feedback *f)
{
	const struct rate_search_options *o = &s->options;
	const uint64_t errors = f->lost + (o->ignore_reordering ? 0 : f->reordered + f->duplicates);
	const uint32_t delay_ms = f->delay_known ? f->delay_ms : o->low_ms; /* unknown: no reason to change the rate */

	if (errors <= o->sequence_errors && delay_ms < o->low_ms) {
		if (s->index < o->high_speed && s->slow < o->slow_after) {
			up_fast(s);
		} else if (s->index < o->last) {
			s->index++;
			retry_later(s, RETRY_AFTER);
		}
	} else if (errors > o->sequence_errors || delay_ms > o->upper_ms) {
		s->impairments++;
		s->slow++;
		if (s->index < o->high_speed && s->slow == o->slow_after) {
			s->index = s->index > o->delta * BACK ? s->index - o->delta * BACK : 0;
		} else if (s->index) {
			s->index--;
			retry_later(s, 0);
		}
	}
}
