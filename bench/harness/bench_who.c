/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The senders: the engines that work on this device, by the library's own list, and the kind's baselines. */
#include "bench.h"

#include "error.h"
#include "fields_bench.h"
#include "units.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { ENGINES = 24 };

/* Is `name` a word of "a,b,c"? */
static bool in_list(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at && *at;) {
		size_t n = strcspn(at, ",");

		if (n == length && !memcmp(at, name, n))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

static int check_names(const struct bench_run *run, const struct ktx_engine_info *engines, int count,
		       struct ktrxer_error *err)
{
	char have[300] = "";

	for (int i = 0; i < count; i++) {
		strncat(have, i ? ", " : "", sizeof have - strlen(have) - 1);
		strncat(have, engines[i].name, sizeof have - strlen(have) - 1);
	}
	for (const char *at = run->o->engines; at && *at;) {
		size_t n = strcspn(at, ",");
		bool known = false;

		for (int i = 0; i < count; i++)
			if (strlen(engines[i].name) == n && !memcmp(engines[i].name, at, n)) {
				known = true;
				if (!engines[i].available)
					return ktrxer_fail(err, -EOPNOTSUPP, "--engines: %s does not work here: %s",
							   engines[i].name, engines[i].reason);
			}
		if (!known)
			return ktrxer_fail(err, -EINVAL, "--engines '%.*s': no such engine; there are %s",
					   (int)(n < 40 ? n : 40), at, have);
		at += n + (at[n] == ',');
	}
	return 0;
}

/* True if processes of ours may run under SCHED_FIFO. Tried for a moment. */
static bool realtime_allowed(void)
{
	struct sched_param param = { .sched_priority = 1 }, before = { 0 };
	int policy;

	/* musl has no sched_setscheduler(): use the thread's calls. */
	if (pthread_getschedparam(pthread_self(), &policy, &before) ||
	    pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		return false;
	pthread_setschedparam(pthread_self(), policy, &before); /* `chrt` may have given us one already */
	return true;
}

static bool has_fq(const char *name)
{
	struct ktrxer_device device;

	return ktrxer_device_get(&device, name, NULL) == 0 && !strcmp(device.qdisc, "fq");
}

static void leave_out(struct bench_run *run, const char *name, const char *why)
{
	struct json *event = out_event(run->cli, "left_out");

	if (!event)
		return;
	bench_left_out_engine(event, name);
	bench_left_out_reason(event, why);
	out_put(run->cli, event);
}

static struct bench_who *add(struct bench_run *run, const struct ktx_engine_info *engine, enum bench_method method,
			     const char *word)
{
	struct bench_who *who = &run->who[run->whos];

	if (run->whos == BENCH_WHO)
		return NULL;
	run->whos++;
	*who = (struct bench_who){ .engine = true,
				   .method = method,
				   .kernel_waits = engine->features & KTX_CAN_KERNEL_WAIT };
	snprintf(who->engine_name, sizeof who->engine_name, "%s", engine->name);
	snprintf(who->name, sizeof who->name, "%s%s%s", engine->name, *word ? " " : "", word);
	return who;
}

static void add_engine(struct bench_run *run, const struct ktx_engine_info *engine)
{
	char period[KTRXER_UNITS_TEXT], word[KTRXER_UNITS_TEXT + 8];

	if (!run->o->methods)
		add(run, engine, BENCH_OWN, "");
	if (run->methods[BENCH_OIR])
		add(run, engine, BENCH_OIR, "OIR");
	for (int i = 0; run->methods[BENCH_OFR] && i < run->predispatches; i++) {
		struct bench_who *who;

		ktrxer_format_duration(period, run->predispatch_ns[i]);
		snprintf(word, sizeof word, "OFR %s", period);
		who = add(run, engine, BENCH_OFR, word);
		if (who)
			who->ahead_ns = run->predispatch_ns[i];
	}
	if (run->methods[BENCH_OSM])
		add(run, engine, BENCH_OSM, "OSM");
}

static void add_baselines(struct bench_run *run)
{
	const bool realtime = realtime_allowed();

	const bool fq = has_fq(run->net.near_device);

	for (const struct bench_who *b = run->kind->baselines; b->name[0] && run->whos < BENCH_WHO; b++) {
		if (run->o->methods && !run->methods[b->method])
			continue;
		if (b->needs_fq && !fq)
			continue; /* no other qdisc keeps its times */
		if (b->realtime && !realtime)
			leave_out(run, b->name, "no real-time priority here (CAP_SYS_NICE)");
		else
			run->who[run->whos++] = *b;
	}
}

int bench_who_list(struct bench_run *run, struct ktrxer_error *err)
{
	struct ktx_engine_info engines[ENGINES];
	int n = ktx_engines(engines, ENGINES, run->net.near_device), rc;

	if (n > ENGINES)
		n = ENGINES;
	if ((rc = check_names(run, engines, n, err)) < 0)
		return rc;
	for (int i = 0; i < n && run->whos < BENCH_WHO; i++) {
		if (run->o->engines && !in_list(run->o->engines, engines[i].name))
			continue;
		if (!engines[i].available) {
			leave_out(run, engines[i].name, engines[i].reason);
			continue;
		}
		add_engine(run, &engines[i]);
	}
	if (!run->o->no_baselines)
		add_baselines(run);
	return run->whos ? 0
			 : ktrxer_fail(err, -EOPNOTSUPP, "no engine can send here: see `ktrxer doctor --device %s`",
				       run->net.near_device);
}
