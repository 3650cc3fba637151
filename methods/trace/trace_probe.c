/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_probe.h"

#include "bytes.h"

#include <string.h>
#include <sys/socket.h>

/* Payload: two bytes that make the checksum what it must be, the secret, the number. */
enum { BALANCE = 0, SECRET = 2, NUMBER = 8, PAYLOAD = 12 };

_Static_assert((int)PAYLOAD == (int)TRACE_PAYLOAD_READ, "a quote is read as far as the payload goes");

static uint16_t add(uint16_t a, uint16_t b)
{
	const uint32_t sum = (uint32_t)a + b;

	return (uint16_t)(sum + (sum >> 16));
}

/* The number, where 16 bits must hold it: neither 0 (a UDP checksum that is absent, an identification that is not set)
 * nor its complement. */
static uint16_t low_id(uint32_t number)
{
	return (uint16_t)(1 + number % 0xfffe);
}

static uint16_t flow_field(const struct trace_probe *p, uint16_t flow)
{
	return (uint16_t)(p->flow_base + flow);
}

static bool is_icmp(const struct trace_probe *p)
{
	return p->proto == KTRXER_ICMP || p->proto == KTRXER_ICMPV6;
}

/* The checksum of UDP is the number's; that of ICMP is the flow's. */
static uint16_t checksum_of(const struct trace_probe *p, const struct trace_sent *sent)
{
	return is_icmp(p) ? flow_field(p, sent->want.flow) : low_id(sent->number);
}

int trace_probe_build(const struct trace_probe *p, uint8_t *frame, uint32_t capacity, const struct trace_sent *sent)
{
	struct ktrxer_frame_spec spec = KTRXER_FRAME_SPEC_INIT;
	uint8_t payload[PAYLOAD] = { 0 }, *ip, *at;
	uint16_t wanted;
	int length;

	memcpy(payload + SECRET, p->secret, sizeof p->secret);
	store_be32(payload + NUMBER, sent->number);
	spec.path = &p->path;
	spec.link = p->link;
	spec.proto = p->proto;
	spec.tos = p->tos;
	spec.ttl = sent->want.hop;
	spec.from_port = is_icmp(p) ? p->icmp_id : flow_field(p, sent->want.flow);
	spec.to_port = is_icmp(p) ? low_id(sent->number) : p->port;
	if (p->proto == KTRXER_TCP) {
		spec.tcp_sequence = p->tcp_base + sent->number;
		spec.tcp_flags = KTRXER_TCP_SYN;
		spec.tcp_window = 1024;
	} else {
		spec.payload = payload;
		spec.payload_length = PAYLOAD;
	}
	length = ktrxer_frame_build(frame, capacity, &spec);
	if (length < 0)
		return length;
	ip = frame + (p->link == KTRXER_LINK_ETHERNET ? 14 : 0);
	if (p->path.to.family == AF_INET && !p->no_ip_id) {
		/* RFC 1624: the header's checksum moves with the identification. */
		const uint16_t before = load_be16(ip + 4), after = low_id(sent->number);

		store_be16(ip + 4, after);
		store_be16(ip + 10, (uint16_t)~add(add((uint16_t)~load_be16(ip + 10), (uint16_t)~before), after));
	}
	if (p->proto == KTRXER_TCP)
		return length;
	at = frame + length - PAYLOAD - (is_icmp(p) ? 6 : 2);
	wanted = checksum_of(p, sent);
	store_be16(frame + length - PAYLOAD + BALANCE, add((uint16_t)~wanted, load_be16(at)));
	store_be16(at, wanted);
	return length;
}

/* Routers that quote less than the payload may fill up with zeros, up to the extensions. */
static bool is_quoted(const struct trace_quote *quote)
{
	static const uint8_t zeros[PAYLOAD];

	return quote->has_payload && memcmp(quote->payload, zeros, PAYLOAD) != 0;
}

static bool number_in_payload(const struct trace_probe *p, const uint8_t *payload, uint32_t *number)
{
	*number = load_be32(payload + NUMBER);
	return memcmp(payload + SECRET, p->secret, sizeof p->secret) == 0;
}

bool trace_probe_returned(const struct trace_probe *p, const uint8_t *payload, uint32_t length, uint32_t *number)
{
	return length >= PAYLOAD && number_in_payload(p, payload, number);
}

static uint16_t undo(uint16_t sum, const uint8_t *now, const uint8_t *before, size_t length)
{
	for (size_t i = 0; i < length; i += 2)
		sum = add(add(sum, (uint16_t)~load_be16(now + i)), load_be16(before + i));
	return sum;
}

