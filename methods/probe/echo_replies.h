/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The replies to echo probes, from the reply receiver of a prober to the table of its probes. */
#ifndef KTRXER_METHODS_ECHO_REPLIES_H
#define KTRXER_METHODS_ECHO_REPLIES_H

#include "echo.h"
#include "prober.h"

/* The head of a reply is enough: number and secret, behind an IP header with options and an ICMP header. */
enum { ECHO_REPLY_SNAP = 256 };

/*
 * Takes the replies that have arrived. `answer` gets the event of each, and p->client; a device that is gone ends the
 * prober.
 */
void echo_replies_take(struct prober *p, struct echo_table *table, uint8_t proto,
		       void (*answer)(void *client, enum echo_event event, const struct echo_result *result));

#endif
