/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The JSON objects of `stamp`: of each sample, and of the end. */
#include "stamp_command.h"

#include "fields_probes.h"
#include "fields_stamp.h"
#include "dscp.h"

static const char *const source_names[] = { "none", "nic", "xdp", "kernel", "user" };

static void say_more(struct json *json, const struct stamp_sample *p)
{
	stamp_sample_lateness_ns(json, (int64_t)(p->t1_ns - p->at_ns));
	stamp_sample_reflector_sent_real_ns(json, p->t3_real_ns);
	stamp_sample_received_ns(json, p->t4_ns);
	stamp_sample_dwell_ns(json, p->dwell_ns);
	if (p->follows) {
		stamp_sample_ipdv_ns(json, p->ipdv_ns);
		stamp_sample_ipdv_up_ns(json, p->ipdv_up_ns);
		stamp_sample_ipdv_down_ns(json, p->ipdv_down_ns);
	}
	stamp_sample_bound_ns(json, p->bound_ns);
	if (p->own_queue_ns >= 0)
		stamp_sample_own_queue_ns(json, p->own_queue_ns);
	if (p->far_queue_ns >= 0)
		stamp_sample_far_queue_ns(json, p->far_queue_ns);
	stamp_sample_adjusted_ns(json, p->adjusted_ns);
	stamp_sample_sent_stamp(json, sent_source_names[p->sent_source]);
	stamp_sample_received_stamp(json, source_names[p->source]);
	stamp_sample_ttl_up(json, p->ttl_up);
	stamp_sample_ttl_down(json, p->ttl_down);
	if (p->tos_up != STAMP_TOS_UNKNOWN) {
		stamp_sample_dscp_up(json, p->tos_up >> 2);
		stamp_sample_ecn_up(json, ecn_names[p->tos_up & 3]);
	}
	stamp_sample_dscp_down(json, p->tos_down >> 2);
	stamp_sample_ecn_down(json, ecn_names[p->tos_down & 3]);
	stamp_sample_reordered_up(json, p->reordered_up);
	stamp_sample_reordered_down(json, p->reordered_down);
}

/* The class is the last column, and is left out where there is one. */
void stamp_batch_open(struct stamp_command *run)
{
	static const char *const columns[] = { STAMP_BATCH_NAMES };

	run->report.batch.columns = columns;
	run->report.batch.column_count = run->result->class_count > 1 ? STAMP_BATCH_FIELDS : STAMP_BATCH_CLASS;
}

void stamp_sample_json(struct stamp_command *run, uint32_t which, const struct stamp_sample *p)
{
	struct json *json;

	if (run->o->p.brief && !p->too_late) {
		probe_batch_add(&run->report, (const int64_t[STAMP_BATCH_FIELDS]){
						      [STAMP_BATCH_NUMBER] = (int64_t)p->number,
						      [STAMP_BATCH_SCHEDULED_NS] = (int64_t)p->at_ns,
						      [STAMP_BATCH_SENT_NS] = (int64_t)p->t1_ns,
						      [STAMP_BATCH_RTT_NS] = p->rtt_ns,
						      [STAMP_BATCH_REFLECTOR_RECEIVED_REAL_NS] = p->t2_real_ns,
						      [STAMP_BATCH_REFLECTOR_SEQUENCE] = (int64_t)p->reflector_seq,
						      [STAMP_BATCH_OWN_QUEUE_NS] = p->own_queue_ns,
						      [STAMP_BATCH_FAR_QUEUE_NS] = p->far_queue_ns,
						      [STAMP_BATCH_DWELL_NS] = p->dwell_ns,
						      [STAMP_BATCH_ADJUSTED_NS] = p->adjusted_ns,
						      [STAMP_BATCH_CLASS] = which,
					      });
		return;
	}
	json = out_sample(run->report.cli, p->too_late ? "too_late" : "round_trip");
	if (!json)
		return;
	stamp_sample_number(json, p->number);
	if (run->report.each > 1)
		stamp_sample_class(json, which);
	stamp_sample_scheduled_ns(json, p->at_ns);
	stamp_sample_sent_ns(json, p->t1_ns);
	stamp_sample_reflector_received_real_ns(json, p->t2_real_ns);
	stamp_sample_rtt_ns(json, p->rtt_ns);
	stamp_sample_reflector_sequence(json, p->reflector_seq);
	say_more(json, p);
	out_put(run->report.cli, json);
}