/*
 * The checksum of a quote before its addresses, its source port (ICMP: identifier) were translated: a translator
 * changes it by their differences (RFC 3022, 4.2; RFC 1624).
 */
static uint16_t untranslated(const struct trace_probe *p, const struct trace_quote *quote, uint16_t from_port)
{
	const bool six = p->path.to.family == AF_INET6;
	const size_t length = six ? 16 : p->proto == KTRXER_ICMP ? 0 : 4; /* ICMP covers no IPv4 address */
	const uint16_t now = is_icmp(p) ? quote->icmp_id : quote->from_port,
		       before = is_icmp(p) ? p->icmp_id : from_port;
	uint16_t sum = (uint16_t)~quote->checksum;

	sum = undo(sum, quote->from.bytes, p->path.source.bytes, length);
	sum = undo(sum, quote->to.bytes, p->path.to.bytes, length);
	sum = add(add(sum, (uint16_t)~now), before);
	if (!is_icmp(p))
		sum = add(add(sum, (uint16_t)~quote->to_port), p->port);
	return (uint16_t)~sum;
}

static bool number_in_quote(const struct trace_probe *p, const struct trace_quote *quote, uint32_t *number, bool *whole)
{
	uint16_t low;

	if (quote->proto != p->proto)
		return false;
	*whole = true;
	if (p->proto == KTRXER_TCP) {
		*number = quote->tcp_sequence - p->tcp_base;
		return true;
	}
	if (is_quoted(quote))
		return number_in_payload(p, quote->payload, number);
	*whole = false;
	low = is_icmp(p)                     ? quote->icmp_seq
	      : p->path.to.family == AF_INET ? quote->ip_id
					     : untranslated(p, quote, quote->from_port);
	*number = low - 1u;
	return low && low != 0xffff;
}

bool trace_probe_number(const struct trace_probe *p, const struct trace_reply *reply, uint32_t *number, bool *whole)
{
	*whole = true;
	switch (reply->kind) {
	case TRACE_TIME_EXCEEDED:
	case TRACE_DESTINATION_UNREACHABLE:
		return number_in_quote(p, &reply->quote, number, whole);
	case TRACE_ECHO_REPLY:
		return is_icmp(p) && reply->icmp_id == p->icmp_id && number_in_payload(p, reply->payload, number);
	case TRACE_TCP_ANSWER:
		*number = reply->tcp_acknowledgement - 1 - p->tcp_base;
		return p->proto == KTRXER_TCP && reply->from_port == p->port;
	default:
		return false;
	}
}

static bool quote_fits(const struct trace_probe *p, const struct trace_quote *quote, const struct trace_sent *sent,
		       struct trace_changes *changes)
{
	const bool four = p->path.to.family == AF_INET;
	const uint16_t flow = flow_field(p, sent->want.flow);
	struct ktrxer_addr source = p->path.source, to = p->path.to;
	bool near, far;

	source.scope_id = to.scope_id = 0;
	near = ktrxer_addr_equal(&quote->from, &source) &&
	       (is_icmp(p) ? quote->icmp_id == p->icmp_id : quote->from_port == flow);
	far = ktrxer_addr_equal(&quote->to, &to) && (is_icmp(p) || quote->to_port == p->port);
	changes->address = !near || !far;
	changes->checksum = p->proto != KTRXER_TCP && quote->checksum != checksum_of(p, sent);
	changes->ip_id = four && quote->ip_id != low_id(sent->number);
	changes->tos = quote->tos != p->tos;
	if (!changes->address || is_quoted(quote))
		return true;
	/* Without the secret, 16 bits alone do not prove that a quote with other addresses is ours: TCP has 32, and one
	 * end is as it was; for the others the checksum is that of the probe, and the number is another field's. */
	if (p->proto == KTRXER_TCP)
		return near || far || (four && !changes->ip_id);
	return untranslated(p, quote, flow) == checksum_of(p, sent) && (is_icmp(p) || !changes->ip_id);
}

bool trace_probe_fits(const struct trace_probe *p, const struct trace_reply *reply, const struct trace_sent *sent,
		      struct trace_changes *changes)
{
	struct ktrxer_addr to = p->path.to;

	to.scope_id = 0;
	*changes = (struct trace_changes){ 0 };
	if (reply->kind == TRACE_TCP_ANSWER)
		return reply->to_port == flow_field(p, sent->want.flow) && ktrxer_addr_equal(&reply->from, &to);
	if (reply->kind == TRACE_ECHO_REPLY)
		return reply->icmp_seq == low_id(sent->number);
	return quote_fits(p, &reply->quote, sent, changes);
}
