/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "host.h"
#include "error.h"
#include "json.h"
#include "reasons.h"
#include "verdict.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct command command = { .name = "test", .summary = "A test", .measures = true };
static struct cli cli;

static int open_builder(void **state)
{
	(void)state;
	cli = (struct cli){ .command = &command, .stop_fd = -1 };
	return verdict_open(&cli);
}

static int close_builder(void **state)
{
	(void)state;
	verdict_close(&cli);
	return 0;
}

struct cm_hooks cm_hooks = { .before_each = open_builder, .after_each = close_builder };

/* A reason whose sentence is one word. */
__attribute__((format(printf, 2, 3))) static void say(enum verdict verdict, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	reason_error(&cli, verdict, text);
}

static const char *object(int i)
{
	static char text[4096];
	struct json *json = json_new(false);

	json_array(json, NULL);
	verdict_reason_json(&cli, i, json);
	json_array_end(json);
	snprintf(text, sizeof text, "%s", json_text(json, NULL));
	json_free(json);
	return text;
}

TEST(a_reason_is_data)
{
	reason_flow_ended_early(&cli, 3, "up", 12000000, 1500000, "it was closed");
	reason_abw_changed(&cli, "up", 20e6, 15.5e6);
	reason_flow_not_covered(&cli, 21.26, "up");
	assert_string_equal(
		object(0),
		"[{\"id\":\"flow_ended_early\",\"text\":\"flow 3 (up) ended 12.000 ms early, after 1.500 ms: it was "
		"closed\",\"severity\":\"degraded\",\"cause\":\"path\",\"flow\":3,\"direction\":\"up\","
		"\"early_ns\":12000000,\"after_ns\":1500000,\"why\":\"it was closed\"}]");
	assert_non_null(strstr(object(1), "the capacity of the narrow link changed from 20"));
	assert_non_null(strstr(object(1), "\"direction\":\"up\",\"before_bit_s\":20000000"));
	assert_non_null(strstr(object(2), "only 21.3 % of"));
	assert_non_null(strstr(object(2), "\"covered_percent\":21.26"));
}

TEST(a_word_that_is_too_long_is_cut)
{
	char large[4096];

	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	large[3] = '\n';
	reason_unsent(&cli, VERDICT_DEGRADED, 1, 2, large);
	reason_tcp_status(&cli, VERDICT_DEGRADED, 404, large, large, large, large);
	assert_non_null(strstr(object(0), "\"id\":\"unsent\""));
	assert_non_null(strstr(object(0), "xxx?xxx"));
	assert_non_null(strstr(object(1), "\"location\":\"\""));
}

TEST(worst_word_stays)
{
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	say(VERDICT_DEGRADED, "flow %d ended early", 3);
	assert_int_equal(verdict_now(&cli), VERDICT_DEGRADED);
	say(VERDICT_INVALID, "nothing received at all");
	say(VERDICT_DEGRADED, "flow %d ended early", 3); /* once is enough */
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	assert_int_equal(verdict_reasons(&cli), 2);
	assert_string_equal(verdict_reason(&cli, 0), "flow 3 ended early");
}

TEST(reasons_are_bounded)
{
	char large[2 * KTRXER_ERROR_TEXT];

	memset(large, 'x', sizeof large - 1);
	large[sizeof large - 1] = '\0';
	say(VERDICT_DEGRADED, "%s", large);
	say(VERDICT_DEGRADED, "%.*s: give more time (--for)", KTRXER_ERROR_TEXT, large);
	assert_int_equal(strlen(verdict_reason(&cli, 1)), KTRXER_ERROR_TEXT + 24); /* longer than an error, and whole */
	say(VERDICT_DEGRADED, "%s: give more time (--for)", large);
	assert_non_null(strstr(verdict_reason(&cli, 2), "x: give more time (--for)"));
	for (int i = 0; i < 98; i++)
		say(VERDICT_DEGRADED, "reason %d", i);
	assert_int_equal(verdict_reasons(&cli), KTRXER_REASONS_MAX);
	assert_string_equal(verdict_reason(&cli, KTRXER_REASONS_MAX - 1), "and 70 more reasons");
}

TEST(complaints_become_reasons)
{
	verdict_complaint(&cli, -ENETUNREACH, "no route to 192.0.2.1");
	verdict_say_complaints(&cli);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	assert_string_equal(verdict_reason(&cli, 0), "no route to 192.0.2.1");
}

TEST(silence_is_invalid_too)
{
	verdict_say_complaints(&cli);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	assert_int_equal(verdict_reasons(&cli), 1);
}

TEST(accounts_must_close)
{
	struct ktx_accounts good = { .requested = 10, .sent = 5, .nic = 1, .driver = 1, .queued = 3, .cancelled = 5 };
	struct ktx_accounts lost = good, pending = good, sourceless = good;

	verdict_probes(&cli, &good);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	lost.requested++;
	verdict_probes(&cli, &lost);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	close_builder(NULL);
	open_builder(NULL);
	pending.requested++;
	pending.pending++;
	verdict_probes(&cli, &pending);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	close_builder(NULL);
	open_builder(NULL);
	sourceless.queued--;
	verdict_probes(&cli, &sourceless);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
}

