/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The probes of a trace, and which answer belongs to which. As in Paris traceroute (Augustin et al., IMC 2006), what
 * routers hash is the same in all packets of a flow, and different in two flows: the source port of UDP and TCP, the
 * checksum of ICMP. A probe's number stands where routers do not look: in the IPv4 identification, the UDP checksum,
 * the ICMP sequence number, the TCP sequence number; and in the payload, with a secret.
 */
#ifndef KTRXER_METHODS_TRACE_PROBE_H
#define KTRXER_METHODS_TRACE_PROBE_H

#include "trace_graph.h"
#include "trace_reply.h"

struct trace_probe {
	struct ktrxer_path path;
	enum ktrxer_link link;
	uint8_t proto; /* KTRXER_UDP, KTRXER_TCP, KTRXER_ICMP, KTRXER_ICMPV6 */
	uint8_t tos;
	uint16_t port;      /* of the destination, for UDP and TCP */
	uint16_t flow_base; /* flow 0: source port, or ICMP checksum */
	uint16_t icmp_id;
	uint32_t tcp_base; /* sequence number of probe 0 */
	uint8_t secret[6];
	bool no_ip_id; /* the kernel chooses the IPv4 identification */
};

/* A probe as it was sent: what an answer is compared with. */
struct trace_sent {
	uint32_t number;
	struct trace_want want;
};

/* Changes by the network in a probe, as the quote shows them. */
struct trace_changes {
	bool address;  /* source or destination, address or port */
	bool checksum; /* of UDP or ICMP: a translator changed what it covers */
	bool ip_id;
	bool tos;
};

enum { TRACE_FRAME_MAX = 14 + 40 + 20 + 16, TRACE_FLOW_BASE_MIN = 20000, TRACE_FLOW_BASE_MAX = 50000 };

/* Writes a probe into `frame`. Its length, or a negative errno of ktrxer_frame_build(). */
int trace_probe_build(const struct trace_probe *p, uint8_t *frame, uint32_t capacity, const struct trace_sent *sent);

/*
 * Reads the number of the probe that a reply is about: all 32 bits, or only the low 16 (*whole false). False: the reply
 * is about none of ours.
 */
bool trace_probe_number(const struct trace_probe *p, const struct trace_reply *reply, uint32_t *number, bool *whole);
/* Reads it from the payload that the kernel returns with an error of a socket. */
bool trace_probe_returned(const struct trace_probe *p, const uint8_t *payload, uint32_t length, uint32_t *number);
/* Whether the reply fits the probe of this number, and what was changed on the way. */
bool trace_probe_fits(const struct trace_probe *p, const struct trace_reply *reply, const struct trace_sent *sent,
		      struct trace_changes *changes);

#endif
