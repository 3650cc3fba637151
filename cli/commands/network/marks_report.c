/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "marks_report.h"

#ifndef KTRXER_SMALL
#include "dscp.h"
#include "fields_common.h"
#include "reasons.h"

#include <inttypes.h>
#include <stdio.h>

static bool is_many(uint64_t changed, const struct marks_changed *c)
{
	return changed * 100 > c->received * THRESHOLD_MARKS_CHANGED_PERCENT;
}

void marks_report_judge(const struct marks_report *r)
{
	char was[8], is[8], dscp[8], of_class[24] = "";
	struct marks_changed c;

	if (!r->known)
		return;
	marks_compare(&c, r->arrived, r->sent);
	if (r->compared)
		snprintf(of_class, sizeof of_class, " of class %s", dscp_name(r->sent >> 2, dscp));
	if (is_many(c.dscp, &c) && (r->sent >> 2 || r->compared))
		reason_dscp_changed(r->cli, r->direction, c.dscp, c.received, r->packets, of_class,
				    dscp_name(r->sent >> 2, was), dscp_name(c.new_dscp, is));
	if (is_many(c.ecn, &c) && r->sent & 3)
		(c.new_ecn ? reason_ecn_changed : reason_ecn_bleached)(r->cli, r->direction, c.ecn, c.received,
								       r->packets, of_class, ecn_names[r->sent & 3],
								       ecn_names[c.new_ecn]);
}

void marks_report_text(const struct marks_report *r)
{
	struct marks_changed c;
	char was[8], is[8];

	if (!r->known)
		return;
	marks_compare(&c, r->arrived, r->sent);
	if (c.dscp)
		out_text(r->cli, "marks: %" PRIu64 " of %" PRIu64 " %s %s were sent with DSCP %s and arrived with %s",
			 c.dscp, c.received, r->packets, r->direction, dscp_name(r->sent >> 2, was),
			 dscp_name(c.new_dscp, is));
	if (c.ecn)
		out_text(r->cli, "marks: %" PRIu64 " of %" PRIu64 " %s %s were sent with ECN %s and arrived with %s",
			 c.ecn, c.received, r->packets, r->direction, ecn_names[r->sent & 3], ecn_names[c.new_ecn]);
}

void marks_report_json(const struct marks_report *r, const char *key, struct json *json)
{
	const struct marks *m = r->arrived;

	if (!r->known) {
		json_null(json, key);
		return;
	}
	json_array(json, key);
	for (int i = 0; i < MARKS_KINDS && m->packets[i]; i++) {
		json_object(json, NULL);
		mark_count_dscp(json, m->tos[i] >> 2);
		mark_count_ecn(json, ecn_names[m->tos[i] & 3]);
		mark_count_packets(json, m->packets[i]);
		json_object_end(json);
	}
	if (m->other) {
		json_object(json, NULL);
		mark_count_dscp_null(json);
		mark_count_ecn(json, NULL);
		mark_count_packets(json, m->other);
		json_object_end(json);
	}
	json_array_end(json);
}
#endif
