/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_session_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int stamp_session_new(struct stamp_session **out, const struct stamp_session_options *options)
{
	struct stamp_session *s;

	*out = NULL;
	if (options->window < 2 || options->window > 65536 || (options->window & (options->window - 1)))
		return -EINVAL;
	s = calloc(1, sizeof *s);
	if (!s)
		return -ENOMEM;
	s->entries = calloc(options->window, sizeof *s->entries);
	if (!s->entries || stamp_losses_new(&s->losses, options->window) < 0) {
		free(s->entries);
		free(s);
		return -ENOMEM;
	}
	s->options = *options;
	if (options->auth_key) {
		s->auth_key = *options->auth_key;
		s->options.auth_key = &s->auth_key;
	}
	if (options->tlv_key) {
		s->tlv_key = *options->tlv_key;
		s->options.tlv_key = &s->tlv_key;
	}
	s->mask = options->window - 1;
	s->close_from = UINT64_MAX;
	*out = s;
	return 0;
}

void stamp_session_free(struct stamp_session *s)
{
	if (!s)
		return;
	secret_forget(&s->auth_key, sizeof s->auth_key);
	secret_forget(&s->tlv_key, sizeof s->tlv_key);
	free(s->entries);
	stamp_losses_free(&s->losses);
	free(s);
}

struct stamp_entry *stamp_session_entry(const struct stamp_session *s, uint64_t number)
{
	struct stamp_entry *e = &s->entries[number & s->mask];

	return e->state != FREE && e->number == number ? e : NULL;
}

static bool is_open(const struct stamp_entry *e)
{
	return e->state == COMMITTED || e->state == WAITING || e->held;
}

bool stamp_session_is_measured(const struct stamp_session *s, uint64_t number)
{
	return number < s->close_from;
}

int stamp_session_commit(struct stamp_session *s, uint64_t number, uint64_t time)
{
	struct stamp_entry *e = &s->entries[number & s->mask];

	if (is_open(e))
		return -EAGAIN;
	memset(e, 0, sizeof *e);
	e->number = number;
	e->time = time;
	e->state = COMMITTED;
	e->sample.number = number;
	if (s->begin == s->end)
		s->begin = number;
	if (s->held_begin == s->end)
		s->held_begin = number;
	s->end = number + 1;
	return 0;
}

static void begin_advance(struct stamp_session *s)
{
	while (s->begin != s->end) {
		const struct stamp_entry *e = stamp_session_entry(s, s->begin);

		if (e && (e->state == COMMITTED || e->state == WAITING))
			return;
		s->begin++;
	}
}

/* A router that marks congestion (CE) does what it should. */
static bool mark_changed(uint8_t sent, uint8_t came)
{
	return sent >> 2 != came >> 2 || ((sent & 3) && !(came & 3));
}

void stamp_session_complete(struct stamp_session *s, struct stamp_entry *e)
{
	e->state = DONE;
	e->held = true;
	if (e->sample.t1_ns > s->answered_t1_ns)
		s->answered_t1_ns = e->sample.t1_ns;
	/* The next answer, which has the time, passes the same far queue first. */
	e->released_ns =
		s->options.follow_up && e->sample.far_queue_ns < 0 ? e->sample.t4_ns + 2 * s->options.timeout_ns : 0;
	if (stamp_session_is_measured(s, e->number)) {
		s->counts.received++;
		s->counts.waiting--;
		s->counts.reordered_up += e->sample.reordered_up;
		s->counts.reordered_down += e->sample.reordered_down;
		if (e->sample.tos_up != STAMP_TOS_UNKNOWN) {
			s->counts.marks_known = true;
			s->counts.mark_changed_up += mark_changed(s->options.tos, e->sample.tos_up);
			s->counts.mark_changed_down += mark_changed(e->sample.tos_back, e->sample.tos_down);
		}
	}
	begin_advance(s);
}

void stamp_session_report(struct stamp_session *s, const struct ktx_report *report)
{
	struct stamp_entry *e = stamp_session_entry(s, report->id);

	if (!e || e->state != COMMITTED)
		return;
	if (report->status != KTX_SENT) {
		e->state = UNSENT;
		if (stamp_session_is_measured(s, e->number)) {
			s->counts.unsent++;
			s->counts.failed += report->status == KTX_FAILED;
		}
		begin_advance(s);
		return;
	}
	e->state = WAITING;
	e->sample.at_ns = report->at_ns;
	e->sample.t1_ns = report->sent_ns;
	e->sample.own_queue_ns = report->own_queue_ns;
	e->sample.sent_source = report->sent_source;
	e->sample.bound_ns += report->bound_ns;
	if (stamp_session_is_measured(s, e->number)) {
		s->counts.sent++;
		s->counts.waiting++;
	}
	if (e->has_reply)
		stamp_session_complete(s, e);
}

static uint64_t unsent_between(const struct stamp_session *s, uint64_t from, uint64_t to)
{
	uint64_t unsent = 0;

	for (uint64_t n = from; n < to && n - from <= s->mask; n++) {
		const struct stamp_entry *e = stamp_session_entry(s, n);

		unsent += e && e->state == UNSENT;
	}
	return unsent;
}

static uint64_t lost_at(const struct stamp_session *s, const struct stamp_entry *e)
{
	const uint64_t overtaken_ns = e->sample.t1_ns + s->options.overtaken_ns,
		       timeout_ns = e->sample.t1_ns + s->options.timeout_ns;

	return s->options.overtaken_ns && overtaken_ns < timeout_ns && s->answered_t1_ns >= overtaken_ns ? overtaken_ns
													 : timeout_ns;
}

