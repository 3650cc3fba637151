/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The output of `capacity`: each sub-interval, and the maximum with its verdict. */
#include "capacity_command.h"

#include "fields_capacity.h"
#include "fields_common.h"
#include "fields_trains.h"
#include "error.h"
#include "reasons.h"
#include "run_delay.h"
#include "units.h"

#include <inttypes.h>
#include <math.h>

enum { SKIPPED_PERCENT = 1, COPIES_PERCENT = 1, MISSING_PART = 5 };

#define CONTAINS 1.02 /* the maximum, of the sustained rate: it contains the bucket */

const char *const capacity_ways[] = { "up", "down", "both", NULL };
const char *const capacity_algorithms[] = { "B", "C", NULL };

void capacity_say_what(const struct capacity_run *run)
{
	const struct udpstp_client_options *c = &run->client;
	char to[KTRXER_ADDR_TEXT];

	out_text(run->cli,
		 "capacity %s (%s) port %u: %s, %u s each, sub-intervals of %u ms, search by algorithm %s, %s",
		 run->o->host, ktrxer_addr_format(&c->to, to), c->port, capacity_ways[run->o->direction],
		 c->activation.test_s, c->activation.interval_ms, capacity_algorithms[run->o->algorithm],
		 c->secret ? "authenticated" : "not authenticated");
}

static void delay_json(struct json *json, const char *key, uint64_t ns)
{
	json_u64_or_null(json, key, ns != IP_CAPACITY_UNKNOWN, ns);
}

void capacity_say_interval(void *context, uint32_t number, const struct ip_capacity_interval *i)
{
	const struct capacity_way *way = context;
	struct json *sample = out_sample(way->run->cli, "ip_capacity");
	char text[KTRXER_UNITS_TEXT];

	out_text(way->run->cli, "%-4s %3u  %s  lost %" PRIu64 " of %" PRIu64 " datagrams", capacity_ways[way->way],
		 number + 1, out_rate(text, ip_capacity_bit_s(i)), i->lost, i->lost + i->datagrams);
	if (!sample)
		return;
	capacity_interval_direction(sample, capacity_ways[way->way]);
	capacity_interval_number(sample, number);
	capacity_interval_time_ns(sample, ktrxer_now_ns());
	capacity_interval_lasts_ns(sample, i->lasts_ns);
	capacity_interval_datagrams(sample, i->datagrams);
	capacity_interval_ip_bytes(sample, i->ip_bytes);
	capacity_interval_bit_s(sample, ip_capacity_bit_s(i));
	capacity_interval_lost(sample, i->lost);
	capacity_interval_reordered(sample, i->reordered);
	capacity_interval_duplicates(sample, i->duplicates);
	delay_json(sample, "delay_variation_min_ns", i->variation_min_ns);
	delay_json(sample, "delay_variation_max_ns", i->variation_max_ns);
	delay_json(sample, "rtt_variation_min_ns", i->rtt_min_ns);
	delay_json(sample, "rtt_variation_max_ns", i->rtt_max_ns);
	out_put(way->run->cli, sample);
}

static void say_range(const struct capacity_way *way, const char *what, const struct ip_capacity_range *range)
{
	char low[KTRXER_UNITS_TEXT], high[KTRXER_UNITS_TEXT];

	if (range->max_ns != IP_CAPACITY_UNKNOWN)
		out_text(way->run->cli, "%s: %s from %s to %s%s", capacity_ways[way->way], what,
			 ktrxer_format_ns(low, (int64_t)range->min_ns), ktrxer_format_ns(high, (int64_t)range->max_ns),
			 way->way == CAPACITY_UP ? " (the server reports whole milliseconds)" : "");
}

static void say_sender(const struct capacity_way *way)
{
	const struct ktx_accounts *a = &way->test.counts.accounts;
	char text[HIST_TEXT], late[KTRXER_UNITS_TEXT];

	out_text(way->run->cli,
		 "%s: %" PRIu64 " datagrams sent, %" PRIu64 " failed, %" PRIu64 " skipped, %" PRIu64
		 " late (by more than %s); lateness: %s",
		 capacity_ways[way->way], a->sent, a->failed, a->skipped, a->late,
		 ktrxer_format_ns(late, (int64_t)UDPSTP_LATE_NS), hist_text(text, way->test.lateness, HIST_TAIL));
}

