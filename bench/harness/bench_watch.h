/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The watch finds times in which a processor was away. On each a thread of high priority wakes every 5 ms; when it
 * wakes more than a millisecond late, the host of a virtual machine or the firmware had the processor. The steal
 * time that the kernel counts is added.
 */
#ifndef KTRXER_CLI_BENCH_WATCH_H
#define KTRXER_CLI_BENCH_WATCH_H

#include <stdbool.h>
#include <stdint.h>

struct bench_watch;

/* The longest stall and the stolen processor time between bench_watch_begin() and bench_watch_end(). */
struct bench_quiet {
	uint64_t stall_ns; /* the longest absence */
	uint64_t steal_ns; /* all processors together */
	bool stalled;
};

struct bench_watch *bench_watch_open(void); /* NULL: no memory */
void bench_watch_close(struct bench_watch *watch);
bool bench_watch_sees_stalls(const struct bench_watch *watch); /* else steal time alone: no real-time priority */
void bench_watch_begin(struct bench_watch *watch);
struct bench_quiet bench_watch_end(struct bench_watch *watch);
void bench_quiet_join(struct bench_quiet *into, const struct bench_quiet *more);

#endif
