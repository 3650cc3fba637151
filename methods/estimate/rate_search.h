/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The search for the highest rate that a path carries, by feedback from the receiver: RFC 9097, appendix A, which is
 * algorithm B of UDPSTP (RFC 9946), and algorithm C, which multiplies the rate and tries again after congestion. A rate
 * is an index into a table of rates that grow by 1 Mbit/s up to the index `high_speed`, and in larger steps beyond.
 */
#ifndef KTRXER_METHODS_RATE_SEARCH_H
#define KTRXER_METHODS_RATE_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

enum rate_search_algorithm { RATE_SEARCH_B, RATE_SEARCH_C };

struct rate_search_options {
	enum rate_search_algorithm algorithm;
	uint32_t high_speed, last; /* indices: 1 Gbit/s, and the highest one */
	uint32_t low_ms, upper_ms; /* of delay variation: below the first the rate rises, above the second it falls */
	uint32_t delta;            /* indices of a fast step up; three times as many down */
	uint32_t slow_after;       /* impairments after which steps are small */
	uint32_t sequence_errors;  /* so many do not count as impairment */
	bool ignore_reordering;    /* reordered and duplicate datagrams are no sequence errors */
};

struct rate_search_feedback {
	uint64_t lost, reordered, duplicates;
	bool delay_known;
	uint32_t delay_ms; /* variation: above the minimum */
};

struct rate_search {
	struct rate_search_options options;
	uint32_t index;
	uint32_t slow; /* impairments so far */
	uint32_t retry,
		retry_after;  /* algorithm C: small steps since the last fast one, and how many there are to be */
	bool doubles;         /* algorithm C: the next fast step doubles the index, each second one does */
	uint64_t impairments; /* feedbacks that made the rate fall */
};

void rate_search_begin(struct rate_search *search, const struct rate_search_options *options, uint32_t index);
void rate_search_step(struct rate_search *search, const struct rate_search_feedback *feedback);

#endif
