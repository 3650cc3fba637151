/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Completion: the words that may stand at the cursor. The shells ask the command for them (cli/completion). */
#include "opt.h"

#include "handover_table.h"

#include <net/if.h>
#include <string.h>

/* The command line up to the cursor, and where the answer goes. */
struct cursor {
	const char *word;   /* as far as it is typed */
	const char *prefix; /* before it in the same word: "--verdict=" */
	int prefix_length;
	FILE *to;
};

static void offer(const struct cursor *at, const char *word, const char *help)
{
	if (!strncmp(word, at->word, strlen(at->word)))
		fprintf(at->to, "%.*s%s%s%s\n", at->prefix_length, at->prefix, word, help ? "\t" : "",
			help ? help : "");
}

static void offer_devices(const struct cursor *at)
{
	struct if_nameindex *all = if_nameindex();

	for (struct if_nameindex *one = all; one && one->if_index; one++)
		offer(at, one->if_name, NULL);
	if (all)
		if_freenameindex(all);
}

/* The shell itself lists files, folders and hosts. */
static void offer_values(const struct cursor *at, const char *argument, const char *const *choices)
{
	for (int i = 0; choices && choices[i]; i++)
		offer(at, choices[i], NULL);
	if (choices || !argument)
		return;
	if (strstr(argument, "FILE"))
		fputs(":files\n", at->to);
	else if (!strcmp(argument, "DIR"))
		fputs(":directories\n", at->to);
	else if (!strncmp(argument, "DEV", 3))
		offer_devices(at);
	else if (!strncmp(argument, "HOST", 4))
		fputs(":hosts\n", at->to);
}

static void offer_option(const struct cursor *at, const struct opt *opt)
{
	char name[64];

	snprintf(name, sizeof name, "--%s", opt->name);
	offer(at, name, opt->help);
	snprintf(name, sizeof name, "--no-%s", opt->name);
	if (opt_negatable(opt))
		offer(at, name, NULL);
}

/* NULL: no option, or one without a value. */
static const struct opt *option_with_value(const struct opt *table, const char *word)
{
	size_t length = strcspn(word, "=");

	for (; table && table->name; table++) {
		const bool is_long = length > 2 && !strncmp(word, "--", 2) && strlen(table->name) == length - 2 &&
				     !memcmp(table->name, word + 2, length - 2);
		const bool is_short = table->letter && word[0] == '-' && word[1] == table->letter && !word[2];

		if (table->help && (is_long || is_short))
			return opt_argument(table) ? table : NULL;
	}
	return NULL;
}

static const struct opt *find_option(const struct command *command, const struct opt_set *extra, const char *word)
{
	const struct opt *found = option_with_value(command->options, word);

	for (; !found && extra && extra->table; extra++)
		found = option_with_value(extra->table, word);
	return found;
}

static void complete_command(const struct command *command, const struct opt_set *extra, struct cursor *at, int count,
			     char *const words[])
{
	const struct opt_positional *positional = command->positionals;
	const struct opt *option = NULL;

	for (int i = 0; i < count - 1; i++) {
		const char *word = words[i];

		if (option) {
			option = NULL; /* this word is its value */
			continue;
		}
		if (word[0] == '-')
			option = strchr(word, '=') ? NULL : find_option(command, extra, word);
		else if (positional && positional->name && !positional->many)
			positional++;
	}
	if (!option && !strncmp(at->word, "--", 2) && strchr(at->word, '=')) {
		option = find_option(command, extra, at->word);
		at->prefix = at->word;
		at->prefix_length = (int)strcspn(at->word, "=") + 1;
		at->word += at->prefix_length;
		if (!option)
			return;
	}
	if (option) {
		offer_values(at, opt_argument(option), option->choices);
		return;
	}
	if (positional && positional->name && at->word[0] != '-') {
		offer_values(at, positional->name, positional->choices);
		return;
	}
	for (const struct opt *opt = command->options; opt && opt->name; opt++)
		if (opt->help)
			offer_option(at, opt);
	for (; extra && extra->table; extra++)
		for (const struct opt *opt = extra->table; opt->name; opt++)
			if (opt->help)
				offer_option(at, opt);
	offer(at, "--help", "Print help");
}

/* "bench rate" after "bench". */
static void offer_second_words(const struct cursor *at, const struct command *const *commands, const char *first)
{
	size_t length = strlen(first);

	for (; *commands; commands++)
		if (!(*commands)->hidden && !strncmp((*commands)->name, first, length) &&
		    (*commands)->name[length] == ' ')
			offer(at, (*commands)->name + length + 1, (*commands)->summary);
}

/* "bench rate" and "bench pairs" begin alike: their first word is offered once, as the table has them side by side. */
static void offer_first_words(const struct cursor *at, const struct command *const *commands)
{
	char name[64], before[64] = "";

	for (; *commands; commands++) {
		const int length = (int)strcspn((*commands)->name, " ");

		snprintf(name, sizeof name, "%.*s", length, (*commands)->name);
		if (!(*commands)->hidden && strcmp(name, before) != 0)
			offer(at, name, (*commands)->summary);
		memcpy(before, name, sizeof before);
	}
	for (const struct handover *it = handover_table; it->name; it++)
		offer(at, it->name, it->summary);
	offer(at, "help", "Explain a command");
}

void opt_complete(const struct command *const *commands, const struct command *command, const struct opt_set *extra,
		  int matched, int count, char *const words[], FILE *to)
{
	struct cursor at = { .word = count ? words[count - 1] : "", .prefix = "", .to = to };

	if (count <= 1 || (count == 2 && !strcmp(words[0], "help"))) {
		offer_first_words(&at, commands);
		if (count <= 1) {
			offer(&at, "--help", "Print help");
			offer(&at, "--version", "Print the version");
		}
		return;
	}
	if (count == 2)
		offer_second_words(&at, commands, words[0]);
	if (command)
		complete_command(command, extra, &at, count - matched, words + matched);
}
