/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_session.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define RECORDS_NS (100 * (uint64_t)KTRXER_NS_PER_MS) /* between two frames of records */

struct run {
	struct train_session *session;
	struct loop *loop;
	struct flow_client *client;
	bool done;
};

/* The time between two trains of a flow. */
static uint64_t train_period_ns(const struct flow_spec *spec)
{
	return flow_train_bits(spec) * (uint64_t)KTRXER_NS_PER_S / spec->rate_bps;
}

static void on_packet(void *context, uint32_t flow, bool remote, const struct flow_packet *packet)
{
	struct train_packets *p = &((struct run *)context)->session->packets[flow];
	const uint64_t n = packet->number;

	(void)remote;
	if (n >= (uint64_t)p->trains * p->spec.train) {
		p->unplanned++;
	} else if (packet->kind == FLOW_PACKET_ARRIVED) {
		p->twice += p->arrived_ns[n] != 0;
		p->arrived += !p->arrived_ns[n];
		if (!p->arrived_ns[n])
			p->arrived_ns[n] = packet->time_ns;
	} else {
		p->sent += !p->sent_ns[n];
		p->sent_ns[n] = packet->time_ns;
		p->committed[n] = packet->kind == FLOW_PACKET_COMMITTED;
	}
}

static void on_ended(void *context, uint32_t flow, bool remote, const struct flow_end *end)
{
	((struct run *)context)->session->packets[flow].ends[remote] = *end;
}

static void on_done(void *context)
{
	struct run *run = context;

	run->done = true;
	loop_stop(run->loop);
}

static int packets_new(struct train_packets *p, const struct flow_spec *spec, uint32_t trains)
{
	const size_t count = (size_t)trains * spec->train;

	p->spec = *spec;
	p->trains = trains;
	p->sent_ns = calloc(count, sizeof *p->sent_ns);
	p->arrived_ns = calloc(count, sizeof *p->arrived_ns);
	p->committed = calloc(count, sizeof *p->committed);
	return p->sent_ns && p->arrived_ns && p->committed ? 0 : -ENOMEM;
}

static struct control_request request_of(const struct train_session_options *o)
{
	struct control_request r = { .flows = o->flows, .sample_ns = RECORDS_NS };
	uint64_t rates[2] = { 0 };

	for (uint32_t i = 0; i < o->flows; i++) {
		/* Every train begins in the first eighth of its period, and lasts half of it at most: a quarter less
		 * excludes one train more. */
		const uint64_t period_ns = train_period_ns(&o->specs[i]),
			       lasts_ns = period_ns * o->trains - period_ns / 4;

		r.for_ns = lasts_ns > r.for_ns ? lasts_ns : r.for_ns;
		rates[o->specs[i].down] += o->specs[i].rate_bps;
	}
	for (uint32_t i = 0; i < o->flows; i++)
		if (r.for_ns + o->specs[i].start_ns > r.whole_ns)
			r.whole_ns = r.for_ns + o->specs[i].start_ns;
	r.rate_bps = rates[rates[1] > rates[0]];
	return r;
}

static int prepare(struct train_session *s, const struct train_session_options *o, struct ktrxer_error *err)
{
	s->packets = calloc(o->flows, sizeof *s->packets);
	if (!s->packets)
		return ktrxer_fail(err, -ENOMEM, "no memory for the packets of %u flows", o->flows);
	s->flows = o->flows;
	for (uint32_t i = 0; i < o->flows; i++)
		if (packets_new(&s->packets[i], &o->specs[i], o->trains) < 0)
			return ktrxer_fail(err, -ENOMEM, "no memory for %u trains of %u packets", o->trains,
					   o->specs[i].train);
	return 0;
}

static uint64_t cpu_now_ns(void)
{
	struct timespec t = { 0 };

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * (uint64_t)KTRXER_NS_PER_S + (uint64_t)t.tv_nsec;
}

static void lateness(struct run *run)
{
	for (uint32_t i = 0; i < run->session->flows; i++) {
		const uint64_t late = run->session->packets[i].ends[run->session->packets[i].spec.down].late_packets;

		run->session->late_packets += late == UINT64_MAX ? 0 : late;
	}
}

int train_session_run(struct train_session *s, const struct train_session_options *o, struct ktrxer_error *err)
{
	struct run run = { .session = s };
	struct flow_client_options c = { .to = o->to,
					 .from = o->from,
					 .port = o->port,
					 .token = o->token,
					 .device = o->device,
					 .engine = o->engine,
					 .precise = o->precise,
					 .cpu = o->cpu,
					 .specs = o->specs,
					 .request = request_of(o),
					 .start_ns = o->start_ns,
					 .witness = o->witness,
					 .ended = on_ended,
					 .packet = on_packet,
					 .done = on_done,
					 .describe = o->describe,
					 .context = &run };
	const uint64_t began_ns = ktrxer_now_ns(), cpu_ns = cpu_now_ns();
	int rc;

	*s = (struct train_session){ 0 };
	rc = prepare(s, o, err);
	if (rc == 0 && (rc = loop_new(&run.loop)) < 0)
		ktrxer_fail(err, rc, "no event loop: %m");
	if (rc < 0)
		goto out;
	c.loop = run.loop;
	rc = flow_client_new(&run.client, &c, err);
	if (rc == 0 && (rc = loop_run(run.loop, o->stop_fd)) < 0)
		ktrxer_fail(err, rc, "the event loop failed");
	if (rc == 0 && !run.done) {
		s->stopped = true;
		flow_client_stop(run.client);
		if (!run.done)
			rc = loop_run(run.loop, -1);
	}
	s->lasted_ns = ktrxer_now_ns() - began_ns;
	s->cpu_share = (double)(cpu_now_ns() - cpu_ns) / (double)s->lasted_ns;
	if (rc == 0) {
		flow_client_result(run.client, &s->result);
		flow_client_witness(run.client);
		lateness(&run);
		for (uint32_t i = 0;
		     i < o->flows && s->result.started && !flow_client_engine(run.client, i, &s->info, &s->qdiscs); i++)
			;
		if (s->result.error.code) {
			*err = s->result.error;
			rc = err->code;
		}
	}
	flow_client_free(run.client);
out:
	loop_free(run.loop);
	return rc;
}

void train_session_free(struct train_session *s)
{
	for (uint32_t i = 0; i < s->flows; i++) {
		free(s->packets[i].sent_ns);
		free(s->packets[i].arrived_ns);
		free(s->packets[i].committed);
	}
	free(s->packets);
	*s = (struct train_session){ 0 };
}
