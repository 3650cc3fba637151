/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "opt_value.h"

#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	NAMES_MAX = 192, /* options that one command can have, for suggestions */
	TYPED_MAX = 64,  /* of a name that was typed and shall be quoted */
};

struct parser {
	const struct command *command;
	void *options;
	const struct opt_set *extra;
	const struct opt_preset *presets; /* or NULL */
	char *const *argv;
	int argc, next;
	int positionals; /* taken so far */
	struct ktrxer_error *err;
};

static bool opt_is_flag(const struct opt *opt)
{
	return opt->type == OPT_FLAG || opt->type == OPT_SWITCH;
}

const char *opt_argument(const struct opt *opt)
{
	if (opt_is_flag(opt))
		return NULL;
	if (opt->argument)
		return opt->argument;
	switch (opt->type) {
	case OPT_DURATION:
		return "D";
	case OPT_RATE:
		return "R";
	case OPT_BITRATE:
		return "BITRATE";
	case OPT_SIZE:
		return "SIZE";
	case OPT_UINT:
	case OPT_INT:
		return "N";
	case OPT_ADDRESS:
		return "IP";
	case OPT_DSCP:
		return "DSCP";
	case OPT_ECN:
		return "ECN";
	case OPT_MAC:
		return "MAC";
	case OPT_RANGE:
		return "A..B/STEP";
	case OPT_CHOICE:
		return "WORD";
	default:
		return "TEXT";
	}
}

const char *opt_forms(enum opt_type type)
{
	switch (type) {
	case OPT_UINT:
		return "a number: 10, 10k, 1.5M, 0x10";
	case OPT_DURATION:
		return "a duration: 10ms, 1.5s, 250us, 2m, 1h; a bare number is seconds";
	case OPT_RATE:
		return "a rate of probes: 36k, 100/s, 6000/m, 0.5; a bare number is per second";
	case OPT_BITRATE:
		return "a bit rate: 10M, 1G, 9.5Mbit; a bare number is bit/s";
	case OPT_SIZE:
		return "a size in bytes: 64, 64k (1000), 64Ki (1024)";
	case OPT_RANGE:
		return "a range of sizes: 28..1428/50 (from, to, step), or one size";
	case OPT_DSCP:
		return "a DSCP: 0 to 63, or a name: BE, LE, BK, CS1 to CS7, AF11 to AF43, VA, EF";
	case OPT_ECN:
		return "an ECN mark: off, ect1, ect0, ce, or 0 to 3 as in the header";
	default:
		return NULL;
	}
}

bool opt_negatable(const struct opt *opt)
{
	return opt->type == OPT_SWITCH || (opt->type == OPT_FLAG && opt->fallback);
}

static void flag_set(const struct opt *opt, void *base, bool on)
{
	void *field = (char *)base + opt->offset;

	if (opt->type == OPT_SWITCH)
		*(int *)field = on ? 1 : -1;
	else
		*(bool *)field = on;
}

/* The table and base of set number `i`: the command's own first. False after the last. */
static bool set_at(const struct parser *p, int i, struct opt_set *set)
{
	if (i == 0) {
		*set = (struct opt_set){ p->command->options, p->options };
		return true;
	}
	for (int k = 1; p->extra && p->extra[k - 1].table; k++)
		if (k == i) {
			*set = p->extra[k - 1];
			return true;
		}
	return false;
}

static const struct opt *find_long(const struct parser *p, const char *name, size_t length, void **base, bool *negated)
{
	struct opt_set set;

	*base = NULL;
	*negated = false;
	for (int i = 0; set_at(p, i, &set); i++)
		for (const struct opt *opt = set.table; opt && opt->name; opt++) {
			*base = set.base;
			if (strlen(opt->name) == length && !memcmp(opt->name, name, length))
				return opt;
			if (opt_negatable(opt) && length > 3 && !memcmp(name, "no-", 3) &&
			    strlen(opt->name) == length - 3 && !memcmp(opt->name, name + 3, length - 3)) {
				*negated = true;
				return opt;
			}
		}
	return NULL;
}

static const struct opt *find_letter(const struct parser *p, char letter, void **base)
{
	struct opt_set set;

	*base = NULL;
	for (int i = 0; letter && set_at(p, i, &set); i++)
		for (const struct opt *opt = set.table; opt && opt->name; opt++)
			if (opt->letter == letter) {
				*base = set.base;
				return opt;
			}
	return NULL;
}

/* opt_value_set, and a message that begins with the option's name. */
static int set_named(const struct opt *opt, void *base, const char *text, struct ktrxer_error *err)
{
	struct ktrxer_error why = { 0 };
	int ret = opt_value_set(opt, base, text, &why);

	return ret ? ktrxer_fail(err, ret, "--%s: %s", opt->name, why.text) : 0;
}

