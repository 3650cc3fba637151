/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `stamp` for people: a line for each sample, and at the end the figures with their uncertainty. */
#include "stamp_command.h"

#include "dscp.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>

void stamp_say_what(const struct stamp_command *run)
{
	const struct prober *p = run->report.prober;
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT];

	out_text(run->report.cli,
		 "stamp %s (%s port %u) from %s on %s: %s mode, %u bytes of payload, by engine %s (%s)", run->o->p.host,
		 ktrxer_addr_format(&p->path.to, to), p->spec.port, ktrxer_addr_format(&p->path.source, from),
		 p->path.device.name, run->o->auth_key_file ? "authenticated" : "open", run->result->payload,
		 p->info.engine, p->info.reason);
}

void stamp_say_step(void *context)
{
	const struct stamp_command *run = context;
	struct json *event = out_event(run->report.cli, "clock_step");

	out_text(run->report.cli,
		 "the clocks of the two hosts were stepped against each other, or slewed by more than %d ppm",
		 CLOCK_OFFSET_RATE_PPM);
	if (event)
		out_put(run->report.cli, event);
}

void stamp_say_sample(void *context, uint32_t which, const struct stamp_sample *p)
{
	struct stamp_command *run = context;
	char rtt[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT], dscp[8], class_text[24] = "";

	if (p->too_late) {
		if (probe_is_talkative(&run->o->p))
			out_text(run->report.cli, "number %" PRIu64 ", round trip %s, after it was given up as lost",
				 p->number, ktrxer_format_ns(rtt, p->rtt_ns));
		stamp_sample_json(run, which, p);
		return;
	}
	if (run->report.each > 1)
		snprintf(class_text, sizeof class_text, ", DSCP %s",
			 dscp_name(run->result->classes[which].tos >> 2, dscp));
	if (probe_is_talkative(&run->o->p))
		out_text(run->report.cli, "number %" PRIu64 "%s, round trip %s, TTL %u up %u down, sent %s late%s",
			 p->number, class_text, ktrxer_format_ns(rtt, p->rtt_ns), p->ttl_up, p->ttl_down,
			 ktrxer_format_ns(late, (int64_t)(p->t1_ns - p->at_ns)),
			 p->reordered_up || p->reordered_down ? ", reordered" : "");
	stamp_sample_json(run, which, p);
}

void stamp_say_answer(void *context, enum stamp_event event)
{
	static const char *const names[] = { NULL, NULL, "duplicate", NULL, NULL, "wrong_hmac" };
	const struct stamp_command *run = context;
	struct json *json = names[event] ? out_event(run->report.cli, names[event]) : NULL;

	if (json)
		out_put(run->report.cli, json);
}

static void delays_text(const struct stamp_command *run, const char *what, const struct ktrxer_hist *hist,
			const char *more)
{
	char text[HIST_TEXT];

	if (ktrxer_hist_count(hist))
		out_text(run->report.cli, "%s: %s%s", what, hist_text(text, hist, HIST_MIN | HIST_TAIL), more);
}

static void one_way_text(const struct stamp_command *run)
{
	const struct one_way_result *w = &run->result->one_way;
	char bound[KTRXER_UNITS_TEXT], offset[KTRXER_UNITS_TEXT], more[KTRXER_UNITS_TEXT + 16];

	if (!w->known)
		return;
	snprintf(more, sizeof more, ", each +- %s", ktrxer_format_ns(bound, (int64_t)w->total_ns));
	delays_text(run, "one-way delay up", w->delays.up, more);
	delays_text(run, "one-way delay down", w->delays.down, more);
	out_text(run->report.cli, "their clock is %s ahead of ours, +- %s", ktrxer_format_ns(offset, w->offset_ns),
		 ktrxer_format_ns(bound, (int64_t)w->clock_ns));
	if (w->clock.skew_known)
		out_text(run->report.cli, "%s gains %.3f ppm, +- %.3f ppm",
			 w->adjusted ? "without what the kernels adjust it" : "and", w->clock.skew_ppm,
			 w->clock.skew_bound_ppm);
}

