/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "byte_outages.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MS 1000000ll

enum {
	LEAST_MS = 200,    /* a shorter time without a packet is a loss of packets */
	TIME_OUT_MS = 200, /* of a sender, beside a round trip */
	BEFORE_MS = 1000,  /* the losses of this time before an outage, */
	BEFORE_ROUND_TRIPS = 4,
	TCP_LEAST_MS = 300, /* beside two round trips: the least time-out of a sender is 200 ms and a round trip */
	TCP_ROUND_TRIPS = 2,
	PACKETS_LEAST = 5, /* so many packets would have arrived */
	PACKETS_UNKNOWN =
		20,      /* the same where the rate of the sender is not known, and may be that of random packets */
	GAP_SAMPLES = 5, /* two samples further apart have a gap between them */
	GAP_MS = 100,
};
#define CHANCE 1e-4 /* of one time in which so many packets are lost one after the other */

/* Nothing arrived from `from` to `to`; the last byte before came after `since`, the next one before `until`. */
struct quiet {
	int64_t from, to, since, until;
};

struct quiets {
	struct quiet *each;
	size_t count;
};

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* A series of times and counts, with rows of any size. */
struct counts {
	const char *rows;
	size_t count, size;
};

static int64_t time_at(const struct counts *c, size_t i)
{
	int64_t value;

	memcpy(&value, c->rows + i * c->size, sizeof value);
	return value;
}

static int64_t count_at(const struct counts *c, size_t i)
{
	int64_t value;

	memcpy(&value, c->rows + i * c->size + sizeof value, sizeof value);
	return value;
}

/* Finds runs of equal counts. Nothing is known of gaps; nothing moves before the first and after the last row. */
static int find_quiets(struct quiets *q, const struct counts *c, int64_t gap_ns)
{
	q->count = 0;
	q->each = malloc((c->count + 2) * sizeof *q->each);
	if (!q->each)
		return -ENOMEM;
	for (size_t i = 0, j; i < c->count; i = j + 1) {
		for (j = i; j + 1 < c->count && count_at(c, j + 1) == count_at(c, i) &&
			    time_at(c, j + 1) - time_at(c, j) <= gap_ns;
		     j++)
			;
		q->each[q->count++] =
			(struct quiet){ i ? time_at(c, i) : INT64_MIN, j + 1 < c->count ? time_at(c, j) : INT64_MAX,
					i ? time_at(c, i - 1) : INT64_MIN,
					j + 1 < c->count ? time_at(c, j + 1) : INT64_MAX };
	}
	return 0;
}

/* The times that are in both. */
static int intersect(struct quiets *a, const struct quiets *b)
{
	struct quiet *both = malloc((a->count + b->count + 1) * sizeof *both);
	size_t count = 0;

	if (!both)
		return -ENOMEM;
	for (size_t i = 0, j = 0; i < a->count && j < b->count;) {
		const struct quiet *x = &a->each[i], *y = &b->each[j],
				   z = { later(x->from, y->from), earlier(x->to, y->to), later(x->since, y->since),
					 earlier(x->until, y->until) };

		if (z.from < z.to)
			both[count++] = z;
		if (x->to < y->to)
			i++;
		else
			j++;
	}
	free(a->each);
	*a = (struct quiets){ both, count };
	return 0;
}

static int take(struct quiets *all, bool first, const struct counts *c, int64_t gap_ns, bool bounds)
{
	struct quiets own;
	int rc = find_quiets(&own, c, gap_ns);

	for (size_t i = 0; rc == 0 && !bounds && i < own.count; i++) {
		own.each[i].since = INT64_MIN;
		own.each[i].until = INT64_MAX;
	}
	if (rc == 0 && first) {
		*all = own;
		return 0;
	}
	if (rc == 0)
		rc = intersect(all, &own);
	free(own.each);
	return rc;
}

