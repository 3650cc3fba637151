/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `tcp`: a sample for each pair, and loss, reordering and round trips at the end. */
#include "tcp_command.h"

#include "fields_common.h"
#include "fields_tcp.h"
#include "path_report.h"
#include "reasons.h"
#include "units.h"

#include <inttypes.h>
#include <stdio.h>

enum { WAYS = 2 };

static const char *const way_names[WAYS] = { "up", "down" };
static const char *const event_names[TCP_PAIR_EVENTS] = {
	[TCP_PAIR_UNKNOWN] = "unknown",    [TCP_PAIR_IN_ORDER] = "in_order",     [TCP_PAIR_REORDERED] = "reordered",
	[TCP_PAIR_COMPLETE] = "complete",  [TCP_PAIR_FIRST_LOST] = "first_lost", [TCP_PAIR_SECOND_LOST] = "second_lost",
	[TCP_PAIR_BOTH_LOST] = "both_lost"
};
static const char *const doubt_names[] = { [TCP_NO_DOUBT] = NULL,
					   [TCP_NO_CONCLUSION] = "no_conclusion",
					   [TCP_SHORT_SEGMENTS] = "short_segments",
					   [TCP_CONNECTION_ENDED] = "connection_ended" };

void tcp_say_what(const struct tcp_run *run)
{
	const struct ktrxer_path *path = tcp_prober_path_of(run->prober);
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT];

	out_text(run->cli,
		 "tcp %s (%s) port %u from %s on %s: %" PRIu64
		 " pairs of GET %s, %u bytes up, segments of %u down, one pair each %s over %u connections",
		 run->o->host, ktrxer_addr_format(&path->to, to), run->spec.port,
		 ktrxer_addr_format(&path->source, from), path->device.name, run->spec.count, run->spec.path,
		 tcp_prober_payload_of(run->prober), run->spec.mss,
		 ktrxer_format_ns(interval, (int64_t)run->spec.interval_ns), run->spec.connections);
}

void tcp_say_pair(void *context, const struct tcp_sample *s)
{
	const struct tcp_run *run = context;
	struct json *sample = out_sample(run->cli, "tcp_pair");

	if (!sample)
		return;
	tcp_pair_number(sample, s->number);
	tcp_pair_scheduled_ns(sample, s->at_ns);
	tcp_pair_sent_ns(sample, s->sent_ns[0]);
	tcp_pair_second_sent_ns(sample, s->sent_ns[1]);
	tcp_pair_sent_stamp(sample, sent_source_names[s->sent_source[0]]);
	tcp_pair_up(sample, event_names[s->result.up]);
	tcp_pair_down(sample, event_names[s->result.down]);
	tcp_pair_doubt(sample, doubt_names[s->doubt]);
	tcp_pair_rtt_ns_or_null(sample, s->rtt_ns[0] >= 0, (uint64_t)s->rtt_ns[0]);
	tcp_pair_second_rtt_ns_or_null(sample, s->rtt_ns[1] >= 0, (uint64_t)s->rtt_ns[1]);
	tcp_pair_answers(sample, s->answers);
	tcp_pair_from_port(sample, s->from_port);
	tcp_pair_sequence(sample, s->sequence);
	tcp_pair_elicited_sequence(sample, s->elicited);
	out_put(run->cli, sample);
}

static void say_share(const struct tcp_run *run, uint64_t count,
		      void (*say)(struct cli *cli, uint64_t pairs, uint64_t planned))
{
	const uint64_t planned = tcp_prober_result_of(run->prober)->planned;

	if (count * 100 > planned)
		say(run->cli, count, planned);
}

