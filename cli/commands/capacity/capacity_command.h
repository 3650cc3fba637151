/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer capacity`: its options, and its parts. */
#ifndef KTRXER_CLI_CAPACITY_COMMAND_H
#define KTRXER_CLI_CAPACITY_COMMAND_H

#include "cli.h"
#include "shared_options.h"
#include "udpstp_client.h"

enum { CAPACITY_UP, CAPACITY_DOWN, CAPACITY_WAYS, CAPACITY_BOTH = CAPACITY_WAYS };

struct capacity_options {
	const char *host, *token_file;
	struct ktrxer_addr from;
	uint64_t port, for_ns, sub_interval_ns, feedback_ns, low_ns, upper_ns, sequence_errors, row, max_bps,
		first_mode, key_id;
	int direction, algorithm;
	uint8_t dscp;
	bool count_reordering, one_way, start_row, mtu_1500, random_payload, v4, v6;
};

struct capacity_run;

struct capacity_way {
	const struct capacity_run *run;
	int way;
	bool measured;
	struct udpstp_client_result test;
	struct ip_capacity_result result;
	bool has_result;
	double end_bit_s;     /* the rate at the end; 0: it is not known, or nothing arrived */
	struct shaper shaper; /* line_bit_s 0: none was found */
	struct rate_level levels[RATE_LEVELS_MOST];
	size_t level_count; /* 0: the rate did not change */
};

struct capacity_run {
	struct cli *cli;
	const struct capacity_options *o;
	struct udpstp_client_options client;
	struct capacity_way ways[CAPACITY_WAYS];
};

extern const char *const capacity_ways[], *const capacity_algorithms[];

void capacity_say_what(const struct capacity_run *run);
/* A sub-interval of the way `context`. */
void capacity_say_interval(void *context, uint32_t number, const struct ip_capacity_interval *interval);
int capacity_finish(struct capacity_run *run);

#endif
