/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The common output of `ping` and `stamp`. */
#include "probe_command.h"

#include "fields_common.h"
#include "fields_probes.h"
#include "network_error.h"

#include "reasons.h"

#include <inttypes.h>
#include <stdio.h>

#define BATCH_NS (200 * (uint64_t)KTRXER_NS_PER_MS)

int probe_wait_start(struct probe_report *r, uint64_t *start_ns)
{
	const int rc = cli_wait_start(r->cli, start_ns);

	if (!r->cli->common.start_at_real_ns)
		*start_ns = 0;
	return rc;
}

static void say_lost(void *context, uint64_t number, uint32_t which)
{
	const struct probe_report *r = context;
	struct json *sample = out_sample(r->cli, "lost");

	if (probe_is_talkative(r->o))
		out_text(r->cli, "number %" PRIu64 " lost: no answer", number);
	if (!sample)
		return;
	probe_lost_number(sample, number);
	if (r->each > 1)
		probe_lost_class(sample, which);
	out_put(r->cli, sample);
}

static void say_network_error(void *context, const struct ktx_network_error *error)
{
	struct probe_report *r = context;

	network_error_say(r->cli, error, probe_is_talkative(r->o), &r->network_errors);
}

void probe_batch_flush(struct probe_report *r)
{
	struct probe_batch *b = &r->batch;
	struct json *sample = b->count ? out_sample(r->cli, "round_trips") : NULL;

	for (int column = 0; sample && column < b->column_count; column++) {
		json_array(sample, b->columns[column]);
		for (uint32_t i = 0; i < b->count; i++)
			json_i64(sample, NULL, b->values[column][i]);
		json_array_end(sample);
	}
	out_put(r->cli, sample);
	b->count = 0;
}

void probe_batch_add(struct probe_report *r, const int64_t *values)
{
	struct probe_batch *b = &r->batch;

	if (!b->count)
		b->since_ns = ktrxer_now_ns();
	for (int column = 0; column < b->column_count; column++)
		b->values[column][b->count] = values[column];
	if (++b->count == PROBE_BATCH)
		probe_batch_flush(r);
}

static void tick(void *context)
{
	struct probe_report *r = context;

	if (r->batch.count && ktrxer_now_ns() - r->batch.since_ns >= BATCH_NS)
		probe_batch_flush(r);
}

const struct probe_events probe_report_events = { .lost = say_lost, .network_error = say_network_error, .tick = tick };

struct path_report probe_path(const struct probe_report *r)
{
	const struct prober *p = r->prober;

	return (struct path_report){ .cli = r->cli,
				     .witness = &p->result.path,
				     .claim = &p->path,
				     .host = r->o->host,
				     .from_named = p->spec.from.family };
}

void probe_judge(const struct probe_report *r, uint64_t received)
{
	const struct probe_result *result = &r->prober->result;

	verdict_probes(r->cli, &result->accounts);
	if (result->failure.code)
		reason_ended_early(r->cli, received ? VERDICT_DEGRADED : VERDICT_INVALID, result->failure.text);
}

void probe_judge_answers(const struct probe_report *r, uint64_t sent, uint64_t received, uint64_t too_late,
			 const char *where, const char *why)
{
	const struct probe_spec *s = &r->prober->spec;

	if (too_late)
		reason_too_late(r->cli, received ? VERDICT_DEGRADED : VERDICT_INVALID, r->o->host, too_late, sent,
				(int64_t)s->timeout_ns, s->overtaken_ns ? ", or after a later probe's answer" : "");
	else if (sent && !received && !r->prober->result.failure.code)
		reason_silent(r->cli, r->o->host, (int64_t)s->timeout_ns, where, why);
}

struct bound_parts probe_bound_parts(const struct probe_report *r, uint64_t received)
{
	const struct path_report path = probe_path(r);
	const struct probe_result *result = &r->prober->result;
	const struct ktx_accounts *a = &result->accounts;
	const uint64_t lost = a->sent > received ? a->sent - received : 0,
		       dropped = result->socket_drops + result->receiver_drops;
	static char error[KTRXER_ERROR_TEXT];

