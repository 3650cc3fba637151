/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Results of `ktrxer ppt direct`. */
#include "ppt_direct.h"

#include "fields_ppt.h"
#include "path_report.h"
#include "reasons.h"
#include "units.h"

#include <errno.h>
#include <inttypes.h>

enum { LOST_PERCENT = 1 };

static const struct {
	const char *key, *text;
} layers[HOST_LAYERS] = {
	[HOST_USER_SCHED] = { "user_to_sched_us", "this host, sending: program to packet scheduler" },
	[HOST_SCHED_DRIVER] = { "sched_to_driver_us", "this host, sending: packet scheduler to driver" },
	[HOST_DRIVER_NIC] = { "driver_to_nic_us", "this host, sending: driver to NIC" },
	[HOST_NIC_KERNEL] = { "nic_to_kernel_us", "this host, receiving: NIC to kernel" },
	[HOST_KERNEL_USER] = { "kernel_to_user_us", "this host, receiving: kernel to program" },
	[FAR_KERNEL_USER] = { "kernel_to_user_us", "far host, receiving: kernel to program" },
	[FAR_USER_DRIVER] = { "user_to_driver_us", "far host, sending: program to driver" },
};

static const char *const phase_names[DIRECT_PHASES] = { "idle", "busy" };

void ppt_direct_say_what(const struct ppt_direct *run)
{
	char to[KTRXER_ADDR_TEXT], from[KTRXER_ADDR_TEXT], interval[KTRXER_UNITS_TEXT];

	out_text(run->cli,
		 "ppt direct %s (%s) from %s on %s: %" PRIu64 " probes in each phase, one every %s at most; busy "
		 "threads in the second phase: %u",
		 run->o->host, ktrxer_addr_format(&run->plan.to, to), ktrxer_addr_format(&run->path.source, from),
		 run->path.device.name, run->o->count, ktrxer_format_duration(interval, run->o->interval_ns),
		 run->busy_threads);
}

static const char *missing(const struct host_times *t, enum host_layer layer)
{
	switch (layer) {
	case HOST_USER_SCHED:
		return "the device gives no stamp of its packet scheduler";
	case HOST_SCHED_DRIVER:
		return "the device gives no stamp of its packet scheduler or of its driver";
	case HOST_DRIVER_NIC:
	case HOST_NIC_KERNEL:
		if (layer == HOST_DRIVER_NIC ? t->nic_sent : t->nic_received)
			return "the NIC stamped no packet";
		return t->nic_error == -EPERM || t->nic_error == -EACCES
			       ? "the NIC's stamps need CAP_NET_ADMIN and its clock in /dev/ptp*"
			       : "the device has no stamps of a NIC";
	case FAR_USER_DRIVER:
		return "the far host reports no stamps of its driver (follow-up telemetry)";
	default:
		return "no answer has both stamps";
	}
}

static void say_phase(const struct ppt_direct *run, int phase)
{
	const struct host_times *t = &run->phases[phase];

	out_text(run->cli, "%s: %" PRIu64 " sent, %" PRIu64 " answered, %" PRIu64 " lost", phase_names[phase], t->sent,
		 t->answered, t->lost);
	for (int i = 0; i < HOST_LAYERS; i++) {
		const struct ktrxer_hist *h = t->layers[i];
		char text[HIST_TEXT];

		if (ktrxer_hist_count(h))
			out_text(run->cli, "%s: %s: %s, %" PRIu64 " packets", phase_names[phase], layers[i].text,
				 hist_text(text, h, HIST_MIN | HIST_TAIL), ktrxer_hist_count(h));
		else
			out_text(run->cli, "%s: %s: not known: %s", phase_names[phase], layers[i].text,
				 missing(t, (enum host_layer)i));
	}
}

static void layers_json(struct json *json, const struct host_times *t, int from, int to)
{
	for (int i = from; i <= to; i++)
		json_hist_us(json, layers[i].key, t->layers[i]);
}

