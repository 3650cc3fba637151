/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The ends of a UDP flow, as their own files use them. */
#ifndef KTRXER_METHODS_FLOW_UDP_STATE_H
#define KTRXER_METHODS_FLOW_UDP_STATE_H

#include "clock.h"
#include "flow_count.h"
#include "flow_udp.h"
#include "traffic_model.h"

struct flow_udp {
	struct flow *flow;
	struct loop *loop;
	uint8_t tag[8];
	/* sender */
	struct loop_timer timer;
	struct loop_source events; /* of the transmitter */
	struct ktx *tx;
	struct ktx_info info;
	struct ktrxer_path path;
	struct ktrxer_frame_spec frame;
	uint32_t head; /* bytes of a frame before its payload */
	struct traffic_model model;
	uint64_t due_ns, next; /* the packet that is next: when, and its number */
	uint32_t due_payload;
	bool have_due, exhausted, pumps;
	bool watched; /* the packets of this turn get a stamp for their path */
	bool crowded; /* AHEAD_PACKETS are committed, and more are due soon */
	uint64_t committed_bytes;
	uint64_t *due_times; /* of the last `slots` packets: by number, modulo `slots` */
	uint32_t slots;
	struct ktx_accounts before; /* of packets before its begin: introductions */
	int network_error;
	uint64_t moved_ns; /* the last change of the receiver's port */
	/* receiver */
	struct flow_count count;
	struct ktrxer_addr peer;
	uint64_t last_ns, reported_ns, reported_packets;
	uint64_t gap_ns;    /* between the last two packets */
	bool ended_early;   /* the sender reports so */
	uint64_t overflows; /* since the first packet, of a socket that several flows share */
	uint32_t overflow_seen;
	int socket; /* that the packets come by; -1: not known */
	bool reported;
	struct ktrxer_clock_map clock; /* train: of the stamps of arrivals */
};

/* flow_udp_state.c. flow->udp, with a tag from the cookie, and nothing opened. 0 or -ENOMEM. */
int flow_udp_new(struct flow *flow, const uint8_t cookie[CONTROL_COOKIE]);
void flow_udp_free(struct flow *flow);
void flow_udp_say_packet(const struct flow_udp *u, enum flow_packet_kind kind, uint64_t number, uint64_t time_ns);

void flow_udp_begin(struct flow *flow);
void flow_udp_stop(struct flow *flow);
uint64_t flow_udp_pending(const struct flow_udp *u); /* packets that are committed and have not left */
void flow_udp_account(struct flow *flow, struct flow_end *end);

#endif
