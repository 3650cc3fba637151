/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_receiver.h"

#include "clock.h"

#define NS_PER_MS ((uint64_t)KTRXER_NS_PER_MS)

/*
 * Row 0 has a datagram each 50 ms, each other row one each millisecond at least. The search goes to row 0 in one step
 * of 30 rows, after two steps of one row: from row 32 at most, which has 4 datagrams each millisecond. So a gap of less
 * than PAUSE_NS is a pause only behind a trial with more than DENSE_RATE datagrams each millisecond.
 */
#define PAUSE_NS (100 * NS_PER_MS)
#define PAUSE_DENSE_NS (10 * NS_PER_MS)
enum { DENSE_RATE = 5 };

static const struct udpstp_counts no_counts = { .variation_min_ns = UINT64_MAX, .rtt_min_ns = UINT64_MAX };

void udpstp_receiver_begin(struct udpstp_receiver *r, uint64_t now_ns)
{
	*r = (struct udpstp_receiver){ .rtt_min_ns = UINT64_MAX,
				       .rtt_sample_ns = UINT64_MAX,
				       .trial = no_counts,
				       .current = no_counts,
				       .saved = no_counts,
				       .trial_ns = now_ns,
				       .current_ns = now_ns };
}

/* ---------------------------------------------------------------------------------------------------------- arrival */

static uint64_t *hole_of(struct udpstp_receiver *r, int64_t at_ms)
{
	return &r->holes[(uint64_t)at_ms % UDPSTP_HOLES_MS];
}

static void holes_until(struct udpstp_receiver *r, int64_t at_ms)
{
	int64_t ms = r->holes_ms;

	if (at_ms < ms || at_ms - ms > UDPSTP_HOLES_MS)
		ms = at_ms - UDPSTP_HOLES_MS; /* the clock was stepped, or nothing arrived for long */
	while (ms < at_ms)
		*hole_of(r, ++ms) = 0;
	r->holes_ms = at_ms;
}

/* Numbers that may still arrive: they are missing for no longer than another datagram was late. */
static uint64_t open_of(const struct udpstp_receiver *r, const struct udpstp_counts *c)
{
	uint64_t count = 0;

	for (uint32_t i = 0; r->overtaken_ms && i <= r->overtaken_ms; i++)
		count += r->holes[(uint64_t)(r->holes_ms - i) % UDPSTP_HOLES_MS];
	return count < c->lost ? count : c->lost;
}

static void add_loss(struct udpstp_receiver *r, uint64_t count)
{
	r->trial.lost += count;
	r->current.lost += count;
	*hole_of(r, r->holes_ms) += count;
}

/* A datagram that counted as lost has arrived. `late_ns`: its delay, less that of the last one in order. */
static void fill_hole(struct udpstp_receiver *r, int64_t late_ns)
{
	const uint64_t late_ms = late_ns < 0 ? 0 : ((uint64_t)late_ns + NS_PER_MS - 1) / NS_PER_MS;

	if (late_ms > r->overtaken_ms)
		r->overtaken_ms = late_ms < UDPSTP_HOLES_MS ? (uint32_t)late_ms : UDPSTP_HOLES_MS - 1;
	r->trial.lost -= r->trial.lost != 0;
	r->current.lost -= r->current.lost != 0;
	for (int64_t i = r->overtaken_ms; i >= 0; i--) {
		uint64_t *hole = hole_of(r, r->holes_ms - i);

		if (*hole) {
			--*hole;
			return;
		}
	}
}

static bool in_history(const struct udpstp_receiver *r, uint32_t number)
{
	for (int i = 0; i < UDPSTP_HISTORY; i++)
		if (r->history[i] == number)
			return true;
	return false;
}

static void remember(struct udpstp_receiver *r, uint32_t number)
{
	r->history[r->history_at++ % UDPSTP_HISTORY] = number;
}

/* True: the datagram is in order, and its delay counts. */
static bool count_number(struct udpstp_receiver *r, uint32_t number, int64_t delta_ns)
{
	if (number > r->highest) {
		add_loss(r, number - r->highest - 1);
		r->highest = number;
		remember(r, number);
		return true;
	}
	if (in_history(r, number)) {
		r->trial.duplicates++;
		r->current.duplicates++;
		return false;
	}
	r->trial.reordered++;
	r->current.reordered++;
	fill_hole(r, delta_ns - (r->arrived_real_ns - r->sent_real_ns));
	remember(r, number);
	return false;
}

