/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Where answers come in, with the kernel's stamp of their arrival: by the socket that sent the probes, or by a receiver. */
#ifndef KTRXER_CLI_INLET_H
#define KTRXER_CLI_INLET_H

#include <ktrxer.h>

struct inlet_options {
	const struct ktrxer_path *path;
	struct ktx *tx;
	uint8_t proto;
	uint16_t port;       /* of ours, for UDP; ICMP: unused */
	uint32_t snap;       /* bytes of each answer that are wanted */
};

struct inlet {
	int fd;              /* to poll */
	int socket;          /* >= 0: the engine's socket */
	bool ip_header;      /* raw ICMP over IPv4 brings it along */
	enum ktrxer_link link;
	uint8_t proto;
	struct krx *krx;     /* or this */
	struct ktrxer_clock_map *clock;
	uint64_t empty_ns;   /* when the socket was last seen empty */
	uint8_t *data;
	uint32_t snap;
	uint32_t overflow_seen;
	uint64_t overflows;  /* answers that the socket had no room for */
};

struct inlet_arrival {
	uint64_t received_ns;
	uint32_t bound_ns;   /* of the conversion to CLOCK_MONOTONIC */
	uint8_t source, ttl, tos;
	struct ktrxer_addr from;
};

int inlet_open(struct inlet *inlet, const struct inlet_options *options, struct ktrxer_error *err);
void inlet_close(struct inlet *inlet);

/*
 * One datagram: from its payload on for UDP, from the ICMP header on for ICMP; it lies in the inlet until the next call. 1, 0
 * when none is there, -EAGAIN for one that is of no use (call again), or a negative errno: the device went.
 */
int inlet_next(struct inlet *inlet, const uint8_t **data, uint32_t *length, struct inlet_arrival *arrival);
/* Answers that this host's own receiver lost. */
uint64_t inlet_lost(const struct inlet *inlet);

#endif
