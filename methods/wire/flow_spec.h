/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Client, server and wire share these: a flow's specification, its samples and its end. */
#ifndef KTRXER_METHODS_FLOW_SPEC_H
#define KTRXER_METHODS_FLOW_SPEC_H

#include "marks.h"

#include <ktrxer.h>

enum {
	KTRXER_FLOW_FLOWS_MAX = 16384,
	KTRXER_FLOW_UDP_MAX = 64, /* UDP flows of one client: each has a transmitter of its own */
	/* a longer interval is no series; and times near 2^64 ns would pass it at once */
	KTRXER_FLOW_SAMPLE_MAX_S = 3600,
	KTRXER_TRAIN_PACKETS_MAX = 1000, /* packets of one train */
	KTRXER_TRAIN_BYTES = 2 << 20,    /* and their payload: 2^24 bits times 10^9 stay within 64 bits */
};

enum {
	FLOW_CC_MAX = 16,        /* a name and its NUL: the kernel's TCP_CA_NAME_MAX */
	FLOW_PACKET_HEAD = 24,   /* of a UDP flow's payload: tag, number, time of leaving */
	FLOW_PAYLOAD_MAX = 9000, /* the server's socket takes a whole one */
};

enum flow_model {
	FLOW_CONSTANT = 0, /* each gap the same */
	FLOW_POISSON = 1,  /* exponential gaps */
	FLOW_VOIP = 2,     /* talk spurts and pauses (ITU-T P.59) */
	FLOW_TRAIN = 3,    /* groups of packets; each packet is recorded at both ends */
	FLOW_MODELS,
};

struct flow_spec {
	bool down; /* from server to client */
	bool udp;
	uint8_t tos;          /* DSCP times 4; UDP: and ECN */
	uint8_t model;        /* enum flow_model; UDP */
	uint8_t cc_index;     /* on the wire: which of the request's names, from 1; 0: the sender's default */
	char cc[FLOW_CC_MAX]; /* "": the sender's default */
	uint64_t start_ns;    /* after the start of all */
	uint64_t rate_bps;    /* of payload; TCP: 0, or paced at it. UDP: never 0 */
	uint16_t payload_min, payload_max; /* UDP: drawn evenly; FLOW_TRAIN: of the others, of the first */
	uint16_t train; /* FLOW_TRAIN: packets of a train; rate_bps is the mean rate, with the time between trains */
	uint16_t train_shrink; /* each gap in 1/65536 of the one before; 0: all gaps are equal */
	uint64_t train_gap_ns; /* between the first two packets; 0: all are sent back to back */
};

/*
 * FLOW_TRAIN: the payload of one train, in bits; and whether its numbers are within the limits, of which one is: a
 * train lasts at most half of the time between trains.
 */
uint64_t flow_train_bits(const struct flow_spec *spec);
bool flow_train_fits(const struct flow_spec *spec);

/* How a flow ended, by the end that says so. */
enum flow_reason {
	FLOW_RUNNING = 0,
	FLOW_PLANNED = 1, /* its time or bytes were over */
	FLOW_STOPPED = 2, /* a request ended it */
	FLOW_BROKEN = 3,  /* an error of the network; see flow_error */
	FLOW_CLOSED = 4,  /* the other end closed it */
	FLOW_REASONS,
};

/* Errors as the wire carries them: errno's numbers differ between architectures. */
enum flow_error {
	FLOW_NO_ERROR = 0,
	FLOW_RESET,
	FLOW_TIMEOUT,
	FLOW_REFUSED,
	FLOW_UNREACHABLE,
	FLOW_TOO_LARGE,
	FLOW_NOT_ALLOWED,
	FLOW_NO_ROOM,
	FLOW_IN_USE,
	FLOW_OTHER,
	FLOW_NO_NEIGHBOUR, /* of a sender: its packets did not leave its host */
	FLOW_ERRORS,
};
extern const char *const flow_error_words[FLOW_ERRORS]; /* as the end of a sentence */
/* Of flow_error_of(), beside errnos: EHOSTUNREACH by a message of the sending host's own kernel. */
#define FLOW_ERRNO_NEIGHBOUR 4096
enum flow_error flow_error_of(int error); /* an errno, of either sign */

