/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_burst.h"

#include <math.h>

enum { USUAL = 64, LONG = 256 };
#define POLICED 4 /* one of so many packets lost: few of the others came after the bucket was empty */

#define REFILL 4 /* periods of the later bursts, in times that the burst lasts at the sustained rate */

struct sent {
	uint32_t packets, trains;
	struct shaper shaper; /* of the last train, if it is `found` */
	bool found, policed;
};

static int send(struct train_burst *b, const struct train_burst_options *o, struct sent *last, struct ktrxer_error *err)
{
	const uint32_t ip_bytes = o->payload + o->head;
	const double bits = 8.0 * last->packets * ip_bytes,
		     refill_s = last->found ? REFILL * bits / last->shaper.sustained_bit_s : 0;
	struct flow_spec spec = { .down = o->down,
				  .udp = true,
				  .model = FLOW_TRAIN,
				  .payload_min = (uint16_t)o->payload,
				  .payload_max = (uint16_t)o->payload,
				  .train = (uint16_t)last->packets };
	struct train_session_options session = *o->session;
	struct train_session s;
	int rc;

	spec.rate_bps = (uint64_t)((double)flow_train_bits(&spec) / fmax(bits / o->load_bit_s, refill_s));
	session.specs = &spec;
	session.flows = 1;
	session.trains = last->trains;
	session.start_ns = 0;
	rc = train_session_run(&s, &session, err);
	if (rc == 0) {
		b->stopped = s.stopped;
		last->found = !s.stopped &&
			      shaper_of_train(s.packets[0].arrived_ns + (size_t)(last->trains - 1) * last->packets,
					      last->packets, ip_bytes, &last->shaper);
		last->policed = s.packets[0].arrived * POLICED < (uint64_t)last->packets * (POLICED - 1);
	}
	train_session_free(&s);
	return rc;
}

int train_burst_find(struct train_burst *b, const struct train_burst_options *o, struct ktrxer_error *err)
{
	struct sent last = { .packets = USUAL, .trains = 1 };
	struct shaper first;
	int rc;

	*b = (struct train_burst){ .stopped = false };
	rc = send(b, o, &last, err);
	if (rc == 0 && !last.found && last.policed && !b->stopped) {
		last.packets = LONG;
		rc = send(b, o, &last, err);
	}
	if (rc < 0 || !last.found)
		return rc;
	first = last.shaper;
	last.trains = 2;
	rc = send(b, o, &last, err);
	/* A load that begins during a burst looks like an empty bucket, but not twice at the same rates. */
	if (rc == 0 && last.found && shaper_agree(&last.shaper, &first)) {
		b->shaper = last.shaper;
		b->shaper.bucket_bytes = fmax(last.shaper.bucket_bytes, first.bucket_bytes);
	}
	return rc;
}
