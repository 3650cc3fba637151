/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "verdict.h"

#include "fields_common.h"
#include "error.h"
#include "hist.h"
#include "limits.h"
#include "units.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMPLAINTS_MAX = 4,                  /* the first ones: later ones mostly follow from them */
	REASON_TEXT = 2 * KTRXER_ERROR_TEXT, /* a reason may quote an error */
	MILLION = 1000000,
	DEGRADED_PARTS = MILLION / 100, /* more than 1 % of the probes late: degraded */
	INVALID_PARTS = MILLION / 10,   /* more than 10 %: invalid */
	LATE_FLOOR_NS = 100 * 1000,     /* late is later than a tenth of the interval, and than this */
};

struct verdict_builder {
	pthread_mutex_t lock; /* a clock step is seen by another thread */
	enum verdict verdict;
	int count;
	unsigned int more;
	char reasons[KTRXER_REASONS_MAX][REASON_TEXT];
	int complaints;
	char complaint[COMPLAINTS_MAX][REASON_TEXT];
};

int verdict_open(struct cli *cli)
{
	cli->builder = calloc(1, sizeof *cli->builder);
	if (!cli->builder)
		return -ENOMEM;
	pthread_mutex_init(&cli->builder->lock, NULL);
	return 0;
}

void verdict_close(struct cli *cli)
{
	if (!cli->builder)
		return;
	pthread_mutex_destroy(&cli->builder->lock);
	free(cli->builder);
	cli->builder = NULL;
}

int verdict_reasons(const struct cli *cli)
{
	return cli->builder ? cli->builder->count : 0;
}

const char *verdict_reason(const struct cli *cli, int i)
{
	return cli->builder->reasons[i];
}

enum verdict verdict_now(const struct cli *cli)
{
	return cli->builder ? cli->builder->verdict : VERDICT_VALID;
}

void verdict_say(struct cli *cli, enum verdict verdict, const char *format, ...)
{
	struct verdict_builder *builder = cli->builder;
	char text[REASON_TEXT];
	va_list args;
	int i;

	if (!builder)
		return;
	va_start(args, format);
	ktrxer_text_va(text, sizeof text, format, args);
	va_end(args);
	pthread_mutex_lock(&builder->lock);
	if (verdict > builder->verdict)
		builder->verdict = verdict;
	for (i = 0; i < builder->count && strcmp(builder->reasons[i], text) != 0; i++)
		;
	if (i == builder->count && i < KTRXER_REASONS_MAX)
		memcpy(builder->reasons[builder->count++], text, sizeof text);
	else if (i == builder->count) /* the last one becomes a count of what found no place */
		snprintf(builder->reasons[KTRXER_REASONS_MAX - 1], REASON_TEXT, "and %u more reasons",
			 ++builder->more + 1);
	pthread_mutex_unlock(&builder->lock);
}

void verdict_complaint(const struct cli *cli, const char *text)
{
	struct verdict_builder *builder = cli->builder;

	if (!builder)
		return;
	pthread_mutex_lock(&builder->lock);
	if (builder->complaints < COMPLAINTS_MAX)
		ktrxer_text(builder->complaint[builder->complaints++], REASON_TEXT, "%s", text);
	pthread_mutex_unlock(&builder->lock);
}

void verdict_say_complaints(struct cli *cli)
{
	struct verdict_builder *builder = cli->builder;

	for (int i = 0; i < builder->complaints; i++)
		verdict_say(cli, VERDICT_INVALID, "%s", builder->complaint[i]);
	if (!builder->complaints)
		verdict_say(cli, VERDICT_INVALID, "the command ended without a result");
}

/* ---------------------------------------------------------------------------------------------------------- probes */

/*
 * How many of a histogram's values are above `limit`, by its quantiles (in parts of a million of its count,
 * rounded up).
 */
static uint32_t parts_above(const struct ktrxer_hist *hist, int64_t limit_ns)
{
	uint32_t low = 0, high = MILLION; /* the quantile at `low` is within the limit (or low is 0), the one past
					     `high` is not */

	if (!hist || !ktrxer_hist_count(hist) || ktrxer_hist_max(hist) <= limit_ns)
		return 0;
	/*
	 * The largest p whose quantile is within the limit. Quantiles are of type 1 (the smallest value with at least
	 * that share below or at it), so the share above is exactly 1 - p, to a part in a million.
	 */
	while (low < high) {
		uint32_t middle = low + (high - low + 1) / 2;

		if (ktrxer_hist_quantile(hist, middle) <= limit_ns)
			low = middle;
		else
			high = middle - 1;
	}
	if (low == 0 && ktrxer_hist_min(hist) > limit_ns)
		return MILLION;
	return MILLION - low;
}

