/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_abw.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FLOWS_MOST = 2 };

static struct flow_spec spec_of(const struct abw_plan *plan, bool down, uint32_t flow, uint32_t head)
{
	struct flow_spec s = { .down = down,
			       .udp = true,
			       .model = FLOW_TRAIN,
			       .start_ns = flow * (plan->period_ns / FLOWS_MOST),
			       .payload_min = (uint16_t)(plan->ip_bytes - head),
			       .payload_max = (uint16_t)(plan->ip_bytes - head),
			       .train = (uint16_t)plan->packets,
			       .train_shrink = plan->shrink,
			       .train_gap_ns = plan->gap_ns };

	s.rate_bps = flow_train_bits(&s) * (uint64_t)KTRXER_NS_PER_S / plan->period_ns;
	return s;
}

/* The times of all flows of the session, one after the other. */
static int take(struct abw *abw, const struct train_session *session)
{
	const struct abw_plan *plan = abw_next(abw);
	const size_t one = (size_t)plan->trains * plan->packets;
	uint64_t *times = calloc(2 * one * plan->flows, sizeof *times);
	int rc;

	if (!times)
		return -ENOMEM;
	for (uint32_t flow = 0; flow < plan->flows; flow++) {
		memcpy(times + flow * one, session->packets[flow].sent_ns, one * sizeof *times);
		memcpy(times + (plan->flows + flow) * one, session->packets[flow].arrived_ns, one * sizeof *times);
	}
	rc = abw_take(abw, times, times + plan->flows * one);
	free(times);
	return rc;
}

int train_abw_run(struct train_abw *a, const struct train_session_options *session, bool down, uint32_t head,
		  struct ktrxer_error *err)
{
	struct train_session_options o = *session;
	struct flow_spec specs[FLOWS_MOST];
	struct train_session s;
	int rc = 0;

	o.specs = specs;
	for (const struct abw_plan *plan; rc == 0 && !a->stopped && (plan = abw_next(&a->abw));) {
		const struct abw_plan sent = *plan;

		for (o.flows = 0; o.flows < sent.flows; o.flows++)
			specs[o.flows] = spec_of(&sent, down, o.flows, head);
		o.trains = sent.trains;
		rc = train_session_run(&s, &o, err);
		if (rc == 0) {
			a->sessions++;
			a->remote_missing += s.result.remote_missing;
			a->stopped = s.stopped;
			a->info = s.info;
			a->qdiscs = s.qdiscs;
			a->lasted_ns += s.lasted_ns;
			o.start_ns = 0;
			rc = a->stopped ? 0 : take(&a->abw, &s);
			if (rc < 0)
				ktrxer_fail(err, rc, "no memory for the times of %u trains", sent.trains);
			else if (!a->stopped)
				a->step(a->context, &sent, &s);
		}
		train_session_free(&s);
	}
	if (a->lasted_ns)
		a->load_bit_s = (double)a->abw.result.bytes * 8e9 / (double)a->lasted_ns;
	if (a->abw.result.capacity_bit_s > 0)
		a->load_share = a->load_bit_s / a->abw.result.capacity_bit_s;
	return rc;
}