static void counts_text(const struct stamp_command *run)
{
	const struct stamp_session_counts *c = &run->result->counts;

	char lost[PROBE_LOST_TEXT];

	probe_unsent_text(&run->report);
	out_text(run->report.cli,
		 "%" PRIu64 " sent, %" PRIu64 " answered, %s, %" PRIu64 " duplicates, %" PRIu64 " reordered", c->sent,
		 c->received, probe_lost_text(lost, c->sent, c->lost, c->too_late),
		 c->duplicates_up + c->duplicates_down, c->reordered_up + c->reordered_down);
	if (c->restarts && !c->lost_unknown)
		out_text(run->report.cli,
			 "the reflector began to count anew %" PRIu64 " times, as after a NAT changed the port",
			 c->restarts);
	if (!c->lost)
		return;
	if (c->direction_known)
		out_text(run->report.cli, "lost: %" PRIu64 " up, %" PRIu64 " down, %" PRIu64 " in unknown direction",
			 c->lost_up, c->lost_down, c->lost_unknown);
	else
		out_text(run->report.cli, "lost in which direction is not known: %s",
			 c->received ? "no answer shows a count" : "no probe was answered");
}

#ifdef KTRXER_SMALL
#define PART_OF(RUN, WAY) ", part of the delay " WAY
#else
#define PART_OF(RUN, WAY) ((RUN)->o->host_delay ? ", subtracted from the delay " WAY : ", part of the delay " WAY)

/*
 * --host-delay leaves in the delays the time between driver and wire, and between wire and the kernel's arrival stamp.
 * No time on a path is negative, so the least round trip is a limit of the sum for both hosts.
 */
static void host_delay_text(const struct stamp_command *run)
{
	const struct probe_result *p = &run->report.prober->result;
	char own[KTRXER_UNITS_TEXT], far[KTRXER_UNITS_TEXT], least[KTRXER_UNITS_TEXT];

	if (!run->o->host_delay || !ktrxer_hist_count(p->rtt))
		return;
	out_text(run->report.cli,
		 "host delay: subtracted %s up (p50, this host) and %s down (p50, far host); residual, driver to wire "
		 "and wire to kernel in both hosts: at most %s together, the least round trip",
		 ktrxer_format_ns(own, ktrxer_hist_quantile(p->own_queue, 500000)),
		 ktrxer_format_ns(far, ktrxer_hist_quantile(run->result->far_queue, 500000)),
		 ktrxer_format_ns(least, ktrxer_hist_min(p->rtt)));
}
#endif

static void finish_text(const struct stamp_command *run)
{
	const struct prober *p = run->report.prober;
	const struct stamp_result *r = run->result;

	counts_text(run);
	delays_text(run, probe_trip_text(r->counts.lost + r->counts.too_late), p->result.rtt, "");
	for (uint32_t i = 0; r->class_count > 1 && i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];
		const struct stamp_session_counts *c = &class->counts;
		char text[HIST_TEXT], dscp[8], lost[PROBE_LOST_TEXT];

		out_text(run->report.cli, "round trip, DSCP %s: %s; %s", dscp_name(class->tos >> 2, dscp),
			 ktrxer_hist_count(class->rtt) ? hist_text(text, class->rtt, HIST_MIN | HIST_TAIL)
						       : "no probe was answered",
			 probe_lost_text(lost, c->sent, c->lost, c->too_late));
	}
	one_way_text(run);
#ifndef KTRXER_SMALL
	host_delay_text(run);
	stamp_marks_text(run);
#endif
	if (ktrxer_hist_count(p->result.own_queue)) {
		char what[64];

		snprintf(what, sizeof what, "this host's own queue (%s)", probe_own_qdisc(&run->report));
		delays_text(run, what, p->result.own_queue, PART_OF(run, "up"));
	}
	delays_text(run, "the far host's own queue", r->far_queue, PART_OF(run, "down"));
	if (p->result.lateness && ktrxer_hist_count(p->result.lateness)) {
		char limit[KTRXER_UNITS_TEXT], late[KTRXER_UNITS_TEXT + 48];

		snprintf(late, sizeof late, "; %" PRIu64 " late (by more than %s)", p->result.accounts.late,
			 ktrxer_format_ns(limit, (int64_t)p->spec.late_ns));
		delays_text(run, "our own lateness", p->result.lateness, late);
	}
}

int stamp_finish(struct stamp_command *run)
{
	struct json *end;

	probe_batch_flush(&run->report);
#ifndef KTRXER_SMALL
	if (run->echo)
		stamp_echo_finish(run);
#endif
	end = out_end(run->report.cli);
	stamp_judge(run);
	finish_text(run);
	stamp_end_json(run, end);
	return out_finish(run->report.cli, end);
}
