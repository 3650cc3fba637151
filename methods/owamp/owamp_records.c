/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The end of a session of the OWAMP client: the stop messages, the records of the server, and those of this host. */
#include "owamp_client_state.h"

#include "clock.h"
#include "error.h"
#include "owamp_delays.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	RECORDS_OF_ONE = 4,    /* packet, at most: its copies have records, too */
	RECORDS_MORE = 100000, /* copies of some packets */
	DRIFT = 5000           /* 200 ppm: of two clocks against each other */
};

static bool has_ended_early(const struct owamp_client *c)
{
	return c->result->stopped || c->result->stopped_by_peer;
}

int owamp_records_stop(struct owamp_client *c, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_STOP_BYTES + OWAMP_STOPPED_BYTES + OWAMP_SKIPS_MOST * OWAMP_SKIP_BYTES + OWAMP_BLOCK +
		     OWAMP_HMAC_BYTES] = { 0 };
	size_t length = OWAMP_STOP_BYTES;

	owamp_stop_write(data, OWAMP_OK, c->sender != NULL);
	if (c->sender) {
		struct owamp_stopped s = { .next = c->sender->next, .skips = c->sender->skips };

		owamp_sender_stop(c->sender);
		memcpy(s.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
		owamp_stopped_write(data + length, &s);
		for (uint32_t i = 0; i < s.skips; i++)
			owamp_skip_write(data + length + OWAMP_STOPPED_BYTES + (size_t)i * OWAMP_SKIP_BYTES,
					 &c->sender->skip[i]);
		length += owamp_padded(OWAMP_STOPPED_BYTES + (size_t)s.skips * OWAMP_SKIP_BYTES);
	}
	return owamp_link_write(&c->link, data, length + OWAMP_HMAC_BYTES, err);
}

struct skips {
	uint32_t packets, above; /* of all ranges; of them not below `from` */
	uint32_t from;
};

/* The packets of ranges, which are below `most`; the bytes up to the end of the block are read, too. */
static int skips_read(struct owamp_client *c, uint32_t skips, uint32_t most, size_t before, struct skips *found,
		      struct ktrxer_error *err)
{
	uint8_t data[OWAMP_BLOCK];
	const size_t bytes = (size_t)skips * OWAMP_SKIP_BYTES, rest = owamp_padded(before + bytes) - before - bytes;
	int rc = 0;

	for (uint32_t i = 0; i < skips && rc == 0; i++) {
		struct owamp_skip skip;

		rc = owamp_link_read(&c->link, data, OWAMP_SKIP_BYTES, err);
		if (rc < 0)
			return rc;
		/* All ranges together have `most` packets at most, so that there are not more ranges. */
		if (owamp_skip_read(&skip, data) < 0 || skip.last >= most ||
		    skip.last - skip.first >= most - found->packets)
			return owamp_link_bad("a range of packets that were not sent", err);
		found->packets += skip.last - skip.first + 1;
		if (skip.last >= found->from)
			found->above += skip.last - (skip.first > found->from ? skip.first : found->from) + 1;
	}
	return rc == 0 ? owamp_link_read(&c->link, data, rest, err) : rc;
}

