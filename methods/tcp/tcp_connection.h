/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One TCP connection to a web server carries pairs of data probes (OneProbe: Luo, Chan, Chang, USENIX ATC 2009). This
 * part receives segments and times, and sends segments by a call: no descriptor, no clock. Between two pairs all data
 * are acknowledged, and the receive window is closed. tcp_connection_prime() opens it for two segments. When both are
 * here, tcp_connection_probe() sends the pair; tcp_pair.h reads the answers. The right edge of the window never moves
 * back. SACK, time stamps and window scaling are not offered: a server then retransmits by its timer, and in order.
 */
#ifndef KTRXER_METHODS_TCP_CONNECTION_H
#define KTRXER_METHODS_TCP_CONNECTION_H

#include "tcp_http.h"
#include "tcp_pair.h"

enum { TCP_ANSWERS_MAX = 16, TCP_CONTROL = -1 };

enum tcp_phase {
	TCP_CLOSED = 0,
	TCP_OPENING,
	TCP_SETTLING, /* data are acknowledged as they come: at the beginning, and after each pair */
	TCP_READY,    /* the window is closed */
	TCP_PRIMING,  /* the window is open for two segments */
	TCP_PRIMED,   /* both are here, and not acknowledged */
	TCP_PROBING,
};

enum tcp_end {
	TCP_NOT_ENDED = 0,
	TCP_REFUSED,      /* RST instead of SYN and ACK */
	TCP_NO_ANSWER,    /* no SYN and ACK */
	TCP_SILENT,       /* no answer later */
	TCP_RESET,        /* RST */
	TCP_FINISHED,     /* FIN */
	TCP_NOT_HTTP,     /* the first bytes are no response */
	TCP_HTTP_STATUS,  /* a response other than 2xx */
	TCP_SMALL_WINDOW, /* the server's receive window has no room for a pair */
	TCP_NO_DATA,      /* the responses do not fill two segments */
	TCP_CLOSED_HERE,
	TCP_ENDS,
};

enum tcp_doubt { TCP_NO_DOUBT = 0, TCP_NO_CONCLUSION, TCP_SHORT_SEGMENTS, TCP_CONNECTION_ENDED };

struct tcp_segment {
	uint32_t sequence, acknowledgement;
	uint16_t window, mss; /* mss: the option; 0: none */
	uint8_t flags;        /* enum ktrxer_tcp_flag */
	const uint8_t *payload;
	uint32_t length;
};

struct tcp_pair_done {
	struct tcp_pair_result result;
	enum tcp_doubt doubt;
	uint64_t arrived_ns[2]; /* the first transmissions of the two segments that the probes elicited; 0: none */
	uint32_t answers;
	uint32_t sequence, elicited; /* in the headers: of the first probe, of the first segment that is elicited */
};

struct tcp_connection;
struct tcp_connection_calls {
	/* `probe`: 0 and 1 of a pair, scheduled at at_ns; TCP_CONTROL: at once. */
	void (*send)(void *context, struct tcp_connection *c, const struct tcp_segment *segment, int probe,
		     uint64_t at_ns);
	void (*done)(void *context, struct tcp_connection *c, const struct tcp_pair_done *pair);
	void *context;
};

struct tcp_connection_spec {
	const uint8_t *request; /* exists as long as the connection */
	uint32_t request_length;
	uint16_t mss;        /* of the server's segments */
	uint64_t timeout_ns; /* for SYN and ACK, for anything new later, and for the conclusion of a pair */
};

struct tcp_connection {
	struct tcp_connection_spec spec;
	struct tcp_connection_calls calls;
	enum tcp_phase phase;
	enum tcp_end end;
	/* Sequence numbers of the first bytes; all others are counted from them. */
	uint32_t own_first, peer_first;
	uint64_t own_acknowledged, own_next;
	uint64_t peer_next, edge;        /* all before is here; the right edge of the window */
	uint64_t beyond_from, beyond_to; /* data that arrived out of order */
	uint64_t base;                   /* of the two segments of the priming */
	uint64_t probe_from;             /* own_next before the pair */
	uint16_t peer_window, peer_mss;
	uint32_t warm; /* segments that are to be acknowledged as they come */
	uint32_t tries;
	uint32_t news;        /* new bytes since the last progress */
	uint64_t progress_ns; /* last arrival of an acknowledgement, or of a segment's bytes */
	uint64_t timer_ns;    /* KTRXER_NEVER: off */
	uint64_t rtt_ns;      /* the longest recent one, with decay */
	bool rtt_sure;        /* not only that of the SYN, whose answer may be a retransmission */
	/* Of the SYN, of the first request, of the first arrival in the priming, of the pair: scheduled, then sent. */
	uint64_t at_ns;
	/* The first response */
	uint8_t head[TCP_HEAD_MAX];
	uint32_t head_fill;
	bool head_known;
	struct tcp_response_head response;
	uint64_t requests;
	uint32_t pairs; /* with a result */
	/* The pair */
	struct tcp_pair_answer answers[TCP_ANSWERS_MAX];
	uint32_t answer_count;
	uint64_t arrived_ns[2];
	uint64_t conclude_ns, give_up_ns;
	bool is_short, again;
	bool proven; /* the first segment is a first transmission */
	bool unsure; /* both of its arrivals may be retransmissions */
	/* The first segment came so late that it may be a retransmission: its place in `answers`, or -1. */
	int late;
	uint64_t late_ns;
	/* The caller sets this. */
	uint64_t number;
	uint32_t place;
};

/* Sends the SYN. `first` is random: the sequence number of the first byte. */
void tcp_connection_open(struct tcp_connection *c, uint32_t first, uint64_t now_ns);
void tcp_connection_receive(struct tcp_connection *c, const struct tcp_segment *segment, uint64_t arrived_ns);
/* Call it when timer_ns has come. */
void tcp_connection_tick(struct tcp_connection *c, uint64_t now_ns);
/* State TCP_READY. The state is TCP_PRIMED after a round trip. */
void tcp_connection_prime(struct tcp_connection *c, uint64_t now_ns);
/*
 * Returns how long before the pair to prime: the round trip and some room, but less than the server's retransmission
 * timer.
 */
uint64_t tcp_connection_lead_ns(const struct tcp_connection *c);
/* State TCP_PRIMED: sends the pair. Its result comes by `done`, and the connection continues. */
void tcp_connection_probe(struct tcp_connection *c, uint64_t at_ns);
/*
 * State TCP_PROBING: `at_ns` is the time at which the second probe left. Lateness of this host is not a part of the
 * round trip.
 */
void tcp_connection_sent(struct tcp_connection *c, uint64_t sent_ns);
/* State TCP_PRIMING or TCP_PRIMED: no pair is sent. */
void tcp_connection_skip(struct tcp_connection *c, uint64_t now_ns);
/* Sends a RST if the server has the connection. */
void tcp_connection_close(struct tcp_connection *c, enum tcp_end end);

#endif
