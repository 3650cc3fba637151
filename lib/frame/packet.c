/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "packet.h"

#include "bytes.h"
#include "limits.h"

#include <sys/socket.h>

enum {
	ETHERTYPE_IPV4 = 0x0800,
	ETHERTYPE_IPV6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,    /* 802.1Q */
	ETHERTYPE_SERVICE = 0x88a8, /* 802.1ad */

	PROTO_HOP_BY_HOP = 0,
	PROTO_DCCP = 33,
	PROTO_ROUTING = 43,
	PROTO_FRAGMENT = 44,
	PROTO_AH = 51,
	PROTO_NONE = 59,
	PROTO_DESTINATION = 60,
	PROTO_SCTP = 132,
	PROTO_UDP_LITE = 136,
};

/* What is left of the frame for the cursor, cut at `end`: Ethernet pads short packets, and padding is not payload. */
static void cut_at(struct bytes *b, const uint8_t *frame, uint32_t end)
{
	if (b->end > frame + end)
		b->end = frame + end;
}

static uint16_t offset_of(const struct bytes *b, const uint8_t *frame)
{
	return (uint16_t)(b->at - frame);
}

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
	case PROTO_UDP_LITE:
		header = 8;
		break;
	case PROTO_SCTP:
		header = 12;
		break;
	case KTRXER_TCP:
		bytes_skip(&b, 8);
		header = (uint32_t)(bytes_u8(&b) >> 4) * 4;
		if (b.ok && header < 20)
			view->malformed = true;
		break;
	case PROTO_DCCP:
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

/* `claimed_end` is where the packet ends by its own word, which may lie beyond what was captured. */
static void parse_transport(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b, uint32_t claimed_end)
{
	if (!view->first_fragment || view->proto == PROTO_NONE)
		return;
	if (!bytes_left(&b)) {
		/* Nothing of it is here. Only a packet that ends before its own transport header is at fault. */
		view->malformed |= claimed_end > view->end || view->proto == KTRXER_UDP || view->proto == KTRXER_TCP;
		return;
	}
	view->l4 = offset_of(&b, frame);
	switch (view->proto) {
	case KTRXER_UDP:
	case KTRXER_TCP:
	case PROTO_SCTP:
	case PROTO_DCCP:
	case PROTO_UDP_LITE:
		parse_ports(view, b, claimed_end);
		break;
	case KTRXER_ICMP:
		if (view->version == 4)
			parse_icmp(view, b);
		break;
	case KTRXER_ICMPV6:
		if (view->version == 6)
			parse_icmp(view, b);
		break;
	}
}

static void parse_ipv4(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b)
{
	uint32_t captured = (uint32_t)(b.end - frame), claimed_end;
	const uint8_t *p = bytes_take(&b, 20);
	uint32_t header, total;
	uint16_t fragment;

	if (!p) {
		view->malformed = true;
		return;
	}
	view->version = 4;
	header = (uint32_t)(p[0] & 15) * 4;
	view->tos = p[1];
	total = load_be16(p + 2);
	view->ip_id = load_be16(p + 4);
	fragment = load_be16(p + 6);
	view->dont_fragment = fragment & 0x4000;
	view->fragment = fragment & 0x3fff;
	view->first_fragment = !(fragment & 0x1fff);
	view->ttl = p[8];
	view->proto = p[9];
	view->from.family = AF_INET;
	memcpy(view->from.bytes, p + 12, 4);
	view->to.family = AF_INET;
	memcpy(view->to.bytes, p + 16, 4);
	view->options = header > 20;
	view->end = captured;

	/* 0 is what Linux shows to a tap for a merged packet of more than 64 KiB. */
	claimed_end = total ? view->l3 + total : captured;
	if (header < 20 || (total && total < header)) {
		view->malformed = true;
		return;
	}
	if (claimed_end < captured)
		view->end = claimed_end;
	cut_at(&b, frame, view->end);
	if (!bytes_skip(&b, header - 20)) {
		view->malformed = true;
		return;
	}
	parse_transport(view, frame, b, claimed_end);
}

