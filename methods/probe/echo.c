/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "echo.h"

#include "bytes.h"

#include <errno.h>
#include <stdlib.h>

enum state { FREE, COMMITTED, WAITING, ANSWERED, LOST, UNSENT };

struct entry {
	uint64_t number;
	uint64_t at_ns, sent_ns, received_ns;
	struct ktrxer_addr from;
	int64_t own_queue_ns;
	uint8_t state, sent_source, source, ttl;
	bool has_reply; /* received_ns counts, though the report is not in yet */
	bool reordered;
};

struct echo_table {
	struct entry *entries;
	uint32_t mask;
	uint64_t timeout_ns, overtaken_ns, secret;
	bool icmp;
	uint64_t answered_sent_ns; /* the latest send time of a probe that has its answer */
	uint64_t begin, end;       /* numbers that may still wait: [begin, end) */
	uint64_t highest_answered; /* + 1; 0: none */
	struct echo_counts counts;
};

bool echo_reply_parse(struct echo_reply *reply, const uint8_t *packet, uint32_t length, uint8_t proto)
{
	struct bytes b = bytes_of(packet, length);

	*reply = (struct echo_reply){ 0 };
	if (proto == KTRXER_ICMP || proto == KTRXER_ICMPV6) {
		uint8_t type = bytes_u8(&b), code = bytes_u8(&b);

		bytes_skip(&b, 2);
		reply->id = bytes_be16(&b);
		reply->seq = bytes_be16(&b);
		if (!b.ok || code != 0 || type != (proto == KTRXER_ICMP ? 0 : 129))
			return false;
	} else if (proto != KTRXER_UDP) {
		return false;
	}
	reply->bytes = (uint32_t)bytes_left(&b);
	if (reply->bytes >= ECHO_PAYLOAD_NUMBER) {
		reply->number = bytes_be64(&b);
		reply->has_number = true;
	}
	if (reply->bytes >= ECHO_PAYLOAD_FULL) {
		reply->secret = bytes_be64(&b);
		reply->has_secret = true;
	}
	return true;
}

int echo_table_new(struct echo_table **out, uint32_t window, uint64_t timeout_ns, uint64_t overtaken_ns,
		   uint64_t secret, bool icmp)
{
	struct echo_table *table;

	*out = NULL;
	if (window < 2 || window > 65536 || (window & (window - 1)))
		return -EINVAL;
	table = calloc(1, sizeof *table);
	if (!table)
		return -ENOMEM;
	table->entries = calloc(window, sizeof *table->entries);
	if (!table->entries) {
		free(table);
		return -ENOMEM;
	}
	table->mask = window - 1;
	table->timeout_ns = timeout_ns;
	table->overtaken_ns = overtaken_ns ? overtaken_ns : timeout_ns;
	table->secret = secret;
	table->icmp = icmp;
	*out = table;
	return 0;
}

void echo_table_free(struct echo_table *table)
{
	if (!table)
		return;
	free(table->entries);
	free(table);
}

static struct entry *entry_of(struct echo_table *table, uint64_t number)
{
	struct entry *e = &table->entries[number & table->mask];

	return e->state != FREE && e->number == number ? e : NULL;
}

static bool has_no_end(const struct entry *e)
{
	return e->state == COMMITTED || e->state == WAITING;
}

int echo_table_commit(struct echo_table *table, uint64_t number)
{
	struct entry *e = &table->entries[number & table->mask];

	if (has_no_end(e))
		return -EAGAIN;
	*e = (struct entry){ .number = number, .state = COMMITTED };
	if (table->begin == table->end)
		table->begin = number;
	table->end = number + 1;
	return 0;
}

/* The oldest that has no end yet comes first again. */
static void begin_advance(struct echo_table *table)
{
	while (table->begin != table->end) {
		const struct entry *e = entry_of(table, table->begin);

		if (e && has_no_end(e))
			return;
		table->begin++;
	}
}

static struct echo_result result_of(const struct entry *e)
{
	return (struct echo_result){ .number = e->number,
				     .at_ns = e->at_ns,
				     .sent_ns = e->sent_ns,
				     .received_ns = e->received_ns,
				     .rtt_ns = (int64_t)(e->received_ns - e->sent_ns),
				     .own_queue_ns = e->own_queue_ns,
				     .sent_source = e->sent_source,
				     .source = e->source,
				     .ttl = e->ttl,
				     .reordered = e->reordered,
				     .from = e->from };
}