static void one_way_json(struct json *end, const struct one_way_result *w)
{
	if (w->known) {
		stamp_one_way_up_us(end, w->delays.up);
		stamp_one_way_down_us(end, w->delays.down);
		stamp_one_way_one_way_uncertainty_us_open(end);
		stamp_uncertainty_clock(end, (int64_t)w->clock_ns);
		stamp_uncertainty_skew(end, (int64_t)w->skew_ns);
		stamp_uncertainty_host(end, (int64_t)w->host_ns);
		stamp_uncertainty_resolution(end, (int64_t)w->resolution_ns);
		stamp_uncertainty_total(end, (int64_t)w->total_ns);
		json_object_end(end);
		stamp_one_way_offset_us(end, w->offset_ns);
		stamp_one_way_offset_bound_us(end, (int64_t)w->clock_ns);
		stamp_one_way_offset_at_ns(end, w->clock.at_ns);
		stamp_one_way_offset_from(end, w->claimed ? "round_trips_and_synchronised_clocks" : "round_trips");
	} else {
		stamp_one_way_up_us_null(end);
		stamp_one_way_down_us_null(end);
		stamp_one_way_one_way_uncertainty_us_null(end);
		stamp_one_way_offset_us_null(end);
		stamp_one_way_offset_bound_us_null(end);
	}
	if (w->known && w->clock.skew_known) {
		stamp_one_way_skew_ppm(end, w->clock.skew_ppm);
		stamp_one_way_skew_bound_ppm(end, w->clock.skew_bound_ppm);
	} else {
		stamp_one_way_skew_ppm_null(end);
		stamp_one_way_skew_bound_ppm_null(end);
	}
	stamp_one_way_one_way_contradicted(end, w->delays.contradicted);
	stamp_one_way_clock_steps(end, w->steps);
	stamp_one_way_clocks_synchronised(end, w->synchronised);
	stamp_one_way_clocks_adjusted(end, w->adjusted);
	stamp_one_way_own_clock_changes(end, w->own_clock.changes);
	stamp_one_way_own_clock_change_us(end, w->own_clock.largest_ns);
	stamp_one_way_reflector_clock_changes(end, w->far_clock.changes);
	stamp_one_way_reflector_clock_change_us(end, w->far_clock.largest_ns);
}

static void losses_json(struct json *end, const struct stamp_session_counts *c)
{
	stamp_losses_lost(end, c->lost);
	stamp_losses_lost_up_or_null(end, c->direction_known, c->lost_up);
	stamp_losses_lost_down_or_null(end, c->direction_known, c->lost_down);
	stamp_losses_lost_unknown(end, c->lost_unknown);
	stamp_losses_mark_changed_up_or_null(end, c->marks_known, c->mark_changed_up);
	stamp_losses_mark_changed_down_or_null(end, c->marks_known, c->mark_changed_down);
}

static void counts_json(const struct stamp_command *run, struct json *end)
{
	const struct stamp_session_counts *c = &run->result->counts;
	const bool by_direction = c->stateful || !(c->duplicates_up + c->duplicates_down);

	probe_accounts_json(&run->report, end, c->sent, c->received);
	probe_answers_unanswered_at_end(end, c->waiting);
	losses_json(end, c);
	probe_answers_too_late(end, c->too_late);
	probe_answers_reordered(end, c->reordered_up + c->reordered_down);
	stamp_counts_reordered_up(end, c->reordered_up);
	stamp_counts_reordered_down(end, c->reordered_down);
	probe_answers_duplicates(end, c->duplicates_up + c->duplicates_down);
	stamp_counts_duplicates_up_or_null(end, by_direction, c->duplicates_up);
	stamp_counts_duplicates_down_or_null(end, by_direction, c->duplicates_down);
	stamp_counts_closing_probes(end, run->result->closing);
	stamp_counts_foreign(end, c->foreign + run->result->elsewhere);
	stamp_counts_wrong_hmac(end, c->wrong_hmac);
	stamp_counts_tlvs_refused(end, c->tlvs_refused);
	stamp_counts_dwell_max_ns(end, (uint64_t)(run->result->dwell_max_ns > 0 ? run->result->dwell_max_ns : 0));
	stamp_counts_impossible_stamps(end, run->report.prober->result.impossible);
	stamp_counts_server_rate(end, c->server_rate);
	stamp_counts_server_refused(end, c->server_refused);
	stamp_counts_server_dropped(end, c->server_dropped);
	stamp_counts_reflector_restarts(end, c->restarts);
	stamp_counts_reflector_stateful(end, c->stateful);
	stamp_counts_follow_up(end, c->follow_up_seen);
	probe_errors_json(&run->report, end);
}