static void judge_server(const struct tcp_run *run, enum verdict verdict)
{
	const struct tcp_prober_result *r = tcp_prober_result_of(run->prober);
	const struct tcp_response_head *head = &r->response;
	const char *host = run->o->host;

	switch (r->end) {
	case TCP_NOT_ENDED:
		break;
	case TCP_REFUSED:
		reason_tcp_refused(run->cli, verdict, host, run->spec.port);
		break;
	case TCP_NO_ANSWER:
		reason_tcp_silent(run->cli, verdict, host, run->spec.port, (int64_t)run->spec.timeout_ns);
		break;
	case TCP_NOT_HTTP:
		reason_tcp_not_http(run->cli, verdict, run->spec.port, host);
		break;
	case TCP_HTTP_STATUS:
		reason_tcp_status(run->cli, verdict, head->status, head->reason, run->spec.path,
				  head->location[0] ? ", and refers to " : "", head->location);
		break;
	case TCP_SMALL_WINDOW:
		reason_tcp_window(run->cli, verdict, r->peer_window, r->peer_mss, tcp_prober_payload_of(run->prober));
		break;
	case TCP_NO_DATA:
		reason_tcp_short_response(run->cli, verdict, run->spec.path, run->spec.mss);
		break;
	case TCP_FINISHED:
	case TCP_RESET:
		reason_tcp_closes(run->cli, verdict, TCP_FRUITLESS);
		break;
	default:
		reason_tcp_stopped_answering(run->cli, verdict, TCP_FRUITLESS);
		break;
	}
}

static struct path_report path_of(const struct tcp_run *run)
{
	return (struct path_report){ .cli = run->cli,
				     .witness = &tcp_prober_result_of(run->prober)->path,
				     .claim = tcp_prober_path_of(run->prober),
				     .host = run->o->host,
				     .from_named = run->spec.from.family };
}

static void judge(const struct tcp_run *run)
{
	const struct tcp_prober_result *r = tcp_prober_result_of(run->prober);
	const struct path_report path = path_of(run);

	run->cli->no_figure = !r->known;
	verdict_packets(run->cli, &r->accounts);
	if (r->failure.code)
		reason_failure(run->cli, r->known ? VERDICT_DEGRADED : VERDICT_INVALID, r->failure.code,
			       r->failure.text);
	judge_server(run, r->known ? VERDICT_DEGRADED : VERDICT_INVALID);
	if (!r->known && !r->failure.code && r->end == TCP_NOT_ENDED)
		reason_tcp_no_result(run->cli);
	if (r->stopped)
		reason_tcp_stopped(run->cli, r->planned);
	say_share(run, r->busy, reason_tcp_no_connection);
	say_share(run, r->unprimed, reason_tcp_unprimed);
	say_share(run, r->doubts[TCP_NO_CONCLUSION], reason_tcp_no_conclusion);
	say_share(run, r->doubts[TCP_SHORT_SEGMENTS], reason_tcp_short_segments);
	say_share(run, r->doubts[TCP_CONNECTION_ENDED], reason_tcp_connection_ended);
	if (r->user_stamped)
		reason_tcp_user_stamped(run->cli, r->user_stamped);
	if (r->receiver_drops)
		reason_receive_buffer(run->cli, r->receiver_drops);
	path_report_judge(&path);
	verdict_bypass(run->cli, tcp_prober_info_of(run->prober), &r->qdiscs, "raw");
}

static void way_text(const struct tcp_run *run, int way)
{
	const struct tcp_pair_totals *t = &tcp_prober_result_of(run->prober)->totals[way];
	const struct tcp_pair_share loss = tcp_pair_share(t->lost, t->sent),
				    reordering = tcp_pair_share(t->reordered, t->ordered);

	out_text(run->cli,
		 "%-4s  lost %" PRIu64 " of %" PRIu64 " segments: %.2f %% (%.2f to %.2f); reordered %" PRIu64
		 " of %" PRIu64 " pairs: %.2f %% (%.2f to %.2f)",
		 way_names[way], t->lost, t->sent, 100 * loss.share, 100 * loss.low, 100 * loss.high, t->reordered,
		 t->ordered, 100 * reordering.share, 100 * reordering.low, 100 * reordering.high);
}

