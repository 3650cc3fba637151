/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The common options of `ping` and `stamp`, as a specification of what to measure. */
#include "probe_command.h"

#include "error.h"

int probe_spec_make(struct probe_spec *spec, const struct probe_options *o, uint32_t each, struct ktrxer_error *err)
{
	const struct opt_rate rate = { .num = (uint64_t)KTRXER_NS_PER_S * each, .den = o->interval_ns, .given = true };
	int rc;

	*spec = (struct probe_spec){ .from = o->from,
				     .device = o->device,
				     .engine = o->engine,
				     .count = o->count,
				     .for_ns = o->for_ns,
				     .interval_ns = o->interval_ns,
				     .timeout_ns = o->timeout_ns,
				     .overtaken_ns = o->overtaken_ns,
				     .late_ns = verdict_late_ns(o->interval_ns),
				     .poisson = o->model == MODEL_POISSON,
				     .precise = o->precise,
				     .cpu = (int)o->cpu,
				     .port = (uint16_t)o->port,
				     .ttl = (uint8_t)o->ttl,
				     .payload = (uint32_t)o->payload };
	/*
	 * Resolve once: a name may have another address the second time, and the guard must check the address that is
	 * used.
	 */
	rc = cli_resolve(o->host, &o->from, o->v4, o->v6, &spec->to, err);
	return rc < 0 ? rc : cli_guard_rate(&spec->to, &rate, o->flood, err);
}
