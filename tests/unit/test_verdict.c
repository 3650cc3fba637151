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
	reason_server_held(&cli, 12000000, 5, 100, 1500000);
	reason_abw_changed(&cli, "up", 20e6, 15.5e6);
	reason_flow_waited(&cli, 21.26);
	assert_string_equal(
		object(0),
		"[{\"id\":\"server_held\",\"text\":\"limited by the server: it held a probe for up to 12.000 ms before "
		"its answer, and 5 of 100 for longer than 1.500 ms (not in the round trip): its processor was too "
		"busy, or it was stopped\",\"severity\":\"degraded\",\"cause\":\"far_cpu\","
		"\"longest_ns\":12000000,\"held\":5,"
		"\"received\":100,\"limit_ns\":1500000}]");
	assert_non_null(strstr(object(1), "the capacity of the narrow link changed from 20"));
	assert_non_null(strstr(object(1), "\"direction\":\"up\",\"before_bit_s\":20000000"));
	assert_non_null(strstr(object(2), "during 21.3 % of"));
	assert_non_null(strstr(object(2), "\"waited_percent\":21.26"));
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

/* `late` of `all` values are at `late_ns`, the others at 1 us. */
static struct ktrxer_hist *lateness(int all, int late, int64_t late_ns)
{
	struct ktrxer_hist *hist = ktrxer_hist_new();

	assert_non_null(hist);
	for (int i = 0; i < all; i++)
		ktrxer_hist_record(hist, i < late ? late_ns : 1000);
	return hist;
}

static struct ktx_accounts accounts_of(uint64_t sent)
{
	return (struct ktx_accounts){ .requested = sent, .sent = sent, .driver = sent };
}

static enum verdict judged(int all, int late, int64_t late_ns, uint64_t interval_ns)
{
	struct ktrxer_hist *hist = lateness(all, late, late_ns);
	struct ktx_accounts accounts = accounts_of((uint64_t)all);
	const uint64_t limit_ns = interval_ns ? verdict_late_ns(interval_ns) : 0;
	enum verdict verdict;

	accounts.late = late_ns > 0 && (uint64_t)late_ns > limit_ns ? (uint64_t)late : 0;
	close_builder(NULL);
	open_builder(NULL);
	verdict_probes(&cli, &accounts, 0, hist, limit_ns);
	verdict = verdict_now(&cli);
	assert_int_equal(verdict == VERDICT_VALID, verdict_reasons(&cli) == 0);
	ktrxer_hist_free(hist);
	return verdict;
}

TEST(late_probes)
{
	/* At 10 ms late is a millisecond, exactly 1 % is still well. */
	assert_int_equal(judged(1000, 0, 0, 10000000), VERDICT_VALID);
	assert_int_equal(judged(1000, 10, 5000000, 10000000), VERDICT_VALID);
	assert_int_equal(judged(1000, 11, 5000000, 10000000), VERDICT_DEGRADED);
	assert_int_equal(judged(1000, 100, 5000000, 10000000), VERDICT_DEGRADED);
	assert_int_equal(judged(1000, 101, 5000000, 10000000), VERDICT_INVALID);
	assert_int_equal(judged(1000, 1000, 5000000, 10000000), VERDICT_INVALID);
	assert_int_equal(judged(1000, 1000, 900000, 10000000), VERDICT_VALID);
	/* At 100 us a tenth would be 10 us, but the floor is 100 us. */
	assert_int_equal(judged(1000, 1000, 90000, 100000), VERDICT_VALID);
	assert_int_equal(judged(1000, 1000, 110000, 100000), VERDICT_INVALID);
	/* A rate has no times to be late for; nothing timed, nothing judged. */
	assert_int_equal(judged(1000, 1000, 5000000, 0), VERDICT_VALID);
	assert_int_equal(judged(0, 0, 0, 10000000), VERDICT_VALID);
	assert_int_equal(judged(1, 1, 5000000, 10000000), VERDICT_INVALID);
	assert_int_equal(judged(1, 0, 0, UINT64_MAX), VERDICT_VALID);
}

TEST(skipped_probes_are_late)
{
	struct ktrxer_hist *hist = lateness(900, 0, 0);
	struct ktx_accounts accounts = { .requested = 1000, .sent = 900, .driver = 900, .skipped = 100, .late = 100 };

	verdict_probes(&cli, &accounts, 0, hist, verdict_late_ns(10000000));
	assert_int_equal(verdict_now(&cli), VERDICT_DEGRADED);
	assert_non_null(strstr(verdict_reason(&cli, 0), "100 of 1000 probes (10 %)"));
	close_builder(NULL);
	open_builder(NULL);
	accounts = (struct ktx_accounts){ .requested = 10, .skipped = 10, .late = 10 };
	verdict_probes(&cli, &accounts, 0, NULL, verdict_late_ns(10000000));
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	ktrxer_hist_free(hist);
}

