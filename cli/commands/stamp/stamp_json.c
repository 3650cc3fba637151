/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON objects of `stamp`: of each sample, and of the end. */
#include "stamp_command.h"

#include "dscp.h"

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

static void say_more(struct json *json, const struct stamp_sample *p)
{
	json_i64(json, "lateness_ns", (int64_t)(p->t1_ns - p->at_ns));
	json_i64(json, "reflector_sent_real_ns", p->t3_real_ns);
	json_u64(json, "received_ns", p->t4_ns);
	json_i64(json, "dwell_ns", p->dwell_ns);
	if (p->follows) {
		json_i64(json, "ipdv_ns", p->ipdv_ns);
		json_i64(json, "ipdv_up_ns", p->ipdv_up_ns);
		json_i64(json, "ipdv_down_ns", p->ipdv_down_ns);
	}
	json_u64(json, "bound_ns", p->bound_ns);
	if (p->own_queue_ns >= 0)
		json_i64(json, "own_queue_ns", p->own_queue_ns);
	if (p->far_queue_ns >= 0)
		json_i64(json, "far_queue_ns", p->far_queue_ns);
	json_i64(json, "adjusted_ns", p->adjusted_ns);
	json_string(json, "sent_stamp", sent_source_names[p->sent_source]);
	json_string(json, "received_stamp", source_names[p->source]);
	json_u64(json, "ttl_up", p->ttl_up);
	json_u64(json, "ttl_down", p->ttl_down);
	if (p->tos_up != 0xff) {
		json_u64(json, "dscp_up", p->tos_up >> 2);
		json_string(json, "ecn_up", ecn_names[p->tos_up & 3]);
	}
	json_u64(json, "dscp_down", p->tos_down >> 2);
	json_string(json, "ecn_down", ecn_names[p->tos_down & 3]);
	json_bool(json, "reordered_up", p->reordered_up);
	json_bool(json, "reordered_down", p->reordered_down);
}

void stamp_sample_json(struct stamp_command *run, uint32_t which, const struct stamp_sample *p)
{
	struct json *json;

	if (run->o->p.brief && !p->too_late) {
		probe_batch_add(&run->report,
				(const int64_t[]){ (int64_t)p->number, (int64_t)p->at_ns, (int64_t)p->t1_ns, p->rtt_ns,
						   p->t2_real_ns, (int64_t)p->reflector_seq, p->own_queue_ns,
						   p->far_queue_ns, p->adjusted_ns, which });
		return;
	}
	json = out_sample(run->report.cli, p->too_late ? "too_late" : "round_trip");
	if (!json)
		return;
	json_u64(json, "number", p->number);
	if (run->report.each > 1)
		json_u64(json, "class", which);
	json_u64(json, "scheduled_ns", p->at_ns);
	json_u64(json, "sent_ns", p->t1_ns);
	json_i64(json, "reflector_received_real_ns", p->t2_real_ns);
	json_i64(json, "rtt_ns", p->rtt_ns);
	json_u64(json, "reflector_sequence", p->reflector_seq);
	say_more(json, p);
	out_put(run->report.cli, json);
}

/* ------------------------------------------------------------------------------------------------- the one-way part */

static void json_ns_as_us(struct json *json, const char *key, int64_t ns)
{
	json_fixed(json, key, ns, 3);
}

static void one_way_json(struct json *end, const struct one_way_result *w)
{
	if (w->known) {
		json_hist_us(end, "up_us", w->delays.up);
		json_hist_us(end, "down_us", w->delays.down);
		json_object(end, "one_way_uncertainty_us");
		json_ns_as_us(end, "clock", (int64_t)w->clock_ns);
		json_ns_as_us(end, "skew", (int64_t)w->skew_ns);
		json_ns_as_us(end, "host", (int64_t)w->host_ns);
		json_ns_as_us(end, "resolution", (int64_t)w->resolution_ns);
		json_ns_as_us(end, "total", (int64_t)w->total_ns);
		json_object_end(end);
		json_ns_as_us(end, "offset_us", w->offset_ns);
		json_ns_as_us(end, "offset_bound_us", (int64_t)w->clock_ns);
		json_u64(end, "offset_at_ns", w->clock.at_ns);
		json_string(end, "offset_from", w->claimed ? "round_trips_and_synchronised_clocks" : "round_trips");
	} else {
		json_null(end, "up_us");
		json_null(end, "down_us");
		json_null(end, "one_way_uncertainty_us");
		json_null(end, "offset_us");
		json_null(end, "offset_bound_us");
	}
	if (w->known && w->clock.skew_known) {
		json_rounded(end, "skew_ppm", w->clock.skew_ppm, 6);
		json_rounded(end, "skew_bound_ppm", w->clock.skew_bound_ppm, 6);
	} else {
		json_null(end, "skew_ppm");
		json_null(end, "skew_bound_ppm");
	}
	json_u64(end, "one_way_contradicted", w->delays.contradicted);
	json_u64(end, "clock_steps", w->steps);
	json_bool(end, "clocks_synchronised", w->synchronised);
	json_bool(end, "clocks_adjusted", w->adjusted);
	json_u64(end, "own_clock_changes", w->own_clock.changes);
	json_ns_as_us(end, "own_clock_change_us", w->own_clock.largest_ns);
	json_u64(end, "reflector_clock_changes", w->far_clock.changes);
	json_ns_as_us(end, "reflector_clock_change_us", w->far_clock.largest_ns);
}