static int unknown_option(const struct parser *p, const char *name, size_t length)
{
	const char *names[NAMES_MAX], *near;
	char typed[TYPED_MAX];
	struct opt_set set;
	int count = 0;

	for (int i = 0; set_at(p, i, &set); i++)
		for (const struct opt *opt = set.table; opt && opt->name; opt++)
			if (opt->help && count < NAMES_MAX)
				names[count++] = opt->name;
	if (length < sizeof typed) {
		memcpy(typed, name, length);
		typed[length] = '\0';
		near = opt_nearest(typed, names, count);
		if (near)
			return ktrxer_fail(p->err, -EINVAL, "--%s: no such option; did you mean --%s?", typed, near);
	}
	return ktrxer_fail(p->err, -EINVAL, "--%.*s: no such option", (int)(length < 64 ? length : 64), name);
}

/* The next word as the value of `opt`. One that looks like an option was hardly meant: "--device --from 192.0.2.1". */
static int take_value(struct parser *p, const struct opt *opt, const char **value)
{
	const char *text = p->next < p->argc ? p->argv[p->next] : NULL;
	bool dash = text && text[0] == '-' && text[1];

	if (!text)
		return ktrxer_fail(p->err, -EINVAL, "--%s: a value is missing: --%s %s", opt->name, opt->name,
				   opt_argument(opt));
	if (dash && !(opt->type == OPT_INT && text[1] >= '0' && text[1] <= '9'))
		return ktrxer_fail(p->err, -EINVAL,
				   "--%s: a value is missing, '%.48s' follows; if that is it, write --%s=%.48s",
				   opt->name, text, opt->name, text);
	p->next++;
	*value = text;
	return 0;
}

static int parse_long(struct parser *p, const char *word)
{
	const char *name = word + 2, *equals = strchr(name, '='), *value = equals ? equals + 1 : NULL;
	size_t length = equals ? (size_t)(equals - name) : strlen(name);
	const struct opt *opt;
	bool negated;
	void *base;
	int ret;

	opt = find_long(p, name, length, &base, &negated);
	if (!opt && length == 4 && !memcmp(name, "help", 4) && !value)
		return OPT_HELP;
	if (!opt)
		return unknown_option(p, name, length);
	if (opt_is_flag(opt)) {
		if (value)
			return ktrxer_fail(p->err, -EINVAL, "--%.*s takes no value, but '%.48s' was given", (int)length,
					   name, value);
		flag_set(opt, base, !negated);
		return 0;
	}
	if (!value) {
		ret = take_value(p, opt, &value);
		if (ret)
			return ret;
	}
	return set_named(opt, base, value, p->err);
}

/* -v, -vq, -c10, -c 10, -vc 10. */
static int parse_short(struct parser *p, const char *word)
{
	for (const char *at = word + 1; *at; at++) {
		const struct opt *opt;
		const char *value;
		void *base, *ignored;
		bool negated;
		int ret;

		opt = find_letter(p, *at, &base);
		if (!opt && *at == 'h')
			return OPT_HELP;
		/* -count is a mistake for --count: report it as one option, not as the letters -o, -u, -n, -t. */
		if (at == word + 1 && at[1] && find_long(p, at, strlen(at), &ignored, &negated))
			return ktrxer_fail(p->err, -EINVAL, "%.48s: no such option; did you mean -%.48s?", word, word);
		if (!opt)
			return ktrxer_fail(p->err, -EINVAL, "-%c: no such option%s",
					   (unsigned char)*at < 0x80 ? *at : '?',
					   strchr("vV", *at) ? "; `ktrxer version` prints the version" : "");
		if (opt_is_flag(opt)) {
			flag_set(opt, base, true);
			continue;
		}
		value = at + 1;
		if (!*value) {
			ret = take_value(p, opt, &value);
			if (ret)
				return ret;
		}
		return set_named(opt, base, value, p->err);
	}
	return 0;
}

static int check_positional_choice(const struct parser *p, const struct opt_positional *positional, const char *word)
{
	struct ktrxer_error why = { 0 };
	int index, ret;

	if (!positional->choices)
		return 0;
	ret = opt_choice_find(positional->choices, &index, word, &why);
	return ret ? ktrxer_fail(p->err, ret, "%s: %s", positional->name, why.text) : 0;
}

static int parse_positional(struct parser *p, const char *word)
{
	const struct opt_positional *positional = p->command->positionals;
	int ret;

	for (int i = 0; positional && positional->name && i < p->positionals; i++)
		if (!positional->many)
			positional++;
	if (!positional || !positional->name)
		return ktrxer_fail(p->err, -EINVAL, "'%.64s' is one word too many", word);
	if (!*word)
		return ktrxer_fail(p->err, -EINVAL, "%s is empty", positional->name);
	ret = check_positional_choice(p, positional, word);
	if (ret)
		return ret;
	p->positionals++;
	if (positional->many)
		return opt_list_add((struct opt_list *)(void *)((char *)p->options + positional->offset), word, p->err);
	*(const char **)(void *)((char *)p->options + positional->offset) = word;
	return 0;
}