static void phase_json(struct json *json, const struct ppt_direct *run, int phase)
{
	const struct host_times *t = &run->phases[phase];

	json_object(json, NULL);
	ppt_phase_name(json, phase_names[phase]);
	ppt_phase_busy_threads(json, phase == DIRECT_LOADED ? run->busy_threads : 0);
	ppt_phase_sent(json, t->sent);
	ppt_phase_answered(json, t->answered);
	ppt_phase_lost(json, t->lost);
	ppt_phase_failed(json, t->failed);
	ppt_phase_contradicted(json, t->contradicted);
	ppt_phase_foreign(json, t->foreign);
	ppt_phase_here_open(json);
	ppt_here_sending_open(json);
	layers_json(json, t, HOST_USER_SCHED, HOST_DRIVER_NIC);
	json_object_end(json);
	ppt_here_receiving_open(json);
	layers_json(json, t, HOST_NIC_KERNEL, HOST_KERNEL_USER);
	json_object_end(json);
	json_object_end(json);
	ppt_phase_far_open(json);
	ppt_far_receiving_open(json);
	layers_json(json, t, FAR_KERNEL_USER, FAR_KERNEL_USER);
	json_object_end(json);
	ppt_far_sending_open(json);
	layers_json(json, t, FAR_USER_DRIVER, FAR_USER_DRIVER);
	json_object_end(json);
	json_object_end(json);
	json_object_end(json);
}

static void judge(const struct ppt_direct *run, int phase)
{
	const struct host_times *t = &run->phases[phase];

	if (t->stopped)
		reason_ppt_stopped(run->cli, t->answered ? VERDICT_DEGRADED : VERDICT_INVALID, phase_names[phase],
				   t->sent, run->o->count);
	if (!t->answered && !t->stopped)
		reason_ppt_no_answer(run->cli, phase_names[phase], t->sent, run->o->port, run->o->host);
	else if (t->lost * 100 > t->sent * LOST_PERCENT)
		reason_ppt_lost(run->cli, phase_names[phase], t->lost, t->sent);
	if (t->failed)
		reason_ppt_refused(run->cli, phase_names[phase], t->failed);
	if (t->contradicted)
		reason_ppt_contradicted(run->cli, phase_names[phase], t->contradicted);
}

int ppt_direct_finish(struct ppt_direct *run)
{
	const struct host_times *idle = &run->phases[DIRECT_IDLE];
	const struct path_report path = { .cli = run->cli,
					  .witness = &run->witness,
					  .claim = &run->path,
					  .host = run->o->host,
					  .from_named = run->o->from.family };
	uint64_t sent = 0;
	struct json *end;

	run->cli->no_figure = true;
	for (int phase = 0; phase < run->done; phase++)
		sent += run->phases[phase].sent;
	path_witness_end(&run->witness,
			 &(struct path_claim){
				 .path = &run->path, .device = run->o->device, .from = &run->o->from, .sent = sent });
	for (int phase = 0; phase < run->done; phase++) {
		say_phase(run, phase);
		judge(run, phase);
		run->cli->no_figure &= !run->phases[phase].answered;
	}
	path_report_judge(&path);
	path_report_text(&path);
	end = out_end(run->cli);
	json_target(end, run->o->host, &run->path);
	path_report_json(&path, end);
	ppt_direct_port(end, run->o->port);
	ppt_direct_interval_ns(end, run->o->interval_ns);
	ppt_direct_stamps_open(end);
	ppt_stamps_sched(end, ktrxer_hist_count(idle->layers[HOST_USER_SCHED]));
	ppt_stamps_driver(end, ktrxer_hist_count(idle->layers[HOST_SCHED_DRIVER]));
	ppt_stamps_nic_sent(end, ktrxer_hist_count(idle->layers[HOST_DRIVER_NIC]));
	ppt_stamps_nic_received(end, ktrxer_hist_count(idle->layers[HOST_NIC_KERNEL]));
	ppt_stamps_far_driver(end, idle->follow_up);
	if (idle->nic_bound_ns)
		ppt_stamps_nic_bound_ns(end, idle->nic_bound_ns);
	json_object_end(end);
	ppt_direct_phases_open(end);
	for (int phase = 0; phase < run->done; phase++)
		phase_json(end, run, phase);
	json_array_end(end);
	return out_finish(run->cli, end);
}
