/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "echo_replies.h"

#include <errno.h>

/* A turn has a limit: a flood of packets that are no answers ends with the next look at the clock. */
enum { TURN = 256 };

void echo_replies_take(struct prober *p, struct echo_table *table, uint8_t proto,
		       void (*answer)(void *client, enum echo_event event, const struct echo_result *result))
{
	struct reply in;
	int rc = 0;

	for (int i = 0; i < TURN && ((rc = reply_receiver_next(&p->receiver, &in)) > 0 || rc == -EAGAIN); i++) {
		const struct echo_arrival arrival = {
			.received_ns = in.received_ns, .source = in.source, .ttl = in.ttl, .from = in.from
		};
		struct echo_result result;
		struct echo_reply reply;
		enum echo_event event;

		if (rc <= 0 || !echo_reply_parse(&reply, in.data, in.length, proto) ||
		    (proto != KTRXER_UDP && reply.id != p->id))
			continue;
		event = echo_table_reply(table, &reply, &arrival, &result);
		if (event != ECHO_FOREIGN && event != ECHO_DUPLICATE)
			path_witness_arrived(&p->result.path, in.device);
		answer(p->client, event, &result);
	}
	if (rc < 0 && rc != -EAGAIN)
		prober_fail(p, rc, rc == -ENETDOWN ? "the device went down" : "the device is gone");
}