static void text(const struct tcp_run *run)
{
	const struct tcp_prober_result *r = tcp_prober_result_of(run->prober);
	const struct path_report path = path_of(run);
	char round_trip[HIST_TEXT];

	for (int way = 0; way < WAYS && r->known; way++)
		way_text(run, way);
	if (ktrxer_hist_count(r->rtt))
		out_text(run->cli, "round trip: %s", hist_text(round_trip, r->rtt, HIST_MIN | HIST_TAIL | HIST_P95));
	out_text(run->cli,
		 "%" PRIu64 " pairs: %" PRIu64 " with a result, %" PRIu64 " without, %" PRIu64 " not sent; %" PRIu64
		 " connections",
		 r->planned, r->known,
		 r->doubts[TCP_NO_CONCLUSION] + r->doubts[TCP_SHORT_SEGMENTS] + r->doubts[TCP_CONNECTION_ENDED],
		 r->busy + r->unprimed, r->opened);
	path_report_text(&path);
	if (r->known)
		out_text(run->cli, "intervals of Wilson at 95 %%, for losses that do not come in bursts");
}

static void share_json(struct json *json, const char *key, uint64_t count, uint64_t of)
{
	const struct tcp_pair_share share = tcp_pair_share(count, of);

	json_object(json, key);
	tcp_share_count(json, count);
	tcp_share_of(json, of);
	if (of)
		tcp_share_share(json, share.share);
	else
		tcp_share_share_null(json);
	tcp_share_low(json, share.low);
	tcp_share_high(json, share.high);
	json_object_end(json);
}

static void way_json(const struct tcp_run *run, struct json *end, int way)
{
	const struct tcp_prober_result *r = tcp_prober_result_of(run->prober);
	const struct tcp_pair_totals *t = &r->totals[way];
	const uint64_t *events = way ? r->down : r->up;

	json_object(end, way_names[way]);
	share_json(end, "lost", t->lost, t->sent);
	share_json(end, "reordered", t->reordered, t->ordered);
	tcp_way_events_open(end);
	for (int i = 0; i < TCP_PAIR_EVENTS; i++)
		json_u64(end, event_names[i], events[i]);
	json_object_end(end);
	json_object_end(end);
}

static void end_json(const struct tcp_run *run, struct json *end)
{
	const struct tcp_prober_result *r = tcp_prober_result_of(run->prober);
	const struct path_report path = path_of(run);

	json_target(end, run->o->host, path.claim);
	path_report_json(&path, end);
	tcp_end_port(end, run->spec.port);
	tcp_end_request_path(end, run->spec.path);
	tcp_end_engine(end, tcp_prober_info_of(run->prober)->engine);
	tcp_end_backend(end, tcp_prober_backend_of(run->prober));
	tcp_end_payload_bytes(end, tcp_prober_payload_of(run->prober));
	tcp_end_mss_bytes(end, run->spec.mss);
	tcp_end_pairs(end, r->planned);
	tcp_end_known(end, r->known);
	tcp_end_busy(end, r->busy);
	tcp_end_unprimed(end, r->unprimed);
	for (int i = TCP_NO_CONCLUSION; i <= TCP_CONNECTION_ENDED; i++)
		json_u64(end, doubt_names[i], r->doubts[i]);
	tcp_end_level(end, TCP_PAIR_LEVEL);
	for (int way = 0; way < WAYS; way++)
		way_json(run, end, way);
	tcp_end_rtt_us(end, r->rtt);
	tcp_end_lateness_us(end, r->lateness);
	accounts_requested(end, r->accounts.requested);
	accounts_sent(end, r->accounts.sent);
	accounts_failed(end, r->accounts.failed);
	accounts_skipped(end, r->accounts.skipped);
	accounts_cancelled(end, r->accounts.cancelled);
	json_late(end, r->accounts.late, run->spec.late_ns);
	tcp_end_connections(end, r->opened);
	tcp_end_connections_finished(end, r->ends[TCP_FINISHED]);
	tcp_end_connections_reset(end, r->ends[TCP_RESET]);
	tcp_end_connections_silent(end, r->ends[TCP_SILENT] + r->ends[TCP_NO_ANSWER]);
	tcp_end_elapsed_ns(end, r->end_ns - r->begin_ns);
	tcp_end_privileges_dropped(end, tcp_prober_privileges_of(run->prober)->no_capabilities);
}

int tcp_finish(const struct tcp_run *run)
{
	struct json *end = out_end(run->cli);

	judge(run);
	end_json(run, end);
	text(run);
	return out_finish(run->cli, end);
}
