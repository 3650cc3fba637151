/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The samples of `flow`, kept for the end and printed when they arrive. */
#include "flow.h"

#include "fields_flow.h"
#include "flow_tcp.h"
#include "out.h"
#include "units.h"

#include <stdlib.h>
#include <time.h>

enum {
	PENDING_FIRST = 256,
	PENDING_MAX = 1 << 16, /* 13 MB */
	ROOM_LEFT = 64,        /* for events, which do not wait */
};
#define DRAIN_NS (5 * (uint64_t)KTRXER_NS_PER_MS)

static const char *direction_of(const struct flow_run *run, uint32_t flow)
{
	return run->specs[flow].down ? "down" : "up";
}

static struct json *sample_begin(struct flow_run *run, const char *kind, const struct flow_pending *p)
{
	struct json *json = out_sample(run->cli, kind);

	if (!json)
		return NULL;
	flow_sample_flow(json, p->flow);
	flow_sample_direction(json, direction_of(run, p->flow));
	flow_sample_end(json, p->remote ? "remote" : "local");
	flow_sample_time_ns(json, p->sample.time_ns);
	if (p->remote) {
		flow_sample_remote_ns(json, p->origin.remote_ns);
		flow_sample_bound_ns(json, p->origin.bound_ns);
	}
	return json;
}

static void value_put(struct json *json, const char *name, uint64_t value)
{
	json_u64_or_null(json, name, value != UINT64_MAX, value);
}

static void udp_put(struct flow_run *run, const struct flow_pending *p)
{
	struct json *json = sample_begin(run, "udp", p);

	if (!json)
		return;
	flow_bytes_bytes(json, p->sample.bytes);
	for (int i = 0; i < FLOW_UDP_VALUES; i++)
		value_put(json, flow_udp_names[i], p->sample.values[i]);
	out_put(run->cli, json);
}

static void sample_put(struct flow_run *run, const struct flow_pending *p)
{
	struct json *json;

	if (p->sample.kind == FLOW_UDP) {
		udp_put(run, p);
		return;
	}
	json = sample_begin(run, "bytes", p);
	if (json) {
		flow_bytes_bytes(json, p->sample.bytes);
		out_put(run->cli, json);
	}
	if (p->sample.kind != FLOW_TCP || !(json = sample_begin(run, "tcp_info", p)))
		return;
	for (int i = 0; i < FLOW_TCP_VALUES; i++)
		value_put(json, flow_tcp_names[i], p->sample.values[i]);
	out_put(run->cli, json);
}

static void pending_drain(struct flow_run *run)
{
	while (run->pending_count && out_room(run->cli) > ROOM_LEFT) {
		sample_put(run, &run->pending[run->pending_at]);
		run->pending_at = (run->pending_at + 1) % run->pending_size;
		run->pending_count--;
	}
	run->pending_timer.at_ns = run->pending_count ? ktrxer_now_ns() + DRAIN_NS : KTRXER_NEVER;
}

void flow_pending_due(struct loop_timer *timer, uint64_t now_ns)
{
	(void)now_ns;
	pending_drain((struct flow_run *)((char *)timer - offsetof(struct flow_run, pending_timer)));
}

static bool pending_grow(struct flow_run *run)
{
	const uint32_t size = run->pending_size ? run->pending_size * 2 : PENDING_FIRST;
	struct flow_pending *larger;

	if (size > PENDING_MAX || !(larger = malloc(size * sizeof *larger)))
		return false;
	for (uint32_t i = 0; i < run->pending_count; i++)
		larger[i] = run->pending[(run->pending_at + i) % run->pending_size];
	free(run->pending);
	run->pending = larger;
	run->pending_at = 0;
	run->pending_size = size;
	return true;
}

static void pending_put(struct flow_run *run, const struct flow_pending *p)
{
	if (!out_wants_samples(run->cli))
		return;
	if (run->pending_count == run->pending_size && !pending_grow(run)) {
		run->pending_lost++;
		return;
	}
	run->pending[(run->pending_at + run->pending_count++) % run->pending_size] = *p;
	/* Use the timer, because the next flow's sample is due now. */
	if (run->pending_timer.at_ns == KTRXER_NEVER)
		run->pending_timer.at_ns = 0;
}

void flow_pending_flush(struct flow_run *run)
{
	static const struct timespec pause = { .tv_nsec = 2 * 1000 * 1000 };
	uint64_t moved_ns = ktrxer_now_ns();

	while (run->pending_count && ktrxer_now_ns() - moved_ns < KTRXER_OUT_STALL_MS * (uint64_t)KTRXER_NS_PER_MS) {
		const uint32_t before = run->pending_count;

		pending_drain(run);
		if (run->pending_count != before)
			moved_ns = ktrxer_now_ns();
		else
			nanosleep(&pause, NULL);
	}
	run->pending_lost += run->pending_count;
	run->pending_count = 0;
}