static void say_changes(const struct capacity_way *way)
{
	const char *name = capacity_ways[way->way];
	char line[KTRXER_UNITS_TEXT], rate[KTRXER_UNITS_TEXT];

	if (way->shaper.line_bit_s > 0)
		out_text(way->run->cli, "%s: token bucket: %.0f kB at %s or more, then %s", name,
			 way->shaper.bucket_bytes / 1000, out_rate(line, way->shaper.line_bit_s),
			 out_rate(rate, way->shaper.sustained_bit_s));
	for (size_t i = 0; i < way->level_count; i++)
		out_text(way->run->cli, "%s: level from %.1f s to %.1f s: %s", name,
			 (double)way->levels[i].from_ns / KTRXER_NS_PER_S,
			 (double)way->levels[i].to_ns / KTRXER_NS_PER_S, out_rate(rate, way->levels[i].median));
}

static void say_way(const struct capacity_way *way)
{
	const struct ip_capacity_result *r = &way->result;
	const char *name = capacity_ways[way->way];
	char text[KTRXER_UNITS_TEXT], mean[KTRXER_UNITS_TEXT];

	out_text(way->run->cli,
		 "%s: maximum IP-layer capacity %s, in sub-interval %u of %u, with %.2f %% loss; mean %s, loss of the "
		 "whole test %.2f %%",
		 name, out_rate(text, r->whole.bit_s), r->whole.at + 1, way->test.count, 100 * r->whole.loss,
		 out_rate(mean, r->mean_bit_s), 100 * r->loss);
	if (way->way == CAPACITY_UP && r->lost)
		out_text(way->run->cli, CLI_FAR_SOCKET);
	if (way->way == CAPACITY_UP)
		say_sender(way);
	for (int i = 0; i < 2 && r->modes[1].count; i++)
		out_text(way->run->cli, "%s: maximum of sub-intervals %u to %u: %s", name, r->modes[i].first + 1,
			 r->modes[i].first + r->modes[i].count, out_rate(text, r->modes[i].bit_s));
	say_changes(way);
	say_range(way, "one-way delay above its minimum", &r->variation);
	say_range(way, "round trip above its minimum", &r->rtt);
}

static void range_json(struct json *json, const char *key, const struct ip_capacity_range *range)
{
	json_object(json, key);
	delay_json(json, "min_ns", range->min_ns);
	delay_json(json, "max_ns", range->max_ns);
	json_object_end(json);
}

static void mode_json(struct json *json, const char *key, const struct ip_capacity_mode *mode)
{
	json_object(json, key);
	capacity_mode_bit_s(json, mode->bit_s);
	capacity_mode_sub_interval(json, mode->at);
	capacity_mode_first(json, mode->first);
	capacity_mode_count(json, mode->count);
	capacity_mode_loss(json, mode->loss);
	range_json(json, "delay_variation", &mode->variation);
	range_json(json, "rtt_variation", &mode->rtt);
	json_object_end(json);
}

static void changes_json(struct json *json, const struct capacity_way *way)
{
	if (way->shaper.line_bit_s > 0) {
		capacity_way_shaper_open(json);
		shaper_line_bit_s(json, way->shaper.line_bit_s);
		shaper_sustained_bit_s(json, way->shaper.sustained_bit_s);
		shaper_bucket_bytes(json, way->shaper.bucket_bytes);
		json_object_end(json);
	}
	if (!way->level_count)
		return;
	capacity_way_levels_open(json);
	for (size_t i = 0; i < way->level_count; i++) {
		json_object(json, NULL);
		capacity_level_from_ns(json, way->levels[i].from_ns);
		capacity_level_to_ns(json, way->levels[i].to_ns);
		capacity_level_bit_s(json, way->levels[i].median);
		json_object_end(json);
	}
	json_array_end(json);
}

