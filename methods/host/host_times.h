/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packet processing time of two hosts by layer: probes of STAMP (RFC 8762) to a reflector, one at a time, and the time
 * stamps that each host takes of a packet on its way between program and wire. Each difference is of two stamps of one
 * host, so the clocks of the hosts need not agree.
 *
 * This host:  program -> packet scheduler -> driver -> NIC, and NIC -> kernel -> program.
 * The far host, by STAMP: kernel (T2) -> program (T3, before the send call) -> driver (follow-up telemetry, RFC 8972).
 */
#ifndef KTRXER_METHODS_HOST_TIMES_H
#define KTRXER_METHODS_HOST_TIMES_H

#include "path_witness.h"

#include <ktrxer.h>

enum host_layer {
	HOST_USER_SCHED, /* sending: from before the send call to the packet scheduler */
	HOST_SCHED_DRIVER,
	HOST_DRIVER_NIC,
	HOST_NIC_KERNEL,  /* receiving: from the NIC to the kernel's arrival stamp */
	HOST_KERNEL_USER, /* to the return of the receive call */
	FAR_KERNEL_USER,  /* the far host: from the kernel's arrival stamp to before the send call of the answer */
	FAR_USER_DRIVER,  /* and to the driver's stamp of the answer */
	HOST_LAYERS,
};

struct host_times_options {
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	const char *device; /* of the route: its NIC stamps are used where it has any */
	uint32_t device_index;
	bool bound;           /* the probes leave by `device` alone */
	uint32_t payload;     /* bytes of each probe; 0: the least */
	uint64_t count;       /* probes that count; HOST_WARM_UP more go before them */
	uint64_t interval_ns; /* at least; a probe waits for the answer to the one before it */
	uint64_t timeout_ns;
	int stop_fd;                  /* readable: stop; -1: none */
	struct path_witness *witness; /* gets the ways of the probes that count */
};

/* Probes that do not count: the first ones wait for the neighbour's address and for cold caches. */
enum { HOST_WARM_UP = 5, HOST_PAYLOAD_LEAST = 64, HOST_PAYLOAD_MOST = 65507 };

struct host_times {
	struct ktrxer_hist *layers[HOST_LAYERS]; /* ns */
	uint64_t sent, answered, lost, failed;   /* probes that count; failed: the kernel refused the datagram */
	uint64_t contradicted;                   /* differences below 0, or above the time-out: a clock was stepped */
	uint64_t foreign;                        /* datagrams of that address and port that answer no probe */
	uint32_t nic_bound_ns;                   /* the largest error of a NIC stamp on this host's clock */
	bool nic_sent, nic_received;             /* the NIC's stamps were requested */
	int nic_error;                           /* why not: a negative errno */
	bool follow_up;                          /* the far host has reported a driver's stamp */
	bool stopped;
};

/* 0, or a negative errno with a text. -ECONNREFUSED: nothing listens there. host_times_free() in any case. */
int host_times_run(struct host_times *times, const struct host_times_options *options, struct ktrxer_error *err);
void host_times_free(struct host_times *times);

/* Records `to_ns` - `from_ns`; 0 is a stamp that is missing. Counts what cannot be. */
void host_times_record(struct host_times *times, enum host_layer layer, int64_t from_ns, int64_t to_ns,
		       uint64_t most_ns);

#endif
