/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The fate of two TCP data probes and of the two segments that they elicit, from the server's answers alone:
 * OneProbe (Luo, Chan, Chang, USENIX ATC 2009). The server has sent two segments that are not acknowledged yet, and the
 * receive window has room for these two. The first probe acknowledges the first of them, the second probe both: each
 * probe lets the server send one further segment. The server's acknowledgements show which probes it has received, and
 * in which order; the retransmission that follows a loss shows the final state.
 *
 *     up        originals, with the probes that they acknowledge      acknowledged at last
 *     none      data 0 (1), data 1 (2)                                2
 *     reordered data 0 (0), data 1 (0)                                2
 *     first     data 0 (0), data 1 (0)                                0
 *     second    data 0 (1)                                            1, and the segment before is sent again
 *     both      -                                                     0, and an earlier segment is sent again
 */
#ifndef KTRXER_METHODS_TCP_PAIR_H
#define KTRXER_METHODS_TCP_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tcp_pair_event {
	TCP_PAIR_UNKNOWN = 0, /* the answers fit no event, or none was sent in this direction */
	TCP_PAIR_IN_ORDER,
	TCP_PAIR_REORDERED,
	TCP_PAIR_COMPLETE, /* none was lost; the order is not known */
	TCP_PAIR_FIRST_LOST,
	TCP_PAIR_SECOND_LOST,
	TCP_PAIR_BOTH_LOST,
	TCP_PAIR_EVENTS,
};

enum { TCP_PAIR_NO_DATA = INT32_MIN };

/* A segment of the server, in the order of arrival. One that was merged from several is given as these. */
struct tcp_pair_answer {
	int32_t data; /* 0 and 1: the segments that the probes elicit; negative: an earlier one; TCP_PAIR_NO_DATA */
	uint8_t acknowledged; /* how many of the probes: 0, 1, 2 */
	bool again;           /* it came later than a first transmission can, so it is a retransmission */
};

struct tcp_pair_result {
	enum tcp_pair_event up, down;
};

/* Both segments have come, and both probes are acknowledged: no retransmission follows. */
bool tcp_pair_is_whole(const struct tcp_pair_answer *answers, size_t count);
void tcp_pair_read(const struct tcp_pair_answer *answers, size_t count, struct tcp_pair_result *result);

struct tcp_pair_totals {
	uint64_t sent, lost;         /* segments of pairs whose event is known */
	uint64_t ordered, reordered; /* pairs whose order is known; of these, pairs that were reordered */
};
/* Adds a pair to the totals up and down. */
void tcp_pair_count(struct tcp_pair_totals totals[2], const struct tcp_pair_result *result);

/* An interval of Wilson (1927) at TCP_PAIR_LEVEL for a probability, as if the events were independent. */
#define TCP_PAIR_LEVEL 0.95
struct tcp_pair_share {
	double share, low, high; /* `of` 0: 0, 0 and 1 */
};
struct tcp_pair_share tcp_pair_share(uint64_t count, uint64_t of);

#endif
