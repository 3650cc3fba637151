/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "abw_plan.h"

#include "abw_chirp.h"
#include "estimate_sort.h"

#include <errno.h>
#include <ktrxer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_S 1e9
#define IDLE_TOLERANCE 0.18 /* of the time of a large packet on the link: more noise looks like short waits */
#define IDLE_NOISE 0.25     /* of the same: more noise of the stamps hides an empty queue */
#define STREAMS_WIDTH 0.12 /* of the range by streams, of the capacity */
#define STREAMS_MOST_NS 40e9
#define WIDTH_MIN 0.04
#define QUIET 50          /* the time of a large packet on the link, in noises of the stamps: more is quiet */
#define SIZE_FIXED 0.75   /* of a large packet: a link adds less to each packet */
#define LINE_CHANGE 0.1   /* of the time of a large packet on the link */
#define Z_99 2.58
#define TREND_MIN 0.04      /* of the time of a stream: a larger growth of the delay is a trend, with any noise */

enum {
	LINE_GAPS_MIN = 8,
};

const char *const abw_reading_names[ABW_READINGS] = {
	[ABW_RESOLVED] = "resolved", [ABW_COALESCED] = "coalesced", [ABW_SENDER] = "sender_not_on_time",
	[ABW_LOST] = "lost",         [ABW_OPEN] = "not_converged",  [ABW_CHANGED] = "changed",
	[ABW_SHAPED] = "shaped",
};

const char *const abw_step_names[ABW_STEPS] = {
	[ABW_LINE_LARGE] = "back_to_back",
	[ABW_LINE_SMALL] = "back_to_back_small",
	[ABW_IDLE] = "small_probes",
	[ABW_LINE_MIDWAY] = "back_to_back_midway",
	[ABW_BURST] = "burst",
	[ABW_STREAMS] = "streams",
	[ABW_CHIRPS] = "chirps",
	[ABW_FLEET] = "fleet",
	[ABW_LINE_AGAIN] = "back_to_back_again",
	[ABW_OVER] = "none",
};

static struct abw_train train_of(const struct abw_plan *p, uint32_t n, const uint64_t *sent, const uint64_t *arrived)
{
	return (struct abw_train){ sent + (size_t)n * p->packets, arrived + (size_t)n * p->packets, p->packets };
}

static struct timed_delay delay_of(uint64_t sent_ns, uint64_t arrived_ns)
{
	return (struct timed_delay){ (double)sent_ns, (double)(int64_t)(arrived_ns - sent_ns) };
}

/* Accounts of all steps. False: too much was lost, or left at other times, for any estimate. */
static bool count(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	const struct abw_plan *p = &a->plan;
	const uint32_t trains = p->flows * p->trains;
	uint64_t lost = 0, late = 0;
	bool many_lost, many_late;

	for (size_t i = 0; i < (size_t)trains * p->packets; i++) {
		lost += !sent[i] || !arrived[i];
		a->result.overtaken += i % p->packets && arrived[i] && arrived[i] < arrived[i - 1];
		if (i % p->packets && p->gap_ns && !p->shrink && sent[i] && sent[i - 1]) {
			const double off = fabs((double)(int64_t)(sent[i] - sent[i - 1]) - (double)p->gap_ns);

			late += off > 20e3 && off > (double)p->gap_ns / 10;
		}
	}
	a->result.packets += (uint64_t)trains * p->packets;
	a->result.bytes += (uint64_t)trains * p->packets * p->ip_bytes;
	a->result.lost += lost;
	a->result.late += late;
	many_lost = lost * 2 > (uint64_t)trains * p->packets && p->step != ABW_FLEET;
	many_late = late * 2 > (uint64_t)trains * p->packets;
	if (many_lost)
		abw_plan_over(a, ABW_LOST);
	else if (many_late)
		abw_plan_over(a, ABW_SENDER);
	return p->step != ABW_OVER;
}

/* Gaps that come in groups, or that do not grow with the packets, are those of a receiver or router. */
static bool is_a_link(const struct abw *a)
{
	const double least = SIZE_FIXED * a->options.large_bytes;

	return !a->lines[1].line.grouped && a->lines[0].line.gap_ns * (a->line_bytes + least) >
						    a->lines[1].line.gap_ns * (a->options.large_bytes + least);
}

/* A train that no cross traffic has divided lasts as long as its gaps, unless a receiver takes packets in groups. */
static bool is_regular(const struct abw_line *line)
{
	return fabs(line->train_gap_ns - line->gap_ns) * QUIET < line->gap_ns;
}

