/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "opt_all.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const struct opt all_options[] = {
	{ "flag", 'f', OPT_FLAG, FIELD(flag), .help = "A flag" },
	{ "verbose", 'v', OPT_FLAG, FIELD(verbose), .help = "Another" },
	{ "color", 0, OPT_FLAG, FIELD(color), .fallback = "yes", .help = "On unless refused" },
	{ "count", 'c', OPT_UINT, FIELD(count), "N", "10", "How many", .min = 1, .max = 1000000 },
	{ "offset", 0, OPT_INT, FIELD(offset), "N", .help = "Signed", .min = (uint64_t)-5, .max = 5 },
	{ "interval", 'i', OPT_DURATION, FIELD(duration), "D", "10ms", "How often", .min = 1000 },
	{ "rate", 'r', OPT_RATE, FIELD(rate), "R", .help = "How fast", .max = 1000000 },
	{ "bitrate", 0, OPT_BITRATE, FIELD(bitrate), "B", .help = "Bits" },
	{ "size", 's', OPT_SIZE, FIELD(size), "N", .help = "Bytes", .heading = "Sizes" },
	{ "title", 't', OPT_STRING, FIELD(string), "TEXT", .help = "A string" },
	{ "late", 0, OPT_CHOICE, FIELD(choice), "POLICY", "skip", "What then", policies },
	{ "rule", 0, OPT_LIST, FIELD(list), "RULE", .help = "Many" },
	{ "from", 0, OPT_ADDRESS, FIELD(address), "IP", .help = "Address" },
	{ "precise", 0, OPT_SWITCH, FIELD(precise), .help = "Switch" },
	{ "dscp", 0, OPT_DSCP, FIELD(dscp), .fallback = "BE", .help = "Marking" },
	{ "ecn", 0, OPT_ECN, FIELD(ecn), .help = "Congestion" },
	{ "mac", 0, OPT_MAC, FIELD(mac), "MAC", .help = "Link address" },
	{ "payload", 0, OPT_RANGE, FIELD(range), "A..B/STEP", "28..1428/50", "Sizes", .max = 65507 },
	{ "secret", 0, OPT_FLAG, FIELD(flag) }, /* no help: hidden */
	{ NULL },
};
static const struct opt_positional all_positionals[] = {
	{ "HOST", FIELD(host), "the host that answers" },
	{ "REST", FIELD(rest), "more", .optional = true, .many = true },
	{ NULL },
};
static const struct command all_command = {
	.name = "all",
	.summary = "Everything",
	.options = all_options,
	.positionals = all_positionals,
	.options_size = sizeof(struct all),
};

struct common {
	bool json;
	uint64_t start;
};
static const struct opt common_options[] = {
	{ "json", 0, OPT_FLAG, offsetof(struct common, json), .help = "One object" },
	{ "start-at", 0, OPT_UINT, offsetof(struct common, start), "NS", .help = "When" },
	{ NULL },
};

#define ARGV_MAX 16
static struct ktrxer_error error;

/* Words separated by '|'. */
static int parse(struct all *all, const char *words)
{
	static char copy[1024];
	char *argv[ARGV_MAX];
	int argc = 0;

	snprintf(copy, sizeof copy, "%s", words);
	if (*words)
		for (char *word = copy; word && argc < ARGV_MAX;) {
			char *bar = strchr(word, '|');

			if (bar)
				*bar++ = '\0';
			argv[argc++] = word;
			word = bar;
		}
	error = (struct ktrxer_error){ 0 };
	memset(all, 0xaa, sizeof *all);
	return opt_parse(&all_command, all, NULL, NULL, argc, argv, &error);
}

static void takes(struct all *all, const char *words)
{
	int ret = parse(all, words);

	if (ret)
		fail_msg("%s: %d %s", words, ret, error.text);
}

static void refuses(const char *words, int code, const char *text)
{
	struct all all;
	int ret = parse(&all, words);

	if (ret != code || error.code != code || !strstr(error.text, text))
		fail_msg("%s: %d '%s', should be %d '%s'", words, ret, error.text, code, text);
	opt_free(&all_command, &all);
	assert_null(all.list.items);
}

