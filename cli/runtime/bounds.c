/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bounds.h"

#include "error_bound.h"
#include "fields_common.h"
#include "hist.h"
#include "units.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum bound_unit { UNIT_US, UNIT_PERCENT, UNIT_RATE };

enum {
	BOUNDS_MAX = 24,
	NAME_TEXT = 96,
	WHY_TEXT = 320,
	RESOLUTION_PARTS = 1024 /* hist.h: a value is off by this part at most */
};

struct figure_bound {
	const char *figure, *words;
	char probes[16]; /* "": there is one kind */
	bool known;      /* the value */
	enum bound_unit unit;
	int64_t value, bound, tolerance; /* ns, thousandths of a percent, kbit/s */
	enum bound_cause cause;
	struct bound_interval interval;
	uint64_t samples; /* 0: it has no sampling interval */
};

struct figure_bounds {
	int count;
	struct figure_bound each[BOUNDS_MAX];
};

#ifndef KTRXER_SMALL
static void keep(struct cli *cli, const struct figure_bound *b)
{
	if (!cli->bounds)
		cli->bounds = calloc(1, sizeof *cli->bounds);
	if (cli->bounds && cli->bounds->count < BOUNDS_MAX)
		cli->bounds->each[cli->bounds->count++] = *b;
}
#endif

static struct figure_bound begin(const struct bound_name *name, enum bound_unit unit)
{
	struct figure_bound b = { .figure = name->figure, .words = name->words, .unit = unit };

	if (name->probes)
		snprintf(b.probes, sizeof b.probes, "%s", name->probes);
	return b;
}

static const char *amount(char text[KTRXER_UNITS_TEXT], enum bound_unit unit, int64_t value)
{
	if (unit == UNIT_US)
		return ktrxer_format_ns(text, value);
	if (unit == UNIT_RATE)
		return ktrxer_format_bitrate(text, (uint64_t)value * 1000);
	snprintf(text, KTRXER_UNITS_TEXT, "%" PRId64 ".%03d %%", value / 1000, (int)(value % 1000));
	return text;
}

/* Where a bound is too wide, the state of this host is a part of the cause. */
static void say_host(struct cli *cli, const struct bound_parts *p, char *text, size_t size)
{
	char wait[KTRXER_UNITS_TEXT];
	uint64_t waited;
	size_t used;

	if (p->late) {
		used = strlen(text);
		snprintf(text + used, size - used, "; %" PRIu64 " probes left late", p->late);
	}
	if (run_delay_since(&cli->run_delay, &waited) && waited > KTRXER_NS_PER_MS) {
		used = strlen(text);
		snprintf(text + used, size - used, "; a thread of this program waited for a processor for %s",
			 ktrxer_format_ns(wait, (int64_t)waited));
	}
}

