/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bodies of the control connection's frames. */
#include "control.h"
#include "flow_spec.h"

#include <errno.h>

struct writer {
	uint8_t *at;
};

static void put8(struct writer *w, uint8_t value)
{
	*w->at++ = value;
}

static void put16(struct writer *w, uint16_t value)
{
	store_be16(w->at, value);
	w->at += 2;
}

static void put32(struct writer *w, uint32_t value)
{
	store_be32(w->at, value);
	w->at += 4;
}

static void put64(struct writer *w, uint64_t value)
{
	store_be64(w->at, value);
	w->at += 8;
}

static struct bytes body_of(const struct control_frame *frame)
{
	return bytes_of(frame->body, frame->length);
}

static int done(const struct bytes *b)
{
	return b->ok ? 0 : -EPROTO;
}

uint32_t control_request_write(uint8_t *out, const struct control_request *r)
{
	struct writer w = { out };

	put32(&w, r->flows);
	put64(&w, r->for_ns);
	put64(&w, r->bytes);
	put64(&w, r->whole_ns);
	put64(&w, r->sample_ns);
	put64(&w, r->rate_bps);
	put8(&w, r->cc_count);
	for (int i = 0; i < r->cc_count; i++) {
		memcpy(w.at, r->ccs[i], FLOW_CC_MAX);
		w.at += FLOW_CC_MAX;
	}
	return (uint32_t)(w.at - out);
}

/* Goes to the kernel by setsockopt() and into messages: letters of the kind that such names are made of, and ends. */
static bool cc_name_ok(const char name[FLOW_CC_MAX])
{
	size_t length = strnlen(name, FLOW_CC_MAX);

	if (!length || length == FLOW_CC_MAX)
		return false;
	for (size_t i = 0; i < length; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= '0' && name[i] <= '9') || name[i] == '_' || name[i] == '-' || name[i] == '.'))
			return false;
	return true;
}

int control_request_read(struct control_request *r, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	memset(r, 0, sizeof *r);
	r->flows = bytes_be32(&b);
	r->for_ns = bytes_be64(&b);
	r->bytes = bytes_be64(&b);
	r->whole_ns = bytes_be64(&b);
	r->sample_ns = bytes_be64(&b);
	r->rate_bps = bytes_be64(&b);
	r->cc_count = bytes_u8(&b);
	if (r->cc_count > CONTROL_CCS)
		return -EPROTO;
	for (int i = 0; i < r->cc_count; i++)
		if (!bytes_copy(&b, r->ccs[i], FLOW_CC_MAX) || !cc_name_ok(r->ccs[i]))
			return -EPROTO;
	if (!r->flows || (!r->for_ns && !r->bytes) || !r->sample_ns ||
	    r->sample_ns > KTRXER_FLOW_SAMPLE_MAX_S * (uint64_t)KTRXER_NS_PER_S)
		return -EPROTO;
	return done(&b);
}

uint32_t control_grant_write(uint8_t *out, const struct control_grant *g)
{
	struct writer w = { out };

	put32(&w, g->session);
	put64(&w, g->max_ns);
	put64(&w, g->pace_bps);
	return (uint32_t)(w.at - out);
}

int control_grant_read(struct control_grant *g, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	g->session = bytes_be32(&b);
	g->max_ns = bytes_be64(&b);
	g->pace_bps = bytes_be64(&b);
	return done(&b);
}

uint32_t control_refuse_write(uint8_t *out, const struct control_refuse *r)
{
	struct writer w = { out };

	put8(&w, r->why);
	put64(&w, r->value);
	return (uint32_t)(w.at - out);
}

int control_refuse_read(struct control_refuse *r, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	r->why = bytes_u8(&b);
	r->value = bytes_be64(&b);
	return done(&b);
}

uint32_t control_pong_write(uint8_t *out, const struct control_pong *p)
{
	struct writer w = { out };

	put64(&w, p->t1_ns);
	put64(&w, p->t2_ns);
	put64(&w, p->t3_ns);
	return (uint32_t)(w.at - out);
}

int control_pong_read(struct control_pong *p, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	p->t1_ns = bytes_be64(&b);
	p->t2_ns = bytes_be64(&b);
	p->t3_ns = bytes_be64(&b);
	return done(&b);
}

uint32_t control_time_write(uint8_t *out, uint64_t ns)
{
	store_be64(out, ns);
	return 8;
}

int control_time_read(uint64_t *ns, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	*ns = bytes_be64(&b);
	return done(&b);
}

enum { RECORD_DOWN = 1, RECORD_UDP = 2 };

uint32_t control_flows_write(uint8_t *out, uint32_t first, uint32_t count, const struct flow_spec *specs)
{
	struct writer w = { out };

	put32(&w, first);
	put16(&w, (uint16_t)count);
	for (uint32_t i = 0; i < count; i++) {
		const struct flow_spec *s = &specs[i];

		put8(&w, (uint8_t)((s->down ? RECORD_DOWN : 0) | (s->udp ? RECORD_UDP : 0)));
		put8(&w, s->tos);
		put8(&w, s->model);
		put8(&w, s->cc_index);
		put64(&w, s->start_ns);
		put64(&w, s->rate_bps);
		put16(&w, s->payload_min);
		put16(&w, s->payload_max);
		put16(&w, s->train);
		put16(&w, s->train_shrink);
		put64(&w, s->train_gap_ns);
		put32(&w, 0);
	}
	return (uint32_t)(w.at - out);
}

