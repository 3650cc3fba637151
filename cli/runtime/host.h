/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Other events of this host during a measurement: stolen and used CPU time, and steps of the clock. */
#ifndef KTRXER_CLI_HOST_H
#define KTRXER_CLI_HOST_H

#include "cli.h"

/* Ticks since boot, all processors together. */
struct host_cpu {
	uint64_t total, idle, steal;
};

/* The first line of /proc/stat. -EBADMSG: none such. */
int host_cpu_parse(struct host_cpu *cpu, const char *text, size_t length);

/* The first and the last look of a run. */
struct host_load {
	bool begun;
	struct host_cpu first, last;
};

void host_load_add(struct host_load *load, const struct host_cpu *cpu);
/* Returns hundredths of a percent; -1: not known. */
int host_load_steal(const struct host_load *load);
int host_load_cpu(const struct host_load *load);

/*
 * From here on until host_watch_stop(), which writes "host" into `end` (may be NULL) and says what degrades. 0 or a
 * negative errno.
 */
int host_watch_start(struct cli *cli);
void host_watch_stop(struct cli *cli, struct json *end);

#endif