static void explain(struct cli *cli, const struct bound_parts *p, enum bound_cause cause, char text[WHY_TEXT])
{
	char span[KTRXER_UNITS_TEXT];
	const uint64_t count = p->count[cause];

	switch (cause) {
	case BOUND_BY_SEND_TIME:
	case BOUND_BY_RECEIVE_TIME:
		snprintf(text, WHY_TEXT,
			 "the kernel gave no %s stamp of %" PRIu64 " probes, so that their times are this program's",
			 cause == BOUND_BY_SEND_TIME ? "send" : "arrival", count);
		break;
	case BOUND_BY_LEFT_OUT:
		snprintf(text, WHY_TEXT, "%" PRIu64 " answers have no usable time stamp and are left out", count);
		break;
	case BOUND_BY_SKIPPED:
		snprintf(text, WHY_TEXT, "%" PRIu64 " probes were skipped, because their time had passed", count);
		break;
	case BOUND_BY_UNSENT:
		if (count)
			snprintf(text, WHY_TEXT, "%" PRIu64 " probes could not be sent (the last one: %s)", count,
				 p->error ? p->error : "no reason given");
		else
			snprintf(text, WHY_TEXT,
				 "%" PRIu64 " lost probes have no stamp of the driver: their neighbour did not "
				 "answer, their link was down, a queue of this host dropped them, or their "
				 "stamps were lost",
				 p->unseen);
		break;
	case BOUND_BY_RECEIVE_BUFFER:
		snprintf(text, WHY_TEXT, "the receive buffer of %s was full and dropped %" PRIu64 " packets",
			 p->far ? p->far : "this host", count);
		break;
	case BOUND_BY_CLOCK:
		snprintf(text, WHY_TEXT, "the clocks are synchronised to +- %s, by their own reports",
			 ktrxer_format_ns(span, p->ns[cause]));
		break;
	case BOUND_BY_DWELL:
		snprintf(text, WHY_TEXT,
			 "the reflector held probes (%" PRIu64
			 " for long), and the rate of its clock is not known better",
			 count);
		break;
	case BOUND_BY_COVERAGE:
		snprintf(text, WHY_TEXT, "%.1f %% of the time has no byte counts", (double)count / 10);
		break;
	default:
		snprintf(text, WHY_TEXT, "the resolution of the figure%s", count ? ", which has few packets" : "");
	}
	say_host(cli, p, text, WHY_TEXT);
}

static const char *full_name(char name[NAME_TEXT], const struct figure_bound *b)
{
	snprintf(name, NAME_TEXT, "%s%s%s", b->words, b->probes[0] ? " of " : "", b->probes);
	return name;
}

/* The verdict, and the figure for the output. */
static void judge(struct cli *cli, const struct figure_bound *b, const struct bound_parts *p)
{
	char name[NAME_TEXT], value[KTRXER_UNITS_TEXT], bound[KTRXER_UNITS_TEXT], tolerance[KTRXER_UNITS_TEXT],
		why[WHY_TEXT];

#ifndef KTRXER_SMALL
	keep(cli, b);
#endif
	if (b->bound <= b->tolerance)
		return;
	explain(cli, p, b->cause, why);
	full_name(name, b);
	if (b->bound == BOUND_UNKNOWN)
		reason_bound_unknown(cli, name, why);
	else
		reason_bound_wide(cli, name, amount(value, b->unit, b->value), amount(bound, b->unit, b->bound),
				  amount(tolerance, b->unit, b->tolerance), why);
}

static int64_t add(int64_t a, int64_t b)
{
	return a > BOUND_UNKNOWN - b ? BOUND_UNKNOWN : a + b;
}

static int64_t share_of(const struct bound_parts *p)
{
	return p->tolerance ? (int64_t)p->tolerance * 1000 : BOUND_TOLERANCE;
}

/* The largest part is the cause. */
static void larger(enum bound_cause *cause, int64_t *largest, enum bound_cause by, int64_t part)
{
	if (part > *largest) {
		*cause = by;
		*largest = part;
	}
}

/* A time of this program is late by as long as its thread waited for a processor; or the delay counts as unknown. */
static int64_t of_times(struct cli *cli, const struct ktrxer_hist *hist, uint64_t unknown, uint64_t by_program)
{
	const int64_t left_out = bound_of_p50(hist, unknown + by_program), rest = bound_of_p50(hist, unknown);
	uint64_t waited;

	if (!by_program || !run_delay_longest(&cli->run_delay, &waited))
		return left_out;
	return left_out < add(rest, (int64_t)waited) ? left_out : add(rest, (int64_t)waited);
}