static void sender_json(struct json *json, const struct capacity_way *way)
{
	const struct ktx_accounts *a = &way->test.counts.accounts;

	capacity_way_sender_open(json);
	accounts_requested(json, a->requested);
	accounts_sent(json, a->sent);
	accounts_failed(json, a->failed);
	accounts_skipped(json, a->skipped);
	accounts_cancelled(json, a->cancelled);
	json_late(json, a->late, UDPSTP_LATE_NS);
	capacity_sender_refused(json, way->test.counts.refused);
	capacity_sender_lateness_us(json, way->test.lateness);
	json_object_end(json);
}

static void counts_json(struct json *json, const struct capacity_way *way)
{
	const struct udpstp_test_counts *c = &way->test.counts;

	if (way->way == CAPACITY_UP) {
		sender_json(json, way);
		capacity_way_status_lost(json, c->status_lost);
	} else {
		capacity_way_datagrams_received(json, c->datagrams);
		capacity_way_lost_in_socket(json, c->socket_drops);
		capacity_way_without_kernel_stamp(json, c->user_stamped);
		capacity_way_paused_ns(json, c->paused_ns);
		capacity_way_pause_max_ns(json, c->pause_most_ns);
	}
	capacity_way_ignored(json, c->ignored);
}

static void way_json(struct json *json, const struct capacity_way *way)
{
	const struct ip_capacity_result *r = &way->result;

	json_object(json, capacity_ways[way->way]);
	if (way->has_result) {
		mode_json(json, "maximum", &r->whole);
		if (r->modes[1].count) {
			mode_json(json, "first_mode", &r->modes[0]);
			mode_json(json, "second_mode", &r->modes[1]);
		}
		capacity_way_mean_bit_s(json, r->mean_bit_s);
		capacity_way_loss(json, r->loss);
		capacity_way_datagrams(json, r->datagrams);
		capacity_way_lost(json, r->lost);
		capacity_way_reordered(json, r->reordered);
		capacity_way_duplicates(json, r->duplicates);
		range_json(json, "delay_variation", &r->variation);
		range_json(json, "rtt_variation", &r->rtt);
		changes_json(json, way);
	} else {
		capacity_way_maximum_null(json);
	}
	capacity_way_sub_intervals(json, way->test.count);
	capacity_way_test_port(json, way->test.test_port);
	capacity_way_for_ns(json, way->test.agreed.test_s * (uint64_t)KTRXER_NS_PER_S);
	counts_json(json, way);
	json_object_end(json);
}

static void judge_search(const struct capacity_way *way)
{
	struct cli *cli = way->run->cli;
	const struct ip_capacity_result *r = &way->result;
	const char *name = capacity_ways[way->way];
	const uint64_t sent = way->test.counts.datagrams, seen = r->datagrams + r->lost;

	/* A loss is a gap in the numbers. While datagrams arrive, the others may be in a queue. */
	if (way->way == CAPACITY_UP && way->end_bit_s < r->whole.bit_s / MISSING_PART &&
	    sent > seen + sent / MISSING_PART)
		reason_capacity_missing(cli, name, sent - seen, sent);
	else if (way->run->o->row != UDPSTP_SEARCH && !way->run->o->start_row)
		reason_capacity_fixed(cli, name);
	else if (way->shaper.line_bit_s > 0 && r->whole.bit_s > CONTAINS * way->shaper.sustained_bit_s)
		reason_capacity_shaped(cli, name, (uint64_t)way->shaper.bucket_bytes, way->shaper.line_bit_s,
				       way->shaper.sustained_bit_s);
	else if (way->level_count)
		reason_capacity_changed(cli, name, way->levels[0].median, way->levels[way->level_count - 1].median);
	else if (r->rising)
		reason_capacity_rising(cli, name);
	else if (r->unfilled)
		reason_capacity_not_filled(cli, name);
}

static void judge_own(const struct capacity_way *way)
{
	struct cli *cli = way->run->cli;
	const struct udpstp_test_counts *c = &way->test.counts;
	const struct ktx_accounts *a = &c->accounts;
	const char *name = capacity_ways[way->way];
	const uint64_t failed = a->failed - c->refused;
	char word[80];

	verdict_accounts(cli, a);
	if (c->refused)
		reason_capacity_own_queue(cli, name, c->refused, a->sent + c->refused);
	if (failed)
		reason_capacity_unsent(cli, name, failed, a->sent + failed,
				       verdict_send_error(a->last_error, word, sizeof word));
	if (a->skipped * 100 > (a->sent + a->skipped) * SKIPPED_PERCENT)
		reason_capacity_late(cli, name, a->skipped, a->sent + a->skipped);
	if (c->socket_drops)
		reason_capacity_socket_drops(cli, name, c->socket_drops);
	if (c->user_stamped)
		reason_user_stamped(cli, name, c->user_stamped);
}

