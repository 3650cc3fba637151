/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt direct`: its options, and its parts. */
#ifndef KTRXER_CLI_PPT_DIRECT_H
#define KTRXER_CLI_PPT_DIRECT_H

#include "cli.h"
#include "host_times.h"

struct ppt_direct_options {
	const char *host, *device;
	struct ktrxer_addr from;
	uint64_t count, interval_ns, timeout_ns, payload, port;
	int64_t busy_threads;
	bool v4, v6;
};

enum ppt_direct_phase { DIRECT_IDLE = 0, DIRECT_LOADED = 1, DIRECT_PHASES = 2 };

struct ppt_direct {
	struct cli *cli;
	const struct ppt_direct_options *o;
	struct ktrxer_path path;
	struct host_times_options plan;
	struct path_witness witness;
	uint32_t busy_threads; /* of the second phase; 0: there is none */
	struct host_times phases[DIRECT_PHASES];
	int done; /* phases that were measured */
};

void ppt_direct_say_what(const struct ppt_direct *run);
int ppt_direct_finish(struct ppt_direct *run);

#endif