TEST(accounts_must_close)
{
	struct ktx_accounts good = { .requested = 10, .sent = 5, .nic = 1, .driver = 1, .queued = 3, .cancelled = 5 };
	struct ktx_accounts lost = good, pending = good, sourceless = good;

	verdict_probes(&cli, &good, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	lost.requested++;
	verdict_probes(&cli, &lost, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	close_builder(NULL);
	open_builder(NULL);
	pending.requested++;
	pending.pending++;
	verdict_probes(&cli, &pending, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
	close_builder(NULL);
	open_builder(NULL);
	sourceless.queued--;
	verdict_probes(&cli, &sourceless, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_INVALID);
}

TEST(failed_probes)
{
	struct ktx_accounts accounts = {
		.requested = 100, .sent = 99, .queued = 99, .failed = 1, .last_error = -ENOBUFS
	};

	verdict_probes(&cli, &accounts, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	accounts.sent = accounts.queued = 98;
	accounts.failed = 2;
	verdict_probes(&cli, &accounts, 0, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_DEGRADED);
	assert_non_null(strstr(verdict_reason(&cli, 0), "2 of 100 probes could not be sent"));
	assert_non_null(strstr(verdict_reason(&cli, 0), "own queue was full"));
}

TEST(answered_probes_have_left)
{
	const struct ktx_accounts a = {
		.requested = 100, .sent = 100, .driver = 90, .queued = 10, .stamps_missing = 10
	};

	verdict_probes(&cli, &a, 100, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_VALID);
	verdict_probes(&cli, &a, 93, NULL, 0);
	assert_int_equal(verdict_now(&cli), VERDICT_DEGRADED);
	assert_non_null(strstr(verdict_reason(&cli, 0), "7 of 100 probes"));
}

TEST(a_full_queue_makes_probes_late)
{
	struct ktrxer_hist *hist = lateness(1000, 500, 5000000);
	struct ktx_accounts a = accounts_of(1000);

	a.tries = 1600;
	a.late = 500;
	verdict_probes(&cli, &a, 0, hist, verdict_late_ns(10000000));
	assert_non_null(strstr(verdict_reason(&cli, 0), "its own queue was full and refused 600 submissions"));
	ktrxer_hist_free(hist);
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

/* `busy` of 100 ticks in each of `windows` windows of half a second. */
static void add_windows(struct host_load *load, struct host_cpu *cpu, int windows, unsigned int busy,
			unsigned int stolen)
{
	for (int i = 0; i < windows; i++) {
		cpu->total += 100;
		cpu->idle += 100 - busy - stolen;
		cpu->steal += stolen;
		host_load_add(load, cpu, load->window_ns + 500000000);
	}
}

TEST(load_of_the_host)
{
	struct host_load load = { 0 };
	struct host_cpu cpu = { .total = 1000000, .idle = 500000, .steal = 10 };

	assert_int_equal(host_load_cpu(&load), -1);
	assert_false(host_load_too_busy(&load));
	host_load_add(&load, &cpu, 1);
	assert_int_equal(host_load_steal(&load), -1);
	add_windows(&load, &cpu, 95, 50, 5);
	assert_int_equal(host_load_cpu(&load), 5500);
	assert_int_equal(host_load_steal(&load), 500);
	assert_false(host_load_too_busy(&load));
	add_windows(&load, &cpu, 5, 90, 0); /* exactly 90 % is not above */
	assert_false(host_load_too_busy(&load));
	add_windows(&load, &cpu, 5, 80, 11);     /* stolen time is time that we did not have */
	assert_false(host_load_too_busy(&load)); /* 5 of 105 windows are below 5 % */
	add_windows(&load, &cpu, 1, 100, 0);
	assert_true(host_load_too_busy(&load));
}

TEST(short_runs_are_not_judged)
{
	struct host_load load = { 0 };
	struct host_cpu cpu = { .total = 1000, .idle = 500 };

	host_load_add(&load, &cpu, 1);
	for (int i = 0; i < 9; i++) { /* 0.9 s, all of it busy */
		cpu.total += 20;
		host_load_add(&load, &cpu, load.window_ns + 100000000);
	}
	assert_int_equal(host_load_cpu(&load), 10000);
	assert_false(host_load_too_busy(&load));
	cpu.total += 20;
	host_load_add(&load, &cpu, load.window_ns + 99000000); /* the window is still open */
	assert_false(host_load_too_busy(&load));
	host_load_add(&load, &cpu, load.window_ns + 100000000);
	assert_true(host_load_too_busy(&load));
}

TEST(counters_may_run_backwards)
{
	struct host_load load = { 0 };
	struct host_cpu cpu = { .total = 1000, .idle = 500, .steal = 10 };

	host_load_add(&load, &cpu, 1000);
	cpu.total -= 5;
	cpu.idle -= 5;
	cpu.steal = 0;
	host_load_add(&load, &cpu, 500);
	host_load_add(&load, &cpu, 2000000000);
	assert_int_equal(host_load_cpu(&load), -1);
	assert_false(host_load_too_busy(&load));
}
