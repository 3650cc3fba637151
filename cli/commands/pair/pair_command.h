/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer pair`: its options, and its parts. */
#ifndef KTRXER_CLI_PAIR_COMMAND_H
#define KTRXER_CLI_PAIR_COMMAND_H

#include "capacity.h"
#include "cli.h"
#include "train_pairs.h"

enum pair_direction { PAIR_UP = 0, PAIR_DOWN = 1, PAIR_DIRECTIONS = 2 };

struct pair_options {
	const char *host, *token_file, *engine, *device;
	struct ktrxer_addr from;
	uint64_t count, interval_ns, payload, port;
	int64_t cpu;
	int direction;
	bool v4, v6, precise;
};

/* One direction. */
struct pair_way {
	bool wanted, estimated;
	struct pairs_set sets[2]; /* by the flows of the session: the large pairs first */
	struct pair_times *times[2];
	struct pairs_result result;
	struct capacity_modes modes; /* of the large pairs */
	uint32_t ip_bytes[2];
};

struct pair_run {
	struct cli *cli;
	const struct pair_options *o;
	struct hmac_key token;
	struct ktrxer_path path;
	struct train_session session;
	struct train_session_options plan;
	struct flow_spec specs[4];
	struct pair_way ways[PAIR_DIRECTIONS];
	uint64_t probe_bps; /* of IP packets, in one direction */
};

/* pair_report.c */
void pair_say_what(const struct pair_run *run);
int pair_finish(struct pair_run *run);

#endif
