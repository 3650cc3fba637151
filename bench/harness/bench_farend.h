/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The judge records the arrival of each probe by its number: an XDP program at the far device where this build and this
 * kernel have it, else the kernel's own stamps by a packet socket. It is the same for all senders.
 */
#ifndef KTRXER_CLI_BENCH_FAREND_H
#define KTRXER_CLI_BENCH_FAREND_H

#include "bench_net.h"

struct farend;

struct farend_options {
	uint32_t slots; /* probes of one turn that get a stamp of their own; more are only counted */
	bool calls;     /* stamp the calls of the near device's driver too, where that can be done */
	bool no_bpf;
};

int farend_open(struct farend **farend, const struct bench_net *net, const struct farend_options *options,
		struct ktrxer_error *err);
void farend_close(struct farend *farend);
/* "xdp", "kernel"; and in words, what it cannot do and why. */
const char *farend_name(const struct farend *farend);
const char *farend_note(const struct farend *farend);
bool farend_has_calls(const struct farend *farend);

/* A turn: only what comes to `port` counts. */
void farend_begin(struct farend *farend, uint16_t port, uint16_t cross_port);

struct farend_result {
	uint64_t probes, again, odd;
	uint64_t first_ns, last_ns;
	uint64_t timed; /* probes up to the one at `last_ns`: what a rate is made of */
	uint64_t cross, cross_bytes, cross_first_ns, cross_last_ns;
	const uint64_t *arrivals; /* by number; 0: did not arrive. Until the next turn */
	const uint64_t *calls;    /* likewise, of the driver; NULL: not known */
	uint32_t slots;
};
/* Waits until nothing comes any more (200 ms at most), and closes the turn. */
void farend_end(struct farend *farend, struct farend_result *result);

#endif