	verdict_bypass(r->cli, &r->prober->info, &result->qdiscs, "udp");
	path_report_judge(&path);
	return (struct bound_parts){
		.count = { [BOUND_BY_SEND_TIME] = result->user_sent,
			   [BOUND_BY_RECEIVE_TIME] = result->arrivals[KTRXER_STAMP_USER],
			   [BOUND_BY_LEFT_OUT] = result->contradictions + result->impossible + result->unstamped,
			   [BOUND_BY_SKIPPED] = a->skipped,
			   [BOUND_BY_UNSENT] = a->failed,
			   /* Each dropped packet may have been the answer to a lost probe. */
			   [BOUND_BY_RECEIVE_BUFFER] = dropped < lost ? dropped : lost },
		.unseen = verdict_unseen(a, received),
		.error = verdict_last_error(a, error, sizeof error),
		.late = a->late,
		.tolerance = r->o->tolerance,
	};
}

const char *probe_own_qdisc(const struct probe_report *r)
{
	const struct ktrxer_qdiscs *q = &r->prober->result.qdiscs;

	return q->shaper[0] ? q->shaper : q->root;
}

void probe_own_queue_json(const struct probe_report *r, struct json *end)
{
	probe_own_queue_own_queue_us(end, r->prober->result.own_queue);
	probe_own_queue_own_qdisc(end, probe_own_qdisc(r));
	probe_own_queue_qdisc_bypassed(end, r->prober->info.features & KTX_CAN_BYPASS);
}

void probe_accounts_json(const struct probe_report *r, struct json *end, uint64_t sent, uint64_t received)
{
	const struct ktx_accounts *a = &r->prober->result.accounts;

	accounts_requested(end, a->requested);
	accounts_sent(end, sent);
	accounts_failed(end, a->failed);
	accounts_skipped(end, a->skipped);
	accounts_cancelled(end, a->cancelled);
	probe_received_received(end, received);
}

void probe_stamps_json(const struct probe_report *r, struct json *end)
{
	const struct ktx_accounts *a = &r->prober->result.accounts;
	const uint64_t *arrivals = r->prober->result.arrivals;

	probe_stamps_sent_nic(end, a->nic);
	probe_stamps_sent_driver(end, a->driver);
	probe_stamps_sent_queued(end, a->queued);
	probe_stamps_received_nic(end, arrivals[KTRXER_STAMP_NIC]);
	probe_stamps_received_kernel(end, arrivals[KTRXER_STAMP_KERNEL] + arrivals[KTRXER_STAMP_XDP]);
	probe_stamps_received_user(end, arrivals[KTRXER_STAMP_USER]);
}

void probe_stream_json(const struct probe_report *r, struct json *end, int tos)
{
	probe_stream_timeout_ns(end, r->o->timeout_ns);
	probe_stream_interval_ns(end, r->o->interval_ns);
	probe_stream_model(end, shared_models[r->o->model]);
	if (tos >= 0)
		probe_stream_dscp(end, (uint64_t)tos >> 2);
}

void probe_errors_json(const struct probe_report *r, struct json *end)
{
	const struct probe_result *result = &r->prober->result;
	const struct path_report path = probe_path(r);

	path_report_json(&path, end);
	probe_errors_network_errors(end, result->network_errors);
	probe_errors_untimed(end, result->contradictions + result->impossible + result->unstamped);
	json_late(end, result->accounts.late, r->prober->spec.late_ns);
}

void probe_unsent_text(const struct probe_report *r)
{
	const struct ktx_accounts *a = &r->prober->result.accounts;
	const struct path_report path = probe_path(r);

	path_report_text(&path);

	if (a->failed || a->skipped || a->cancelled)
		out_text(r->cli, "not sent: %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64 " cancelled", a->failed,
			 a->skipped, a->cancelled);
}

const char *probe_lost_text(char text[PROBE_LOST_TEXT], uint64_t sent, uint64_t lost, uint64_t too_late)
{
	const uint64_t tenths = sent ? lost * 1000 / sent : 0;
	const int n = snprintf(text, PROBE_LOST_TEXT, "%" PRIu64 " lost (%" PRIu64 ".%" PRIu64 " %%)", lost,
			       tenths / 10, tenths % 10);

	if (too_late && n > 0 && n < PROBE_LOST_TEXT)
		snprintf(text + n, (size_t)(PROBE_LOST_TEXT - n), ", %" PRIu64 " answered after the time-out",
			 too_late);
	return text;
}

const char *probe_trip_text(uint64_t lost)
{
	return lost ? "round trip of the answered probes" : "round trip";
}
