/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The client of OWAMP-Control, as its own files use it. */
#ifndef KTRXER_METHODS_OWAMP_CLIENT_STATE_H
#define KTRXER_METHODS_OWAMP_CLIENT_STATE_H

#include "loop.h"
#include "owamp_client.h"
#include "owamp_judge.h"
#include "owamp_link.h"
#include "owamp_sender.h"

struct owamp_client {
	struct loop_source source; /* of the control connection, while packets are sent */
	const struct owamp_client_options *o;
	struct owamp_client_result *result;
	struct owamp_link link;
	struct loop *loop;
	struct loop_timer end;
	int fd; /* receives the packets down */
	struct owamp_request requests[OWAMP_WAYS];
	struct owamp_sender *sender;
	struct owamp_receiver receiver;
	struct owamp_judge judge; /* of the receiver */
	struct ktrxer_clock_pair clock;
	uint64_t round_trip_ns; /* of the control connection */
	uint64_t start_ns, up_end_ns, down_end_ns;
	uint16_t error;
	bool sent_all, got_all, over; /* over: all packets have arrived, or their time-out has passed */
};

/* The start time of the sessions, CLOCK_REALTIME of this host. */
static inline int64_t owamp_client_start_real_ns(const struct owamp_client *c)
{
	return c->clock.real_ns + (int64_t)(c->start_ns - c->clock.mono_ns);
}

/* owamp_records.c. In this order, after the test. */
int owamp_records_stop(struct owamp_client *c, struct ktrxer_error *err);
int owamp_records_judge(struct owamp_client *c, struct ktrxer_error *err); /* of packets down */
int owamp_records_stopped(struct owamp_client *c, struct ktrxer_error *err);
int owamp_records_fetch(struct owamp_client *c, struct ktrxer_error *err);
/* The counts and records of this host's sender and receiver become the result's. */
void owamp_records_collect(struct owamp_client *c);

#endif