static enum verdict by_share(uint64_t part, uint64_t whole)
{
	/* In doubles: exact enough for a threshold, and no product passes 64 bits. */
	double share = whole ? (double)part / (double)whole * MILLION : 0;

	return share > INVALID_PARTS ? VERDICT_INVALID : share > DEGRADED_PARTS ? VERDICT_DEGRADED : VERDICT_VALID;
}

uint64_t verdict_late_ns(uint64_t interval_ns)
{
	return interval_ns / 10 > LATE_FLOOR_NS ? interval_ns / 10 : LATE_FLOOR_NS;
}

void json_late(struct json *json, uint64_t late, uint64_t late_ns)
{
	late_late(json, late);
	late_late_after_us_or_null(json, late_ns, late_ns > INT64_MAX ? INT64_MAX : (int64_t)late_ns);
}

/*
 * Which part of this host was late: a queue that refused probes, which were then submitted again, if there are as many
 * refusals as late probes; a wait for a processor of half of the worst lateness or more; or fewer refusals.
 */
static const char *late_cause(const struct cli *cli, const struct ktx_accounts *a, uint64_t late,
			      const struct ktrxer_hist *lateness, char *cause, size_t size)
{
	const uint64_t refused = a->tries > a->sent + a->failed ? a->tries - a->sent - a->failed : 0;
	const char *before = "threads waited for a processor for only ",
		   *after = ", so it was stopped, or a timer or the hypervisor was late";
	char text[KTRXER_UNITS_TEXT];
	uint64_t waited = 0;
	const bool known = run_delay_since(&cli->run_delay, &waited),
		   most = (int64_t)waited >= ktrxer_hist_max(lateness) / 2;

	ktrxer_format_ns(text, (int64_t)waited);
	if (refused && (refused >= late || (known && !most))) {
		before = "own queue was full and refused ";
		after = " submissions";
		snprintf(text, sizeof text, "%llu", (unsigned long long)refused);
	} else if (!known) {
		return "this machine is too busy or too slow";
	} else if (most) {
		before = "thread waited for a processor for ";
		after = ", because other threads ran";
	}
	snprintf(cause, size, "limited by this host: its %s%s%s", before, text, after);
	return cause;
}

static void judge_lateness(struct cli *cli, const struct ktx_accounts *accounts, const struct ktrxer_hist *lateness,
			   uint64_t limit)
{
	uint64_t timed = lateness ? ktrxer_hist_count(lateness) : 0, late, all = timed + accounts->skipped;
	char limit_text[KTRXER_UNITS_TEXT], p50[KTRXER_UNITS_TEXT], worst[KTRXER_UNITS_TEXT], cause[KTRXER_ERROR_TEXT];
	uint32_t parts;

	if (!all)
		return;
	if (limit > INT64_MAX)
		limit = INT64_MAX;
	parts = parts_above(lateness, (int64_t)limit);
	late = (uint64_t)((double)timed * parts / MILLION + 0.5) + accounts->skipped;
	if (by_share(late, all) == VERDICT_VALID)
		return;
	ktrxer_format_ns(limit_text, (int64_t)limit);
	if (!timed) {
		verdict_say(cli, by_share(late, all), "all %llu probes were skipped, since their time had passed",
			    (unsigned long long)all);
		return;
	}
	verdict_say(
		cli, by_share(late, all),
		"%llu of %llu probes (%.1f %%) left more than %s late or were skipped (lateness: p50 %s, max %s): %s",
		(unsigned long long)late, (unsigned long long)all, 100.0 * (double)late / (double)all, limit_text,
		ktrxer_format_ns(p50, ktrxer_hist_quantile(lateness, MILLION / 2)),
		ktrxer_format_ns(worst, ktrxer_hist_max(lateness)),
		late_cause(cli, accounts, late, lateness, cause, sizeof cause));
}

const char *const sent_source_names[] = { "none", "user", "sched", "driver", "nic" };

