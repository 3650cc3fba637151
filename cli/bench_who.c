/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Who takes part: the engines that work on this device, by the library's own list, and the kind's baselines. */
#include "bench.h"

#include "error.h"

#include <errno.h>
#include <sched.h>
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

static int check_names(const struct bench_run *run, const struct ktx_engine_info *engines, int count, struct ktrxer_error *err)
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
					return ktrxer_fail(err, -EOPNOTSUPP, "--engines: %s does not work here: %s", engines[i].name,
							   engines[i].reason);
			}
		if (!known)
			return ktrxer_fail(err, -EINVAL, "--engines '%.*s': no such engine; there are %s", (int)(n < 40 ? n : 40), at, have);
		at += n + (at[n] == ',');
	}
	return 0;
}

/* May processes of ours run under SCHED_FIFO? By trying, for a moment. */
static bool realtime_allowed(void)
{
	struct sched_param param = { .sched_priority = 1 }, before = { 0 };
	const int policy = sched_getscheduler(0);

	sched_getparam(0, &before);
	if (sched_setscheduler(0, SCHED_FIFO, &param))
		return false;
	sched_setscheduler(0, policy, &before); /* `chrt` may have given us one already */
	return true;
}

static void add_baselines(struct bench_run *run)
{
	const bool realtime = realtime_allowed();

	for (const struct bench_who *b = run->kind->baselines; b->name[0] && run->whos < BENCH_WHO; b++) {
		if (b->realtime && !realtime)
			out_text(run->cli, "left out: %s: no real-time priority here (CAP_SYS_NICE)", b->name);
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
		struct bench_who *who = &run->who[run->whos];

		if (run->o->engines && !in_list(run->o->engines, engines[i].name))
			continue;
		if (!engines[i].available) {
			out_text(run->cli, "left out: engine %s: %s", engines[i].name, engines[i].reason);
			continue;
		}
		*who = (struct bench_who){ .engine = true };
		snprintf(who->name, sizeof who->name, "%s", engines[i].name);
		run->whos++;
	}
	if (!run->o->no_baselines)
		add_baselines(run);
	return run->whos ? 0 : ktrxer_fail(err, -EOPNOTSUPP, "nobody can send here: see `ktrxer doctor --device %s`", run->net.near_device);
}