int owamp_records_stopped(struct owamp_client *c, struct ktrxer_error *err)
{
	struct owamp_way *down = &c->result->ways[OWAMP_DOWN];
	uint8_t data[OWAMP_STOPPED_BYTES], accept;
	uint32_t sessions;
	int rc = owamp_link_read(&c->link, data, OWAMP_STOP_BYTES, err);

	if (rc < 0)
		return rc;
	if (owamp_stop_read(&accept, &sessions, data) < 0 || sessions != (c->o->ways[OWAMP_DOWN] ? 1 : 0))
		return owamp_link_bad("the stop message", err);
	if (accept != OWAMP_OK)
		return ktrxer_fail(err, -ECONNABORTED,
				   "the server has stopped the sessions because of a failure: "
				   "there are no results");
	if (sessions) {
		struct skips skips = { .from = c->judge.decided };
		struct owamp_stopped stopped;

		rc = owamp_link_read(&c->link, data, OWAMP_STOPPED_BYTES, err);
		if (rc < 0)
			return rc;
		(void)owamp_stopped_read(&stopped, data);
		if (memcmp(stopped.sid, c->requests[OWAMP_DOWN].sid, OWAMP_SID) != 0 || stopped.next > c->o->packets ||
		    stopped.skips > stopped.next)
			return owamp_link_bad("the stop message", err);
		if (stopped.next < c->receiver.after)
			return ktrxer_fail(err, -EPROTO,
					   "the server claims not to have sent packet %u down, which has arrived: the "
					   "session has no results (RFC 4656, 3.8)",
					   c->receiver.after - 1);
		down->next = stopped.next;
		rc = skips_read(c, stopped.skips, stopped.next, OWAMP_STOPPED_BYTES, &skips, err);
		down->skipped = skips.packets;
		down->undecided = c->judge.unsure - skips.above;
		if (stopped.next > c->judge.decided)
			down->undecided += stopped.next - c->judge.decided;
	}
	return rc == 0 ? owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err) : rc;
}

static int records_read(struct owamp_client *c, struct owamp_way *up, uint32_t records, struct ktrxer_error *err)
{
	uint8_t data[OWAMP_RECORD_BYTES];
	const size_t bytes = (size_t)records * OWAMP_RECORD_BYTES;
	uint8_t *seen = calloc(c->o->packets / 8 + 1, 1);
	uint32_t decided = 0;
	int rc = 0;

	up->records = calloc(records ? records : 1, sizeof *up->records);
	if (!up->records || !seen)
		rc = ktrxer_fail(err, -ENOMEM, "no memory for %u records", records);
	for (uint32_t i = 0; i < records && rc == 0; i++) {
		struct owamp_record *r = &up->records[up->count];

		rc = owamp_link_read(&c->link, data, OWAMP_RECORD_BYTES, err);
		if (rc < 0)
			break;
		owamp_record_read(r, data);
		if (r->seq >= c->o->packets) {
			rc = owamp_link_bad("the number of a packet", err);
			break;
		}
		decided += !(seen[r->seq / 8] & 1 << r->seq % 8);
		seen[r->seq / 8] |= (uint8_t)(1 << r->seq % 8);
		up->count += r->received != 0;
	}
	free(seen);
	if (rc < 0)
		return rc;
	/* Packets within their time-out at the end have no record, lost ones have one (RFC 4656, 3.8). */
	if (has_ended_early(c) && c->sender->next - c->sender->skipped > decided)
		up->undecided = c->sender->next - c->sender->skipped - decided;
	return owamp_link_read(&c->link, data, owamp_padded(bytes) - bytes, err);
}

int owamp_records_fetch(struct owamp_client *c, struct ktrxer_error *err)
{
	struct owamp_way *up = &c->result->ways[OWAMP_UP];
	struct owamp_fetch f = { .end = UINT32_MAX };
	uint8_t data[OWAMP_REQUEST_BYTES];
	struct owamp_fetched fetched;
	struct owamp_request again;
	int rc;

	memcpy(f.sid, c->requests[OWAMP_UP].sid, OWAMP_SID);
	owamp_fetch_write(data, &f);
	if ((rc = owamp_link_write(&c->link, data, OWAMP_FETCH_BYTES, err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_COMMAND_BYTES, err)) < 0)
		return rc;
	/* Memory and time are bounded by what this host has sent, not by what a server claims. */
	(void)owamp_fetched_read(&fetched, data);
	if (fetched.records > RECORDS_OF_ONE * (uint64_t)c->o->packets + RECORDS_MORE)
		return owamp_link_bad("the answer to the request for records", err);
	if ((rc = owamp_link_accepted(fetched.accept, "the records of the session", err)) < 0 ||
	    (rc = owamp_link_read(&c->link, data, OWAMP_REQUEST_BYTES, err)) < 0)
		return rc;
	if (owamp_request_read(&again, data) < 0 || again.slots > OWAMP_SLOTS_MOST)
		return owamp_link_bad("the request before the records", err);
	for (uint32_t i = 0; i <= again.slots && rc == 0; i++)
		rc = owamp_link_read(&c->link, data, OWAMP_SLOT_BYTES, err); /* the last one is the HMAC */
	if (rc == 0)
		rc = skips_read(c, fetched.skips, c->o->packets, 0, &(struct skips){ 0 }, err);
	if (rc == 0)
		rc = owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err);
	if (rc == 0)
		rc = records_read(c, up, fetched.records, err);
	return rc == 0 ? owamp_link_read(&c->link, data, OWAMP_HMAC_BYTES, err) : rc;
}