/* The last step at the beginning has seen packets of both sizes. */
static void take_lines(struct abw *a)
{
	const struct abw_line *large = &a->lines[0].line, *small = &a->lines[1].line;
	const double bytes = a->options.large_bytes;
	struct abw_result *r = &a->result;

	a->line_gap_ns = large->gap_ns;
	a->given.packet_s = large->gap_ns / NS_PER_S;
	r->tolerance_ns = fmax(fmax(large->tolerance_ns, small->tolerance_ns), 3.0 * (double)a->options.resolution_ns);
	/* More noise than this is in the variance of the streams. */
	a->given.noise_s = fmin(r->tolerance_ns / 8, large->gap_ns / 10) / NS_PER_S;
	r->noise_ns = r->tolerance_ns;
	r->capacity_bit_s = 8 * bytes * NS_PER_S / large->gap_ns;
	r->overhead_bytes = large->gap_ns * (bytes - a->line_bytes) / (large->gap_ns - small->gap_ns) - bytes;
	r->overhead_bytes = fmin(fmax(r->overhead_bytes, 0), 100);
	if (a->options.method == ABW_SLOPS)
		abw_plan_search(a);
	else if (a->options.method == ABW_CHIRP)
		abw_plan_chirps(a);
	else if (r->tolerance_ns > IDLE_NOISE * a->line_gap_ns)
		abw_plan_burst(a); /* small probes would show nothing */
	else
		abw_plan_idle(a);
}

static void take_line(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	struct abw_line_part *part = &a->lines[a->plan.step == ABW_LINE_SMALL];
	const size_t before = part->trains * ABW_LINE_PACKETS, count = a->plan.trains * ABW_LINE_PACKETS;
	const struct abw_line *line = &part->line;
	bool known;

	memcpy(part->sent_ns + before, sent, count * sizeof *sent);
	memcpy(part->arrived_ns + before, arrived, count * sizeof *arrived);
	part->trains += a->plan.trains;
	abw_line(part->sent_ns, part->arrived_ns, part->trains, ABW_LINE_PACKETS, &part->line);
	if (a->plan.step == ABW_LINE_LARGE) {
		const bool first = part->trains == ABW_LINE_ROUND_TRAINS;

		if (first) {
			a->quiet = line->gaps >= LINE_GAPS_MIN && line->tolerance_ns * QUIET < line->gap_ns &&
				   is_regular(line);
			a->line_bytes = a->options.large_bytes / 2;
			if (a->quiet && a->options.small_bytes * 4 <= a->options.large_bytes)
				a->line_bytes /= 2;
		}
		if (!first && line->gaps < LINE_GAPS_MIN)
			abw_plan_over(a, line->spread > line->gaps ? ABW_SENDER : ABW_LOST);
		else
			abw_plan_line(a, first && !a->quiet ? ABW_LINE_LARGE : ABW_LINE_SMALL);
		return;
	}
	known = line->gaps >= LINE_GAPS_MIN && is_a_link(a);
	a->quiet = a->quiet && is_regular(line);
	if (part->trains < (a->quiet && known ? ABW_LINE_ROUND_TRAINS : 2 * ABW_LINE_ROUND_TRAINS)) {
		abw_plan_line(a, ABW_LINE_LARGE);
		return;
	}
	if (line->gaps < LINE_GAPS_MIN) {
		abw_plan_over(a, line->spread > line->gaps ? ABW_SENDER : ABW_LOST);
		return;
	}
	if (!known)
		abw_plan_over(a, ABW_COALESCED);
	else
		take_lines(a);
}

static int take_idle(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	const size_t more = (size_t)a->plan.flows * a->plan.trains * a->plan.packets;
	struct timed_delay *delays = realloc(a->delays, (a->delay_count + more) * sizeof *delays);
	struct abw_result *r = &a->result;
	double half, own;
	int rc;

	if (!delays)
		return -ENOMEM;
	a->delays = delays;
	for (size_t i = 0; i < more; i++)
		if (sent[i] && arrived[i])
			a->delays[a->delay_count++] = delay_of(sent[i], arrived[i]);
	rc = abw_idle(a->delays, a->delay_count, r->tolerance_ns, IDLE_TOLERANCE * a->line_gap_ns, &r->idle);
	if (rc == -ENOMEM)
		return rc;
	if (rc == 0)
		r->noise_ns = fmax(r->noise_ns, 2 * r->idle.median_ns);
	if (rc < 0 || !r->idle.resolved) {
		abw_plan_burst(a);
		return 0;
	}
	half = fmax((r->idle.high - r->idle.low) / 2, WIDTH_MIN / 2);
	/* The bitrate of the probes themselves is available. */
	own = 8 * NS_PER_S * a->plan.flows * a->plan.packets * (a->plan.ip_bytes + r->overhead_bytes) /
	      (double)a->plan.period_ns / r->capacity_bit_s;
	a->given.empty = fmin((r->idle.low + r->idle.high) / 2 + own, 1);
	a->given.empty_error = half / Z_99;
	abw_plan_burst(a);
	return 0;
}