TEST(defaults)
{
	struct all all;

	takes(&all, "host");
	assert_string_equal(all.host, "host");
	assert_false(all.flag);
	assert_true(all.color);
	assert_true(all.count == 10 && all.duration == 10000000 && all.choice == 1);
	assert_false(all.rate.given || all.precise || all.mac.given || all.range.given);
	assert_true(all.range.from == 28 && all.range.to == 1428 && all.range.step == 50);
	assert_null(all.string);
	assert_int_equal(all.rest.count, 0);
	opt_free(&all_command, &all);
}

TEST(every_type)
{
	struct all all;
	static const uint8_t mac[6] = { 2, 0, 0x5e, 0xAB, 0xcd, 0xff };

	takes(&all,
	      "--flag|--no-color|--count=1k|--offset=-5|--interval|250us|--rate|6000/m|--bitrate=9.5Mbit|--size=64Ki|"
	      "--title=a=b|host|--late=shift");
	assert_true(all.flag && !all.color && all.count == 1000 && all.offset == -5 && all.duration == 250000);
	assert_true(all.rate.given && all.rate.num == 100 && all.rate.den == 1);
	assert_true(all.bitrate == 9500000 && all.size == 65536 && all.choice == 2);
	assert_string_equal(all.string, "a=b");
	opt_free(&all_command, &all);

	takes(&all, "--rule|one|--rule=two|h|--from=192.0.2.1|--no-precise|--dscp|ef|--ecn=2|--mac|02:00:5e:aB:cd:FF|--"
		    "payload=64|x|y");
	assert_int_equal(all.list.count, 2);
	assert_string_equal(all.list.items[1], "two");
	assert_int_equal(all.address.family, AF_INET);
	assert_int_equal(all.precise, -1);
	assert_int_equal(all.dscp, 46);
	assert_int_equal(all.ecn, 2);
	assert_true(all.mac.given && all.range.given);
	assert_memory_equal(all.mac.bytes, mac, 6);
	assert_true(all.range.from == 64 && all.range.to == 64);
	assert_int_equal(all.rest.count, 2);
	assert_string_equal(all.rest.items[1], "y");
	opt_free(&all_command, &all);
	assert_null(all.list.items);
	opt_free(&all_command, &all); /* twice does no harm */
}

TEST(short_options)
{
	struct all all;

	takes(&all, "-fv|h");
	assert_true(all.flag && all.verbose);
	opt_free(&all_command, &all);
	takes(&all, "-fc10|h");
	assert_true(all.flag && all.count == 10);
	opt_free(&all_command, &all);
	takes(&all, "-vc|20|h");
	assert_true(all.verbose && all.count == 20);
	opt_free(&all_command, &all);
	refuses("-c|h", -EINVAL, "--count: 'h' is not a number");
	refuses("h|-vc", -EINVAL, "--count: a value is missing");
	refuses("h|-x", -EINVAL, "-x: no such option");
	refuses("h|-vx", -EINVAL, "-x: no such option");
	refuses("h|-count", -EINVAL, "did you mean --count?");
	refuses("h|-\xc3\xa4", -EINVAL, "-?: no such option");
}

TEST(ends_of_options)
{
	struct all all;

	takes(&all, "--|--flag|-x|--");
	assert_string_equal(all.host, "--flag");
	assert_false(all.flag);
	assert_int_equal(all.rest.count, 2);
	assert_string_equal(all.rest.items[1], "--");
	opt_free(&all_command, &all);
	takes(&all, "-");
	assert_string_equal(all.host, "-");
	opt_free(&all_command, &all);
	takes(&all, "h|--count=1|--count=2"); /* the last one counts: wrappers append */
	assert_true(all.count == 2);
	opt_free(&all_command, &all);
	assert_int_equal(parse(&all, "--nonsense|--help"), OPT_HELP);
	opt_free(&all_command, &all);
	assert_int_equal(parse(&all, "-h"), OPT_HELP);
	opt_free(&all_command, &all);
	takes(&all, "--|--help");
	opt_free(&all_command, &all);
}

