/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tcp_pair.h"

struct seen {
	const struct tcp_pair_answer *originals[2]; /* the first transmissions; NULL: did not arrive */
	uint8_t acknowledged;                       /* at last */
	bool bare;                                  /* an acknowledgement of both without data, no retransmission */
	bool again, earlier_again;                  /* retransmissions: any, of a segment before these two */
};

static struct seen look(const struct tcp_pair_answer *answers, size_t count)
{
	struct seen s = { 0 };

	for (size_t i = 0; i < count; i++) {
		const struct tcp_pair_answer *a = &answers[i];
		const bool data = a->data != TCP_PAIR_NO_DATA;

		if (a->acknowledged > s.acknowledged)
			s.acknowledged = a->acknowledged;
		if (a->again) {
			s.again |= data;
			s.earlier_again |= data && a->data < 0;
		} else if (!data) {
			s.bare |= a->acknowledged == 2;
		} else if ((a->data == 0 || a->data == 1) && !s.originals[a->data]) {
			s.originals[a->data] = a;
		}
	}
	return s;
}

bool tcp_pair_is_whole(const struct tcp_pair_answer *answers, size_t count)
{
	const struct seen s = look(answers, count);

	return s.originals[0] && s.originals[1] && s.acknowledged == 2;
}

/* No segment arrived in its first transmission. */
static enum tcp_pair_event up_without_originals(const struct seen *s)
{
	if (s->earlier_again)
		return s->acknowledged == 0   ? TCP_PAIR_BOTH_LOST
		       : s->acknowledged == 1 ? TCP_PAIR_SECOND_LOST
					      : TCP_PAIR_UNKNOWN;
	if (s->acknowledged == 2)
		/* Probes in order are acknowledged by the segments. */
		return s->bare ? TCP_PAIR_REORDERED : TCP_PAIR_COMPLETE;
	if (!s->again)
		return TCP_PAIR_UNKNOWN;
	return s->acknowledged == 0 ? TCP_PAIR_FIRST_LOST : TCP_PAIR_UNKNOWN;
}

static enum tcp_pair_event up_of(const struct seen *s)
{
	const struct tcp_pair_answer *first = s->originals[0] ? s->originals[0] : s->originals[1];

	if (!first)
		return up_without_originals(s);
	if (first->acknowledged == 0) {
		/* The second probe has let the server send both segments: the first probe came later, or never. */
		if (s->acknowledged == 2)
			return TCP_PAIR_REORDERED;
		return s->again && s->acknowledged == 0 ? TCP_PAIR_FIRST_LOST : TCP_PAIR_UNKNOWN;
	}
	if (first->acknowledged == 2 && first == s->originals[0])
		return TCP_PAIR_COMPLETE; /* the server waited with this segment */
	if (s->acknowledged == 2)
		return TCP_PAIR_IN_ORDER;
	/* Without the second probe there is no second segment. */
	return s->again && !s->originals[1] && first == s->originals[0] ? TCP_PAIR_SECOND_LOST : TCP_PAIR_UNKNOWN;
}

static enum tcp_pair_event down_of(const struct seen *s, enum tcp_pair_event up)
{
	const struct tcp_pair_answer *const *o = s->originals;

	if (up == TCP_PAIR_UNKNOWN || up == TCP_PAIR_BOTH_LOST)
		return TCP_PAIR_UNKNOWN;
	if (up == TCP_PAIR_SECOND_LOST)
		return o[0] ? TCP_PAIR_IN_ORDER : TCP_PAIR_FIRST_LOST;
	if (o[0] && o[1])
		return o[0] < o[1] ? TCP_PAIR_IN_ORDER : TCP_PAIR_REORDERED;
	if (!s->again)
		return TCP_PAIR_UNKNOWN; /* it may still come */
	return o[1] ? TCP_PAIR_FIRST_LOST : o[0] ? TCP_PAIR_SECOND_LOST : TCP_PAIR_BOTH_LOST;
}

void tcp_pair_read(const struct tcp_pair_answer *answers, size_t count, struct tcp_pair_result *result)
{
	const struct seen s = look(answers, count);

	result->up = up_of(&s);
	result->down = down_of(&s, result->up);
}
