/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tcp_pair.h"

#include "error_bound.h"

#include <math.h>

struct seen {
	const struct tcp_pair_answer *originals[2]; /* the first transmissions; NULL: did not arrive */
	uint8_t acknowledged;                       /* at last */
	/* Retransmissions: any, of a segment before these two, of the one before that. */
	bool again, earlier_again, oldest_again;
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
			s.oldest_again |= data && a->data < -1;
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
		/* An acknowledgement without data may also be an update of the server's window. */
		return TCP_PAIR_COMPLETE;
	if (!s->again)
		return TCP_PAIR_UNKNOWN;
	return s->acknowledged == 0 ? TCP_PAIR_FIRST_LOST : TCP_PAIR_UNKNOWN;
}

static enum tcp_pair_event up_of(const struct seen *s)
{
	const struct tcp_pair_answer *first = s->originals[0] ? s->originals[0] : s->originals[1];

	if (!first)
		return up_without_originals(s);
	/* The server's timer has ended before the pair came, and what it sent then follows other rules. */
	if (s->oldest_again || (s->earlier_again && s->acknowledged == 2))
		return TCP_PAIR_UNKNOWN;
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
	/* The second segment comes only with the second probe. */
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

static void count_event(struct tcp_pair_totals *t, enum tcp_pair_event event, uint64_t segments)
{
	if (event == TCP_PAIR_UNKNOWN)
		return;
	t->sent += segments;
	if (event == TCP_PAIR_BOTH_LOST)
		t->lost += segments;
	else if (event == TCP_PAIR_FIRST_LOST || event == TCP_PAIR_SECOND_LOST)
		t->lost++;
	else if (segments == 2 && event != TCP_PAIR_COMPLETE)
		t->ordered++;
	t->reordered += event == TCP_PAIR_REORDERED;
}

void tcp_pair_count(struct tcp_pair_totals totals[2], const struct tcp_pair_result *result)
{
	count_event(&totals[0], result->up, 2);
	/* The server sends one segment if the second probe is lost. */
	count_event(&totals[1], result->down, result->up == TCP_PAIR_SECOND_LOST ? 1 : 2);
}

struct tcp_pair_share tcp_pair_share(uint64_t count, uint64_t of)
{
	const double z2 = BOUND_QUANTILE_95 * BOUND_QUANTILE_95;
	double n, p, centre, half;

	if (!of)
		return (struct tcp_pair_share){ 0, 0, 1 };
	n = (double)of;
	p = (double)count / n;
	centre = (p + z2 / (2 * n)) / (1 + z2 / n);
	half = BOUND_QUANTILE_95 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4 * n * n));
	return (struct tcp_pair_share){ p, count ? centre - half : 0, count < of ? centre + half : 1 };
}
