/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The command-line floor with commands of its own: what they do is nothing, what is around them is tested by
 * test_cli.py.
 */
#include "cli.h"
#include "reasons.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct tick_options {
	uint64_t interval_ns, count, pad;
};

#define FIELD(name) offsetof(struct tick_options, name)
static const struct opt tick_options[] = {
	{ "interval", 'i', OPT_DURATION, FIELD(interval_ns), "D", "1ms",
	  "Between two samples; 0 is as fast as it goes" },
	{ "count", 'c', OPT_UINT, FIELD(count), "N", "100", "How many; 0 is until stopped" },
	{ "pad", 0, OPT_SIZE, FIELD(pad), "N", "0", "Bytes that make each sample larger", .max = 4096 },
	{ NULL },
};

/* Samples at an interval; what it reports is how long the output has held it up. */
static int run_tick(struct cli *cli, const void *arguments)
{
	const struct tick_options *options = arguments;
	char pad[4097];
	uint64_t start, worst = 0, done = 0;
	struct json *end;

	memset(pad, 'x', options->pad);
	pad[options->pad] = '\0';
	if (cli_wait_start(cli, &start))
		return EXIT_NO_RESULT;
	for (; !cli_stopped(cli) && (!options->count || done < options->count); done++) {
		uint64_t before = ktrxer_now_ns(), took;
		struct json *sample = out_sample(cli, "tick");

		if (sample) {
			json_u64(sample, "time_ns", before);
			json_u64(sample, "number", done);
			json_string(sample, "pad", pad);
			out_put(cli, sample);
		}
		out_text(cli, "tick %llu %s", (unsigned long long)done, pad);
		took = ktrxer_now_ns() - before;
		worst = took > worst ? took : worst;
		if (options->interval_ns) {
			struct pollfd stop = { .fd = cli->stop_fd, .events = POLLIN };
			struct timespec pause = { (time_t)(options->interval_ns / 1000000000),
						  (long)(options->interval_ns % 1000000000) };

			ppoll(&stop, 1, &pause, NULL);
		}
	}
	end = out_end(cli);
	json_u64(end, "ticks", done);
	json_i64(end, "stopped_by", cli_stopped(cli));
	json_u64(end, "start_ns", start);
	json_u64(end, "worst_put_ns", worst);
	return out_finish(cli, end);
}

static const struct command cmd_tick = {
	.name = "tick",
	.summary = "Print samples at an interval",
	.options = tick_options,
	.options_size = sizeof(struct tick_options),
	.run = run_tick,
	.measures = true,
	.description = "Samples leave at an interval.\nThey are empty. And that is all.\n\n.So it is a 'test' of \\f "
		       "escapes - and dashes.",
	.examples = "ktrxer tick -c 10\tTen of them.\nktrxer tick --jsonl\tOne object a line.",
};

struct say_options {
	int verdict;
	struct opt_list reasons;
};

static const char *const verdicts[] = { "valid", "degraded", "invalid", "fail", "usage", "slip", NULL };
static const struct opt say_options[] = {
	{ "verdict", 0, OPT_CHOICE, offsetof(struct say_options, verdict), "WORD", "valid", "What is said", verdicts },
	{ NULL },
};
static const struct opt_positional say_words[] = {
	{ "REASON", offsetof(struct say_options, reasons), "why", .optional = true, .many = true },
	{ NULL },
};

static int run_say(struct cli *cli, const void *arguments)
{
	const struct say_options *options = arguments;

	if (options->verdict == 3) {
		cli_complain(cli, "device 'eth9': no such device");
		return EXIT_NO_RESULT;
	}
	if (options->verdict == 4)
		return EXIT_USAGE;
	if (options->verdict == 5)
		return -EINVAL * 256;
	for (int i = 0; options->verdict && i < options->reasons.count; i++) /* a valid end has no reason */
		reason_error(cli, (enum verdict)options->verdict, options->reasons.items[i]);
	return out_finish(cli, out_end(cli));
}

/* clang-format off */
static const struct command cmd_say = {
	.name = "say", .summary = "End with a verdict", .options = say_options, .positionals = say_words,
	.options_size = sizeof(struct say_options), .run = run_say, .measures = true,
};
/* clang-format on */

struct look_options {
	bool v4, v6, flood;
	uint64_t port;
	struct opt_rate rate;
	const char *host;
};

static const struct opt look_options[] = {
	{ "ipv4", '4', OPT_FLAG, offsetof(struct look_options, v4), .help = "Addresses of IPv4 only",
	  .heading = "Addresses" },
	{ "ipv6", '6', OPT_FLAG, offsetof(struct look_options, v6), .help = "Addresses of IPv6 only" },
	{ "rate", 'r', OPT_RATE, offsetof(struct look_options, rate), "R", .help = "Probes a second",
	  .heading = "Rates" },
	{ "port", 'p', OPT_UINT, offsetof(struct look_options, port), "N", "7", "Port", .min = 1, .max = 65535 },
	{ "flood", 0, OPT_FLAG, offsetof(struct look_options, flood), .help = "The owner of the far end agrees" },
	{ NULL },
};
static const struct opt_positional look_words[] = {
	{ "HOST", offsetof(struct look_options, host), "an address or a name" },
	{ NULL },
};

