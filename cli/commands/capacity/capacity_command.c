/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer capacity`: the maximum IP-layer capacity of a path (RFC 9097), by UDPSTP (RFC 9946). */
#include "capacity_command.h"

#include "error.h"
#include "secret.h"

#include <errno.h>

#define FIELD(name) offsetof(struct capacity_options, name)
#define MS 1000000ULL

/* clang-format off */
static const struct opt capacity_opts[] = {
	OPTION_DIRECTION(FIELD(direction), capacity_ways, .fallback = "both", .heading = "The test",
	  .help = "up (to the server), down (from it), or both, one after the other"),
	OPTION_FOR(FIELD(for_ns), .fallback = "10s", .min = 1000 * MS, .max = 65535000 * MS,
		   .help = "Duration of each direction, whole seconds"),
	OPTION_SAMPLE_INTERVAL(FIELD(sub_interval_ns), .fallback = "1s", .min = 100 * MS, .max = 60000 * MS,
	  .help = "Sub-interval, of which the highest rate counts"),
	{ .name = "first-mode", .type = OPT_UINT, .offset = FIELD(first_mode), .argument = "N", .max = 60000,
	  .help = "The first N sub-intervals have a maximum of their own, for lines whose rate changes after some "
		  "seconds" },
	OPTION_DSCP(FIELD(dscp)),
	{ .name = "random-payload", .type = OPT_FLAG, .offset = FIELD(random_payload),
	  .help = "Random bytes of payload, for links that compress" },
	{ .name = "mtu-1500", .type = OPT_FLAG, .offset = FIELD(mtu_1500),
	  .help = "IP packets of 1500 bytes; by default of 1250 bytes, which fit through tunnels" },

	{ .name = "algorithm", .type = OPT_CHOICE, .offset = FIELD(algorithm), .argument = "A", .fallback = "B",
	  .choices = capacity_algorithms, .heading = "The search",
	  .help = "B (RFC 9097, appendix A), or C, which multiplies the rate and tries again after congestion" },
	{ .name = "feedback-interval", .type = OPT_DURATION, .offset = FIELD(feedback_ns), .argument = "D",
	  .fallback = "50ms", .min = 4 * MS, .max = 250 * MS, .help = "Time between two status messages of "
		  "the receiver" },
	{ .name = "low-delay", .type = OPT_DURATION, .offset = FIELD(low_ns), .argument = "D", .fallback = "30ms",
	  .min = 1 * MS, .max = 10000 * MS, .help = "The rate rises while the delay variation is below this" },
	{ .name = "high-delay", .type = OPT_DURATION, .offset = FIELD(upper_ns), .argument = "D", .fallback = "90ms",
	  .min = 1 * MS, .max = 10000 * MS, .help = "The rate falls while the delay variation is above this" },
	{ .name = "sequence-errors", .type = OPT_UINT, .offset = FIELD(sequence_errors), .argument = "N",
	  .fallback = "10", .max = 65535, .help = "The rate falls after more sequence errors than N in a "
		  "feedback interval" },
	{ .name = "count-reordering", .type = OPT_FLAG, .offset = FIELD(count_reordering),
	  .help = "Reordered and duplicate datagrams are sequence errors, too" },
	{ .name = "one-way", .type = OPT_FLAG, .offset = FIELD(one_way),
	  .help = "Search by the variation of the one-way delay, not by that of the round trip" },
	{ .name = "row", .type = OPT_UINT, .offset = FIELD(row), .argument = "N", .fallback = "65535", .max = 65535,
	  .help = "Send only at this row of the sending rate table (row N sends N Mbit/s up to 1 Gbit/s); 65535: "
		  "search" },
	{ .name = "start-row", .type = OPT_FLAG, .offset = FIELD(start_row),
	  .help = "Begin the search at --row" },
	OPTION_MAX_BITRATE(FIELD(max_bps), .min = 1000000, .max = 32767000000ULL,
	  .help = "State this highest rate to the server; a server with a limit requires it"),

	OPTION_TOKEN_FILE(FIELD(token_file), .heading = "The server",
	  .help = "The server's token, in a file of mode 0600; without it $KTRXER_TOKEN counts. "
		  "Without both the test is not authenticated, and `ktrxer serve` refuses it"),
	{ .name = "key-id", .type = OPT_UINT, .offset = FIELD(key_id), .argument = "N", .max = 255,
	  .help = "Number of the token in the server's table of keys; `ktrxer serve` has one" },
	OPTION_PORT(FIELD(port), .fallback = "24601", .help = "Port of the server for UDPSTP"),
	OPTION_FROM(FIELD(from), ""),
	OPTIONS_FAMILY(FIELD(v4), FIELD(v6)),
	{ 0 },
};
/* clang-format on */

static const struct opt_positional capacity_positionals[] = {
	{ .name = "HOST",
	  .offset = FIELD(host),
	  .help = "Host with `ktrxer serve --udpstp-port 24601`, or another server of UDPSTP" },
	{ 0 },
};

static int check(const struct capacity_options *o, struct ktrxer_error *err)
{
	if (o->for_ns % (1000 * MS))
		return ktrxer_fail(err, -EINVAL, "--for takes whole seconds: the protocol has no other durations");
	if (o->sub_interval_ns > o->for_ns || o->sub_interval_ns < 2 * o->feedback_ns)
		return ktrxer_fail(err, -EINVAL,
				   "--sample-interval must be at most --for, and at least twice --feedback-interval");
	if (o->low_ns > o->upper_ns)
		return ktrxer_fail(err, -EINVAL, "--low-delay must be at most --high-delay");
	if (o->start_row && o->row == UDPSTP_SEARCH)
		return ktrxer_fail(err, -EINVAL, "--start-row needs --row");
	return 0;
}

static int plan(struct capacity_run *run, uint8_t secret[SECRET_MAX], struct ktrxer_error *err)
{
	const struct capacity_options *o = run->o;
	struct udpstp_client_options *c = &run->client;
	int rc = check(o, err);

	if (rc < 0)
		return rc;
	*c = (struct udpstp_client_options){
		.from = o->from,
		.port = (uint16_t)o->port,
		.key_id = (uint8_t)o->key_id,
		.mtu_1500 = o->mtu_1500,
		.max_mbit_s = (uint16_t)(o->max_bps / 1000000),
		.activation = { .low_ms = (uint16_t)(o->low_ns / MS),
				.upper_ms = (uint16_t)(o->upper_ns / MS),
				.trial_ms = (uint16_t)(o->feedback_ns / MS),
				.test_s = (uint16_t)(o->for_ns / (1000 * MS)),
				.tos = (uint8_t)(o->dscp << 2),
				.row = (uint16_t)o->row,
				.one_way = o->one_way,
				.high_speed_delta = 10,
				.slow_adjust = 3,
				.sequence_errors = (uint16_t)o->sequence_errors,
				.ignore_reordering = !o->count_reordering,
				.modifiers = (uint8_t)((o->start_row ? UDPSTP_START_INDEX : 0) |
						       (o->random_payload ? UDPSTP_RANDOM_PAYLOAD : 0)),
				.algorithm = o->algorithm ? UDPSTP_ALGORITHM_C : UDPSTP_ALGORITHM_B,
				.interval_ms = (uint16_t)(o->sub_interval_ns / MS) },
		.stop_fd = run->cli->stop_fd,
		.interval = capacity_say_interval,
	};
	rc = cli_resolve(o->host, &o->from, o->v4, o->v6, &c->to, err);
	if (rc < 0)
		return rc;
	rc = secret_token_read(o->token_file, secret, err);
	if (rc > 0) {
		c->secret = secret;
		c->secret_length = (size_t)rc;
	}
	return rc < 0 ? rc : 0;
}

/* A sub-interval lasts up to half a trial longer than agreed, and this command allows 2 % more. */
static uint64_t late_ns(const struct udpstp_activation *a)
{
	return (a->interval_ms + a->interval_ms / 50u + a->trial_ms / 2u) * (uint64_t)KTRXER_NS_PER_MS;
}

#ifndef KTRXER_SMALL /* which does not count drops */
#define LOOPBACK 1 /* any device: the drops are those of all */

static uint64_t queue_drops(void)
{
	struct ktrxer_qdiscs qdiscs = { .drops = 0 };

	(void)ktrxer_device_qdiscs_sized(&qdiscs, sizeof qdiscs, LOOPBACK);
	return qdiscs.drops;
}

/* A full queue counts what it drops; a filter behind the socket has the same error number. */
static void judge_drops(struct udpstp_test_counts *counts, uint64_t drops)
{
	if (!counts->refused || drops > counts->refused / 2)
		return;
	counts->refused = 0;
	counts->accounts.last_error = -ENOSR;
}
#endif

#define END_NS (200 * MS) /* of the rate at the end of a test */

/*
 * A bucket that was full lets another burst pass after some time, and a path that is slower since then does not. The
 * second test is as long as the burst, and two seconds.
 */
static bool test_again(const struct capacity_way *w, const struct rate_burst *first)
{
	struct udpstp_client_options o = w->run->client;
	struct udpstp_client_result test;
	struct ktrxer_error err = { 0 };
	bool found = false;

	cli_sleep_until(w->run->cli, ktrxer_now_ns() + rate_trials_refill(first));
	o.interval = NULL;
	o.activation.test_s = (uint16_t)(first->end_ns / (1000 * MS) + 2);
	if (udpstp_client_run(&test, &o, &err) == 0 && test.count == test.wanted)
		found = rate_trials_again(first, test.trials);
	udpstp_client_free(&test);
	return found;
}

static void find_changes(struct capacity_way *w)
{
	const struct rate_trials *t = w->test.trials;
	struct rate_burst first;

	w->level_count = rate_trials_levels(t, w->levels);
	if (w->level_count || w->test.stopped || w->test.count < w->test.wanted || !rate_trials_burst(t, 0, &first))
		return;
	if (rate_trials_refill(&first) && test_again(w, &first)) {
		w->shaper = first.shaper;
		return;
	}
	w->levels[0] = (struct rate_level){ first.begin_ns, first.end_ns, first.shaper.line_bit_s };
	w->levels[1] = (struct rate_level){ first.end_ns, w->test.agreed.test_s * (uint64_t)KTRXER_NS_PER_S,
					    first.shaper.sustained_bit_s };
	w->level_count = 2;
}

static int measure(struct capacity_run *run, int way, struct ktrxer_error *err)
{
	struct capacity_way *w = &run->ways[way];
#ifndef KTRXER_SMALL
	const uint64_t drops = queue_drops();
#endif
	int rc;

	*w = (struct capacity_way){ .run = run, .way = way };
	run->client.down = way == CAPACITY_DOWN;
	run->client.context = w;
	rc = udpstp_client_run(&w->test, &run->client, err);
	if (rc < 0)
		return rc;
	w->measured = true;
#ifndef KTRXER_SMALL
	judge_drops(&w->test.counts, queue_drops() - drops);
#endif
	w->end_bit_s = w->test.trials ? rate_trials_end(w->test.trials, END_NS) : 0;
	w->has_result = ip_capacity_of(&w->result, w->test.intervals, w->test.count, (uint32_t)run->o->first_mode,
				       run->o->low_ns, late_ns(&w->test.agreed), w->end_bit_s) == 0;
	if (w->has_result && w->test.trials)
		find_changes(w);
	return 0;
}

static int capacity_all(struct capacity_run *run, uint8_t secret[SECRET_MAX])
{
	struct ktrxer_error err = { 0 };
	uint64_t start_ns;
	int rc = plan(run, secret, &err);

	if (rc < 0)
		return cli_fail(run->cli, &err);
	capacity_say_what(run);
	if (cli_wait_start(run->cli, &start_ns) < 0)
		return EXIT_NO_RESULT;
	cli_sleep_until(run->cli, start_ns);
	for (int way = 0; way < CAPACITY_WAYS && rc == 0; way++)
		if ((run->o->direction == CAPACITY_BOTH || run->o->direction == way) && !run->ways[0].test.stopped)
			rc = measure(run, way, &err);
	if (rc < 0) {
		cli_complain_code(run->cli, err.code, "%s port %u: %s", run->o->host, run->client.port, err.text);
		return EXIT_NO_RESULT;
	}
	return capacity_finish(run);
}

static int run_capacity(struct cli *cli, const void *options)
{
	struct capacity_run run = { .cli = cli, .o = options };
	uint8_t secret[SECRET_MAX];
	const int status = capacity_all(&run, secret);

	for (int way = 0; way < CAPACITY_WAYS; way++)
		udpstp_client_free(&run.ways[way].test);
	secret_forget(secret, sizeof secret);
	return status;
}

const struct command cmd_capacity = {
	.name = "capacity",
	.summary = "Maximum IP-layer capacity (RFC 9097), by the UDP Speed Test Protocol",
	.description = OPT_PROSE(
		"Fills the path with UDP datagrams and searches for the rate at which the path is full. The result is "
		"the Maximum IP-Layer Capacity of RFC 9097: the most bits of IP packets a second that the receiver "
		"got in one sub-interval, with loss, one-way delay variation and round trips of that sub-interval "
		"and of the whole test.\n\n"
		"The protocol is UDPSTP (RFC 9946, version 20), so that the server may be `ktrxer serve "
		"--udpstp-port 24601` or another implementation, as obudpst. The server decides on the rate, with "
		"the parameters of the client.\n\n"
		"This test takes the whole capacity of the path for its duration. `ktrxer pair` and `ktrxer abw` "
		"estimate capacity and available bandwidth with little load.\n\n"
		"Delays from the server have a resolution of 1 ms, which is the protocol's."),
	.examples = OPT_PROSE("ktrxer capacity far --token-file token\tBoth directions, ten seconds each.\n"
			      "ktrxer capacity far --direction down --for 30s --jsonl --token-file token\tEach "
			      "sub-interval as an object.\n"
			      "ktrxer capacity udpst.example.net --direction up\tA server without authentication.\n"),
	.options = capacity_opts,
	.positionals = capacity_positionals,
	.options_size = sizeof(struct capacity_options),
	.run = run_capacity,
	.measures = true,
};
