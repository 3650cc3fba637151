/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer pair`: its options, and its parts. */
#ifndef KTRXER_CLI_PAIR_COMMAND_H
#define KTRXER_CLI_PAIR_COMMAND_H

#include "capacity.h"
#include "train_burst.h"
#include "train_command.h"
#include "train_echo.h"

struct pair_options {
	struct train_options train;
	uint64_t count, interval_ns, payload;
	bool echo;
};

struct pair_way {
	const char *key, *name;        /* in JSON, in text */
	const char *sender, *receiver; /* in reasons */
	bool wanted, estimated;
	struct pairs_set sets[2]; /* by the flows of the session: the large pairs first */
	struct pair_times *times[2];
	struct pairs_result result;
	struct shaper shaper;        /* PAIRS_SHAPED */
	struct capacity_modes modes; /* of the large pairs */
	uint32_t ip_bytes[2];
};

struct pair_run {
	struct train_run train;
	const struct pair_options *o;
	struct train_echo echo;
	struct pair_way ways[TRAIN_WAYS]; /* --echo: the first */
	double probe_bit_s;               /* of IP packets, in one direction */
};

void pair_say_what(const struct pair_run *run);
int pair_finish(struct pair_run *run);

#endif
