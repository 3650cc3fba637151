/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The client of OWAMP-Control in unauthenticated mode: sessions from this host (up) and to it (down) at the same time,
 * between their request and their records.
 */
#ifndef KTRXER_METHODS_OWAMP_CLIENT_H
#define KTRXER_METHODS_OWAMP_CLIENT_H

#include "owamp_schedule.h"
#include "path_witness.h"

enum { OWAMP_UP, OWAMP_DOWN, OWAMP_WAYS };

struct owamp_client_options {
	struct ktrxer_addr to, from; /* from.family 0: the route decides */
	uint16_t port;
	bool ways[OWAMP_WAYS];
	struct owamp_slot slot;
	uint32_t packets, padding;
	uint8_t dscp;
	bool zeros;          /* the padding up; else random bytes */
	uint64_t timeout_ns; /* of each packet */
	uint64_t late_ns;    /* packets with more lateness are counted */
	uint64_t start_ns;   /* CLOCK_MONOTONIC; 0: soon */
	int stop_fd;         /* readable: stop; -1: none */
};

struct owamp_way {
	bool measured;
	struct owamp_record *records; /* of packets that arrived, in the order of their arrival */
	uint32_t count;
	/* Packets that were to be sent so far; those not sent; those sent too late to be arrived or lost. */
	uint32_t next, skipped, undecided;
	uint32_t too_late; /* down: arrivals after their time-out, which are lost */
	/* Up: this host's times in its packet scheduler, by number, CLOCK_REALTIME; 0: not known. NULL: of none. */
	int64_t *sched_real_ns;
	struct ktrxer_hist *lateness;                 /* up */
	struct ktx_accounts accounts;                 /* up; without the stamps of NICs */
	uint64_t socket_drops, user_stamped, ignored; /* down */
	uint32_t late;                                /* down: packets that the server sent late, by its own clock */
	uint64_t late_most_ns;                        /* of these the latest */
};

struct owamp_client_result {
	struct owamp_way ways[OWAMP_WAYS];
	struct ktrxer_path route; /* of this host, when the sessions were made */
	struct path_witness path; /* departures up, arrivals down */
	bool stopped;             /* by stop_fd */
	bool stopped_by_peer;     /* the server ended the sessions before their time */
	uint64_t lasted_ns;
};

/* 0, or a negative errno with a text. owamp_client_free() in any case. */
int owamp_client_run(struct owamp_client_result *result, const struct owamp_client_options *options,
		     struct ktrxer_error *err);
void owamp_client_free(struct owamp_client_result *result);

#endif