static int run_look(struct cli *cli, const void *arguments)
{
	const struct look_options *options = arguments;
	struct ktrxer_error err = { 0 };
	struct ktrxer_addr addr;
	char text[KTRXER_ADDR_TEXT];
	struct json *end;

	if (cli_resolve(options->host, &(struct ktrxer_addr){ 0 }, options->v4, options->v6, &addr, &err) ||
	    cli_guard_rate(&addr, &options->rate, options->flood, &err)) {
		cli_complain(cli, "%s", err.text);
		return EXIT_NO_RESULT;
	}
	out_text(cli, "%s port %u", ktrxer_addr_format(&addr, text), (unsigned int)options->port);
	end = out_end(cli);
	json_string(end, "address", text);
	json_u64(end, "port", options->port);
	return out_finish(cli, end);
}

/* clang-format off */
static const struct command cmd_look = {
	.name = "look up", .summary = "Resolve a name", .options = look_options, .positionals = look_words,
	.options_size = sizeof(struct look_options), .run = run_look, .reports = true,
};
/* clang-format on */

struct every_options {
	bool color;
	uint64_t number, bitrate;
	int64_t offset;
	struct opt_list rules;
	const char *device, *file;
	struct ktrxer_addr from;
	int precise;
	uint8_t dscp, ecn;
	struct opt_mac mac;
	struct opt_range range;
};

#define EVERY(name) offsetof(struct every_options, name)
static const struct opt every_options[] = {
	{ "color", 0, OPT_FLAG, EVERY(color), .fallback = "yes", .help = "Colours where the terminal has them" },
	{ "device", 'd', OPT_STRING, EVERY(device), "DEV", .help = "Where it happens" },
	{ "write", 'w', OPT_STRING, EVERY(file), "FILE.csv",
	  .help = "A help text of such a length that it certainly cannot stand in one line of a terminal, with names "
		  "such as "
		  "/proc/sys/kernel/random/boot_id in it, [brackets], 'quotes': and a colon" },
	{ "number", 'n', OPT_UINT, EVERY(number), NULL, "10", "A number", .max = 100 },
	{ "an-option-with-a-very-long-name", 0, OPT_INT, EVERY(offset), "N",
	  .help = "Its label stands on a line of its own" },
	{ "bandwidth", 0, OPT_BITRATE, EVERY(bitrate), NULL, .help = "Bits" },
	{ "rule", 0, OPT_LIST, EVERY(rules), "RULE", .help = "What is wanted" },
	{ "from", 0, OPT_ADDRESS, EVERY(from), NULL, .help = "Source", .heading = "Addresses" },
	{ "precise", 0, OPT_SWITCH, EVERY(precise), .help = "Spin" },
	{ "dscp", 0, OPT_DSCP, EVERY(dscp), .help = "Marking" },
	{ "ecn", 0, OPT_ECN, EVERY(ecn), .help = "Mark of congestion" },
	{ "mac", 0, OPT_MAC, EVERY(mac), NULL, .help = "Link address" },
	{ "payload", 0, OPT_RANGE, EVERY(range), NULL, "28..1428/50", "Sizes" },
	{ "unspoken", 0, OPT_FLAG, EVERY(color) }, /* no help: hidden */
	{ NULL },
};

static int run_every(struct cli *cli, const void *arguments)
{
	(void)cli;
	(void)arguments;
	return EXIT_VALID;
}

static const struct command cmd_every = {
	.name = "look every",
	.summary = "Take an option of every type",
	.options = every_options,
	.options_size = sizeof(struct every_options),
	.run = run_every,
};
static const struct command cmd_secret = {
	.name = "secret", .summary = "A hidden command", .run = run_every, .hidden = true
};

struct number_options {
	struct opt_list bits;
};

static const struct opt_positional number_words[] = {
	{ "BITS", offsetof(struct number_options, bits), "64 bits as a number", .many = true },
	{ NULL },
};

/* Each number in every form, for comparison with another reader of JSON. */
static int run_numbers(struct cli *cli, const void *arguments)
{
	const struct number_options *options = arguments;
	struct json *end = out_end(cli);

	json_array(end, "numbers");
	for (int i = 0; i < options->bits.count; i++) {
		uint64_t bits = strtoull(options->bits.items[i], NULL, 0);
		double number;

		memcpy(&number, &bits, sizeof number);
		json_array(end, NULL);
		json_u64(end, NULL, bits);
		json_i64(end, NULL, (int64_t)bits);
		json_fixed(end, NULL, (int64_t)bits, 3);
		json_double(end, NULL, number);
		json_array_end(end);
	}
	json_array_end(end);
	return out_finish(cli, end);
}

/* clang-format off */
static const struct command cmd_numbers = {
	.name = "numbers", .summary = "Print numbers in every form", .positionals = number_words,
	.options_size = sizeof(struct number_options), .run = run_numbers, .reports = true, .hidden = true,
};
/* clang-format on */

static const struct command *const commands[] = { &cmd_every,  &cmd_look, &cmd_numbers, &cmd_say,
						  &cmd_secret, &cmd_tick, NULL };

int main(int argc, char *argv[])
{
	return cli_main(argc, argv, commands);
}
