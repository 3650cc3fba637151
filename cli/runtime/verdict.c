/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "verdict.h"

#include "fields_common.h"
#include "error.h"
#include "hist.h"
#include "reasons.h"
#include "units.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum {
	COMPLAINTS_MAX = 4,                  /* the first ones: later ones mostly follow from them */
	REASON_TEXT = 2 * KTRXER_ERROR_TEXT, /* a reason may quote an error */
	VALUES_MAX = 8,                      /* of a reason */
	NAME_MAX_TEXT = 40,
	MILLION = 1000000,
};

struct reason {
	const char *form;
	enum verdict severity;
	char text[REASON_TEXT];
	char words[REASON_TEXT]; /* one after the other, each with its NUL */
	union reason_value {
		size_t word; /* its place in `words` */
		uint64_t count;
		int64_t ns;
		double number;
	} values[VALUES_MAX];
};

struct verdict_builder {
	pthread_mutex_t lock; /* a clock step is seen by another thread */
	enum verdict verdict;
	int count;
	unsigned int more;
	struct reason reasons[KTRXER_REASONS_MAX];
	int complaints;
	struct complaint {
		int code; /* a negative errno, or 0 */
		char text[REASON_TEXT];
	} complaint[COMPLAINTS_MAX];
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
	free(cli->bounds);
	cli->bounds = NULL;
}

int verdict_reasons(const struct cli *cli)
{
	return cli->builder ? cli->builder->count : 0;
}

const char *verdict_reason(const struct cli *cli, int i)
{
	return cli->builder->reasons[i].text;
}

const char *const verdict_names[] = { "valid", "degraded", "invalid" };

static const char *after_nul(const char *text)
{
	return text + strlen(text) + 1;
}

static const char *form_sentence(const char *form)
{
	return after_nul(after_nul(form));
}

void verdict_reason_json(const struct cli *cli, int i, struct json *json)
{
	const struct reason *reason = &cli->builder->reasons[i];
	const union reason_value *value = reason->values;
	char name[NAME_MAX_TEXT];

	json_object(json, NULL);
	verdict_reason_id(json, reason->form);
	verdict_reason_text(json, reason->text);
	verdict_reason_severity(json, verdict_names[reason->severity]);
	verdict_reason_cause(json, after_nul(reason->form));
	for (const char *at = form_sentence(reason->form); (at = strchr(at, '{')); value++) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(at + 2, "}"), at + 2);
		switch (at++[1]) {
		case 't':
			json_string(json, name, reason->words + value->word);
			break;
		case 'u':
			json_u64(json, name, value->count);
			break;
		case 'n':
			json_i64(json, name, value->ns);
			break;
		default:
			json_rounded(json, name, value->number, 3);
		}
	}
	json_object_end(json);
}

enum verdict verdict_now(const struct cli *cli)
{
	return cli->builder ? cli->builder->verdict : VERDICT_VALID;
}

/* The value of one name of the sentence, as text. */
static void value_text(struct reason *reason, char kind, const union reason_value *value, char text[REASON_TEXT])
{
	char rate[KTRXER_UNITS_TEXT];
	size_t length;

	switch (kind) {
	case 't':
		ktrxer_text(text, REASON_TEXT, "%s", reason->words + value->word);
		break;
	case 'u':
		snprintf(text, REASON_TEXT, "%llu", (unsigned long long)value->count);
		break;
	case 'n':
		ktrxer_format_ns(text, value->ns);
		break;
	case 'r':
		ktrxer_format_bitrate(rate,
				      value->number > 0 && value->number < 1e18 ? (uint64_t)(value->number + 0.5) : 0);
		snprintf(text, REASON_TEXT, "%s", rate);
		break;
	default: /* one digit after the point, if it is not 0 */
		snprintf(text, REASON_TEXT, "%.1f", value->number);
		length = strlen(text);
		if (length > 2 && strcmp(text + length - 2, ".0") == 0)
			text[length - 2] = '\0';
	}
}

