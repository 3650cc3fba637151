/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The reference of the classifier (ktrxer_classify.h) for tests and fuzzers: a second parser of packets, which shares
 * no code with it. It reads a frame from its beginning with a cursor, up to the ports.
 */
#ifndef KTRXER_TESTS_PACKET_REFERENCE_H
#define KTRXER_TESTS_PACKET_REFERENCE_H

#include "bytes.h"
#include "packet.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>

enum { KTRXER_IPV6_EXTENSIONS_MAX = 16 /* no program sends more; a hostile packet could hold a thousand */ };

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

/* The rest of the frame for the cursor, cut at `end`: Ethernet pads short packets, and padding is not payload. */
static inline void cut_at(struct bytes *b, const uint8_t *frame, uint32_t end)
{
	if (b->end > frame + end)
		b->end = frame + end;
}

static inline uint16_t offset_of(const struct bytes *b, const uint8_t *frame)
{
	return (uint16_t)(b->at - frame);
}

/* `claimed_end` is where the packet ends by its own word, which may lie beyond what was captured. */
static inline void parse_transport(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b,
				   uint32_t claimed_end)
{
	if (!view->first_fragment || view->proto == PROTO_NONE)
		return;
	if (!bytes_left(&b)) {
		/* Nothing of it is here. Only a packet that ends before its own transport header is at fault. */
		view->malformed |= claimed_end > view->end || view->proto == KTRXER_UDP || view->proto == KTRXER_TCP;
		return;
	}
	view->l4 = offset_of(&b, frame);
	if (view->proto != KTRXER_UDP && view->proto != KTRXER_TCP && view->proto != PROTO_SCTP &&
	    view->proto != PROTO_DCCP && view->proto != PROTO_UDP_LITE)
		return;
	view->from_port = bytes_be16(&b);
	view->to_port = bytes_be16(&b);
	view->ports = b.ok;
}

static inline void parse_ipv4(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b)
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
static inline bool parse_extensions(struct ktrxer_packet_view *view, struct bytes *b)
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
			if (header.ok && i < KTRXER_IPV6_EXTENSIONS_MAX) {
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

static inline void parse_ipv6(struct ktrxer_packet_view *view, const uint8_t *frame, struct bytes b)
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

static inline void reference_parse(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length,
				   enum ktrxer_link link)
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

/* The first field in which the library's parser and the reference differ; NULL: none. */
static inline const char *packet_differs(const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_packet_view want, got;

	reference_parse(&want, frame, length, link);
	ktrxer_packet_parse(&got, frame, length, link);
#define DIFFER(field)                             \
	if (memcmp(&want.field, &got.field, sizeof want.field) != 0) \
	return #field
	DIFFER(ethertype);
	DIFFER(vlans);
	DIFFER(version);
	if (want.vlans)
		DIFFER(vlan_tci);
	if (!want.version)
		return NULL;
	DIFFER(l3);
	DIFFER(l4);
	DIFFER(end);
	DIFFER(proto);
	DIFFER(tos);
	DIFFER(ttl);
	DIFFER(ip_id);
	DIFFER(dont_fragment);
	DIFFER(fragment);
	DIFFER(first_fragment);
	DIFFER(options);
	DIFFER(from);
	DIFFER(to);
	DIFFER(ports);
	if (want.ports) {
		DIFFER(from_port);
		DIFFER(to_port);
	}
#undef DIFFER
	/* A transport header may be malformed as well. */
	if (got.l4 ? want.malformed && !got.malformed : want.malformed != got.malformed)
		return "malformed";
	return NULL;
}

#endif