/* Values of the kernel for a TCP sender, and the counts of a UDP flow; UINT64_MAX: not known, or infinite. */
enum flow_value {
	FLOW_RTT_US,
	FLOW_RTTVAR_US,
	FLOW_MIN_RTT_US,
	FLOW_CWND,
	FLOW_SSTHRESH,
	FLOW_UNACKED,
	FLOW_LOST,
	FLOW_RETRANSMITS,
	FLOW_DELIVERY_BPS,
	FLOW_PACING_BPS,
	FLOW_DELIVERED,
	FLOW_DELIVERED_CE,
	FLOW_NOTSENT,
	FLOW_MSS,
	FLOW_PMTU,
	FLOW_RCV_WINDOW,
	FLOW_REORDERING,
	FLOW_CA_STATE,
	FLOW_OPTIONS,
	FLOW_TCP_VALUES,
};
enum flow_udp_value {
	FLOW_PACKETS,
	FLOW_ECT0,
	FLOW_ECT1,
	FLOW_CE,
	FLOW_UDP_LOST,
	FLOW_REORDERED,
	FLOW_DUPLICATES,
	FLOW_OVERFLOWS,
	FLOW_UDP_VALUES,
};
enum { FLOW_VALUES_MAX = FLOW_TCP_VALUES };
extern const char *const flow_tcp_names[FLOW_TCP_VALUES], *const flow_udp_names[FLOW_UDP_VALUES];

enum { FLOW_ECN_NEGOTIATED = 8, FLOW_ECN_ARRIVED = 16 }; /* in FLOW_OPTIONS, as tcpi_options has it */

enum flow_sample_kind {
	FLOW_BYTES = 0, /* nothing but them */
	FLOW_TCP = 1,   /* a TCP sender's */
	FLOW_UDP = 2,   /* either end of a UDP flow */
	FLOW_SAMPLE_KINDS,
};

struct flow_sample {
	uint64_t time_ns; /* of the host that took it */
	uint64_t bytes;   /* so far: a sender's that were acknowledged (UDP: that left), a receiver's that were read */
	uint8_t kind;
	uint64_t values[FLOW_VALUES_MAX];
};

enum flow_packet_kind {
	FLOW_PACKET_ARRIVED = 0,   /* the kernel's stamp of its arrival */
	FLOW_PACKET_SENT = 1,      /* the stamp of the driver or the NIC */
	FLOW_PACKET_COMMITTED = 2, /* sent without such a stamp: the time before the system call */
	FLOW_PACKET_KINDS,
};

/* One packet of a FLOW_TRAIN, as one end saw it. */
struct flow_packet {
	uint64_t number;
	uint64_t time_ns; /* CLOCK_MONOTONIC of the host that saw it */
	uint8_t kind;     /* enum flow_packet_kind */
};

enum flow_ecn_seen { FLOW_ECN_UNKNOWN = 0, FLOW_ECN_NONE = 1, FLOW_ECN_SEEN = 2 };

struct flow_end {
	uint8_t reason;   /* enum flow_reason */
	uint8_t error;    /* enum flow_error */
	uint64_t time_ns; /* of the host that says it */
	uint64_t bytes;   /* as in a sample */
	uint64_t packets; /* UDP; else 0 */
	uint32_t missed;  /* samples that could not be taken in time, or sent */
	/*
	 * A receiver's: when its first byte came (UDP: less the time of the packets before it); 0: none, or not known.
	 */
	uint64_t first_ns;
	/* A sender sets these; UINT64_MAX, "": not known. */
	uint64_t due_packets;  /* UDP: so many its schedule had */
	uint64_t late_packets; /* UDP: of those sent, so many later than a tenth of their gap, and than 100 us */
	char cc[FLOW_CC_MAX];  /* TCP: the congestion control in use */
	/*
	 * The thread of either end was ready and had no processor for so many thousandths of the flow's time;
	 * UINT32_MAX: not known.
	 */
	uint32_t waited;
	/* A TCP sender had no unacknowledged data for so many thousandths of its time; UINT32_MAX: not known. */
	uint32_t idle;
	/*
	 * A receiver's. TCP: whether a segment with an ECN mark arrived, and how many with CE until a time (UINT32_MAX:
	 * not known). UDP: the marks of the packets that count.
	 */
	uint8_t ecn_seen; /* enum flow_ecn_seen */
	uint32_t ce_segments;
	uint64_t ce_first_ns; /* of the first sample with CE; 0: none */
	struct marks marks;
	uint32_t
		moves; /* UDP, the server's: changes of the client's address or port, as a NAT on the path makes them */
};

#endif
