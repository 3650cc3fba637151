/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which of what comes in is an echo reply to us. */
#include "ping.h"

#include <errno.h>

int ping_inlet_open(struct ping_run *run, struct ktrxer_error *err)
{
	/* The head is enough: number and secret, behind an IP header with options and one of ICMP. */
	const struct reply_receiver_options options = { .path = &run->p.path, .tx = run->p.tx, .proto = run->proto, .port = run->p.id, .snap = 256 };

	return reply_receiver_open(&run->p.receiver, &options, err);
}

int ping_inlet_next(struct ping_run *run, struct echo_reply *reply, struct echo_arrival *arrival)
{
	/* What is no answer of ours is passed over; a flood of it ends with the caller's next look at the clock. */
	for (int i = 0; i < 256; i++) {
		struct reply in;
		int rc = reply_receiver_next(&run->p.receiver, &in);

		if (rc == -EAGAIN)
			continue;
		if (rc <= 0)
			return rc;
		*arrival = (struct echo_arrival){ .received_ns = in.received_ns, .source = in.source, .ttl = in.ttl, .from = in.from };
		if (echo_reply_parse(reply, in.data, in.length, run->proto) && (run->proto == KTRXER_UDP || reply->id == run->p.id))
			return 1;
	}
	return 0;
}
