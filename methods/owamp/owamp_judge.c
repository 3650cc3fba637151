/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_judge.h"

#include "owamp_delays.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { DUE, LEAST, KEEP, DECIDE, DONE };

int owamp_judge_begin(struct owamp_judge *j, struct owamp_receiver *receiver, const struct owamp_judge_plan *plan)
{
	int rc;

	*j = (struct owamp_judge){ .receiver = receiver,
				   .plan = *plan,
				   .due_ns = malloc((receiver->packets + 1) * sizeof *j->due_ns),
				   .least_ns = INT64_MAX,
				   .synchronised = true };
	rc = owamp_schedule_begin(&j->schedule, plan->sid, plan->slots, plan->slot_count);
	return j->due_ns ? rc : -ENOMEM;
}

static bool is_off(const struct owamp_judge *j, uint32_t seq, int64_t sent_ns)
{
	const int64_t off_ns = sent_ns - j->due_ns[seq];

	return off_ns > j->plan.timeout_ns || off_ns < -j->plan.timeout_ns;
}

static void due(struct owamp_judge *j)
{
	uint64_t at;

	/* The times of a schedule that ends early stay those of its last packet. */
	if (owamp_schedule_next(&j->schedule, &at) < 0)
		at = j->schedule.at;
	j->due_ns[j->at] = j->plan.start_ns + (int64_t)owamp_time_to_ns(at);
}

/* The offset of the clocks: 0 if both are synchronised for each packet. */
static void least(struct owamp_judge *j)
{
	const struct owamp_record *r = &j->receiver->records[j->at];
	struct owamp_times t;

	if (!stamp_error_read(r->send_error).synchronised || !stamp_error_read(r->receive_error).synchronised)
		j->synchronised = false;
	if (owamp_record_times(r, NULL, &t) && !is_off(j, r->seq, t.sent_ns) && t.received_ns - t.sent_ns < j->least_ns)
		j->least_ns = t.received_ns - t.sent_ns;
}

static void least_end(struct owamp_judge *j)
{
	const struct owamp_judge_plan *p = &j->plan;

	if (j->synchronised || j->least_ns == INT64_MAX)
		j->least_ns = 0;
	j->limit_ns = p->end_ns == INT64_MAX ? INT64_MAX : p->end_ns - j->least_ns - p->timeout_ns;
	memset(j->receiver->seen, 0, j->receiver->packets / 8 + 1);
}

static void keep(struct owamp_judge *j)
{
	struct owamp_receiver *const r = j->receiver;
	const struct owamp_record one = r->records[j->at];
	struct owamp_times t;

	/* A time that cannot be read is a matter of the delays. */
	if (owamp_record_times(&one, NULL, &t)) {
		const int64_t delay_ns = t.received_ns - t.sent_ns - j->least_ns;

		if (is_off(j, one.seq, t.sent_ns) || delay_ns > j->plan.timeout_ns || delay_ns < -j->plan.timeout_ns) {
			j->too_late++;
			return;
		}
		if (t.sent_ns > j->limit_ns) {
			j->unsure += j->due_ns[one.seq] <= j->limit_ns && !(r->seen[one.seq / 8] & 1 << one.seq % 8);
			r->seen[one.seq / 8] |= (uint8_t)(1 << one.seq % 8);
			return;
		}
	}
	r->seen[one.seq / 8] |= (uint8_t)(1 << one.seq % 8);
	r->records[j->kept++] = one;
}

bool owamp_judge_some(struct owamp_judge *j, uint32_t looks)
{
	struct owamp_receiver *const r = j->receiver;

	for (; looks && j->step != DONE; looks--) {
		const bool more = j->at < (j->step == LEAST || j->step == KEEP ? r->count : r->packets);

		if (more && j->step == DUE)
			due(j);
		else if (more && j->step == LEAST)
			least(j);
		else if (more && j->step == KEEP)
			keep(j);
		else if (more && j->due_ns[j->at] <= j->limit_ns)
			j->decided++;
		if (more) {
			j->at++;
			continue;
		}
		if (j->step == LEAST)
			least_end(j);
		if (j->step == KEEP) {
			r->dropped += r->count - j->kept;
			r->count = j->kept;
		}
		j->at = 0;
		j->step++;
	}
	return j->step != DONE;
}

void owamp_judge_end(struct owamp_judge *j)
{
	owamp_schedule_end(&j->schedule);
	free(j->due_ns);
	j->due_ns = NULL;
}