/* ---------------------------------------------------------------------------------------------------------- the end */

static void losses_json(struct json *end, const struct stamp_session_counts *c)
{
	json_u64(end, "lost", c->lost);
	json_u64_or_null(end, "lost_up", c->direction_known, c->lost_up);
	json_u64_or_null(end, "lost_down", c->direction_known, c->lost_down);
	json_u64(end, "lost_unknown", c->lost_unknown);
	json_u64_or_null(end, "mark_changed_up", c->marks_known, c->mark_changed_up);
	json_u64_or_null(end, "mark_changed_down", c->marks_known, c->mark_changed_down);
}

static void counts_json(const struct stamp_command *run, struct json *end)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const bool by_direction = c->stateful || !(c->duplicates_up + c->duplicates_down);

	probe_accounts_json(&run->report, end, c->sent, c->received);
	json_u64(end, "unanswered_at_end", c->waiting);
	losses_json(end, c);
	json_u64(end, "too_late", c->too_late);
	json_u64(end, "reordered", c->reordered_up + c->reordered_down);
	json_u64(end, "reordered_up", c->reordered_up);
	json_u64(end, "reordered_down", c->reordered_down);
	json_u64(end, "duplicates", c->duplicates_up + c->duplicates_down);
	json_u64_or_null(end, "duplicates_up", by_direction, c->duplicates_up);
	json_u64_or_null(end, "duplicates_down", by_direction, c->duplicates_down);
	json_u64(end, "closing_probes", run->result->closing);
	json_u64(end, "foreign", c->foreign + run->result->elsewhere);
	json_u64(end, "wrong_hmac", c->wrong_hmac);
	json_u64(end, "tlvs_refused", c->tlvs_refused);
	json_u64(end, "dwell_max_ns", (uint64_t)(run->result->dwell_max_ns > 0 ? run->result->dwell_max_ns : 0));
	json_u64(end, "server_rate", c->server_rate);
	json_u64(end, "server_refused", c->server_refused);
	json_u64(end, "server_dropped", c->server_dropped);
	json_u64(end, "reflector_restarts", c->restarts);
	json_bool(end, "reflector_stateful", c->stateful);
	json_bool(end, "follow_up", c->follow_up_seen);
	probe_errors_json(&run->report, end);
}

static void classes_json(const struct stamp_result *r, struct json *end)
{
	if (r->class_count == 1)
		return;
	json_array(end, "classes");
	for (uint32_t i = 0; i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];

		json_object(end, NULL);
		json_u64(end, "dscp", class->tos >> 2);
		json_string(end, "ecn", ecn_names[class->tos & 3]);
		json_u64(end, "ssid", class->ssid);
		json_u64(end, "sent", class->counts.sent);
		json_u64(end, "failed", class->counts.failed);
		json_u64(end, "received", class->counts.received);
		json_u64(end, "unanswered_at_end", class->counts.waiting);
		losses_json(end, &class->counts);
		json_u64(end, "untimed", class->untimed);
#ifndef KTRXER_SMALL
		stamp_ttl_json(end, class, 1);
#endif
		json_hist_us(end, "rtt_us", class->rtt);
		json_object_end(end);
	}
	json_array_end(end);
}

#ifndef KTRXER_SMALL
static void host_delay_json(const struct stamp_command *run, struct json *end)
{
	const struct ktrxer_hist *rtt = run->report.prober->result.rtt;

	if (!run->o->host_delay)
		return;
	json_object(end, "host_delay");
	json_u64(end, "left_out", run->result->uncorrected);
	if (ktrxer_hist_count(rtt))
		json_fixed(end, "residual_max_us", ktrxer_hist_min(rtt), 3);
	else
		json_null(end, "residual_max_us");
	json_object_end(end);
}
#endif

void stamp_end_json(const struct stamp_command *run, struct json *end)
{
	const struct prober *p = run->report.prober;
	const struct stamp_result *r = run->result;
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "server", run->o->p.host);
	json_string(end, "to", ktrxer_addr_format(&p->path.to, address));
	json_u64(end, "port", p->spec.port);
	json_string(end, "from", ktrxer_addr_format(&p->path.source, address));
	json_string(end, "device", p->path.device.name);
	json_string(end, "engine", p->info.engine);
	json_string(end, "mode", run->o->auth_key_file ? "authenticated" : "open");
	json_u64(end, "ssid", r->ssid);
	json_u64(end, "payload_bytes", r->payload);
	counts_json(run, end);
	json_hist_us(end, "rtt_us", p->result.rtt);
	probe_own_queue_json(&run->report, end);
	json_hist_us(end, "far_queue_us", r->far_queue);
#ifndef KTRXER_SMALL
	stamp_ttl_json(end, r->classes, r->class_count);
	host_delay_json(run, end);
#endif
	one_way_json(end, &r->one_way);
	json_hist_us(end, "ipdv_us", r->ipdv);
	json_hist_us(end, "ipdv_up_us", r->ipdv_up);
	json_hist_us(end, "ipdv_down_us", r->ipdv_down);
	json_hist_us(end, "lateness_us", p->result.lateness);
	classes_json(r, end);
	json_object(end, "stamps");
	probe_stamps_json(&run->report, end);
	json_u64(end, "reflector_departures", ktrxer_hist_count(r->far_queue));
	json_object_end(end);
}
