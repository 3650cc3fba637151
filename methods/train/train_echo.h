/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet pairs by ICMP echo, where the far host has no `ktrxer serve`: both packets of a pair are requests, and the
 * arrivals are those of the replies. A pair passes the links of both directions, and the far host between them.
 */
#ifndef KTRXER_METHODS_TRAIN_ECHO_H
#define KTRXER_METHODS_TRAIN_ECHO_H

#include "pairs.h"
#include "prober.h"

struct train_echo_options {
	struct probe_spec probe; /* count: pairs of each size. interval_ns: between two pairs, which have both sizes in
				    turn. payload: unused */
	uint32_t payloads[2];    /* ECHO_PAYLOAD_FULL bytes or more each */
	uint64_t start_ns;       /* 0: at once */
	int stop_fd;             /* readable: stop; -1: none */
};

struct train_echo {
	struct pair_times *times[2]; /* probe.count of each size; send times and arrivals are of this host's clock */
	uint64_t late_packets;       /* sent later than probe.late_ns after their scheduled time */
	struct ktx_info info;        /* and the qdiscs of the device */
	struct ktrxer_qdiscs qdiscs;
	struct path_witness path; /* compared with the route before the beginning */
	bool stopped;
};

/* 0, or a negative errno with a text. train_echo_free() in any case. */
int train_echo_run(struct train_echo *echo, const struct train_echo_options *options, struct ktrxer_error *err);
void train_echo_free(struct train_echo *echo);

#endif
