/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ends of a UDP flow. Its sender is a transmitter of the library, so each packet has a send time and its lateness
 * is known; its receiver counts by the numbers in the packets. A packet's payload begins with the flow's tag (the first
 * bytes of its cookie), its number, and the time it was to leave.
 */
#ifndef KTRXER_METHODS_FLOW_UDP_H
#define KTRXER_METHODS_FLOW_UDP_H

#include "control.h"
#include "flow_set.h"

struct flow_udp_route {
	struct ktrxer_addr from, to; /* from.family 0: the route decides */
	uint16_t to_port;
	const char *device, *engine; /* NULL: the route's; udp */
	bool precise;                /* spins, in a thread of its own */
	int cpu;
};

/* The sender's transmitter and port; nothing is sent. `port` is where the packets come from. */
int flow_udp_open_sender(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE], const struct flow_udp_route *route,
			 uint16_t *port, struct ktrxer_error *err);
/* Where the packets go, when that was not known before, or has changed. */
void flow_udp_aim(struct flow *flow, const struct ktrxer_addr *to, uint16_t to_port);
/* A sender's own datagram without a number: the preface that registers it. */
int flow_udp_introduce(struct flow *flow, const uint8_t preface[CONTROL_PREFACE]);
/* A receiver has a socket of its own, or gets its packets by flow_udp_packet(). */
int flow_udp_open_receiver(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE], const struct flow_udp_route *route,
			   struct ktrxer_error *err);
int flow_udp_open_counter(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE]);
/* A receiver's socket sends its preface, which names its flow, to this port of the sender. */
void flow_udp_call(struct flow *flow, uint16_t to_port, const uint8_t preface[CONTROL_PREFACE]);
/* The mean time between arrivals: each packet has its own, also the last one. 0: not known. */
uint64_t flow_udp_arrival_gap_ns(const struct flow *flow);
/* A receiver that runs got no packet for so long, and not for SILENT_GAPS times the time between its packets. */
bool flow_udp_is_silent(const struct flow *flow, uint64_t now_ns, uint64_t for_ns);
/*
 * A packet of the flow came by a socket that others share, which had dropped so many datagrams before it. What it drops
 * from now on is an upper bound of what it drops of the flow.
 */
void flow_udp_shared(struct flow *flow, int fd, uint64_t overflows);
/*
 * True: it was a packet of this flow. `length` of its payload, of which at least FLOW_PACKET_HEAD bytes are at `data`.
 * `real_ns`: the kernel's stamp of its arrival on CLOCK_REALTIME; 0: none.
 */
bool flow_udp_packet(struct flow *flow, const uint8_t *data, uint32_t length, uint8_t tos, uint64_t now_ns,
		     int64_t real_ns);

/* The tag of a packet, as an index. 0: the packet is too short for one. */
uint64_t flow_udp_tag(const uint8_t *data, uint32_t length);
/*
 * A packet with the flow's tag came from another address or port than that of the flow. True: its number is higher than
 * all before, so it is no packet that was recorded and sent again, and the flow goes on from there.
 */
bool flow_udp_moves(struct flow *flow, const uint8_t *data, uint32_t length);

extern const struct flow_ops flow_udp_ops;

/* Returns how late a sender was; NULL: none. Free it with ktrxer_hist_free(). */
struct ktrxer_hist *flow_udp_lateness(const struct flow *flow, struct ktx_accounts *accounts);
/* Reads a sender's engine, and the qdiscs of its device. False: the flow is no sender. */
bool flow_udp_engine(const struct flow *flow, struct ktx_info *info, struct ktrxer_qdiscs *qdiscs);
/* Adds the departures of a sender. */
void flow_udp_witness(const struct flow *flow, struct path_witness *witness);
uint64_t flow_udp_gap_ns(const struct flow_spec *spec); /* the mean time between packets (while any are sent) */

#endif