/* A load that begins during a burst looks like an empty bucket, but not twice at the same rates. */
static void take_burst(struct abw *a, const uint64_t *arrived)
{
	const struct abw_plan *p = &a->plan;
	struct abw_result *r = &a->result;
	struct shaper shaper;
	const bool found =
		shaper_of_train(arrived + (size_t)(p->trains - 1) * p->packets, p->packets, p->ip_bytes, &shaper);

	if (found && a->bursts && shaper_agree(&shaper, &r->shaper)) {
		r->shaper.bucket_bytes = fmax(shaper.bucket_bytes, r->shaper.bucket_bytes);
		abw_plan_over(a, ABW_SHAPED);
	} else if (found && a->bursts < ABW_BURSTS) {
		a->bursts++;
		r->shaper = shaper;
		abw_plan_burst(a);
	} else {
		abw_plan_line(a, ABW_LINE_MIDWAY);
	}
}

static void take_streams(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	struct abw_streams *s = &a->streams[a->rounds];
	struct abw_result *r = &a->result;
	const double capacity = r->capacity_bit_s;
	double values[ABW_ROUND_TRAINS], gap = 0;

	*s = (struct abw_streams){ 0 };
	for (uint32_t i = 0; i < a->plan.trains; i++) {
		const struct abw_train train = train_of(&a->plan, i, sent, arrived);
		struct abw_trend_result t;

		abw_trend(&train, 0, &t);
		if (t.trend == ABW_UNUSABLE || t.lost * 100 > train.packets * ABW_LOSS_PERCENT)
			continue;
		gap += t.gap_ns;
		values[s->trains] = t.drift;
		s->mean += values[s->trains++];
	}
	if (!s->trains) {
		abw_plan_over(a, ABW_LOST);
		return;
	}
	s->mean /= s->trains;
	gap /= s->trains;
	for (uint32_t i = 0; i < s->trains; i++)
		s->squares += (values[i] - s->mean) * (values[i] - s->mean);
	s->rate = abw_rate_of(a, gap, a->plan.ip_bytes) / capacity;
	s->lasts_s = gap * (a->plan.packets - 1) / NS_PER_S;
	a->rounds++;
	a->streams_ns += a->plan.trains * a->plan.period_ns;
	abw_bend(a->streams, a->rounds, &a->given, &a->bend);
	if (a->bend.high - a->bend.low > STREAMS_WIDTH && a->rounds < ABW_ROUNDS && a->streams_ns < STREAMS_MOST_NS) {
		abw_plan_streams(a);
		return;
	}
	r->by = a->bend.one > 0.5 ? ABW_IDLE : ABW_STREAMS;
	r->misfit = a->bend.misfit;
	r->low_bit_s = fmax(a->bend.low - WIDTH_MIN / 4, 0) * capacity * (1 - ABW_CAPACITY_ERROR);
	r->high_bit_s = fmin(a->bend.high + WIDTH_MIN / 4, 1) * capacity * (1 + ABW_CAPACITY_ERROR);
	abw_plan_last(a, ABW_RESOLVED);
}

/*
 * No gap of packets sent back to back is shorter than the time of a packet on the narrow link, and cross traffic makes
 * gaps longer: a slower link has no short gap, a faster one has several.
 */
static void take_again(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	const uint32_t bytes = a->plan.ip_bytes;
	const double was = a->lines[bytes == a->line_bytes].line.gap_ns,
		     change = LINE_CHANGE * was + a->result.tolerance_ns;
	double least = INFINITY;
	struct abw_line line;

	abw_line(sent, arrived, a->plan.trains, a->plan.packets, &line);
	for (uint32_t i = 1; i < a->plan.trains * a->plan.packets; i++)
		if (i % a->plan.packets && arrived[i] > arrived[i - 1] && arrived[i - 1])
			least = fmin(least, (double)(arrived[i] - arrived[i - 1]));
	if (a->plan.step == ABW_LINE_MIDWAY)
		abw_plan_streams(a);
	else
		abw_plan_over(a, a->reading);
	if (line.gaps < LINE_GAPS_MIN) /* not known */
		return;
	if (least > was + change || line.gap_ns < was - change) {
		abw_plan_over(a, ABW_CHANGED);
		a->result.capacity_end_bit_s = abw_rate_of(a, fmax(line.gap_ns, least), bytes);
	}
}