static void classes_json(const struct stamp_result *r, struct json *end)
{
	if (r->class_count == 1)
		return;
	stamp_end_classes_open(end);
	for (uint32_t i = 0; i < r->class_count; i++) {
		const struct stamp_class_result *class = &r->classes[i];

		json_object(end, NULL);
		stamp_class_dscp(end, class->tos >> 2);
		stamp_class_ecn(end, ecn_names[class->tos & 3]);
		stamp_class_ssid(end, class->ssid);
		stamp_class_sent(end, class->counts.sent);
		stamp_class_failed(end, class->counts.failed);
		stamp_class_received(end, class->counts.received);
		stamp_class_too_late(end, class->counts.too_late);
		stamp_class_unanswered_at_end(end, class->counts.waiting);
		losses_json(end, &class->counts);
		stamp_class_untimed(end, class->untimed);
#ifndef KTRXER_SMALL
		stamp_ttl_json(end, class, 1);
		stamp_marks_json(end, class, 1);
#endif
		stamp_class_rtt_us(end, class->rtt);
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
	stamp_end_host_delay_open(end);
	stamp_host_delay_left_out(end, run->result->uncorrected);
	if (ktrxer_hist_count(rtt))
		stamp_host_delay_residual_max_us(end, ktrxer_hist_min(rtt));
	else
		stamp_host_delay_residual_max_us_null(end);
	json_object_end(end);
}
#endif

void stamp_end_json(const struct stamp_command *run, struct json *end)
{
	const struct prober *p = run->report.prober;
	const struct stamp_result *r = run->result;
	char address[KTRXER_ADDR_TEXT];

	stamp_end_server(end, run->o->p.host);
	stamp_end_to(end, ktrxer_addr_format(&p->path.to, address));
	stamp_end_port(end, p->spec.port);
	stamp_end_from(end, ktrxer_addr_format(&p->path.source, address));
	stamp_end_device(end, p->path.device.name);
	stamp_end_engine(end, p->info.engine);
	stamp_end_mode(end, run->o->auth_key_file ? "authenticated" : "open");
	stamp_end_ssid(end, r->ssid);
	stamp_end_payload_bytes(end, r->payload);
	probe_stream_json(&run->report, end, r->class_count == 1 ? r->classes[0].tos : -1);
	counts_json(run, end);
	probe_times_rtt_us(end, p->result.rtt);
	probe_own_queue_json(&run->report, end);
	stamp_end_far_queue_us(end, r->far_queue);
#ifndef KTRXER_SMALL
	stamp_ttl_json(end, r->classes, r->class_count);
	stamp_marks_json(end, r->classes, r->class_count);
	host_delay_json(run, end);
#endif
	one_way_json(end, &r->one_way);
	stamp_end_ipdv_us(end, r->ipdv);
	stamp_end_ipdv_up_us(end, r->ipdv_up);
	stamp_end_ipdv_down_us(end, r->ipdv_down);
	probe_times_lateness_us(end, p->result.lateness);
	classes_json(r, end);
	stamp_end_stamps_open(end);
	probe_stamps_json(&run->report, end);
	stamp_stamps_reflector_departures(end, ktrxer_hist_count(r->far_queue));
	json_object_end(end);
}