/* The count is interpolated between two rows, and constant before the first and after the last one. */
static double sent_at(const struct byte_flows *f, int64_t at)
{
	const struct byte_sender *s = f->sender;
	size_t low = 0, high = f->sender_count;

	while (low < high) {
		const size_t middle = (low + high) / 2;

		if (s[middle].time_ns <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return (double)s[0].moved;
	if (low == f->sender_count)
		return (double)s[low - 1].moved;
	return (double)s[low - 1].moved + (double)(s[low].moved - s[low - 1].moved) *
						  (double)(at - s[low - 1].time_ns) /
						  (double)(s[low].time_ns - s[low - 1].time_ns);
}

struct whole {
	int64_t begin_ns, end_ns;
	double bytes, sent; /* of all flows; sent: 0 if an end is not known */
};

static struct whole whole_of(const struct byte_flows *flows, size_t count)
{
	struct whole w = { INT64_MAX, INT64_MIN, 0, 0 };
	bool known = true;

	for (size_t i = 0; i < count; i++) {
		const struct byte_flows *f = &flows[i];

		if (!f->arrived_count)
			continue;
		w.begin_ns = earlier(w.begin_ns, f->arrived[0].time_ns);
		w.end_ns = later(w.end_ns, f->arrived[f->arrived_count - 1].time_ns);
		w.bytes += (double)f->arrived[f->arrived_count - 1].bytes;
		known = known && f->sender_count;
		if (f->sender_count)
			w.sent += (double)f->sender[f->sender_count - 1].moved;
	}
	w.sent = known ? w.sent : 0;
	return w;
}

/*
 * Senders of TCP: whether one has data on its way, and the longest round trip before; for one of several flows also
 * that behind it, because the packets of the others may have filled a long queue.
 */
static bool data_waits(const struct byte_flows *flows, size_t count, const struct byte_plan *plan,
		       const struct quiet *q, int64_t *rtt_ns)
{
	bool waits = false;

	for (size_t i = 0; i < count; i++) {
		const struct byte_flows *f = &flows[i];
		bool reported = false;

		for (size_t k = 0; k < f->sender_count && f->sender[k].time_ns <= q->to; k++) {
			const struct byte_sender *s = &f->sender[k];

			if (s->time_ns < q->from)
				continue;
			reported = true;
			waits = waits || s->pending;
		}
		for (size_t k = 0; plan->of && k < f->sender_count && f->sender[k].time_ns <= 2 * q->to - q->from; k++)
			if (f->sender[k].time_ns > q->to)
				*rtt_ns = later(*rtt_ns, f->sender[k].rtt_ns);
		for (size_t k = f->sender_count; k-- > 0;)
			if (f->sender[k].time_ns <= q->from && f->sender[k].rtt_ns) {
				*rtt_ns = later(*rtt_ns, f->sender[k].rtt_ns);
				break;
			}
		/* Its reports end before, or it has none. */
		waits = waits || (!reported && (!f->sender_count || f->sender[f->sender_count - 1].time_ns < q->from));
	}
	return waits;
}

/* The share of the segments that were lost in the time before; an outage itself loses a window of them. */
static double lost_before(const struct byte_flows *f, int64_t from, int64_t span, bool one_of)
{
	const struct byte_sender none = { 0 }, *first = &none, *last = &none;
	double lost, sent;

	for (size_t k = 0; k < f->sender_count && f->sender[k].time_ns <= from; k++) {
		if (f->sender[k].time_ns <= from - span)
			first = &f->sender[k];
		last = &f->sender[k];
	}
	lost = (double)(last->again - first->again);
	sent = (double)(last->moved - first->moved) + lost;
	if (one_of) /* a flow that others starve sends too few segments for an estimate of their losses */
		return (lost + 1) / (sent + 1);
	return sent > 0 ? lost / sent : 0;
}

/*
 * After each loss of the same segment a sender waits twice as long: are so many losses one after the other no chance?
 * Of several flows the one with the fewest losses counts.
 */
static bool is_no_chance(const struct byte_flows *flows, size_t count, const struct byte_plan *plan,
			 const struct quiet *q, int64_t rtt_ns)
{
	/* log2() would cost small programs 2 KB beside log(). */
	const double times = log((double)(q->to - q->from) / (double)(TIME_OUT_MS * MS + rtt_ns) + 1) / log(2);
	double least = 1;

	for (size_t i = 0; i < count; i++) {
		const double lost =
			lost_before(&flows[i], q->from, BEFORE_MS * MS + BEFORE_ROUND_TRIPS * rtt_ns, plan->of > 1);

		least = lost < least ? lost : least;
	}
	return !(least > 0) || times * log(least) <= log(plan->of ? CHANCE / plan->of : CHANCE);
}

static bool is_tcp_outage(const struct byte_flows *flows, size_t count, const struct byte_plan *plan,
			  const struct whole *w, const struct quiet *q)
{
	const double length = (double)(q->to - q->from), rest = (double)(w->end_ns - w->begin_ns) - length;
	int64_t rtt_ns = plan->rtt_ns;

	return data_waits(flows, count, plan, q, &rtt_ns) && is_no_chance(flows, count, plan, q, rtt_ns) &&
	       length >= (double)(TCP_LEAST_MS * MS + TCP_ROUND_TRIPS * rtt_ns) &&
	       length * w->bytes >= PACKETS_LEAST * (double)plan->packet_bytes * rest;
}

static bool is_udp_outage(const struct byte_flows *flows, size_t count, const struct byte_plan *plan,
			  const struct whole *w, const struct quiet *q)
{
	const double length = (double)(q->to - q->from), rest = (double)(w->end_ns - w->begin_ns) - length,
		     size = (double)plan->packet_bytes;
	double now = 0, before = 0, packets, loss;

	if (q->to - q->from < LEAST_MS * MS)
		return false;
	if (!(w->sent > 0))
		return length * w->bytes >= PACKETS_UNKNOWN * size * rest;
	for (size_t i = 0; i < count; i++) {
		if (!flows[i].arrived_count)
			continue;
		now += sent_at(&flows[i], q->to) - sent_at(&flows[i], q->from);
		before += sent_at(&flows[i], q->to - plan->rtt_ns) - sent_at(&flows[i], q->from - plan->rtt_ns);
	}
	packets = (now < before ? now : before) / size;
	if (packets < PACKETS_LEAST)
		return false;
	loss = (w->sent - w->bytes - packets * size) / (w->sent - packets * size);
	/* Losses come in bursts: a loss behind a loss is more likely than one. */
	return !(loss > 0) || packets * log(loss) / 2 <= log(CHANCE) - log(w->sent / size);
}

static int by_time(const void *a, const void *b)
{
	const struct byte_outage *x = a, *y = b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Where there is no room the shortest one goes. */
static int keep(struct byte_outage *found, int count, const struct byte_outage *one)
{
	int shortest = 0;

	if (count < BYTE_OUTAGES_MOST) {
		found[count] = *one;
		return count + 1;
	}
	for (int i = 1; i < count; i++)
		if (found[i].at_least_ns < found[shortest].at_least_ns)
			shortest = i;
	if (found[shortest].at_least_ns < one->at_least_ns)
		found[shortest] = *one;
	return count;
}

int byte_outages(const struct byte_flows *flows, size_t count, const struct byte_plan *plan, struct byte_outage *found)
{
	const int64_t gap_ns = GAP_SAMPLES * plan->sample_ns + GAP_MS * MS;
	const struct whole w = whole_of(flows, count);
	struct quiets all = { NULL, 0 };
	bool first = true;
	int rc = 0, made = 0;

	if (!(w.bytes > 0) || plan->packet_bytes <= 0)
		return 0;
	for (size_t i = 0; rc == 0 && i < count; i++) {
		const struct counts arrived = { (const char *)flows[i].arrived, flows[i].arrived_count,
						sizeof *flows[i].arrived },
				    moved = { (const char *)flows[i].sender, flows[i].sender_count,
					      sizeof *flows[i].sender };

		if (arrived.count)
			rc = take(&all, first, &arrived, gap_ns, true);
		first = first && !arrived.count;
		/* Bytes behind a lost segment have arrived, and are not yet read. */
		if (rc == 0 && arrived.count && moved.count && !plan->udp)
			rc = take(&all, false, &moved, gap_ns, false);
	}
	for (size_t i = 0; rc == 0 && i < all.count; i++) {
		struct quiet q = all.each[i];

		q.from = later(q.from, w.begin_ns);
		q.to = earlier(q.to, w.end_ns);
		if (q.from < q.to && (plan->udp ? is_udp_outage : is_tcp_outage)(flows, count, plan, &w, &q))
			made = keep(found, made,
				    &(struct byte_outage){ .from_ns = q.from,
							   .to_ns = q.to,
							   .at_least_ns = q.to - q.from,
							   .at_most_ns = earlier(q.until, w.end_ns) -
									 later(q.since, w.begin_ns),
							   .to_end = q.until == INT64_MAX });
	}
	free(all.each);
	if (rc < 0)
		return rc;
	qsort(found, (size_t)made, sizeof *found, by_time);
	return made;
}