void verdict_probes(struct cli *cli, const struct ktx_accounts *a, uint64_t answered,
		    const struct ktrxer_hist *lateness, uint64_t late_ns)
{
	const uint64_t silent = a->sent - answered, missing = a->stamps_missing < silent ? a->stamps_missing : silent;
	uint64_t ended = a->sent + a->failed + a->skipped + a->cancelled;
	char word[80];

	if (a->pending || ended != a->requested)
		verdict_say(cli, VERDICT_INVALID,
			    "the accounts do not close: %llu requested, but %llu sent, %llu failed, %llu skipped, %llu "
			    "cancelled, %llu "
			    "pending",
			    (unsigned long long)a->requested, (unsigned long long)a->sent,
			    (unsigned long long)a->failed, (unsigned long long)a->skipped,
			    (unsigned long long)a->cancelled, (unsigned long long)a->pending);
	if (a->nic + a->driver + a->queued != a->sent)
		verdict_say(cli, VERDICT_INVALID,
			    "the accounts do not close: %llu sent, but %llu by wire, %llu by driver, %llu queued",
			    (unsigned long long)a->sent, (unsigned long long)a->nic, (unsigned long long)a->driver,
			    (unsigned long long)a->queued);
	/* Loss on the way is a result; a probe that never left this machine is not. */
	if (a->failed && by_share(a->failed, ended - a->cancelled) != VERDICT_VALID)
		verdict_say(cli, by_share(a->failed, ended - a->cancelled),
			    "%llu of %llu probes could not be sent (the last one: %s)", (unsigned long long)a->failed,
			    (unsigned long long)(ended - a->cancelled),
			    a->last_error == -ENOBUFS ? "this host's own queue was full"
			    : a->last_error           ? ktrxer_strerror(a->last_error, word, sizeof word)
						      : "no reason given");
	/* Where the driver stamped others, it has not seen these. The stamps of answered probes came too late. */
	if (a->driver + a->nic && by_share(missing, a->sent) != VERDICT_VALID)
		verdict_say(cli, VERDICT_DEGRADED,
			    "%llu of %llu probes that this host's stack took have no stamp of the driver: their "
			    "neighbour did not answer, a queue of this host dropped them, or their stamps were lost. "
			    "The path may not have lost them",
			    (unsigned long long)missing, (unsigned long long)a->sent);
	if (late_ns)
		judge_lateness(cli, a, lateness, late_ns);
}

void verdict_bypass(struct cli *cli, const struct ktx_info *info, const struct ktrxer_qdiscs *qdiscs, const char *other)
{
	if (info->features & KTX_CAN_BYPASS && qdiscs->shaper[0])
		verdict_say(cli, VERDICT_DEGRADED,
			    "engine %s bypasses the qdisc %s of this host's device, which delays and limits its other "
			    "packets: the figures are without it; --engine %s has it",
			    info->engine, qdiscs->shaper, other);
}

/* Of which figures hist_text() has only those that are asked for, as bits. */
static const struct {
	const char *name;
	uint32_t parts;
} hist_figures[] = { { "min", 0 },
		     { "p50", MILLION / 2 },
		     { "iqr", UINT32_MAX },
		     { "p95", MILLION / 100 * 95 },
		     { "p99", MILLION / 100 * 99 },
		     { "max", MILLION } };
enum { HIST_FIGURES = sizeof hist_figures / sizeof hist_figures[0] };

static int64_t hist_figure(const struct ktrxer_hist *hist, int i)
{
	return hist_figures[i].parts == UINT32_MAX ? ktrxer_hist_iqr(hist)
						   : ktrxer_hist_quantile(hist, hist_figures[i].parts);
}

const char *hist_text(char text[HIST_TEXT], const struct ktrxer_hist *hist, unsigned int which)
{
	char value[KTRXER_UNITS_TEXT];
	int used = 0;

	for (int i = 0; i < HIST_FIGURES; i++)
		if (which & 1u << i)
			used += snprintf(text + used, HIST_TEXT - (size_t)used, "%s %s, ", hist_figures[i].name,
					 ktrxer_format_ns(value, hist_figure(hist, i)));
	snprintf(text + used - 2, HIST_TEXT + 2 - (size_t)used, " (quantiles +- 0.1 %%)");
	return text;
}

void json_hist_us(struct json *json, const char *key, const struct ktrxer_hist *hist)
{
	json_object(json, key);
	for (int i = 0; i < HIST_FIGURES; i++)
		json_fixed_or_null(json, hist_figures[i].name, ktrxer_hist_count(hist), hist_figure(hist, i), 3);
	json_object_end(json);
}
