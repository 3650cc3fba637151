/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A UDP socket of the server: batches in, batches out. Each datagram is offered to `claim` (flows that are registered);
 * an unclaimed datagram is STAMP and goes to the reflector.
 *
 * T2 is the kernel's stamp of the arrival. T3 is read just before the batch is submitted; when an answer really left
 * is asked of the kernel for those answers alone whose sender wants to know (follow-up telemetry), and told to the
 * reflector.
 */
#ifndef KTRXER_METHODS_SERVE_UDP_H
#define KTRXER_METHODS_SERVE_UDP_H

#include "reflector.h"
#include "loop.h"

struct serve_datagram {
	const uint8_t *data;
	uint32_t length, whole; /* bytes here, bytes that came */
	int fd;                 /* of the socket */
	struct reflector_arrival arrival;
};

struct serve_udp_options {
	struct ktrxer_addr bind; /* all zero: any, of that family */
	uint16_t port;
	int passed_fd; /* a socket that is bound to them, which serve_udp closes; 0: one is opened */
	struct reflector *reflector;
	/* True: it was for a flow, and is dealt with. NULL: there are none. */
	bool (*claim)(void *context, const struct serve_datagram *datagram);
	/* True: a client at this address has proven the token. NULL: none can. */
	bool (*trusted)(void *context, const struct ktrxer_addr *from, uint64_t now_ns);
	void *context;
};

struct serve_udp_counts {
	uint64_t received, sent;
	uint64_t refused;     /* answers that the kernel did not take */
	uint64_t overflows;   /* datagrams that the socket had no room for */
	uint64_t user_stamps; /* arrivals without the kernel's stamp */
	uint64_t left_stamps; /* send times that the kernel reported */
};

struct serve_udp;
int serve_udp_open(struct serve_udp **udp, struct loop *loop, const struct serve_udp_options *options,
		   struct ktrxer_error *err);
void serve_udp_close(struct serve_udp *udp);
void serve_udp_counts(struct serve_udp *udp, struct serve_udp_counts *counts);

#endif