void bound_delay(struct cli *cli, const struct bound_name *name, const struct ktrxer_hist *hist,
		 const struct bound_parts *p)
{
	static const enum bound_cause unknown[] = { BOUND_BY_LEFT_OUT, BOUND_BY_SKIPPED, BOUND_BY_UNSENT,
						    BOUND_BY_RECEIVE_BUFFER },
				      times[] = { BOUND_BY_SEND_TIME, BOUND_BY_RECEIVE_TIME };
	struct figure_bound b = begin(name, UNIT_US);
	uint64_t missing = 0, by_program = 0;
	int64_t largest = 0, part;

	if (!ktrxer_hist_count(hist) && !p->count[BOUND_BY_LEFT_OUT])
		return;
	b.samples = ktrxer_hist_count(hist);
	b.known = b.samples;
	b.value = ktrxer_hist_quantile(hist, 500000);
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		missing += p->count[unknown[i]];
		if (p->count[unknown[i]])
			larger(&b.cause, &largest, unknown[i], bound_of_p50(hist, p->count[unknown[i]]));
	}
	for (size_t i = 0; i < 2; i++) {
		by_program += p->count[times[i]];
		larger(&b.cause, &largest, times[i], of_times(cli, hist, 0, p->count[times[i]]));
	}
	b.bound = add(of_times(cli, hist, missing, by_program), p->ns[BOUND_BY_CLOCK]);
	larger(&b.cause, &largest, BOUND_BY_CLOCK, p->ns[BOUND_BY_CLOCK]);
	/* The error of the longest dwell is that of each; or the probes with a long one count as unknown. */
	part = of_times(cli, hist, missing + p->count[BOUND_BY_DWELL], by_program);
	part = add(add(part, p->ns[BOUND_BY_CLOCK]), p->dwell_ns);
	b.bound = add(b.bound, p->ns[BOUND_BY_DWELL]);
	b.bound = part < b.bound ? part : b.bound;
	part = add(bound_of_p50(hist, p->count[BOUND_BY_DWELL]), p->dwell_ns);
	larger(&b.cause, &largest, BOUND_BY_DWELL, part < p->ns[BOUND_BY_DWELL] ? part : p->ns[BOUND_BY_DWELL]);
	part = b.value / RESOLUTION_PARTS;
	part = part < 0 ? -part : part;
	larger(&b.cause, &largest, BOUND_BY_RESOLUTION, part);
	b.bound = add(b.bound, part);
	b.tolerance = bound_tolerance(b.value, share_of(p), BOUND_TOLERANCE_NS);
#ifndef KTRXER_SMALL
	b.interval = bound_p50_interval(hist);
#endif
	judge(cli, &b, p);
}

void bound_loss(struct cli *cli, const struct bound_name *name, uint64_t sent, uint64_t lost,
		const struct bound_parts *p)
{
	const uint64_t dropped = p->count[BOUND_BY_RECEIVE_BUFFER],
		       passed = dropped + p->unseen < lost ? dropped + p->unseen : lost; /* perhaps */
	struct figure_bound b = begin(name, UNIT_PERCENT);
	int64_t largest = 0;

	if (!sent)
		return;
	b.samples = sent;
	b.known = true;
	b.value = lost ? bound_share(lost, sent) : 0;
	b.bound = bound_of_loss(sent, passed, p->count[BOUND_BY_SKIPPED] + p->count[BOUND_BY_UNSENT]);
	larger(&b.cause, &largest, BOUND_BY_RECEIVE_BUFFER, bound_of_loss(sent, dropped, 0));
	larger(&b.cause, &largest, BOUND_BY_UNSENT, bound_of_loss(sent, p->unseen, p->count[BOUND_BY_UNSENT]));
	larger(&b.cause, &largest, BOUND_BY_SKIPPED, bound_of_loss(sent, 0, p->count[BOUND_BY_SKIPPED]));
	b.tolerance = BOUND_TOLERANCE_LOSS;
#ifndef KTRXER_SMALL
	b.interval = bound_loss_interval(sent, lost);
#endif
	judge(cli, &b, p);
}

