/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The bodies of the control connection's frames. */
#include "control.h"
#include "flow_spec.h"
#include "wire_fields.h"

#include <errno.h>

/* clang-format off */
#define F(member) WIRE_FIELD(control_request, member)
static const struct wire_field request_fields[] = {
	F(flows), F(for_ns), F(bytes), F(whole_ns), F(sample_ns), F(rate_bps), F(cc_count),
};
#undef F
#define F(member) WIRE_FIELD(control_grant, member)
static const struct wire_field grant_fields[] = { F(session), F(max_ns), F(pace_bps) };
#undef F
#define F(member) WIRE_FIELD(control_refuse, member)
static const struct wire_field refuse_fields[] = { F(why), F(value) };
#undef F
#define F(member) WIRE_FIELD(control_pong, member)
static const struct wire_field pong_fields[] = { F(t1_ns), F(t2_ns), F(t3_ns) };
#undef F
#define F(member) WIRE_FIELD(control_port, member)
static const struct wire_field port_fields[] = { F(flow), F(port) };
#undef F
/* A record is these after a byte of flags. */
#define F(member) WIRE_FIELD(flow_spec, member)
static const struct wire_field spec_fields[] = {
	F(tos), F(model), F(cc_index), F(start_ns), F(rate_bps), F(payload_min), F(payload_max), F(train),
	F(train_shrink), F(train_gap_ns), { WIRE_RESERVED, 4 },
};
#undef F
#define F(member) WIRE_FIELD(flow_end, member)
enum { END_OLD = 6, END_CC = 9 }; /* fields of the first version, and of the one with `cc`; then each came alone */
static const struct wire_field end_fields[] = {
	F(reason), F(error), F(time_ns), F(bytes), F(packets), F(missed),
	F(due_packets), F(late_packets), F(cc), F(waited), F(idle), F(first_ns),
	F(ecn_seen), F(ce_segments), F(ce_first_ns), F(marks.tos), F(marks.packets[0]), F(marks.packets[1]),
	F(marks.packets[2]), F(marks.packets[3]), F(marks.packets[4]), F(marks.packets[5]), F(marks.other), F(moves),
};
_Static_assert(MARKS_KINDS == 6, "the table has each kind");
#undef F
/* clang-format on */

static int read_all(void *to, const struct wire_field *fields, size_t count, const struct control_frame *frame)
{
	if (frame->length < wire_bytes(fields, count))
		return -EPROTO;
	wire_read(to, fields, count, frame->body);
	return 0;
}

static struct bytes body_of(const struct control_frame *frame)
{
	return bytes_of(frame->body, frame->length);
}

uint32_t control_request_write(uint8_t *out, const struct control_request *r)
{
	const uint32_t length = WIRE_WRITE(out, request_fields, r);

	memcpy(out + length, r->ccs, r->cc_count * sizeof r->ccs[0]);
	return length + (uint32_t)(r->cc_count * sizeof r->ccs[0]);
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
	if (read_all(r, request_fields, WIRE_COUNT(request_fields), frame) < 0)
		return -EPROTO;
	bytes_skip(&b, WIRE_BYTES(request_fields));
	if (r->cc_count > CONTROL_CCS)
		return -EPROTO;
	for (int i = 0; i < r->cc_count; i++)
		if (!bytes_copy(&b, r->ccs[i], FLOW_CC_MAX) || !cc_name_ok(r->ccs[i]))
			return -EPROTO;
	if (!r->flows || (!r->for_ns && !r->bytes) || !r->sample_ns ||
	    r->sample_ns > KTRXER_FLOW_SAMPLE_MAX_S * (uint64_t)KTRXER_NS_PER_S)
		return -EPROTO;
	return 0;
}

uint32_t control_grant_write(uint8_t *out, const struct control_grant *g)
{
	return WIRE_WRITE(out, grant_fields, g);
}

int control_grant_read(struct control_grant *g, const struct control_frame *frame)
{
	return read_all(g, grant_fields, WIRE_COUNT(grant_fields), frame);
}