static int take_chirps(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	const size_t packets = (size_t)a->plan.trains * a->plan.packets;
	struct timed_delay *delays = calloc(packets, sizeof *delays);
	int64_t rates[ABW_CHIRPS_MOST];
	double sum = 0, squares = 0, mean, error, skew = 0;
	size_t n = 0;

	if (!delays)
		return -ENOMEM;
	for (size_t i = 0; i < packets; i++)
		if (sent[i] && arrived[i])
			delays[n++] = delay_of(sent[i], arrived[i]);
	if (abw_skew(delays, n, a->result.tolerance_ns, &skew) < 0) {
		free(delays);
		return -ENOMEM;
	}
	free(delays);
	n = 0;
	for (uint32_t i = 0; i < a->plan.trains; i++) {
		const struct abw_train train = train_of(&a->plan, i, sent, arrived);
		const double rate = abw_chirp(&train, 8ull * a->plan.ip_bytes, skew);

		if (rate > 0)
			rates[n++] = (int64_t)fmin(rate, a->result.capacity_bit_s);
	}
	if (n < a->plan.trains / 2) {
		abw_plan_over(a, ABW_LOST);
		return 0;
	}
	estimate_sort(rates, n);
	for (size_t i = 0; i < n; i++) {
		sum += (double)rates[i];
		squares += (double)rates[i] * (double)rates[i];
	}
	mean = sum / (double)n;
	error = fmax(2.04 * sqrt(fmax(squares / (double)n - mean * mean, 0) / (double)(n - 1)),
		     WIDTH_MIN / 2 * a->result.capacity_bit_s);
	a->result.by = ABW_CHIRPS;
	a->result.low_bit_s = fmax(mean - error, 0);
	a->result.high_bit_s = fmin(mean + error, a->result.capacity_bit_s);
	abw_plan_last(a, ABW_RESOLVED);
	return 0;
}

static void take_fleet(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	struct abw_trend_result streams[ABW_FLEET_STREAMS] = { 0 };
	const double lasts = (double)a->plan.gap_ns * a->plan.packets,
		     noise = fmin(a->result.noise_ns, TREND_MIN * lasts);
	double gap = 0, came = 0;
	enum abw_fleet fleet;
	uint32_t known = 0;

	for (uint32_t i = 0; i < a->plan.trains; i++) {
		const struct abw_train train = train_of(&a->plan, i, sent, arrived);

		abw_trend(&train, noise, &streams[i]);
		gap += streams[i].gap_ns;
		came += streams[i].came_ns;
		known += streams[i].gap_ns > 0;
	}
	fleet = abw_fleet(streams, a->plan.trains);
	a->result.fleets++;
	if (fleet == ABW_FLEET_UNUSABLE || !known) {
		abw_plan_over(a, ABW_LOST);
		return;
	}
	/* Short fleets do not count: two lost packets of a short stream are more than 3 %, and need no full queue. */
	if (a->options.method == ABW_SLOPS && fleet != ABW_FLEET_ABOVE &&
	    abw_fleet_is_lossy(streams, a->plan.trains, a->plan.packets)) {
		fleet = ABW_FLEET_ABOVE;
		a->result.fleets_by_loss++;
	}
	/*
	 * Where trains leave the path at less than half of the rate at which they entered it, its capacity is less
	 * than what packets sent back to back see: a token bucket passes these at once.
	 */
	if (fleet == ABW_FLEET_ABOVE && came > 2 * gap) {
		a->scale = fmin(a->scale, 2 * abw_rate_of(a, came / known, a->plan.ip_bytes));
		a->search.resolution = ABW_FLEET_RESOLUTION * a->scale;
	}
	abw_search_take(&a->search, abw_rate_of(a, gap / known, a->plan.ip_bytes), fleet);
	abw_plan_fleet(a);
}

int abw_begin(struct abw *a, const struct abw_options *o)
{
	*a = (struct abw){ .options = *o };
	if (o->large_bytes < ABW_BYTES_LEAST || !o->small_bytes || o->small_bytes * 2 > o->large_bytes ||
	    o->method >= ABW_METHODS)
		return -EINVAL;
	abw_plan_line(a, ABW_LINE_LARGE);
	return 0;
}

const struct abw_plan *abw_next(const struct abw *a)
{
	return a->plan.step == ABW_OVER ? NULL : &a->plan;
}

int abw_take(struct abw *a, const uint64_t *sent, const uint64_t *arrived)
{
	int rc = 0;

	if (!count(a, sent, arrived))
		return 0;
	switch (a->plan.step) {
	case ABW_LINE_LARGE:
	case ABW_LINE_SMALL:
		take_line(a, sent, arrived);
		break;
	case ABW_IDLE:
		rc = take_idle(a, sent, arrived);
		break;
	case ABW_BURST:
		take_burst(a, arrived);
		break;
	case ABW_STREAMS:
		take_streams(a, sent, arrived);
		break;
	case ABW_LINE_AGAIN:
	case ABW_LINE_MIDWAY:
		take_again(a, sent, arrived);
		break;
	case ABW_CHIRPS:
		rc = take_chirps(a, sent, arrived);
		break;
	default:
		take_fleet(a, sent, arrived);
	}
	return rc;
}

void abw_end(struct abw *a)
{
	free(a->delays);
	a->delays = NULL;
}