void flow_on_sample(void *context, uint32_t flow, const struct flow_sample *sample, const struct flow_origin *origin)
{
	struct flow_run *run = context;
	const bool remote = origin != NULL;

	flow_series_add(&run->ends[run->specs[flow].down], &run->specs[flow], &run->records[flow], remote, sample);
	flow_series_add(&run->each[flow], &run->specs[flow], &run->records[flow], remote, sample);
	flow_record_sample(&run->records[flow], &run->specs[flow], remote, sample);
	pending_put(run, &(struct flow_pending){ .flow = flow,
						 .remote = remote,
						 .origin = remote ? *origin : (struct flow_origin){ 0 },
						 .sample = *sample });
}

static struct json *event_begin(struct flow_run *run, const char *name, uint32_t flow)
{
	struct json *event = out_event(run->cli, name);

	if (!event)
		return NULL;
	flow_event_flow(event, flow);
	flow_event_direction(event, direction_of(run, flow));
	return event;
}

void flow_on_connected(void *context, uint32_t flow, int fd)
{
	struct flow_run *run = context;
	struct json *event = event_begin(run, "flow_connected", flow);

	if (!run->specs[flow].down)
		flow_tcp_cc_name(fd, run->shown[flow].cc);
	if (event)
		out_put(run->cli, event);
}

void flow_on_started(void *context, uint64_t start_ns, uint64_t late_ns)
{
	struct flow_run *run = context;
	struct json *event = out_event(run->cli, "flows_started");

	run->late_ns = late_ns;
	run->shown_ns = run->result.start_ns = start_ns;
	for (int down = 0; down < 2; down++)
		flow_series_begin(&run->ends[down], start_ns, run->plan.request.sample_ns, 1);
	for (uint32_t i = 0; i < run->plan.request.flows; i++)
		flow_series_begin(&run->each[i], start_ns, run->plan.request.sample_ns, run->plan.request.flows);
	if (!event)
		return;
	flow_started_start_ns(event, start_ns);
	out_put(run->cli, event);
}

void flow_on_ended(void *context, uint32_t flow, bool remote, const struct flow_end *end)
{
	static const char *const reasons[FLOW_REASONS] = { [FLOW_RUNNING] = "running",
							   [FLOW_PLANNED] = "planned",
							   [FLOW_STOPPED] = "stopped",
							   [FLOW_BROKEN] = "broken",
							   [FLOW_CLOSED] = "closed" };
	struct flow_run *run = context;
	/* Our stop closes the connections: they end with a reset at the far end. */
	const bool stopped = run->interrupted && end->reason != FLOW_PLANNED;
	struct json *event;

	flow_record_end(&run->records[flow], remote, end);
	pending_drain(run); /* its samples come before its end, where there is room for them */
	event = event_begin(run, end->reason == FLOW_BROKEN && !stopped ? "flow_failed" : "flow_ended", flow);
	if (!event)
		return;
	flow_ended_end(event, remote ? "remote" : "local");
	flow_ended_ended_ns(event, end->time_ns);
	flow_ended_bytes(event, end->bytes);
	flow_ended_reason(event, reasons[stopped ? FLOW_STOPPED : end->reason]);
	flow_ended_error(event, end->error && !stopped ? flow_error_words[end->error] : NULL);
	out_put(run->cli, event);
}

void flow_on_tick(void *context, uint64_t at_ns)
{
	struct flow_run *run = context;
	const uint64_t span = at_ns - run->shown_ns;
	uint64_t bytes[2] = { 0 };
	char up[KTRXER_UNITS_TEXT], down[KTRXER_UNITS_TEXT];

	if (at_ns < run->shown_ns + KTRXER_NS_PER_S)
		return;
	for (uint32_t i = 0; i < run->plan.request.flows; i++) {
		const uint64_t moved = run->records[i].local.last_bytes;

		bytes[run->specs[i].down] += moved - run->shown[i].bytes;
		run->shown[i].bytes = moved;
	}
	run->shown_ns = at_ns;
	for (int d = 0; d < 2; d++)
		bytes[d] = flow_rate_bps(bytes[d], span);
	ktrxer_format_bitrate(up, bytes[0]);
	ktrxer_format_bitrate(down, bytes[1]);
	out_text(run->cli, "%7.1f s%s%s%s%s", (double)(at_ns - run->result.start_ns) / 1e9, run->up ? "   up " : "",
		 run->up ? up : "", run->down ? "   down " : "", run->down ? down : "");
}