/* The place of the word. One that is too long loses its middle; one that finds no room is empty. */
static size_t keep_word(struct reason *reason, size_t *used, const char *word)
{
	enum { ROOM_MIN = 16 }; /* for the mark of ktrxer_text() */
	const size_t at = *used;

	if (at + ROOM_MIN > REASON_TEXT)
		return REASON_TEXT - 1;
	ktrxer_text(reason->words + at, REASON_TEXT - at, "%s", word);
	ktrxer_text_clean(reason->words + at, false);
	*used = at + strlen(reason->words + at) + 1;
	return at;
}

static void compose(struct reason *reason, va_list args)
{
	char whole[4 * REASON_TEXT], text[REASON_TEXT];
	size_t used = 0, words = 0;
	int values = 0;

	for (const char *at = form_sentence(reason->form), *next; *at && used < sizeof whole - 1; at = next) {
		next = at + strcspn(at, "{");
		used += (size_t)snprintf(whole + used, sizeof whole - used, "%.*s", (int)(next - at), at);
		if (*next && values < VALUES_MAX && used < sizeof whole) {
			union reason_value *value = &reason->values[values++];

			switch (next[1]) {
			case 't':
				value->word = keep_word(reason, &words, va_arg(args, const char *));
				break;
			case 'u':
				value->count = va_arg(args, uint64_t);
				break;
			case 'n':
				value->ns = va_arg(args, int64_t);
				break;
			default:
				value->number = va_arg(args, double);
			}
			value_text(reason, next[1], value, text);
			used += (size_t)snprintf(whole + used, sizeof whole - used, "%s", text);
			next += strcspn(next, "}") + 1;
		}
	}
	ktrxer_text(reason->text, sizeof reason->text, "%s", whole);
}

static void make(struct reason *reason, enum verdict severity, const char *form, ...)
{
	va_list args;

	*reason = (struct reason){ .form = form, .severity = severity };
	va_start(args, form);
	compose(reason, args);
	va_end(args);
}

void reason_add(struct cli *cli, enum verdict verdict, const char *form, ...)
{
	struct verdict_builder *builder = cli->builder;
	struct reason made = { .form = form, .severity = verdict };
	va_list args;
	int i;

	if (!builder)
		return;
	va_start(args, form);
	compose(&made, args);
	va_end(args);
	pthread_mutex_lock(&builder->lock);
	if (verdict > builder->verdict)
		builder->verdict = verdict;
	for (i = 0; i < builder->count && strcmp(builder->reasons[i].text, made.text) != 0; i++)
		;
	if (i == builder->count && i < KTRXER_REASONS_MAX)
		builder->reasons[builder->count++] = made;
	else if (i == builder->count) /* the last one becomes a count of what found no place */
		make(&builder->reasons[KTRXER_REASONS_MAX - 1], builder->verdict, REASON_MORE_REASONS,
		     (uint64_t)++builder->more + 1);
	pthread_mutex_unlock(&builder->lock);
}

void verdict_complaint(const struct cli *cli, int code, const char *text)
{
	struct verdict_builder *builder = cli->builder;
	struct complaint *complaint;

	if (!builder)
		return;
	pthread_mutex_lock(&builder->lock);
	if (builder->complaints < COMPLAINTS_MAX) {
		complaint = &builder->complaint[builder->complaints++];
		complaint->code = code;
		ktrxer_text(complaint->text, REASON_TEXT, "%s", text);
	}
	pthread_mutex_unlock(&builder->lock);
}

void verdict_say_complaints(struct cli *cli)
{
	struct verdict_builder *builder = cli->builder;

	for (int i = 0; i < builder->complaints; i++)
		reason_failure(cli, VERDICT_INVALID, builder->complaint[i].code, builder->complaint[i].text);
	if (!builder->complaints)
		reason_no_result(cli);
}