TEST(refusals)
{
	refuses("", -EINVAL, "HOST is missing: the host that answers");
	refuses("h|--inter=1s", -EINVAL, "--inter: no such option; did you mean --interval?");
	refuses("h|--intreval=1s", -EINVAL, "--intreval: no such option; did you mean --interval?");
	refuses("h|--xyzzy", -EINVAL, "--xyzzy: no such option");
	refuses("h|--secre", -EINVAL, "--secre: no such option");
	refuses("h|--=1", -EINVAL, "no such option");
	refuses("h|--no-flag", -EINVAL, "--no-flag: no such option");
	refuses("h|--flag=yes", -EINVAL, "--flag takes no value, but 'yes' was given");
	refuses("h|--no-color=1", -EINVAL, "--no-color takes no value");
	refuses("h|--title=", -EINVAL, "--title: its value is empty");
	refuses("h|--title", -EINVAL, "--title: a value is missing: --title TEXT");
	refuses("h|--from|--dscp|1", -EINVAL,
		"--from: a value is missing, '--dscp' follows; if that is it, write --from=--dscp");
	refuses("h|--offset|-x", -EINVAL, "a value is missing");
	refuses("h|--offset|-6", -ERANGE, "--offset: '-6' is too small: from -5 to 5 is possible");
	refuses("h|--offset=6", -ERANGE, "too large");
	refuses("h|--count=0", -ERANGE, "--count: '0' is too small: from 1 to 1000000 is possible");
	refuses("h|--count=2M", -ERANGE, "too large");
	refuses("h|--count=-1", -EINVAL, "it is negative");
	refuses("h|--count=1e3", -EINVAL, "exponents");
	refuses("h|--interval=1ns", -ERANGE, "at least 1us is needed");
	refuses("h|--interval=10", 0, "");
	refuses("h|--rate=0", -EINVAL, "nothing is ever sent");
	refuses("h|--rate=1000000.5", -ERANGE, "too large");
	refuses("h|--late=never", -EINVAL, "'never' is not known; it is one of: catch-up, skip, shift");
	refuses("h|--late=skpi", -EINVAL, "did you mean 'skip'?");
	refuses("h|--from=localhost", -EINVAL, "--from: 'localhost' is not an IP address");
	refuses("h|--from=192.0.2.1:7", -EINVAL, "--from: '192.0.2.1:7'");
	refuses("h|--dscp=64", -EINVAL, "--dscp: '64' is not a DSCP; write 0 to 63 or a name");
	refuses("h|--ecn=ect2", -EINVAL, "--ecn: 'ect2' is not an ECN mark; write off, ect1, ect0, ce");
	refuses("h|--precise=yes", -EINVAL, "--precise takes no value");
	refuses("h|--mac=02:00:5e:00:53", -EINVAL, "is not a link address");
	refuses("h|--mac=02:00:5e:00:53:0", -EINVAL, "is not a link address");
	refuses("h|--mac=02:00:5e:00:53:01:", -EINVAL, "is not a link address");
	refuses("h|--mac=", -EINVAL, "empty");
	refuses("h|--mac=zz:00:5e:00:53:01", -EINVAL, "is not a link address");
	refuses("h|--payload=1..70000", -ERANGE, "too large");
	refuses("h|--rule=a|--rule=b|--nope", -EINVAL, "--nope");
}

TEST(further_tables)
{
	struct all all;
	struct common common = { 0 };
	const struct opt_set extra[] = { { common_options, &common }, { NULL } };
	char *argv[] = { (char[]){ "host" }, (char[]){ "--json" }, (char[]){ "--start-at=5" }, (char[]){ "--flag" } };

	assert_int_equal(opt_parse(&all_command, &all, extra, NULL, 4, argv, &error), 0);
	assert_true(common.json && common.start == 5 && all.flag);
	opt_free(&all_command, &all);
}

TEST(too_many_words)
{
	static const struct command bare = { .name = "bare", .summary = "Nothing" };
	char *argv[] = { (char[]){ "word" } };

	assert_int_equal(opt_parse(&bare, NULL, NULL, NULL, 0, argv, &error), 0);
	assert_int_equal(opt_parse(&bare, NULL, NULL, NULL, 1, argv, &error), -EINVAL);
	assert_non_null(strstr(error.text, "'word' is one word too many"));
	opt_free(&bare, NULL);
}

TEST(suggestions)
{
	static const char *const names[] = { "send", "recv", "ping", "doctor", "bench rate" };

	assert_string_equal(opt_nearest("sned", names, 5), "send");
	assert_string_equal(opt_nearest("pin", names, 5), "ping");
	assert_string_equal(opt_nearest("doktor", names, 5), "doctor");
	assert_string_equal(opt_nearest("bench", names, 5), "bench rate");
	assert_null(opt_nearest("", names, 5));
	assert_null(opt_nearest("zz", names, 5));
	assert_null(opt_nearest("completely different and very long, so long that no name is ever near it", names, 5));
	assert_null(opt_nearest("x", NULL, 0));
}
