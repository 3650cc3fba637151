/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_reply.h"

#include "bytes.h"

#include <string.h>
#include <sys/socket.h>

enum {
	ICMP_HEADER = 8,
	EXTENSION_VERSION = 2,
	EXTENSION_HEADER = 4,
	QUOTE_OF_OLD = 128, /* bytes before the extensions, of routers that give no length (RFC 4884, 5.5) */
	CLASS_MPLS = 1,
	TYPE_INCOMING_STACK = 1,
};

static uint16_t sum_of(const uint8_t *at, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += load_be16(at + i);
	if (length & 1)
		sum += (uint32_t)at[length - 1] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

static void read_labels(struct trace_reply *reply, struct bytes *b)
{
	while (bytes_left(b) >= 4 && reply->label_count < TRACE_LABELS_MAX) {
		const uint32_t entry = bytes_be32(b);

		reply->labels[reply->label_count++] = (struct trace_label){ .label = entry >> 12,
									    .traffic_class = entry >> 9 & 7,
									    .bottom = entry >> 8 & 1,
									    .ttl = (uint8_t)entry };
	}
}

static void read_extensions(struct trace_reply *reply, struct bytes b)
{
	const uint8_t *at = b.at;
	const size_t length = bytes_left(&b);
	uint8_t version = bytes_u8(&b) >> 4;
	uint16_t checksum;

	bytes_skip(&b, 1);
	checksum = bytes_be16(&b);
	/* These bytes are a longer quote if the checksum is wrong. */
	if (!b.ok || version != EXTENSION_VERSION || (checksum && sum_of(at, length) != 0xffff))
		return;
	while (bytes_left(&b) >= EXTENSION_HEADER) {
		const uint16_t size = bytes_be16(&b);
		const uint8_t class = bytes_u8(&b), type = bytes_u8(&b);
		struct bytes object = { 0 };

		if (size < EXTENSION_HEADER)
			return;
		object = bytes_sub(&b, size - EXTENSION_HEADER);
		if (object.ok && class == CLASS_MPLS && type == TYPE_INCOMING_STACK)
			read_labels(reply, &object);
	}
}

static bool quote_ip4(struct trace_quote *quote, struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 20);
	uint32_t header;

	if (!p || p[0] >> 4 != 4)
		return false;
	header = 4u * (p[0] & 15u);
	/* A later fragment has no transport header. */
	if (header < 20 || !bytes_skip(b, header - 20) || load_be16(p + 6) & 0x1fff)
		return false;
	quote->tos = p[1];
	quote->ip_id = load_be16(p + 4);
	quote->ttl = p[8];
	quote->proto = p[9];
	quote->from.family = quote->to.family = AF_INET;
	memcpy(quote->from.bytes, p + 12, 4);
	memcpy(quote->to.bytes, p + 16, 4);
	return true;
}

static bool quote_ip6(struct trace_quote *quote, struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 40);

	/* Our probes have no extension headers. */
	if (!p || p[0] >> 4 != 6)
		return false;
	quote->tos = (uint8_t)(load_be16(p) >> 4);
	quote->proto = p[6];
	quote->ttl = p[7];
	quote->from.family = quote->to.family = AF_INET6;
	memcpy(quote->from.bytes, p + 8, 16);
	memcpy(quote->to.bytes, p + 24, 16);
	return true;
}

static bool quote_read(struct trace_quote *quote, struct bytes b, bool six)
{
	const uint8_t *p;

	if (!(six ? quote_ip6(quote, &b) : quote_ip4(quote, &b)))
		return false;
	p = bytes_take(&b, 8);
	if (!p)
		return false;
	switch (quote->proto) {
	case KTRXER_UDP:
		quote->from_port = load_be16(p);
		quote->to_port = load_be16(p + 2);
		quote->checksum = load_be16(p + 6);
		break;
	case KTRXER_TCP:
		quote->from_port = load_be16(p);
		quote->to_port = load_be16(p + 2);
		quote->tcp_sequence = load_be32(p + 4);
		return true;
	case KTRXER_ICMP:
	case KTRXER_ICMPV6:
		/* An error about anything but an echo request is not about a probe. */
		if (p[0] != (six ? 128 : 8))
			return false;
		quote->checksum = load_be16(p + 2);
		quote->icmp_id = load_be16(p + 4);
		quote->icmp_seq = load_be16(p + 6);
		break;
	default:
		return false;
	}
	quote->payload = bytes_take(&b, TRACE_PAYLOAD_READ);
	quote->has_payload = quote->payload;
	return true;
}

static bool error_read(struct trace_reply *reply, struct bytes icmp, bool six)
{
	const uint8_t *head = bytes_take(&icmp, ICMP_HEADER);
	const size_t room = bytes_left(&icmp);
	size_t quoted;

	if (!head)
		return false;
	quoted = six ? 8u * head[4] : 4u * head[5];
	if (!quoted && room > QUOTE_OF_OLD)
		quoted = QUOTE_OF_OLD;
	if (quoted && quoted < room)
		read_extensions(reply, bytes_of(icmp.at + quoted, room - quoted));
	return quote_read(&reply->quote, icmp, six);
}

static bool icmp_read(struct trace_reply *reply, struct bytes icmp, bool six)
{
	/* Type, with its meaning; the code of "time exceeded" 1 is about reassembly at the far end. */
	if (reply->type == (six ? 3 : 11) && reply->code == 0) {
		reply->kind = TRACE_TIME_EXCEEDED;
		return error_read(reply, icmp, six);
	}
	if (reply->type == (six ? 1 : 3)) {
		reply->kind = TRACE_DESTINATION_UNREACHABLE;
		return error_read(reply, icmp, six);
	}
	if (reply->type == (six ? 129 : 0) && reply->code == 0) {
		reply->kind = TRACE_ECHO_REPLY;
		bytes_skip(&icmp, 4);
		reply->icmp_id = bytes_be16(&icmp);
		reply->icmp_seq = bytes_be16(&icmp);
		reply->payload = icmp.ok ? bytes_take(&icmp, TRACE_PAYLOAD_READ) : NULL;
		return reply->payload != NULL;
	}
	return false;
}

bool trace_reply_parse(struct trace_reply *reply, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_frame_view view;

	*reply = (struct trace_reply){ 0 };
	if (ktrxer_frame_read(&view, frame, length, link) < 0)
		return false;
	reply->from = view.from;
	reply->ttl = view.ttl;
	if (view.proto == KTRXER_TCP) {
		reply->kind = TRACE_TCP_ANSWER;
		reply->from_port = view.from_port;
		reply->to_port = view.to_port;
		reply->tcp_acknowledgement = view.tcp_acknowledgement;
		reply->tcp_reset = view.tcp_flags & KTRXER_TCP_RST;
		return view.tcp_flags & KTRXER_TCP_ACK && view.tcp_flags & (KTRXER_TCP_RST | KTRXER_TCP_SYN);
	}
	if ((view.proto != KTRXER_ICMP && view.proto != KTRXER_ICMPV6) || view.payload < ICMP_HEADER)
		return false;
	reply->type = view.icmp_type;
	reply->code = view.icmp_code;
	return icmp_read(reply, bytes_of(frame + view.payload - ICMP_HEADER, view.payload_length + ICMP_HEADER),
			 view.proto == KTRXER_ICMPV6);
}