uint64_t verdict_late_ns(uint64_t interval_ns)
{
	const uint64_t part = interval_ns / THRESHOLD_LATE_INTERVAL_PARTS;

	return part > THRESHOLD_LATE_FLOOR_NS ? part : THRESHOLD_LATE_FLOOR_NS;
}

void json_late(struct json *json, uint64_t late, uint64_t late_ns)
{
	late_late(json, late);
	late_late_after_us_or_null(json, late_ns, late_ns > INT64_MAX ? INT64_MAX : (int64_t)late_ns);
}

const char *const sent_source_names[] = { "none", "user", "sched", "driver", "nic" };

void verdict_accounts(struct cli *cli, const struct ktx_accounts *a)
{
	if (a->pending || a->sent + a->failed + a->skipped + a->cancelled != a->requested)
		reason_accounts_open(cli, a->requested, a->sent, a->failed, a->skipped, a->cancelled, a->pending);
	if (a->nic + a->driver + a->queued != a->sent)
		reason_accounts_by_stamp_open(cli, a->sent, a->nic, a->driver, a->queued);
}

const char *verdict_send_error(int error, char *text, size_t size)
{
#ifdef KTRXER_SMALL
	return error == -ENOBUFS ? "this host's own queue was full, or a packet filter dropped it"
#else
	return error == -ENOBUFS    ? "this host's own queue was full"
	       : error == -ENOSR    ? "a packet filter or a lower device of this host dropped it"
	       : error == -ENETDOWN ? "the link of this host's device was down"
	       : error == -EPERM    ? "a packet filter of this host rejected it"
#endif
	       : error ? ktrxer_strerror(error, text, size)
		       : "no reason given";
}

const char *verdict_last_error(const struct ktx_accounts *a, char *text, size_t size)
{
	return a->failed ? verdict_send_error(a->last_error, text, size) : "their time had passed";
}

/* Loss on the way is a result; a probe that never left this machine is not. */
static void judge_unsent(struct cli *cli, const struct ktx_accounts *a, enum verdict verdict)
{
	char word[80];

	if (a->failed)
		reason_unsent(cli, verdict, a->failed + a->skipped, a->sent + a->failed + a->skipped,
			      verdict_last_error(a, word, sizeof word));
	else if (!a->sent)
		reason_all_skipped(cli, verdict, a->skipped);
	else
		reason_skipped(cli, a->skipped, a->sent + a->skipped);
}

void verdict_probes(struct cli *cli, const struct ktx_accounts *a)
{
	verdict_accounts(cli, a);
	if (!a->sent && a->failed + a->skipped)
		judge_unsent(cli, a, VERDICT_INVALID);
}

uint64_t verdict_unseen(const struct ktx_accounts *a, uint64_t answered)
{
	const uint64_t silent = a->sent > answered ? a->sent - answered : 0;

	/* The stamps of answered probes came too late. */
	return !(a->driver + a->nic) ? 0 : a->stamps_missing < silent ? a->stamps_missing : silent;
}

/* A double is exact enough for a limit, and no product exceeds 64 bits. */
static bool more_than_tolerated(uint64_t part, uint64_t whole)
{
	return (double)part * 100 > (double)whole * (100 - THRESHOLD_COVERAGE_PERCENT);
}

void verdict_packets(struct cli *cli, const struct ktx_accounts *a)
{
	const uint64_t unsent = a->failed + a->skipped, unseen = verdict_unseen(a, 0);

	verdict_probes(cli, a);
	if (a->sent && more_than_tolerated(unsent, a->sent + unsent))
		judge_unsent(cli, a, VERDICT_DEGRADED);
	if (more_than_tolerated(unseen, a->sent))
		reason_unseen_by_driver(cli, unseen, a->sent);
}

void verdict_bypass(struct cli *cli, const struct ktx_info *info, const struct ktrxer_qdiscs *qdiscs, const char *other)
{
	if (info->features & KTX_CAN_BYPASS && qdiscs->shaper[0])
		reason_bypass(cli, info->engine, qdiscs->shaper, other);
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
