/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Answers to the probes of a trace, read with bounds: ICMP errors with the packet that they quote (RFC 792, RFC 4443),
 * their extensions (RFC 4884) with MPLS labels (RFC 4950), echo replies, and TCP segments.
 */
#ifndef KTRXER_METHODS_TRACE_REPLY_H
#define KTRXER_METHODS_TRACE_REPLY_H

#include <ktrxer.h>

enum { TRACE_LABELS_MAX = 8 };

enum trace_reply_kind {
	TRACE_NO_REPLY = 0,
	TRACE_TIME_EXCEEDED = 1,
	TRACE_DESTINATION_UNREACHABLE = 2,
	TRACE_ECHO_REPLY = 3,
	TRACE_TCP_ANSWER = 4, /* SYN and ACK, or RST */
};

struct trace_label {
	uint32_t label; /* 20 bits */
	uint8_t traffic_class, ttl;
	bool bottom;
};

/* The quoted packet. A router quotes at least its IP header and 8 bytes of the transport header. */
struct trace_quote {
	struct ktrxer_addr from, to;
	uint8_t proto, tos, ttl;
	uint16_t ip_id;                        /* IPv4 */
	uint16_t from_port, to_port, checksum; /* UDP; `checksum` also of ICMP */
	uint16_t icmp_id, icmp_seq;
	uint32_t tcp_sequence;
	bool has_payload; /* of UDP and ICMP: at least TRACE_PAYLOAD_READ bytes of it are here */
	const uint8_t *payload;
};

enum { TRACE_PAYLOAD_READ = 12 };

struct trace_reply {
	enum trace_reply_kind kind;
	struct ktrxer_addr from;
	uint8_t type, code;          /* of ICMP */
	uint8_t ttl;                 /* of the answer's own IP header */
	struct trace_quote quote;    /* of an ICMP error */
	uint16_t icmp_id, icmp_seq;  /* of an echo reply */
	const uint8_t *payload;      /* of an echo reply: TRACE_PAYLOAD_READ bytes, or NULL */
	uint16_t from_port, to_port; /* of a TCP segment */
	uint32_t tcp_acknowledgement;
	bool tcp_reset;
	uint8_t label_count;
	struct trace_label labels[TRACE_LABELS_MAX]; /* the top of the stack first */
};

/* A received frame. False: no answer to any probe. Pointers in the reply are into the frame. */
bool trace_reply_parse(struct trace_reply *reply, const uint8_t *frame, uint32_t length, enum ktrxer_link link);

#endif
