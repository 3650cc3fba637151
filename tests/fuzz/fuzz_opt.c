/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Argument vectors made of lines. Whatever is typed: a value, or a refusal in one line; nothing leaks, nothing reads
 * outside.
 */
#include "../unit/opt_all.h"

#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

static const struct opt options[] = {
	{ "flag", 'f', OPT_FLAG, FIELD(flag), .help = "." },
	{ "color", 'C', OPT_FLAG, FIELD(color), .fallback = "yes", .help = "." },
	{ "count", 'c', OPT_UINT, FIELD(count), "N", "10", ".", .min = 1, .max = 1000000 },
	{ "offset", 'o', OPT_INT, FIELD(offset), "N", .help = ".", .min = (uint64_t)-5, .max = 5 },
	{ "interval", 'i', OPT_DURATION, FIELD(duration), "D", "10ms", ".", .min = 1000 },
	{ "rate", 'r', OPT_RATE, FIELD(rate), "R", .help = ".", .max = 1000000 },
	{ "bitrate", 'b', OPT_BITRATE, FIELD(bitrate), "B", .help = "." },
	{ "size", 's', OPT_SIZE, FIELD(size), "N", .help = "." },
	{ "title", 't', OPT_STRING, FIELD(string), "TEXT", .help = "." },
	{ "late", 'l', OPT_CHOICE, FIELD(choice), "POLICY", "skip", ".", policies },
	{ "rule", 'R', OPT_LIST, FIELD(list), "RULE", .help = "." },
	{ "from", 'F', OPT_ADDRESS, FIELD(address), "IP", .help = "." },
	{ "precise", 0, OPT_SWITCH, FIELD(precise), .help = "." },
	{ "dscp", 0, OPT_DSCP, FIELD(dscp), .fallback = "BE", .help = "." },
	{ "ecn", 0, OPT_ECN, FIELD(ecn), .help = "." },
	{ "mac", 'm', OPT_MAC, FIELD(mac), "MAC", .help = "." },
	{ "payload", 'p', OPT_RANGE, FIELD(range), "A..B/STEP", "28..1428/50", ".", .max = 65507 },
	{ NULL },
};
static const struct opt common[] = { { "json", 'j', OPT_FLAG, FIELD(json), .help = "." }, { NULL } };
static const struct opt_positional positionals[] = {
	{ "HOST", FIELD(host), "." },
	{ "REST", FIELD(rest), ".", .optional = true, .many = true },
	{ NULL },
};
static const struct command command = {
	.name = "all",
	.summary = ".",
	.options = options,
	.positionals = positionals,
	.options_size = sizeof(struct all),
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = malloc(size + 1), *argv[32];
	struct all all, other = { 0 };
	const struct opt_set extra[] = { { common, &other }, { NULL } };
	struct ktrxer_error err = { 0 };
	int argc = 0, ret;

	MUST(copy);
	memcpy(copy, data, size);
	copy[size] = '\0';
	for (char *at = copy; at && argc < 32; argc++) {
		char *end = strchr(at, '\n');

		if (end)
			*end++ = '\0';
		argv[argc] = at;
		at = end;
	}
	ret = opt_parse(&command, &all, extra, NULL, argc, argv, &err);
	MUST(ret <= OPT_HELP);
	MUST((ret < 0) == (err.text[0] != '\0'));
	if (ret < 0)
		MUST(err.code == ret && !strchr(err.text, '\n') && strlen(err.text) < sizeof err.text);
	if (ret == 0) {
		MUST(all.host && all.count >= 1 && all.count <= 1000000 && all.duration >= 1000);
		MUST(all.offset >= -5 && all.offset <= 5 && all.choice >= 0 && all.choice < 3);
		MUST(all.range.from <= all.range.to && all.range.to <= 65507 && all.range.step);
		MUST(!all.rate.given || (all.rate.num && all.rate.den));
		MUST(all.rest.count < argc && all.list.count <= argc);
	}
	opt_free(&command, &all);
	free(copy);
	return 0;
}
