/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "packet.h"

#include "bytes.h"

#include <sys/socket.h>

struct krx_source {
	const uint8_t *at;
	unsigned long length;
};

static inline const uint8_t *krx_take(const struct krx_source *s, unsigned long at, unsigned int n, void *room)
{
	(void)room;
	return at > s->length || n > s->length - at ? NULL : s->at + at;
}

#include <linux/ktrxer_classify.h>

enum { ETHERNET_HEADER = 14 };

static void parse_ports(struct ktrxer_packet_view *view, struct bytes b, uint32_t claimed_end)
{
	uint32_t header = 0;
	const uint8_t *p = bytes_take(&b, 4);

	if (!p) {
		view->malformed = true;
		return;
	}
	view->ports = true;
	view->from_port = load_be16(p);
	view->to_port = load_be16(p + 2);

	switch (view->proto) {
	case KTRXER_UDP: {
		uint16_t length = bytes_be16(&b);

		header = 8;
		/* 0 is a jumbogram's; a first fragment holds less than the datagram says. */
		if (b.ok && length && (length < 8 || (!view->fragment && length > claimed_end - view->l4)))
			view->malformed = true;
		break;
	}
	case KRX_PROTO_UDP_LITE:
		header = 8;
		break;
	case KRX_PROTO_SCTP:
		header = 12;
		break;
	case KTRXER_TCP:
		bytes_skip(&b, 8);
		header = (uint32_t)(bytes_u8(&b) >> 4) * 4;
		if (b.ok && header < 20)
			view->malformed = true;
		break;
	case KRX_PROTO_DCCP:
		header = (uint32_t)bytes_u8(&b) * 4;
		if (b.ok && header < 12)
			view->malformed = true;
		break;
	}
	if (!b.ok || view->l4 + header > view->end)
		view->malformed = true;
	else if (!view->malformed)
		view->payload = (uint16_t)(view->l4 + header);
}

static void parse_icmp(struct ktrxer_packet_view *view, struct bytes b)
{
	const uint8_t *p = bytes_take(&b, 2);
	bool echo;

	if (!p) {
		view->malformed = true;
		return;
	}
	view->icmp_type = p[0];
	view->icmp_code = p[1];
	if (view->version == 4)
		echo = p[0] == 0 || p[0] == 8;
	else
		echo = p[0] == 128 || p[0] == 129;
	p = bytes_take(&b, 6);
	if (!p) {
		view->malformed = true;
		return;
	}
	if (echo) {
		view->icmp_id = load_be16(p + 2);
		view->icmp_seq = load_be16(p + 4);
	}
	view->payload = (uint16_t)(view->l4 + 8);
}

static void parse_transport(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t at, uint32_t claimed_end)
{
	struct bytes b = bytes_of(frame + at, view->end - at);

	if (view->proto == KRX_PROTO_NONE)
		return;
	if (at == view->end) {
		/* Nothing of it is here. Only a packet that ends before its own transport header is at fault. */
		view->malformed |= claimed_end > view->end || view->proto == KTRXER_UDP || view->proto == KTRXER_TCP;
		return;
	}
	view->l4 = (uint16_t)at;
	if (krx_proto_has_ports(view->proto))
		parse_ports(view, b, claimed_end);
	else if (view->proto == (view->version == 4 ? KTRXER_ICMP : KTRXER_ICMPV6))
		parse_icmp(view, b);
}

static void set_ipv4(struct ktrxer_packet_view *view, const uint8_t *header)
{
	view->tos = header[1];
	view->ip_id = load_be16(header + 4);
	view->dont_fragment = load_be16(header + 6) & 0x4000;
	view->ttl = header[8];
	view->from.family = AF_INET;
	view->to.family = AF_INET;
	view->options = (header[0] & 15) > 5;
}

static void set_ipv6(struct ktrxer_packet_view *view, const uint8_t *header)
{
	view->tos = (uint8_t)(load_be16(header) >> 4);
	view->dont_fragment = true; /* routers never do */
	view->ttl = header[7];
	view->from.family = AF_INET6;
	view->to.family = AF_INET6;
	view->options = krx_proto_is_extension(header[6]);
}