static bool spec_ok(const struct flow_spec *s, const struct control_request *request)
{
	if (s->start_ns > INT64_MAX || s->rate_bps > INT64_MAX || s->model >= FLOW_MODELS ||
	    s->cc_index > request->cc_count)
		return false;
	if (!s->udp)
		return true;
	/* A packet that takes longer than a second of a talk spurt would draw thousands of spurts for each packet. */
	if (s->model == FLOW_VOIP && s->rate_bps < 8u * s->payload_max)
		return false;
	if (s->model == FLOW_TRAIN && !flow_train_fits(s))
		return false;
	return s->rate_bps && s->payload_min >= FLOW_PACKET_HEAD && s->payload_min <= s->payload_max &&
	       s->payload_max <= FLOW_PAYLOAD_MAX;
}

int control_flows_read(struct flow_spec *specs, uint32_t *first, const struct control_frame *frame,
		       const struct control_request *request)
{
	struct bytes b = body_of(frame);
	uint16_t count;

	*first = bytes_be32(&b);
	count = bytes_be16(&b);
	if (!b.ok || !count || count > CONTROL_RECORDS)
		return -EPROTO;
	for (uint32_t i = 0; i < count; i++) {
		struct bytes r = bytes_sub(&b, CONTROL_RECORD);
		struct flow_spec *s = &specs[i];
		const uint8_t flags = bytes_u8(&r);

		*s = (struct flow_spec){ .down = flags & RECORD_DOWN, .udp = flags & RECORD_UDP };
		s->tos = bytes_u8(&r);
		s->model = bytes_u8(&r);
		s->cc_index = bytes_u8(&r);
		s->start_ns = bytes_be64(&r);
		s->rate_bps = bytes_be64(&r);
		s->payload_min = bytes_be16(&r);
		s->payload_max = bytes_be16(&r);
		s->train = bytes_be16(&r);
		s->train_shrink = bytes_be16(&r);
		s->train_gap_ns = bytes_be64(&r);
		if (!r.ok || !spec_ok(s, request))
			return -EPROTO;
		if (s->cc_index)
			memcpy(s->cc, request->ccs[s->cc_index - 1], FLOW_CC_MAX);
	}
	return count;
}

uint32_t control_ports_write(uint8_t *out, uint32_t count, const struct control_port *ports)
{
	struct writer w = { out };

	put16(&w, (uint16_t)count);
	for (uint32_t i = 0; i < count; i++) {
		put32(&w, ports[i].flow);
		put16(&w, ports[i].port);
	}
	return (uint32_t)(w.at - out);
}

int control_ports_read(struct control_port *ports, uint32_t most, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);
	const uint16_t count = bytes_be16(&b);

	if (count > most)
		return -EPROTO;
	for (uint32_t i = 0; i < count; i++) {
		ports[i].flow = bytes_be32(&b);
		ports[i].port = bytes_be16(&b);
	}
	return b.ok ? count : -EPROTO;
}

uint32_t control_flow_end_write(uint8_t *out, uint32_t flow, const struct flow_end *end)
{
	struct writer w = { out };

	put32(&w, flow);
	put8(&w, end->reason);
	put8(&w, end->error);
	put64(&w, end->time_ns);
	put64(&w, end->bytes);
	put64(&w, end->packets);
	put32(&w, end->missed);
	put64(&w, end->due_packets);
	put64(&w, end->late_packets);
	memcpy(w.at, end->cc, FLOW_CC_MAX);
	w.at += FLOW_CC_MAX;
	put32(&w, end->waited);
	put32(&w, end->idle);
	put64(&w, end->first_ns);
	return (uint32_t)(w.at - out);
}

int control_flow_end_read(uint32_t *flow, struct flow_end *end, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);

	*flow = bytes_be32(&b);
	end->reason = bytes_u8(&b);
	end->error = bytes_u8(&b);
	end->time_ns = bytes_be64(&b);
	end->bytes = bytes_be64(&b);
	end->packets = bytes_be64(&b);
	end->missed = bytes_be32(&b);
	end->due_packets = end->late_packets = UINT64_MAX;
	memset(end->cc, 0, sizeof end->cc);
	/* Newer versions have these fields. */
	if (bytes_left(&b) >= 16 + FLOW_CC_MAX) {
		end->due_packets = bytes_be64(&b);
		end->late_packets = bytes_be64(&b);
		if (!bytes_copy(&b, end->cc, FLOW_CC_MAX) || (end->cc[0] && !cc_name_ok(end->cc)))
			return -EPROTO;
	}
	end->waited = bytes_left(&b) >= 4 ? bytes_be32(&b) : UINT32_MAX;
	end->idle = bytes_left(&b) >= 4 ? bytes_be32(&b) : UINT32_MAX;
	end->first_ns = bytes_left(&b) >= 8 ? bytes_be64(&b) : 0;
	if (end->reason == FLOW_RUNNING || end->reason >= FLOW_REASONS || end->error >= FLOW_ERRORS)
		return -EPROTO;
	return done(&b);
}
