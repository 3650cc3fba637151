/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "train_command.h"

#include "error.h"
#include "flow.h"

#include <errno.h>
#include <sys/socket.h>

enum { READY_MS = 3000 /* before --start-at: connection and introductions */ };

const char *const train_directions[] = { "both", "up", "down", NULL };
const char *const train_ways[TRAIN_WAYS] = { "up", "down" };

int train_run_find_path(struct train_run *run, struct ktrxer_error *err)
{
	const struct train_options *o = run->o;
	struct ktrxer_path_options p = KTRXER_PATH_OPTIONS_INIT;
	int rc;

	rc = cli_resolve(o->host, o->v4, o->v6, &run->plan.to, err);
	if (rc < 0)
		return rc;
	if (o->from.family && o->from.family != run->plan.to.family)
		return ktrxer_fail(err, -EAFNOSUPPORT, "--from is not of the same family as %s", o->host);
	p.device = o->device;
	p.from = run->plan.from = o->from;
	p.to = run->plan.to;
	p.no_link_address = true;
	return ktrxer_path_resolve(&run->path, &p, err);
}

int train_run_prepare(struct train_run *run, struct ktrxer_error *err)
{
	const struct train_options *o = run->o;
	int rc;

	run->plan = (struct train_session_options){ .port = (uint16_t)o->port,
						    .token = &run->token,
						    .device = o->device,
						    .engine = o->engine,
						    .precise = o->precise,
						    .cpu = (int)o->cpu,
						    .specs = run->specs,
						    .stop_fd = run->cli->stop_fd,
						    .describe = flow_failure_describe };
	rc = flow_token_read(&run->token, o->token_file, err);
	return rc < 0 ? rc : train_run_find_path(run, err);
}

bool train_run_wants(const struct train_options *o, enum train_way way)
{
	return o->direction != (way == TRAIN_UP ? 2 : 1);
}

uint32_t train_run_head(const struct train_run *run)
{
	return run->plan.to.family == AF_INET6 ? 48 : 28;
}

uint32_t train_run_room(const struct train_run *run)
{
	const uint32_t head = train_run_head(run);

	return run->path.mtu > head ? run->path.mtu - head : 0;
}

void train_run_add(struct train_run *run, enum train_way way, uint32_t kind, const uint32_t payloads[2],
		   uint64_t period_ns)
{
	train_pair_spec(&run->specs[run->plan.flows++], way == TRAIN_DOWN, payloads, period_ns,
			(uint64_t)(2 * kind + way) * (period_ns / 4));
}

int train_run_go(struct train_run *run, uint64_t pairs)
{
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;

	if (cli_wait_start_ahead(run->cli, READY_MS, &start_ns) < 0)
		return EXIT_BAD;
	run->plan.start_ns = run->cli->common.start_at_real_ns ? start_ns : 0;
	run->plan.trains = (uint32_t)pairs;
	if (train_session_run(&run->session, &run->plan, &err) == 0)
		return EXIT_VALID;
	cli_complain(run->cli, "%s", err.text);
	return EXIT_BAD;
}

void train_run_samples(const struct train_run *run, const char *kind, const char *direction,
		       const struct train_samples *s)
{
	static const char *const names[] = { "first_sent_ns", "second_sent_ns", "first_arrived_ns",
					     "second_arrived_ns" };

	for (size_t i = 0; i < s->count; i++) {
		struct json *sample = out_sample(run->cli, kind);

		if (!sample)
			return;
		json_string(sample, "direction", direction);
		json_u64(sample, "number", i);
		json_u64(sample, s->bytes_name, s->bytes);
		for (int half = 0; half < 4; half++) {
			const struct pair_times *p = &s->times[i];
			const uint64_t time_ns = half < 2 ? p->sent_ns[half] : p->arrived_ns[half - 2];

			if (time_ns)
				json_u64(sample, names[half], time_ns);
			else
				json_null(sample, names[half]);
		}
		out_put(run->cli, sample);
	}
}

void train_run_judge(const struct train_run *run, const char *what)
{
	if (run->session.stopped)
		verdict_say(run->cli, VERDICT_DEGRADED, "it was stopped before all %s were sent", what);
	if (run->session.result.remote_missing)
		verdict_say(run->cli, VERDICT_DEGRADED, "the server did not report the end of %u of %u flows of %s",
			    run->session.result.remote_missing, run->session.flows, what);
}

void train_run_json(const struct train_run *run, struct json *end)
{
	char address[KTRXER_ADDR_TEXT];

	json_string(end, "target", run->o->host);
	json_string(end, "to", ktrxer_addr_format(&run->plan.to, address));
	json_string(end, "from", ktrxer_addr_format(&run->path.source, address));
	json_string(end, "device", run->path.device.name);
}

void train_run_free(struct train_run *run)
{
	train_session_free(&run->session);
	secret_forget(&run->token, sizeof run->token);
}
