/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_spec.h"

#include <errno.h>

const char *const flow_error_words[FLOW_ERRORS] = {
	[FLOW_NO_ERROR] = "without an error",
	[FLOW_RESET] = "the connection was reset by the other end or something on the way",
	[FLOW_TIMEOUT] = "the other end no longer answered (timed out)",
	[FLOW_REFUSED] = "the connection was refused",
	[FLOW_UNREACHABLE] = "the host or its network became unreachable",
	[FLOW_TOO_LARGE] = "its packets are larger than the path takes (MTU)",
	[FLOW_NOT_ALLOWED] = "the system does not allow it (permission, firewall)",
	[FLOW_NO_ROOM] = "the system has no more memory, buffers or descriptors",
	[FLOW_IN_USE] = "the address or port is in use",
	[FLOW_OTHER] = "a system error that has no name here",
	[FLOW_NO_NEIGHBOUR] = "the next hop did not answer (ARP, neighbour discovery), so packets did not leave",
};

enum flow_error flow_error_of(int error)
{
	switch (error < 0 ? -error : error) {
	case 0:
		return FLOW_NO_ERROR;
	case ECONNRESET:
	case EPIPE:
	case ECONNABORTED:
		return FLOW_RESET;
	case ETIMEDOUT:
		return FLOW_TIMEOUT;
	case ECONNREFUSED:
		return FLOW_REFUSED;
	case EHOSTUNREACH:
	case ENETUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case ENODEV:
		return FLOW_UNREACHABLE;
	case EMSGSIZE:
		return FLOW_TOO_LARGE;
	case EPERM:
	case EACCES:
		return FLOW_NOT_ALLOWED;
	case ENOMEM:
	case ENOBUFS:
	case EMFILE:
	case ENFILE:
		return FLOW_NO_ROOM;
	case FLOW_ERRNO_NEIGHBOUR:
		return FLOW_NO_NEIGHBOUR;
	case EADDRINUSE:
	case EADDRNOTAVAIL:
		return FLOW_IN_USE;
	default:
		return FLOW_OTHER;
	}
}

uint64_t flow_train_bits(const struct flow_spec *s)
{
	return 8 * (s->payload_max + (s->train - 1ull) * s->payload_min);
}

bool flow_train_fits(const struct flow_spec *s)
{
	uint64_t period_ns;

	if (s->train < 2 || s->train > KTRXER_TRAIN_PACKETS_MAX || !s->rate_bps ||
	    flow_train_bits(s) > 8ull * KTRXER_TRAIN_BYTES)
		return false;
	period_ns = flow_train_bits(s) * (uint64_t)KTRXER_NS_PER_S / s->rate_bps;
	return s->train_gap_ns <= period_ns / 2 / s->train;
}

const char *const flow_tcp_names[FLOW_TCP_VALUES] = {
	[FLOW_RTT_US] = "rtt_us",
	[FLOW_RTTVAR_US] = "rttvar_us",
	[FLOW_MIN_RTT_US] = "min_rtt_us",
	[FLOW_CWND] = "cwnd_segments",
	[FLOW_SSTHRESH] = "ssthresh_segments",
	[FLOW_UNACKED] = "unacked",
	[FLOW_LOST] = "lost",
	[FLOW_RETRANSMITS] = "retransmits",
	[FLOW_DELIVERY_BPS] = "delivery_rate_bps",
	[FLOW_PACING_BPS] = "pacing_rate_bps",
	[FLOW_DELIVERED] = "delivered",
	[FLOW_DELIVERED_CE] = "delivered_ce",
	[FLOW_NOTSENT] = "notsent_bytes",
	[FLOW_MSS] = "mss_bytes",
	[FLOW_PMTU] = "pmtu_bytes",
	[FLOW_RCV_WINDOW] = "send_window_bytes",
	[FLOW_REORDERING] = "reordering",
	[FLOW_CA_STATE] = "ca_state",
	[FLOW_OPTIONS] = "options",
};

const char *const flow_udp_names[FLOW_UDP_VALUES] = {
	[FLOW_PACKETS] = "packets",
	[FLOW_ECT0] = "ect0",
	[FLOW_ECT1] = "ect1",
	[FLOW_CE] = "ce",
	[FLOW_UDP_LOST] = "lost",
	[FLOW_REORDERED] = "reordered",
	[FLOW_DUPLICATES] = "duplicates",
	[FLOW_OVERFLOWS] = "lost_in_socket",
};