/*
 * Lateness is that above the least one, because the offset of the server's clock is not known. Two clocks that are not
 * synchronised drift apart.
 */
static void server_lateness(const struct owamp_client *c, struct owamp_way *down)
{
	const struct owamp_receiver *r = &c->receiver;
	int64_t least_ns = INT64_MAX;
	struct owamp_times times;

	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < r->count; i++) {
			const int64_t at_ns = c->judge.due_ns[r->records[i].seq];
			int64_t late_ns;

			if (!owamp_record_times(&r->records[i], NULL, &times))
				continue;
			late_ns = times.sent_ns - at_ns - (pass ? least_ns : 0);
			if (!pass) {
				least_ns = late_ns < least_ns ? late_ns : least_ns;
			} else if (late_ns > (int64_t)c->o->late_ns + (at_ns - c->judge.plan.start_ns) / DRIFT) {
				down->late++;
				if ((uint64_t)late_ns > down->late_most_ns)
					down->late_most_ns = (uint64_t)late_ns;
			}
		}
}

int owamp_records_judge(struct owamp_client *c, struct ktrxer_error *err)
{
	struct owamp_way *down = &c->result->ways[OWAMP_DOWN];
	struct owamp_judge_plan plan = { .slots = &c->o->slot,
					 .slot_count = 1,
					 .start_ns = owamp_client_start_real_ns(c),
					 .timeout_ns = (int64_t)c->o->timeout_ns,
					 .end_ns = INT64_MAX };
	int rc;

	memcpy(plan.sid, c->requests[OWAMP_DOWN].sid, OWAMP_SID);
	if (has_ended_early(c))
		plan.end_ns = ktrxer_real_now_ns();
	owamp_receiver_drain(&c->receiver);
	owamp_receiver_stop(&c->receiver);
	rc = owamp_judge_begin(&c->judge, &c->receiver, &plan);
	if (rc < 0)
		return ktrxer_fail(err, rc, "no memory for the times of %u packets", c->o->packets);
	(void)owamp_judge_some(&c->judge, UINT32_MAX);
	down->too_late = c->judge.too_late;
	server_lateness(c, down);
	return 0;
}

void owamp_records_collect(struct owamp_client *c)
{
	struct owamp_way *up = &c->result->ways[OWAMP_UP], *down = &c->result->ways[OWAMP_DOWN];

	if (c->sender) {
		owamp_sender_accounts(c->sender, &up->accounts);
		up->lateness = ktx_lateness(c->sender->tx);
		up->next = c->sender->next;
		up->skipped = c->sender->skipped;
		up->sched_real_ns = c->sender->sched_real_ns;
		c->sender->sched_real_ns = NULL;
	}
	if (c->o->ways[OWAMP_DOWN]) {
		down->records = c->receiver.records;
		down->count = c->receiver.count;
		down->socket_drops = c->receiver.socket_drops;
		down->user_stamped = c->receiver.user_stamped;
		down->ignored = c->receiver.ignored;
		c->receiver.records = NULL;
	}
	if (c->sender)
		path_witness_sent(&c->result->path, c->sender->tx, &c->result->route, up->accounts.sent);
	path_witness_end(&c->result->path, &(struct path_claim){ .path = &c->result->route,
								 .from = &c->link.local,
								 .sent = up->accounts.sent });
}