/*
 * Without a PDU of this host the server sends no load after one second (HELD_NS), and ends the test after five. After a
 * stop of four seconds (HELD_ENDS_NS) the silence of the server is therefore no separate reason.
 */
#define HELD_NS ((uint64_t)KTRXER_NS_PER_S)
#define HELD_ENDS_NS (4 * HELD_NS)

static void judge_end(const struct capacity_way *way)
{
	const struct udpstp_client_result *t = &way->test;
	const enum verdict verdict = way->has_result ? VERDICT_DEGRADED : VERDICT_INVALID;
	const char *name = capacity_ways[way->way];
	/* The messages that end the test were lost behind the last sub-interval. */
	const bool whole = t->count && t->count == t->wanted && t->intervals[t->count - 1].datagrams;

	if (t->counts.held_ns >= HELD_NS)
		reason_capacity_stood_still(way->run->cli, verdict, name, (int64_t)t->counts.held_ns);
	if (t->stopped)
		reason_capacity_stopped(way->run->cli, verdict, name, t->count, t->wanted);
	else if (t->end == UDPSTP_SILENT && !whole && t->counts.held_ns < HELD_ENDS_NS)
		reason_capacity_silent(way->run->cli, verdict, name);
	else if (t->count < t->wanted || !way->has_result)
		reason_capacity_ended(way->run->cli, verdict, name, t->count, t->wanted);
}

static void judge(const struct capacity_way *way)
{
	struct cli *cli = way->run->cli;
	const char *name = capacity_ways[way->way];

	judge_end(way);
	if (!way->has_result)
		return;
	if (way->test.agreed.test_s != way->run->client.activation.test_s)
		reason_capacity_server_time(cli, name, way->test.agreed.test_s);
	if (way->result.late)
		(way->way == CAPACITY_UP ? reason_capacity_server_receiver_late
					 : reason_capacity_receiver_late)(cli, name, way->result.late);
	if (way->test.counts.held_ns < HELD_NS &&
	    way->test.counts.paused_ns * 100 > way->test.agreed.test_s * (uint64_t)KTRXER_NS_PER_S)
		reason_capacity_server_paused(cli, name, (int64_t)way->test.counts.paused_ns,
					      (int64_t)way->test.counts.pause_most_ns);
	if (way->result.duplicates * 100 > way->result.datagrams * COPIES_PERCENT)
		reason_capacity_copies(cli, name, way->result.duplicates, way->result.datagrams);
	judge_search(way);
	judge_own(way);
}

int capacity_finish(struct capacity_run *run)
{
	const struct udpstp_client_options *c = &run->client;
	struct json *end;
	char text[KTRXER_ADDR_TEXT];

	run->cli->no_figure = !run->ways[0].has_result && !run->ways[1].has_result;
	for (int way = 0; way < CAPACITY_WAYS; way++)
		if (run->ways[way].measured) {
			if (run->ways[way].has_result)
				say_way(&run->ways[way]);
			judge(&run->ways[way]);
		}
	end = out_end(run->cli);
	capacity_end_target(end, run->o->host);
	capacity_end_to(end, ktrxer_addr_format(&c->to, text));
	capacity_end_port(end, c->port);
	capacity_end_authenticated(end, c->secret != NULL);
	capacity_end_algorithm(end, capacity_algorithms[run->o->algorithm]);
	capacity_end_sub_interval_ns(end, run->o->sub_interval_ns);
	capacity_end_dscp(end, run->o->dscp);
	capacity_end_low_ns(end, run->o->low_ns);
	capacity_end_upper_ns(end, run->o->upper_ns);
	capacity_end_sequence_errors(end, run->o->sequence_errors);
	for (int way = 0; way < CAPACITY_WAYS; way++)
		if (run->ways[way].measured)
			way_json(end, &run->ways[way]);
	return out_finish(run->cli, end);
}
