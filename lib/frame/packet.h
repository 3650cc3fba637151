/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The headers of a frame: parsed once, with bounds, for rules, engines and methods. */
#ifndef KTRXER_LIB_PACKET_H
#define KTRXER_LIB_PACKET_H

#include <ktrxer.h>

struct ktrxer_packet_view {
	uint16_t ethertype;       /* after VLAN tags; 0 for KTRXER_LINK_RAW_IP */
	uint8_t vlans;            /* tags in the frame: 0, 1, 2 */
	uint16_t vlan_tci;        /* of the outermost */
	uint8_t version;          /* 4 or 6; 0: not IP (then nothing below counts) */
	uint16_t l3, l4, payload; /* offsets in the frame; l4 and payload are 0 where the packet does not reach them */
	uint32_t end;             /* offset of the end of the IP packet (by its own length, cut to what is there) */
	uint8_t proto;            /* the upper-layer protocol, after IPv6 extension headers */
	uint8_t tos, ttl;
	uint16_t ip_id;
	bool dont_fragment;
	bool fragment;       /* any fragment */
	bool first_fragment; /* or none at all: the ports are there */
	bool malformed;      /* a length lies or a header is cut short; fields so far are kept */
	bool options;        /* IPv4 options or IPv6 extension headers are there */
	struct ktrxer_addr from, to;
	bool ports; /* UDP, TCP, SCTP, DCCP, UDP-Lite with their ports here */
	uint16_t from_port, to_port;
	uint8_t icmp_type, icmp_code; /* ICMP, ICMPv6 */
	uint16_t icmp_id, icmp_seq;   /* of echo requests and replies */
};

/* Never fails: what cannot be read is marked. `length` is what is captured; `link` says which header comes first. */
void ktrxer_packet_parse(struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length, enum ktrxer_link link);

/* RFC 1071: the folded one's-complement sum of `length` bytes, starting from `sum`. ~ of it is the checksum. */
uint32_t ktrxer_sum(const uint8_t *data, uint32_t length, uint32_t sum);
uint16_t ktrxer_sum_fold(uint32_t sum);
/* The transport checksum that this packet should carry (pseudo header included), 0 if it is not UDP, TCP or ICMP. */
uint16_t ktrxer_transport_checksum(const uint8_t *frame, const struct ktrxer_packet_view *view);

#endif
