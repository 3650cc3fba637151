/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer owamp`: its options, and its parts. */
#ifndef KTRXER_CLI_OWAMP_COMMAND_H
#define KTRXER_CLI_OWAMP_COMMAND_H

#include "cli.h"
#include "owamp_client.h"
#include "owamp_delays.h"
#include "shared_options.h"

struct owamp_command_options {
	const char *host;
	struct ktrxer_addr from;
	uint64_t count, interval_ns, payload, timeout_ns, port, tolerance;
	int direction, model;
	uint8_t dscp;
	bool v4, v6, zeros;
};

struct owamp_run {
	struct cli *cli;
	const struct owamp_command_options *o;
	struct owamp_client_options client;
	struct owamp_client_result result;
	struct owamp_delays delays[OWAMP_WAYS];
};

extern const char *const owamp_directions[];

void owamp_say_what(const struct owamp_run *run);
int owamp_finish(struct owamp_run *run);

#endif