static enum echo_event round_trip(struct echo_table *table, struct entry *e, struct echo_result *result)
{
	e->state = ANSWERED;
	if (e->sent_ns > table->answered_sent_ns)
		table->answered_sent_ns = e->sent_ns;
	table->counts.received++;
	table->counts.waiting--;
	if (e->reordered)
		table->counts.reordered++;
	*result = result_of(e);
	begin_advance(table);
	return ECHO_ROUND_TRIP;
}

enum echo_event echo_table_report(struct echo_table *table, const struct ktx_report *report, struct echo_result *result)
{
	struct entry *e = entry_of(table, report->id);

	if (!e || e->state != COMMITTED)
		return ECHO_FOREIGN;
	if (report->status != KTX_SENT) {
		e->state = UNSENT;
		table->counts.failed++;
		begin_advance(table);
		return ECHO_NOTHING;
	}
	e->state = WAITING;
	e->at_ns = report->at_ns;
	e->sent_ns = report->sent_ns;
	e->own_queue_ns = report->own_queue_ns;
	e->sent_source = report->sent_source;
	table->counts.sent++;
	table->counts.waiting++;
	return e->has_reply ? round_trip(table, e, result) : ECHO_NOTHING;
}

/*
 * The number in the payload identifies the probe; where there was no room for it, the 16 bits of ICMP's sequence,
 * nearest to the newest probe.
 */
static bool number_of(const struct echo_table *table, const struct echo_reply *reply, uint64_t *number)
{
	/* An echo is as long as its request: one that is too short for the secret is another program's, or forged. */
	if (table->secret && (!reply->has_secret || reply->secret != table->secret))
		return false;
	if (reply->has_number) {
		*number = reply->number;
		return !table->icmp || (uint16_t)reply->number == reply->seq;
	}
	if (!table->icmp || !table->end)
		return false;
	*number = table->end - 1 - (uint16_t)((uint16_t)(table->end - 1) - reply->seq);
	return *number < table->end;
}

enum echo_event echo_table_reply(struct echo_table *table, const struct echo_reply *reply,
				 const struct echo_arrival *arrival, struct echo_result *result)
{
	struct entry *e;
	uint64_t number = 0;

	*result = (struct echo_result){ .received_ns = arrival->received_ns, .from = arrival->from };
	e = number_of(table, reply, &number) ? entry_of(table, number) : NULL;
	if (!e || e->state == UNSENT) {
		table->counts.foreign++;
		return ECHO_FOREIGN;
	}
	result->number = number;
	if (e->state == ANSWERED || e->has_reply) {
		table->counts.duplicates++;
		return ECHO_DUPLICATE;
	}
	e->has_reply = true;
	e->received_ns = arrival->received_ns;
	e->source = arrival->source;
	e->ttl = arrival->ttl;
	e->from = arrival->from;
	if (e->state == LOST) {
		table->counts.lost--;
		table->counts.too_late++;
		e->state = ANSWERED; /* the next one is a duplicate */
		*result = result_of(e);
		return ECHO_TOO_LATE;
	}
	/* RFC 4737: reordered when its number is below the highest seen before. */
	e->reordered = number + 1 < table->highest_answered;
	if (number + 1 > table->highest_answered)
		table->highest_answered = number + 1;
	return e->state == WAITING ? round_trip(table, e, result) : ECHO_NOTHING;
}

static uint64_t lost_at(const struct echo_table *table, const struct entry *e)
{
	const uint64_t overtaken_ns = e->sent_ns + table->overtaken_ns, timeout_ns = e->sent_ns + table->timeout_ns;

	return overtaken_ns < timeout_ns && table->answered_sent_ns >= overtaken_ns ? overtaken_ns : timeout_ns;
}

bool echo_table_lost(struct echo_table *table, uint64_t now_ns, uint64_t *number)
{
	struct entry *e;

	begin_advance(table);
	if (table->begin == table->end)
		return false;
	e = entry_of(table, table->begin);
	if (e->state != WAITING || now_ns < lost_at(table, e))
		return false;
	e->state = LOST;
	table->counts.lost++;
	table->counts.waiting--;
	*number = table->begin;
	begin_advance(table);
	return true;
}

uint64_t echo_table_next_loss(const struct echo_table *table)
{
	const struct entry *e = &table->entries[table->begin & table->mask];

	if (table->begin == table->end || e->state != WAITING)
		return KTRXER_NEVER;
	return lost_at(table, e);
}

void echo_table_counts(const struct echo_table *table, struct echo_counts *counts)
{
	*counts = table->counts;
}
