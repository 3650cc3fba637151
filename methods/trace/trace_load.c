/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "trace_load.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>

#define SAMPLES_NS (100 * (uint64_t)KTRXER_NS_PER_MS)
/* The flows are stopped when the last probe has its answer. This ends them if this program hangs. */
#define SPARE_NS (30 * (uint64_t)KTRXER_NS_PER_S)

enum { FLOWS_MOST = 2 * TRACE_LOAD_FLOWS_MAX };

struct run {
	struct trace_load *load;
	struct loop *loop;
	struct flow_client *client;
	struct loop_timer warm;
	struct flow_spec specs[FLOWS_MOST];
	struct flow_record records[FLOWS_MOST];
	struct flow_result results[FLOWS_MOST];
	struct control_request request;
	uint64_t rtt_sum_us[2], rtt_count[2];
	bool probing, stopping, done;
	uint64_t warm_up_ns;
};

static void on_sample(void *context, uint32_t flow, const struct flow_sample *sample, const struct flow_origin *origin)
{
	struct run *run = context;
	const bool down = run->specs[flow].down;
	const uint64_t rtt_us = sample->values[FLOW_RTT_US], least_us = sample->values[FLOW_MIN_RTT_US];

	flow_record_sample(&run->records[flow], &run->specs[flow], origin != NULL, sample);
	if (sample->kind != FLOW_TCP || !rtt_us || rtt_us == UINT64_MAX)
		return;
	if (least_us && least_us != UINT64_MAX &&
	    (!run->load->flow_rtt_min_ns[down] || least_us * 1000 < run->load->flow_rtt_min_ns[down]))
		run->load->flow_rtt_min_ns[down] = least_us * 1000;
	if (run->probing && !run->stopping) {
		run->rtt_sum_us[down] += rtt_us;
		run->rtt_count[down]++;
	}
}

static void on_started(void *context, uint64_t start_ns, uint64_t late_ns)
{
	struct run *run = context;

	(void)late_ns;
	run->warm.at_ns = start_ns + run->warm_up_ns;
}

static void end_early(struct run *run)
{
	if (run->stopping || run->load->ended_early)
		return;
	run->load->ended_early = true;
	run->load->to_ns = ktrxer_now_ns();
}

static void on_ended(void *context, uint32_t flow, bool remote, const struct flow_end *end)
{
	struct run *run = context;

	flow_record_end(&run->records[flow], remote, end);
	end_early(run);
}

static void on_done(void *context)
{
	struct run *run = context;

	run->done = true;
	end_early(run);
	/* The trace stops the loop when its probes have been answered. */
	if (!run->probing || run->stopping)
		loop_stop(run->loop);
}

static void on_warm(struct loop_timer *timer, uint64_t now_ns)
{
	struct run *run = (struct run *)((char *)timer - offsetof(struct run, warm));

	run->probing = true;
	run->load->from_ns = now_ns;
	loop_stop(run->loop);
}

static void plan(struct run *run, const struct trace *trace, const struct trace_load_options *o)
{
	const uint64_t probes_ns = o->interval_ns > trace_round_ns(trace) ? o->interval_ns : trace_round_ns(trace);
	struct control_request *r = &run->request;

	r->sample_ns = SAMPLES_NS;
	r->for_ns = r->whole_ns = o->warm_up_ns + o->rounds * probes_ns + SPARE_NS;
	for (int down = 0; down < 2; down++)
		for (uint32_t i = 0; (down ? o->down : o->up) && i < o->flows; i++)
			run->specs[r->flows++] = (struct flow_spec){ .down = down };
}

static void results(struct run *run, const struct trace_load_options *o)
{
	struct trace_load *load = run->load;

	struct flow_plan flows = { .sample_ns = SAMPLES_NS, .stopped = true };

	flow_client_result(run->client, &load->client);
	flows.start_ns = load->client.start_ns;
	flows.rtt_ns = load->client.rtt_ns;
	for (uint32_t i = 0; i < run->request.flows; i++)
		flow_result(&run->results[i], &run->specs[i], &run->records[i], &flows);
	for (int down = 0; down < 2; down++) {
		if (!(down ? o->down : o->up))
			continue;
		flow_total(&load->totals[down], down, run->request.flows, run->specs, run->records, run->results);
		if (run->rtt_count[down])
			load->flow_rtt_ns[down] = 1000 * run->rtt_sum_us[down] / run->rtt_count[down];
	}
}

/* Probes from the first flow to the end of the last one. */
static int probe(struct run *run, struct trace *trace, const struct trace_load_options *o, int stop_fd)
{
	struct trace_load *load = run->load;
	int rc = run->done ? 0 : loop_run(run->loop, stop_fd);

	if (rc < 0)
		return rc;
	load->stopped = !run->probing && !run->done;
	if (run->probing)
		trace_repeat(trace, TRACE_LOADED, o->rounds, o->interval_ns, stop_fd);
	run->stopping = true;
	if (!load->ended_early)
		load->to_ns = ktrxer_now_ns();
	if (!run->done)
		flow_client_stop(run->client);
	return run->done ? 0 : loop_run(run->loop, -1);
}

int trace_load_run(struct trace_load *load, struct trace *trace, const struct trace_load_options *o, int stop_fd,
		   struct ktrxer_error *err)
{
	struct run *run = calloc(1, sizeof *run);
	struct flow_client_options c;
	int rc;

	*load = (struct trace_load){ 0 };
	if (!run)
		return ktrxer_fail(err, -ENOMEM, "no memory for the load");
	if (o->flows > TRACE_LOAD_FLOWS_MAX) {
		rc = ktrxer_fail(err, -EINVAL, "%u flows in each direction are more than %d", o->flows,
				 TRACE_LOAD_FLOWS_MAX);
		goto out;
	}
	run->load = load;
	run->loop = trace_loop_of(trace);
	run->warm_up_ns = o->warm_up_ns;
	run->warm = (struct loop_timer){ .at_ns = KTRXER_NEVER, .due = on_warm };
	plan(run, trace, o);
	c = (struct flow_client_options){ .loop = run->loop,
					  .to = o->to,
					  .from = o->from,
					  .port = o->port,
					  .token = o->token,
					  .cpu = -1,
					  .specs = run->specs,
					  .request = run->request,
					  .sample = on_sample,
					  .started = on_started,
					  .ended = on_ended,
					  .done = on_done,
					  .describe = o->describe,
					  .context = run };
	loop_timer_add(run->loop, &run->warm);
	rc = flow_client_new(&run->client, &c, err);
	if (rc == 0 && (rc = probe(run, trace, o, stop_fd)) < 0)
		ktrxer_fail(err, rc, "the event loop failed");
	if (rc == 0)
		results(run, o);
	if (rc == 0 && !run->probing && load->client.error.code) {
		*err = load->client.error;
		rc = err->code;
	}
	flow_client_free(run->client);
	loop_timer_remove(run->loop, &run->warm);
out:
	free(run);
	return rc;
}