static void add_variation(struct udpstp_counts *c, uint64_t ns)
{
	if (ns < c->variation_min_ns)
		c->variation_min_ns = ns;
	if (ns > c->variation_max_ns)
		c->variation_max_ns = ns;
	c->variation_sum_ns += ns;
	c->variation_count++;
}

static void count_rtt(struct udpstp_receiver *r, const struct udpstp_load *l, int64_t real_ns)
{
	const int64_t status_ns = ktrxer_timespec_ns(l->status_s, l->status_ns),
		      rtt_ns = real_ns - status_ns - (int64_t)(l->answer_delay_ms * NS_PER_MS);
	const uint64_t rtt = rtt_ns < 0 ? 0 : (uint64_t)rtt_ns;

	if (!status_ns || (l->status_s == r->echo_s && l->status_ns == r->echo_ns))
		return;
	r->echo_s = l->status_s;
	r->echo_ns = l->status_ns;
	if (rtt < r->rtt_min_ns) {
		r->rtt_min_ns = rtt;
		r->minimum_new = true;
	}
	r->rtt_sample_ns = rtt - r->rtt_min_ns;
	if (r->rtt_sample_ns < r->current.rtt_min_ns)
		r->current.rtt_min_ns = r->rtt_sample_ns;
	if (r->rtt_sample_ns > r->current.rtt_max_ns)
		r->current.rtt_max_ns = r->rtt_sample_ns;
}

/* Two datagrams have successive numbers, so no other was sent between them. Each clock may be stepped, not both. */
static void count_pause(struct udpstp_receiver *r, int64_t sent_real_ns, int64_t real_ns)
{
	const int64_t sent_ns = sent_real_ns - r->sent_real_ns, arrived_ns = real_ns - r->arrived_real_ns,
		      pause_ns = sent_ns < arrived_ns ? sent_ns : arrived_ns;

	if (pause_ns < (int64_t)(r->dense ? PAUSE_DENSE_NS : PAUSE_NS))
		return;
	r->paused_ns += (uint64_t)pause_ns;
	if ((uint64_t)pause_ns > r->pause_most_ns)
		r->pause_most_ns = (uint64_t)pause_ns;
}

void udpstp_receiver_load(struct udpstp_receiver *r, const struct udpstp_load *l, int64_t real_ns)
{
	const int64_t sent_real_ns = ktrxer_timespec_ns(l->sent_s, l->sent_ns), delta_ns = real_ns - sent_real_ns;
	const bool next = r->has_delta && l->sequence == r->highest + 1;

	r->trial.datagrams++;
	r->current.datagrams++;
	r->trial.bytes += l->payload;
	r->current.bytes += l->payload;
	holes_until(r, real_ns / (int64_t)NS_PER_MS);
	if (!count_number(r, l->sequence, delta_ns))
		return;
	if (next && !l->stopped) /* a sender that gets no status PDUs sends row 0 */
		count_pause(r, sent_real_ns, real_ns);
	r->sent_real_ns = sent_real_ns;
	r->arrived_real_ns = real_ns;
	if (!r->has_delta || delta_ns < r->delta_min_ns) {
		r->delta_min_ns = delta_ns;
		r->has_delta = r->minimum_new = true;
	}
	add_variation(&r->trial, (uint64_t)(delta_ns - r->delta_min_ns));
	add_variation(&r->current, (uint64_t)(delta_ns - r->delta_min_ns));
	count_rtt(r, l, real_ns);
}

bool udpstp_receiver_roll(struct udpstp_receiver *r, uint64_t now_ns, uint64_t lasts_ns)
{
	const uint64_t open = open_of(r, &r->current);

	if (now_ns - r->current_ns < lasts_ns)
		return false;
	r->saved = r->current;
	r->saved.lost -= open;
	r->current = no_counts;
	r->current.lost = open;
	r->saved_lasts_ns = now_ns - r->current_ns;
	r->accumulated_ns += r->saved_lasts_ns;
	r->intervals++;
	r->current_ns = now_ns;
	return true;
}

/* --------------------------------------------------------------------------------------------------------- feedback */