/* Walks the extension headers; false where the upper layer is not reached. */
static bool parse_extensions(struct ktrxer_packet_view *view, struct bytes *b)
{
	for (int i = 0; i <= KTRXER_IPV6_EXTENSIONS_MAX; i++) {
		struct bytes header = *b;
		uint32_t length;
		uint8_t next;

		switch (view->proto) {
		case PROTO_HOP_BY_HOP:
		case PROTO_ROUTING:
		case PROTO_DESTINATION:
			next = bytes_u8(&header);
			length = ((uint32_t)bytes_u8(&header) + 1) * 8;
			break;
		case PROTO_AH:
			next = bytes_u8(&header);
			length = ((uint32_t)bytes_u8(&header) + 2) * 4;
			break;
		case PROTO_FRAGMENT: {
			uint16_t offset;

			next = bytes_u8(&header);
			bytes_skip(&header, 1);
			offset = bytes_be16(&header);
			length = 8;
			if (header.ok) {
				view->fragment = true;
				view->first_fragment = !(offset & 0xfff8);
			}
			break;
		}
		default:
			return true;
		}
		view->options = true;
		if (i == KTRXER_IPV6_EXTENSIONS_MAX || !header.ok || !bytes_skip(b, length)) {
			view->malformed = true;
			return false;
		}
		view->proto = next;
		if (!view->first_fragment) /* what follows is the middle of something */
			return false;
	}
	return false;
}

static void parse_ipv6(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b)
{
	uint32_t captured = (uint32_t)(b.end - frame), claimed_end;
	const uint8_t *p = bytes_take(&b, 40);
	uint32_t length;

	if (!p) {
		view->malformed = true;
		return;
	}
	view->version = 6;
	view->tos = (uint8_t)(load_be16(p) >> 4);
	length = load_be16(p + 4);
	view->proto = p[6];
	view->ttl = p[7];
	view->dont_fragment = true; /* routers never do */
	view->first_fragment = true;
	view->from.family = AF_INET6;
	memcpy(view->from.bytes, p + 8, 16);
	view->to.family = AF_INET6;
	memcpy(view->to.bytes, p + 24, 16);
	/* 0 is a jumbogram, or a merged packet of more than 64 KiB. */
	claimed_end = length || view->proto == PROTO_NONE ? view->l3 + 40 + length : captured;
	view->end = claimed_end < captured ? claimed_end : captured;
	cut_at(&b, frame, view->end);
	if (parse_extensions(view, &b))
		parse_transport(view, frame, b, claimed_end);
}

void ktrxer_packet_parse(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct bytes b = bytes_of(frame, length);
	uint8_t version;

	memset(view, 0, sizeof *view);
	view->end = length;
	if (link == KTRXER_LINK_ETHERNET) {
		bytes_skip(&b, 12);
		view->ethertype = bytes_be16(&b);
		while (view->vlans < 2 && (view->ethertype == ETHERTYPE_VLAN || view->ethertype == ETHERTYPE_SERVICE)) {
			uint16_t tci = bytes_be16(&b);

			if (!view->vlans)
				view->vlan_tci = tci;
			view->ethertype = bytes_be16(&b);
			if (b.ok)
				view->vlans++;
		}
		if (!b.ok) {
			view->malformed = true;
			return;
		}
		if (view->ethertype != ETHERTYPE_IPV4 && view->ethertype != ETHERTYPE_IPV6)
			return;
	}
	view->l3 = offset_of(&b, frame);
	if (!bytes_left(&b)) {
		view->malformed = true;
		return;
	}
	version = *b.at >> 4;
	if (version == 4 && view->ethertype != ETHERTYPE_IPV6)
		parse_ipv4(view, frame, b);
	else if (version == 6 && view->ethertype != ETHERTYPE_IPV4)
		parse_ipv6(view, frame, b);
	else
		view->malformed = true;
}

/* ---------------------------------------------------------------------------------------------------------- sums */

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
		uint32_t length = next == PROTO_FRAGMENT ? 8 :
				  next == PROTO_AH	 ? (header[1] + 2u) * 4 :
							   (header[1] + 1u) * 8;

		if (at + length > view->l4)
			return NULL;
		if (next == PROTO_ROUTING && header[3]) {
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