uint32_t control_refuse_write(uint8_t *out, const struct control_refuse *r)
{
	return WIRE_WRITE(out, refuse_fields, r);
}

int control_refuse_read(struct control_refuse *r, const struct control_frame *frame)
{
	return read_all(r, refuse_fields, WIRE_COUNT(refuse_fields), frame);
}

uint32_t control_pong_write(uint8_t *out, const struct control_pong *p)
{
	return WIRE_WRITE(out, pong_fields, p);
}

int control_pong_read(struct control_pong *p, const struct control_frame *frame)
{
	return read_all(p, pong_fields, WIRE_COUNT(pong_fields), frame);
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
	return b.ok ? 0 : -EPROTO;
}

enum { RECORD_DOWN = 1, RECORD_UDP = 2 };

uint32_t control_flows_write(uint8_t *out, uint32_t first, uint32_t count, const struct flow_spec *specs)
{
	uint8_t *at = out + 6;

	store_be32(out, first);
	store_be16(out + 4, (uint16_t)count);
	for (uint32_t i = 0; i < count; i++) {
		*at++ = (uint8_t)((specs[i].down ? RECORD_DOWN : 0) | (specs[i].udp ? RECORD_UDP : 0));
		at += WIRE_WRITE(at, spec_fields, &specs[i]);
	}
	return (uint32_t)(at - out);
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
		const uint8_t *r = bytes_take(&b, CONTROL_RECORD);
		struct flow_spec *s = &specs[i];

		if (!r)
			return -EPROTO;
		*s = (struct flow_spec){ .down = r[0] & RECORD_DOWN, .udp = r[0] & RECORD_UDP };
		WIRE_READ(s, spec_fields, r + 1);
		if (!spec_ok(s, request))
			return -EPROTO;
		if (s->cc_index)
			memcpy(s->cc, request->ccs[s->cc_index - 1], FLOW_CC_MAX);
	}
	return count;
}

uint32_t control_ports_write(uint8_t *out, uint32_t count, const struct control_port *ports)
{
	uint8_t *at = out + 2;

	store_be16(out, (uint16_t)count);
	for (uint32_t i = 0; i < count; i++)
		at += WIRE_WRITE(at, port_fields, &ports[i]);
	return (uint32_t)(at - out);
}

int control_ports_read(struct control_port *ports, uint32_t most, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);
	const uint16_t count = bytes_be16(&b);

	if (!b.ok || count > most)
		return -EPROTO;
	for (uint32_t i = 0; i < count; i++) {
		const uint8_t *one = bytes_take(&b, WIRE_BYTES(port_fields));

		if (!one)
			return -EPROTO;
		WIRE_READ(&ports[i], port_fields, one);
	}
	return count;
}

uint32_t control_flow_end_write(uint8_t *out, uint32_t flow, const struct flow_end *end)
{
	store_be32(out, flow);
	return 4 + WIRE_WRITE(out + 4, end_fields, end);
}

int control_flow_end_read(uint32_t *flow, struct flow_end *end, const struct control_frame *frame)
{
	struct bytes b = body_of(frame);
	size_t count = WIRE_COUNT(end_fields);

	*flow = bytes_be32(&b);
	while (count > END_OLD && wire_bytes(end_fields, count) > bytes_left(&b))
		count = count == END_CC ? END_OLD : count - 1;
	if (wire_bytes(end_fields, count) > bytes_left(&b))
		return -EPROTO;
	*end = (struct flow_end){ .due_packets = UINT64_MAX,
				  .late_packets = UINT64_MAX,
				  .waited = UINT32_MAX,
				  .idle = UINT32_MAX,
				  .ce_segments = UINT32_MAX };
	wire_read(end, end_fields, count, b.at);
	if (end->cc[0] && !cc_name_ok(end->cc))
		return -EPROTO;
	return end->reason == FLOW_RUNNING || end->reason >= FLOW_REASONS || end->error >= FLOW_ERRORS ? -EPROTO : 0;
}