static bool preset_host(const struct parser *p, const struct opt_positional *positional)
{
	for (const struct opt_preset *preset = p->presets; preset && preset->name; preset++)
		if (!strcmp(preset->name, "host") && !strcmp(positional->name, "HOST") && !positional->many) {
			*(const char **)(void *)((char *)p->options + positional->offset) = preset->value;
			return true;
		}
	return false;
}

static int check_positionals(const struct parser *p)
{
	const struct opt_positional *positional = p->command->positionals;

	for (int i = 0; positional && positional[i].name; i++)
		if (i >= p->positionals && !positional[i].optional && !preset_host(p, &positional[i]))
			return ktrxer_fail(p->err, -EINVAL, "%s is missing: %s", positional[i].name,
					   positional[i].help);
	return 0;
}

static bool is_set(const struct parser *p, const char *name)
{
	bool negated;
	void *base;
	const struct opt *opt = find_long(p, name, strlen(name), &base, &negated);

	return opt && opt->type == OPT_FLAG && *(bool *)(void *)((char *)base + opt->offset);
}

static int check_excluded(const struct parser *p)
{
	static const char *const pairs[][2] = { { "json", "jsonl" }, { "ipv4", "ipv6" } };

	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
		if (is_set(p, pairs[i][0]) && is_set(p, pairs[i][1]))
			return ktrxer_fail(p->err, -EINVAL, "--%s and --%s exclude each other", pairs[i][0],
					   pairs[i][1]);
	return 0;
}

static int set_fallbacks(const struct parser *p)
{
	struct opt_set set;

	for (int i = 0; set_at(p, i, &set); i++)
		for (const struct opt *opt = set.table; opt && opt->name; opt++) {
			/* A list's default is for the command to apply: values given come instead of it, not after it.
			 */
			int ret = opt->fallback && opt->type != OPT_LIST
					  ? set_named(opt, set.base, opt->fallback, p->err)
					  : 0;

			if (ret)
				return ret;
			/* A value that only a fallback has set was not `given`. */
			if (opt->fallback && opt->type == OPT_RATE)
				((struct opt_rate *)(void *)((char *)set.base + opt->offset))->given = false;
			if (opt->fallback && opt->type == OPT_MAC)
				((struct opt_mac *)(void *)((char *)set.base + opt->offset))->given = false;
			if (opt->fallback && opt->type == OPT_RANGE)
				((struct opt_range *)(void *)((char *)set.base + opt->offset))->given = false;
		}
	return 0;
}

/* A list is not preset: values given come instead of it, not after it. */
static int set_presets(const struct parser *p)
{
	for (const struct opt_preset *preset = p->presets; preset && preset->name; preset++) {
		void *base;
		bool negated;
		const struct opt *opt = find_long(p, preset->name, strlen(preset->name), &base, &negated);
		struct ktrxer_error why = { 0 };
		int ret;

		if (!opt || negated || opt_is_flag(opt) || opt->type == OPT_LIST)
			continue;
		if (preset->fallback && (!opt->fallback || strcmp(opt->fallback, preset->fallback) != 0))
			continue;
		ret = opt_value_set(opt, base, preset->value, &why);
		if (ret)
			return ktrxer_fail(p->err, ret, "%s: %s: %s", preset->where, preset->name, why.text);
	}
	return 0;
}

/* --help works in any place, even after a wrong option. */
static bool help_wanted(int argc, char *const argv[])
{
	for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (!strcmp(argv[i], "--help"))
			return true;
	return false;
}

int opt_parse(const struct command *command, void *options, const struct opt_set *extra,
	      const struct opt_preset *presets, int argc, char *const argv[], struct ktrxer_error *err)
{
	struct parser p = { .command = command,
			    .options = options,
			    .extra = extra,
			    .presets = presets,
			    .argv = argv,
			    .argc = argc,
			    .err = err };
	bool words_only = false;
	int ret;

	if (command->options_size)
		memset(options, 0, command->options_size);
	ret = set_fallbacks(&p);
	if (ret)
		return ret;
	if (help_wanted(argc, argv))
		return OPT_HELP;
	ret = set_presets(&p);
	if (ret)
		return ret;
	while (p.next < argc) {
		const char *word = argv[p.next++];

		if (words_only || word[0] != '-' || !word[1])
			ret = parse_positional(&p, word);
		else if (!strcmp(word, "--"))
			words_only = true;
		else if (word[1] == '-')
			ret = parse_long(&p, word);
		else
			ret = parse_short(&p, word);
		if (ret)
			return ret;
	}
	ret = check_excluded(&p);
	return ret ? ret : check_positionals(&p);
}

static void list_free(struct opt_list *list)
{
	free(list->items);
	*list = (struct opt_list){ 0 };
}

void opt_free(const struct command *command, void *options)
{
	for (const struct opt *opt = command->options; opt && opt->name; opt++)
		if (opt->type == OPT_LIST)
			list_free((struct opt_list *)(void *)((char *)options + opt->offset));
	for (const struct opt_positional *positional = command->positionals; positional && positional->name;
	     positional++)
		if (positional->many)
			list_free((struct opt_list *)(void *)((char *)options + positional->offset));
}
