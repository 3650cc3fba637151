/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The answers to the probes of a trace: from the receiver, or from the socket of the host. */
#include "trace_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { TURN = 256 }; /* packets in one turn, so that a flood of packets does not delay the timers */
enum { ORIGIN_ICMP = 2, ORIGIN_ICMPV6 = 3 }; /* SO_EE_ORIGIN_* */

static void sample_end(struct trace *t, struct trace_pending *probe)
{
	struct trace_sample *s = &probe->sample;

	s->rtt_ns = (int64_t)(s->received_ns - s->sent_ns);
	/* A step of a clock, or a stamp that is missing: the answer counts, its time does not. */
	if (s->rtt_ns < 0 || s->sent_source == KTX_SENT_NONE)
		s->rtt_ns = -1;
	else if ((uint64_t)s->rtt_ns > t->rtt_max_ns && (uint64_t)s->rtt_ns <= t->spec.timeout_ns)
		t->rtt_max_ns = (uint64_t)s->rtt_ns;
	if (t->sample_count == t->sample_room) {
		const size_t room = t->sample_room ? 2 * t->sample_room : 1024;
		struct trace_sample *samples = realloc(t->samples, room * sizeof *samples);

		if (!samples) {
			trace_fail(t, -ENOMEM, "no memory for the answers");
			return;
		}
		t->samples = samples;
		t->sample_room = room;
	}
	t->samples[t->sample_count++] = *s;
	t->events.answer(t->events.context, s);
}

void trace_take_reports(struct trace *t)
{
	struct ktx_report reports[32];
	int n;

	while ((n = ktx_reports(t->tx, reports, 32)) > 0)
		for (int i = 0; i < n; i++) {
			struct trace_pending *probe = &t->probes[reports[i].id % TRACE_PROBES];

			if (probe->state != COMMITTED || probe->sample.sent.number != reports[i].id)
				continue;
			if (reports[i].status != KTX_SENT) {
				probe->state = UNSENT;
				/* A probe is cancelled when an answer to an earlier try of the same job ended the
				 * search. */
				if (reports[i].status == KTX_FAILED) {
					t->result.failed++;
					t->result.failed_error = reports[i].error;
				}
				continue;
			}
			probe->state = SENT;
			probe->sample.sent_ns = reports[i].sent_ns;
			probe->sample.sent_source = reports[i].sent_source;
			probe->sample.own_queue_ns = reports[i].own_queue_ns;
			t->result.sent++;
			if (probe->answered)
				sample_end(t, probe);
		}
}

enum trace_end trace_end_of(const struct trace_reply *reply, const struct ktrxer_addr *to)
{
	const bool six = to->family == AF_INET6;
	struct ktrxer_addr plain = *to;

	plain.scope_id = 0;
	if (reply->kind == TRACE_TIME_EXCEEDED)
		return TRACE_GOES_ON;
	if (reply->kind != TRACE_DESTINATION_UNREACHABLE)
		return TRACE_ARRIVED;
	/* The port or the protocol is unreachable: an answer of the destination. From another address, a firewall has
	 * sent it. */
	return (reply->code == (six ? 4 : 3) || (!six && reply->code == 2)) && ktrxer_addr_equal(&reply->from, &plain)
		       ? TRACE_ARRIVED
		       : TRACE_UNREACHABLE;
}

/* A reply that fits a probe by its number. */
static void answer(struct trace *t, struct trace_pending *probe, const struct trace_reply *reply, uint64_t received_ns,
		   uint8_t source, const struct trace_changes *changes)
{
	struct trace_sample *s = &probe->sample;

	if (probe->answered) {
		t->result.duplicates++;
		return;
	}
	probe->answered = true;
	if (probe->round != t->round || t->jobs[probe->job].done) {
		t->result.late++;
		/* It was not too late for the next ones. */
		if (probe->state == SENT && reply->kind == TRACE_TIME_EXCEEDED &&
		    received_ns - s->sent_ns > t->rtt_max_ns && received_ns <= s->sent_ns + t->spec.timeout_ns)
			t->rtt_max_ns = received_ns - s->sent_ns;
		t->result.too_late += probe->state == SENT && received_ns > s->sent_ns + t->spec.timeout_ns;
		return;
	}
	s->from = reply->from;
	s->received_ns = received_ns;
	s->source = source;
	s->kind = (uint8_t)reply->kind;
	s->type = reply->type;
	s->code = reply->code;
	s->ttl = reply->ttl;
	s->quoted_ttl = reply->quote.ttl;
	s->quoted_tos = reply->quote.tos;
	s->changes = *changes;
	s->label_count = reply->label_count;
	memcpy(s->labels, reply->labels, sizeof s->labels);
	t->result.answered++;
	t->result.user_stamped += source == KTRXER_STAMP_USER;
	t->result.hops[s->sent.want.hop].answered++;
	trace_graph_take(t, s->sent.want, &reply->from, trace_end_of(reply, &t->spec.to));
	trace_job_end(t, &t->jobs[probe->job]);
	if (probe->state == SENT)
		sample_end(t, probe);
}

static void take_reply(struct trace *t, const struct krx_packet *packet)
{
	struct trace_changes changes;
	struct trace_reply reply;
	struct trace_pending *probe;
	uint32_t number;
	bool whole;

	if (!trace_reply_parse(&reply, packet->data, packet->length, packet->link) ||
	    !trace_probe_number(&t->probe, &reply, &number, &whole)) {
		t->result.foreign++;
		return;
	}
	probe = &t->probes[number % TRACE_PROBES];
	if (probe->state == FREE || (whole && probe->sample.sent.number != number) ||
	    !trace_probe_fits(&t->probe, &reply, &probe->sample.sent, &changes)) {
		t->result.foreign++;
		return;
	}
	answer(t, probe, &reply, packet->mono_ns, packet->source, &changes);
}

/*
 * The kernel returns ICMP errors, with the payload of the probe, to the socket that sent it; this needs no privilege.
 * It gives them no arrival stamp.
 */
void trace_take_errors(struct trace *t)
{
	struct ktx_network_error errors[16];
	int n;

	while (!t->rx && (n = ktx_network_errors(t->tx, errors, 16)) > 0)
		for (int i = 0; i < n; i++) {
			const struct ktx_network_error *e = &errors[i];
			const bool six = e->origin == ORIGIN_ICMPV6;
			struct trace_reply reply = {
				.from = e->reporter, .type = e->type, .code = e->code, .quote = { .tos = t->spec.tos }
			};
			struct trace_pending *probe;
			uint32_t number;

			if (e->origin != ORIGIN_ICMP && !six)
				continue;
			reply.kind = e->type == (six ? 3 : 11) ? TRACE_TIME_EXCEEDED : TRACE_DESTINATION_UNREACHABLE;
			if (!trace_probe_returned(&t->probe, e->quoted, e->quoted_length, &number)) {
				t->result.foreign++;
				continue;
			}
			probe = &t->probes[number % TRACE_PROBES];
			if (probe->state != FREE && probe->sample.sent.number == number)
				answer(t, probe, &reply, e->when_ns, KTRXER_STAMP_USER, &(struct trace_changes){ 0 });
		}
}

void trace_take_replies(struct trace *t)
{
	struct krx_packet packet;
	int rc = 0;

	for (int i = 0; t->rx && i < TURN && (rc = krx_next(t->rx, &packet)) > 0; i++)
		take_reply(t, &packet);
	if (rc < 0)
		trace_fail(t, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}