bool stamp_session_lost(struct stamp_session *s, uint64_t now_ns, uint64_t *number)
{
	struct stamp_entry *e;

	for (;;) {
		begin_advance(s);
		if (s->begin == s->end)
			return false;
		e = stamp_session_entry(s, s->begin);
		if (e->state != WAITING || now_ns < lost_at(s, e))
			return false;
		e->state = LOST;
		*number = s->begin;
		begin_advance(s);
		if (!stamp_session_is_measured(s, *number))
			continue;
		s->losses.unplaced += e->unplaced;
		s->counts.lost++;
		s->counts.waiting--;
		return true;
	}
}

#ifndef KTRXER_SMALL
/*
 * Subtracts the time from T1 and T3 to the stamps of the drivers: the packet schedulers, and the work of the stacks
 * behind T1 and T3.
 */
static void subtract_host_delay(struct stamp_sample *p)
{
	const bool by_driver = p->sent_source == KTX_SENT_DRIVER || p->sent_source == KTX_SENT_NIC;
	const int64_t own_ns = by_driver ? 0 : p->own_queue_ns;

	p->uncorrected = own_ns < 0 || p->far_queue_ns < 0;
	if (p->uncorrected)
		return;
	p->up_ns -= own_ns;
	p->down_ns -= p->far_queue_ns;
	p->rtt_ns -= own_ns + p->far_queue_ns;
}
#endif

/* The clocks of NICs and the kernel, and the resolution of stamps, may differ by so much. */
#define STAMPS_APART_NS (20 * (int64_t)KTRXER_NS_PER_US)

static void finish(struct stamp_session *s, struct stamp_sample *p)
{
	p->dwell_ns = p->t3_real_ns - p->t2_real_ns;
	p->impossible = p->dwell_ns < -STAMPS_APART_NS;
	if (p->impossible) {
		s->last_valid = false;
		return;
	}
	p->rtt_ns = (int64_t)(p->t4_ns - p->t1_ns) - p->dwell_ns;
	p->up_ns = (int64_t)((uint64_t)p->t2_real_ns - p->t1_ns);
	p->down_ns = (int64_t)(p->t4_ns - (uint64_t)p->t3_real_ns);
	if (p->too_late)
		return;
#ifndef KTRXER_SMALL
	if (s->options.host_delay)
		subtract_host_delay(p);
	if (p->uncorrected) {
		s->last_valid = false;
		return;
	}
#endif
	p->follows = s->last_valid && p->number == s->last.number + 1;
	if (p->follows) {
		p->ipdv_ns = p->rtt_ns - s->last.rtt_ns;
		p->ipdv_up_ns = p->up_ns - s->last.up_ns;
		p->ipdv_down_ns = p->down_ns - s->last.down_ns;
	}
	s->last = *p;
	s->last_valid = p->rtt_ns >= 0; /* else one of its stamps is wrong */
}

bool stamp_session_sample(struct stamp_session *s, uint64_t now_ns, bool flush, struct stamp_sample *sample)
{
	bool only_done = true;

	for (uint64_t n = s->held_begin; n < s->replied_end; n++) {
		struct stamp_entry *e = stamp_session_entry(s, n);

		if (e && e->held && (flush || e->released_ns <= now_ns || s->end - n > s->mask / 2)) {
			e->held = false;
			*sample = e->sample;
			if (only_done)
				s->held_begin = n + 1;
			if (!stamp_session_is_measured(s, n))
				continue;
			finish(s, sample);
			return true;
		}
		only_done &= !e || !is_open(e);
		if (only_done)
			s->held_begin = n + 1;
	}
	return false;
}

uint64_t stamp_session_next(const struct stamp_session *s)
{
	const struct stamp_entry *e = &s->entries[s->begin & s->mask];
	uint64_t next = KTRXER_NEVER;

	if (s->begin != s->end && e->state == WAITING)
		next = lost_at(s, e);
	if (s->held_begin != s->end) {
		e = &s->entries[s->held_begin & s->mask];
		if (e->held && e->released_ns < next)
			next = e->released_ns;
	}
	return next;
}

void stamp_session_close(struct stamp_session *s, uint64_t first)
{
	s->close_from = first;
}

static bool far_queue_open(const struct stamp_session *s)
{
	for (uint64_t n = s->held_begin; s->counts.follow_up_seen && n < s->replied_end && n < s->close_from; n++) {
		const struct stamp_entry *e = stamp_session_entry(s, n);

		if (e && e->held && e->released_ns)
			return true;
	}
	return false;
}

bool stamp_session_unsettled(const struct stamp_session *s)
{
	return (s->counts.lost && !s->closing_answered) || far_queue_open(s);
}

/* A reflector may report anything: the parts are of what was lost. */
void stamp_session_counts(const struct stamp_session *s, struct stamp_session_counts *counts)
{
	const uint64_t lost = s->counts.lost;
	const bool closing = s->close_from != UINT64_MAX;
	uint64_t open = 0, doubtful = 0;
	struct stamp_split split;

	*counts = s->counts;
	counts->direction_known = s->counts.stateful || !lost;
	if (!counts->direction_known) {
		counts->lost_unknown = lost;
		return;
	}
	if (s->closing_answered)
		doubtful = s->replied_end - s->close_from - unsent_between(s, s->close_from, s->replied_end) -
			   s->closing_answered;
	else if (closing && s->close_from > s->answered_end)
		open = s->close_from - s->answered_end - unsent_between(s, s->answered_end, s->close_from);
	split = stamp_losses_split(&s->losses, lost, open, doubtful);
	counts->lost_up = split.up;
	counts->lost_down = split.down;
	counts->lost_unknown = split.unknown;
}
