/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer tcp`: its options, and its parts. */
#ifndef KTRXER_CLI_TCP_COMMAND_H
#define KTRXER_CLI_TCP_COMMAND_H

#include "cli.h"
#include "shared_options.h"
#include "tcp_prober.h"

struct tcp_options {
	const char *host, *path, *device, *engine;
	struct ktrxer_addr from;
	uint64_t port, count, interval_ns, payload, mss, connections, timeout_ns;
	int model;
	uint8_t dscp;
	bool precise, v4, v6;
};

struct tcp_run {
	struct cli *cli;
	const struct tcp_options *o;
	struct tcp_prober_spec spec;
	struct tcp_prober *prober;
};

void tcp_say_what(const struct tcp_run *run);
void tcp_say_pair(void *context, const struct tcp_sample *sample);
int tcp_finish(const struct tcp_run *run);

#endif