TEST(packets_that_did_not_leave)
{
	struct ktx_accounts accounts = {
		.requested = 100, .sent = 99, .queued = 99, .failed = 1, .last_error = -ENOBUFS
	};

	verdict_packets(&cli, &accounts);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	accounts.sent = accounts.queued = 98;
	accounts.failed = 2;
	verdict_packets(&cli, &accounts);
	assert_int_equal(verdict_now(&cli), VERDICT_DEGRADED);
	assert_non_null(strstr(verdict_reason(&cli, 0), "2 of 100 probes could not be sent"));
	assert_non_null(strstr(verdict_reason(&cli, 0), "own queue was full"));
	accounts.skipped = 2;
	accounts.failed = 0;
	verdict_packets(&cli, &accounts);
	assert_non_null(strstr(verdict_reason(&cli, 1), "2 of 100 packets were not sent"));
}

TEST(probes_of_which_none_left)
{
	struct ktx_accounts accounts = { .requested = 10, .skipped = 10, .late = 10 };

	verdict_probes(&cli, &accounts);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	assert_non_null(strstr(object(0), "\"id\":\"all_skipped\""));
	accounts.skipped = 5;
	accounts.failed = 5;
	verdict_probes(&cli, &accounts);
	assert_non_null(strstr(object(1), "\"id\":\"unsent\""));
}

/* The error bounds judge them. */
TEST(late_and_skipped_probes_are_no_reason)
{
	const struct ktx_accounts accounts = {
		.requested = 1000, .sent = 500, .driver = 500, .skipped = 500, .late = 1000
	};

	verdict_probes(&cli, &accounts);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
}

TEST(answered_probes_have_left)
{
	const struct ktx_accounts a = {
		.requested = 100, .sent = 100, .driver = 90, .queued = 10, .stamps_missing = 10
	};

	assert_int_equal(verdict_unseen(&a, 100), 0);
	assert_int_equal(verdict_unseen(&a, 93), 7);
	assert_int_equal(verdict_unseen(&a, 0), 10);
	verdict_packets(&cli, &a);
	assert_non_null(strstr(verdict_reason(&cli, 0), "10 of 100 probes"));
}

TEST(figures)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();
	struct json *json = json_new(false);

	json_object(json, NULL);
	json_hist_us(json, "none", hist);
	json_hist_us(json, "null", NULL);
	for (int i = 1; i <= 100; i++)
		ktrxer_hist_record(hist, i * 10 - 500);
	json_hist_us(json, "some", hist);
	json_object_end(json);
	assert_string_equal(
		json_text(json, NULL),
		"{\"none\":{\"min\":null,\"p50\":null,\"iqr\":null,\"p95\":null,\"p99\":null,\"max\":null},"
		"\"null\":{\"min\":null,\"p50\":null,\"iqr\":null,\"p95\":null,\"p99\":null,\"max\":null},"
		"\"some\":{\"min\":-0.490,\"p50\":0.000,\"iqr\":0.500,\"p95\":0.450,\"p99\":0.490,\"max\":0.500}}");
	json_free(json);
	ktrxer_hist_free(hist);
}

static int parse(struct host_cpu *cpu, const char *text)
{
	return host_cpu_parse(cpu, text, strlen(text));
}

TEST(ticks)
{
	struct host_cpu cpu;

	assert_int_equal(parse(&cpu, "cpu  1 2 3 40 50 6 7 8 1000 2000\ncpu0 9 9 9 9\n"), 0);
	assert_true(cpu.total == 117 && cpu.idle == 90 && cpu.steal == 8);
	assert_int_equal(parse(&cpu, "cpu  1 2 3 4\n"), 0); /* Linux 2.4 */
	assert_true(cpu.total == 10 && cpu.idle == 4 && cpu.steal == 0);
	assert_int_equal(parse(&cpu, "cpu  1 2 3 4"), 0);
	assert_int_equal(parse(&cpu, ""), -EBADMSG);
	assert_int_equal(parse(&cpu, "cpu "), -EBADMSG);
	assert_int_equal(parse(&cpu, "cpu0 1 2 3 4\n"), -EBADMSG);
	assert_int_equal(parse(&cpu, "cpu  1 2 3\n4"), -EBADMSG);
	assert_int_equal(parse(&cpu, "cpu  1 2 -3 4\n"), -EBADMSG);
	assert_int_equal(parse(&cpu, "cpu  1 2 3 99999999999999999999\n"), -EBADMSG);
}

TEST(load_of_the_host)
{
	struct host_load load = { 0 };
	struct host_cpu cpu = { .total = 1000, .idle = 500, .steal = 10 };

	assert_int_equal(host_load_cpu(&load), -1);
	host_load_add(&load, &cpu);
	assert_int_equal(host_load_steal(&load), -1);
	cpu = (struct host_cpu){ .total = 2000, .idle = 950, .steal = 60 };
	host_load_add(&load, &cpu);
	assert_int_equal(host_load_cpu(&load), 5500);
	assert_int_equal(host_load_steal(&load), 500);
}

TEST(counters_may_run_backwards)
{
	struct host_load load = { 0 };
	struct host_cpu cpu = { .total = 1000, .idle = 500, .steal = 10 };

	host_load_add(&load, &cpu);
	cpu.total -= 5;
	cpu.idle -= 5;
	cpu.steal = 0;
	host_load_add(&load, &cpu);
	assert_int_equal(host_load_cpu(&load), -1);
}