void ktrxer_packet_parse(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	const uint32_t base = link == KTRXER_LINK_ETHERNET ? ETHERNET_HEADER : 0;
	struct krx_source source;
	struct krx_view key;
	struct krx_walk walk;

	memset(view, 0, sizeof *view);
	view->end = length;
	if (length < base) {
		view->malformed = true;
		return;
	}
	source = (struct krx_source){ frame + base, length - base };
	krx_classify(&key, &walk, &source, base ? load_be16(frame + 12) : KRX_TYPE_RAW, 0);
	view->malformed = walk.bad;
	if (base) {
		view->ethertype = (uint16_t)walk.type;
		view->vlans = (uint8_t)walk.tags;
		if (walk.tags)
			view->vlan_tci = load_be16(frame + ETHERNET_HEADER);
	}
	if (!key.version)
		return;

	view->l3 = (uint16_t)(base + walk.l3);
	view->version = key.version;
	view->proto = key.proto;
	view->end = base + (uint32_t)walk.end;
	view->fragment = walk.fragment;
	view->first_fragment = !walk.later;
	memcpy(view->from.bytes, key.from, sizeof key.from);
	memcpy(view->to.bytes, key.to, sizeof key.to);
	if (key.version == 4)
		set_ipv4(view, frame + view->l3);
	else
		set_ipv6(view, frame + view->l3);
	if (!walk.bad && !walk.later)
		parse_transport(view, frame, base + (uint32_t)walk.at, base + (uint32_t)walk.claimed);
}

uint16_t ktrxer_sum_fold(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16));
}

uint32_t ktrxer_sum(const uint8_t *data, uint32_t length, uint32_t sum)
{
	uint64_t wide = sum; /* 2^32 words of 32 bits fit: no carry is lost */

	while (length >= 4) {
		wide += load_be32(data);
		data += 4;
		length -= 4;
	}
	if (length >= 2) {
		wide += load_be16(data);
		data += 2;
		length -= 2;
	}
	if (length)
		wide += (uint32_t)*data << 8;
	wide = (wide & 0xffffffff) + (wide >> 32);
	wide = (wide & 0xffffffff) + (wide >> 32);
	return ktrxer_sum_fold((uint32_t)wide);
}

/*
 * The destination that the pseudo header of IPv6 wants is the final one (RFC 8200, 8.1): on the way it stands in the
 * routing header. NULL when that is of a type whose layout is not known here.
 */
static const uint8_t *final_destination(const uint8_t *frame, const struct ktrxer_packet_view *view)
{
	const uint8_t *to = frame + view->l3 + 24;
	uint32_t at = view->l3 + 40u;
	uint8_t next = frame[view->l3 + 6];

	/* ktrxer_packet_parse() has been this way and found every length good, else l4 were 0. */
	while (at + 8 <= view->l4) {
		const uint8_t *header = frame + at;
		uint32_t length = next == KRX_PROTO_FRAGMENT ? 8
				  : next == KRX_PROTO_AH     ? (header[1] + 2u) * 4
							     : (header[1] + 1u) * 8;

		if (at + length > view->l4)
			return NULL;
		if (next == KRX_PROTO_ROUTING && header[3]) {
			if (length < 24)
				return NULL;
			if (header[2] == 4) /* segment routing: the last segment comes first */
				to = header + 8;
			else if (header[2] == 0 || header[2] == 2)
				to = frame + at + 8 + (length - 8) / 16 * 16 - 16;
			else
				return NULL;
		}
		next = header[0];
		at += length;
	}
	return to;
}

uint16_t ktrxer_transport_checksum(const uint8_t *frame, const struct ktrxer_packet_view *view)
{
	uint32_t length, claimed, at, sum = 0;
	uint16_t checksum;

	if (!view->version || !view->l4 || view->fragment || view->malformed || view->end <= view->l4)
		return 0;
	claimed = view->version == 4 ? load_be16(frame + view->l3 + 2) : load_be16(frame + view->l3 + 4) + 40u;
	if (view->l3 + claimed > view->end) /* cut short by the capture: the sum cannot be known */
		return 0;
	length = view->end - view->l4;

	switch (view->proto) {
	case KTRXER_UDP:
		at = 6;
		if (view->payload && load_be16(frame + view->l4 + 4))
			length = load_be16(frame + view->l4 + 4);
		break;
	case KTRXER_TCP:
		at = 16;
		break;
	case KTRXER_ICMP:
		if (view->version != 4)
			return 0;
		at = 2;
		break;
	case KTRXER_ICMPV6:
		if (view->version != 6)
			return 0;
		at = 2;
		break;
	default:
		return 0;
	}
	if (length < at + 2 || view->l4 + length > view->end)
		return 0;

	if (view->version == 4 && view->proto != KTRXER_ICMP) {
		sum = ktrxer_sum(frame + view->l3 + 12, 8, view->proto + length);
	} else if (view->version == 6) {
		const uint8_t *to = final_destination(frame, view);

		if (!to)
			return 0;
		sum = ktrxer_sum(frame + view->l3 + 8, 16, view->proto);
		sum = ktrxer_sum(to, 16, sum + (length >> 16) + (length & 0xffff));
	}
	sum = ktrxer_sum(frame + view->l4, at, sum);
	sum = ktrxer_sum(frame + view->l4 + at + 2, length - at - 2, sum);
	checksum = (uint16_t)~ktrxer_sum_fold(sum);
	return view->proto == KTRXER_UDP && !checksum ? 0xffff : checksum;
}