static uint32_t u32(uint64_t value)
{
	return value < UINT32_MAX ? (uint32_t)value : UINT32_MAX - 1;
}

static uint32_t ms(uint64_t ns)
{
	return ns == UINT64_MAX ? UDPSTP_UNKNOWN : u32((ns + NS_PER_MS / 2) / NS_PER_MS);
}

struct rate_search_feedback udpstp_receiver_feedback(const struct udpstp_receiver *r, bool one_way)
{
	const struct udpstp_counts *t = &r->trial;
	struct rate_search_feedback f = { t->lost - open_of(r, t), t->reordered, t->duplicates, .delay_known = false };

	if (one_way && t->variation_count) {
		f.delay_known = true;
		f.delay_ms = ms(t->variation_sum_ns / t->variation_count);
	} else if (!one_way && r->rtt_sample_ns != UINT64_MAX) {
		f.delay_known = true;
		f.delay_ms = ms(r->rtt_sample_ns);
	}
	return f;
}

struct rate_search_feedback udpstp_status_feedback(const struct udpstp_status *s, bool one_way)
{
	struct rate_search_feedback f = { s->lost, s->reordered, s->duplicates, .delay_known = false };

	if (one_way && s->variation_count) {
		f.delay_known = true;
		f.delay_ms = s->variation_sum / s->variation_count;
	} else if (!one_way && s->rtt_variation != UDPSTP_UNKNOWN) {
		f.delay_known = true;
		f.delay_ms = s->rtt_variation;
	}
	return f;
}

static void interval_fill(struct udpstp_interval *i, const struct udpstp_receiver *r)
{
	const struct udpstp_counts *c = &r->saved;

	*i = (struct udpstp_interval){ .datagrams = u32(c->datagrams),
				       .bytes = c->bytes,
				       .lasts_us = u32(r->saved_lasts_ns / 1000),
				       .lost = u32(c->lost),
				       .reordered = u32(c->reordered),
				       .duplicates = u32(c->duplicates),
				       .variation_min = ms(c->variation_min_ns),
				       .variation_max = ms(c->variation_max_ns),
				       .variation_sum = ms(c->variation_sum_ns),
				       .variation_count = u32(c->variation_count),
				       .rtt_min = ms(c->rtt_min_ns),
				       .rtt_max = ms(c->rtt_max_ns),
				       .accumulated_ms = ms(r->accumulated_ns) };
}

void udpstp_receiver_status(struct udpstp_receiver *r, struct udpstp_status *s, uint64_t now_ns, int64_t real_ns)
{
	const struct udpstp_counts *t = &r->trial;
	const uint64_t open = open_of(r, &r->trial);

	*s = (struct udpstp_status){ .sequence = ++r->status_number,
				     .interval_number = r->intervals,
				     .lost = u32(t->lost - open),
				     .reordered = u32(t->reordered),
				     .duplicates = u32(t->duplicates),
				     .clock_delta_min = (uint32_t)(int32_t)(r->delta_min_ns / (int64_t)NS_PER_MS),
				     .variation_min = ms(t->variation_min_ns),
				     .variation_max = ms(t->variation_max_ns),
				     .variation_sum = ms(t->variation_sum_ns),
				     .variation_count = u32(t->variation_count),
				     .rtt_min = ms(r->rtt_min_ns),
				     .rtt_variation = ms(r->rtt_sample_ns),
				     .minimum_new = r->minimum_new,
				     .trial_us = u32((now_ns - r->trial_ns) / 1000),
				     .trial_datagrams = u32(t->datagrams),
				     .trial_bytes = u32(t->bytes),
				     .sent_s = (uint32_t)(real_ns / KTRXER_NS_PER_S),
				     .sent_ns = (uint32_t)(real_ns % KTRXER_NS_PER_S) };
	interval_fill(&s->interval, r);
	/* The first trial may be short: its only datagram is not one of many. */
	r->dense = t->datagrams * NS_PER_MS >
		   DENSE_RATE * (now_ns - r->trial_ns > PAUSE_DENSE_NS ? now_ns - r->trial_ns : PAUSE_DENSE_NS);
	r->trial = no_counts;
	r->trial.lost = open;
	r->trial_ns = now_ns;
	r->minimum_new = false;
	r->rtt_sample_ns = UINT64_MAX;
}
