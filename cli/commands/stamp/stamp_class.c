/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Several classes in one `stamp`: at each time one probe of each leaves, back to back, for one wake-up. Each class is a STAMP session of its
 * own (RFC 8972: same addresses and ports, another SSID), so that the far end counts it for itself and none is taken for another's loss.
 */
#include "stamp.h"

#include "dscp.h"
#include "error.h"
#include "limits.h"
#include "stamp_packet.h"
#include "units.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

int stamp_classes_read(struct stamp_run *run, struct ktrxer_error *err)
{
	for (const char *text = run->o->dscp; text;) {
		const char *comma = strchr(text, ',');
		struct ktrxer_error word;
		uint8_t dscp;
		int rc = dscp_parse(&dscp, text, comma ? (size_t)(comma - text) : strlen(text), &word);

		if (rc < 0)
			return ktrxer_fail(err, rc, "--dscp: %s", word.text);
		if (run->class_count == STAMP_CLASSES)
			return ktrxer_fail(err, -EINVAL, "--dscp %.40s: at most %d at once", run->o->dscp, STAMP_CLASSES);
		run->classes[run->class_count++].tos = (uint8_t)(dscp << 2 | run->o->ecn);
		text = comma ? comma + 1 : NULL;
	}
	run->p.each = run->class_count;
	if (run->ssid > UINT16_MAX - (run->class_count - 1)) {
		if (run->o->ssid)
			return ktrxer_fail(err, -EINVAL, "--ssid %u: with %u classes it may be %u at most", run->ssid, run->class_count,
					   UINT16_MAX - (run->class_count - 1));
		run->ssid = (uint16_t)(UINT16_MAX - (run->class_count - 1));
	}
	return 0;
}

struct stamp_class *stamp_class_of(struct stamp_run *run, const uint8_t *packet, size_t length)
{
	struct stamp_reply reply;
	uint32_t which;

	/* Each class counts as foreign a packet that is too short for an answer, or of no class. */
	if (run->class_count == 1 || !stamp_reply_read(&reply, packet, length, run->auth))
		return &run->classes[0];
	if (!reply.ssid) {
		prober_fail(&run->p, -EPROTO, "this reflector does not support session identifiers (RFC 8972), and cannot count several classes apart: "
			    "give one --dscp at a time");
		return NULL;
	}
	which = (uint32_t)reply.ssid - run->ssid;
	return &run->classes[which < run->class_count ? which : 0];
}

/* Numbers first, what is known of them last. */
#define COUNTS (offsetof(struct stamp_session_counts, direction_known) / sizeof(uint64_t))

void stamp_counts(const struct stamp_run *run, struct stamp_session_counts *sum)
{
	uint64_t refused = 0, dropped = 0, rate = 0;

	memset(sum, 0, sizeof *sum);
	sum->direction_known = true;
	for (uint32_t i = 0; i < run->class_count; i++) {
		struct stamp_session_counts c;

		stamp_session_counts(run->classes[i].session, &c);
		for (size_t k = 0; k < COUNTS; k++)
			((uint64_t *)sum)[k] += ((const uint64_t *)&c)[k];
		/* Counts of the whole server, which each class hears. */
		refused = c.server_refused > refused ? c.server_refused : refused;
		dropped = c.server_dropped > dropped ? c.server_dropped : dropped;
		rate = c.server_rate > rate ? c.server_rate : rate;
		sum->direction_known &= c.direction_known;
		sum->stateful |= c.stateful;
		sum->follow_up_seen |= c.follow_up_seen;
	}
	sum->server_refused = refused;
	sum->server_dropped = dropped;
	sum->server_rate = rate;
}

void stamp_losses_json(struct json *end, const struct stamp_session_counts *c)
{
	json_u64(end, "lost", c->lost);
	if (c->direction_known) {
		json_u64(end, "lost_up", c->lost_up);
		json_u64(end, "lost_down", c->lost_down);
	} else {
		json_null(end, "lost_up");
		json_null(end, "lost_down");
	}
	json_u64(end, "lost_unknown", c->lost_unknown);
}

void stamp_classes_json(const struct stamp_run *run, struct json *end)
{
	if (run->class_count == 1)
		return;
	json_array(end, "classes");
	for (uint32_t i = 0; i < run->class_count; i++) {
		struct stamp_session_counts c;

		stamp_session_counts(run->classes[i].session, &c);
		json_object(end, NULL);
		json_u64(end, "dscp", run->classes[i].tos >> 2);
		json_string(end, "ecn", ecn_names[run->classes[i].tos & 3]);
		json_u64(end, "ssid", run->ssid + i);
		json_u64(end, "sent", c.sent);
		json_u64(end, "failed", c.failed);
		json_u64(end, "received", c.received);
		json_u64(end, "unanswered_at_end", c.waiting);
		stamp_losses_json(end, &c);
		json_u64(end, "untimed", run->classes[i].untimed);
		json_hist_us(end, "rtt_us", run->classes[i].rtt);
		json_object_end(end);
	}
	json_array_end(end);
}