void bound_rate(struct cli *cli, const struct bound_name *name, uint64_t bit_s, uint64_t packets,
		const struct bound_parts *p)
{
	const uint64_t dropped = p->count[BOUND_BY_RECEIVE_BUFFER];
	struct figure_bound b = begin(name, UNIT_RATE);
	int64_t largest = 0, part;

	b.known = true;
	b.value = (int64_t)(bit_s / 1000);
	part = bound_of_rate(b.value, p->count[BOUND_BY_COVERAGE], 1000);
	larger(&b.cause, &largest, BOUND_BY_COVERAGE, part);
	b.bound = part;
	part = bound_tolerance(b.value, (int64_t)p->count[BOUND_BY_RESOLUTION], 0);
	larger(&b.cause, &largest, BOUND_BY_RESOLUTION, part);
	b.bound = add(b.bound, part);
	if (dropped) {
		/* The packets that arrived made the rate; the dropped ones would add their share. */
		part = bound_tolerance(b.value, bound_share(dropped, packets), 0);
		larger(&b.cause, &largest, BOUND_BY_RECEIVE_BUFFER, part);
		b.bound = add(b.bound, part);
	}
	b.tolerance = bound_tolerance(b.value, share_of(p), 0);
	judge(cli, &b, p);
}

#ifndef KTRXER_SMALL
static const char *const unit_names[] = { "us", "percent", "Mbit/s" };
static const char *const cause_names[] = { BOUND_CAUSE_NAMES };
static const char *const cause_words[] = { BOUND_CAUSE_WORDS };

static void figure_json(struct json *end, const struct figure_bound *b)
{
	json_object(end, NULL);
	figure_bound_figure(end, b->figure);
	if (b->probes[0])
		figure_bound_probes(end, b->probes);
	figure_bound_unit(end, unit_names[b->unit]);
	figure_bound_value_or_null(end, b->known, b->value);
	figure_bound_bound_or_null(end, b->bound != BOUND_UNKNOWN, b->bound);
	figure_bound_tolerance(end, b->tolerance);
	figure_bound_cause(end, cause_names[b->cause]);
	figure_bound_low_or_null(end, b->interval.known, b->interval.low);
	figure_bound_high_or_null(end, b->interval.known, b->interval.high);
	json_object_end(end);
}

/* The bounds are compared as shares of their tolerances. */
static bool wider(const struct figure_bound *a, const struct figure_bound *b)
{
	return (double)a->bound * (double)(b->tolerance + 1) > (double)b->bound * (double)(a->tolerance + 1);
}

static void say_interval(const struct figure_bound *b, char *text, size_t size)
{
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT];

	text[0] = '\0';
	if (b->interval.known)
		snprintf(text, size, "; sampling interval of the %s (95 %%): %s to %s", b->words,
			 amount(low, b->unit, b->interval.low), amount(high, b->unit, b->interval.high));
	else if (b->samples)
		snprintf(text, size, "; too few samples for a sampling interval: %" PRIu64 " of %d", b->samples,
			 BOUND_SAMPLES_MIN);
}

void bounds_report(struct cli *cli, struct json *end)
{
	const struct figure_bounds *all = cli->bounds;
	const struct figure_bound *widest;
	char name[NAME_TEXT], bound[KTRXER_UNITS_TEXT], tolerance[KTRXER_UNITS_TEXT], interval[224];

	if (!all)
		return;
	widest = all->each;
	bounds_bounds_open(end);
	for (int i = 0; i < all->count; i++) {
		figure_json(end, &all->each[i]);
		if (wider(&all->each[i], widest))
			widest = &all->each[i];
	}
	json_array_end(end);
	say_interval(all->each, interval, sizeof interval);
	if (widest->bound == BOUND_UNKNOWN)
		out_text(cli, "widest error bound: that of the %s is not known%s", full_name(name, widest), interval);
	else
		out_text(cli, "widest error bound: %s +- %s of %s tolerated%s%s%s%s", full_name(name, widest),
			 amount(bound, widest->unit, widest->bound), amount(tolerance, widest->unit, widest->tolerance),
			 widest->cause ? " (" : "", cause_words[widest->cause], widest->cause ? ")" : "", interval);
}
#endif
