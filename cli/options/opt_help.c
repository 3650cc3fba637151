/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "opt.h"

#include <string.h>

enum {
	WIDTH = 100,
	LABEL_MAX = 30, /* a longer label gets a line of its own */
	GAP = 2,
};

/* Columns that UTF-8 text takes, near enough: continuation bytes take none. */
static int columns(const char *text, size_t length)
{
	int n = 0;

	for (size_t i = 0; i < length; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* `text` from column `at`, wrapped at words, further lines indented by `indent`. Newlines end paragraphs. */
static void wrap(FILE *to, const char *text, int at, int indent)
{
	bool fresh = true; /* nothing on this line yet */

	while (*text) {
		size_t length = strcspn(text, " \n");
		int wide = columns(text, length);

		if (!fresh && at + 1 + wide > WIDTH) {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			fresh = true;
		}
		if (length) {
			fprintf(to, "%s%.*s", fresh ? "" : " ", (int)length, text);
			at += wide + !fresh;
			fresh = false;
		}
		text += length;
		if (*text == '\n') {
			fprintf(to, "\n%*s", indent, "");
			at = indent;
			fresh = true;
		}
		if (*text)
			text++;
	}
	fputc('\n', to);
}

static void entry(FILE *to, const char *label, const char *text, int column)
{
	int wide = columns(label, strlen(label));

	fputs(label, to);
	if (wide + GAP > column)
		fprintf(to, "\n%*s", column, "");
	else
		fprintf(to, "%*s", column - wide, "");
	wrap(to, text, column, column);
}

/* "  -c, --count N" */
static void label_make(char *label, size_t size, const struct opt *opt)
{
	const char *argument = opt_argument(opt);
	char letter[8] = "    ";

	if (opt->letter)
		snprintf(letter, sizeof letter, "-%c, ", opt->letter);
	snprintf(label, size, "  %s--%s%s%s%s", letter, opt_negatable(opt) ? "[no-]" : "", opt->name,
		 argument ? " " : "", argument ? argument : "");
}

static bool help_names_choices(const struct opt *opt)
{
	int i = 0;

	while (opt->choices[i] && strstr(opt->help, opt->choices[i]))
		i++;
	return !opt->choices[i];
}

/* The help, and what the table has besides: the choices, if the help does not name them all, and the default. */
static void text_make(char *text, size_t size, const struct opt *opt)
{
	size_t length = (size_t)snprintf(text, size, "%s", opt->help);

	if (opt->type == OPT_CHOICE && !help_names_choices(opt))
		for (int i = 0; opt->choices[i] && length < size; i++)
			length += (size_t)snprintf(text + length, size - length, "%s%s", i ? ", " : ": ",
						   opt->choices[i]);
	if (opt->type == OPT_LIST && length < size)
		length += (size_t)snprintf(text + length, size - length, " (may be given several times)");
	if (opt->fallback && opt->type != OPT_FLAG && length < size)
		snprintf(text + length, size - length, " [%s]", opt->fallback);
}

static int label_column(const struct command *command, const struct opt_set *extra)
{
	const struct opt *table = command->options;
	int column = 0;

	for (int i = 0; i == 0 || (extra && extra[i - 1].table); i++) {
		if (i)
			table = extra[i - 1].table;
		for (const struct opt *opt = table; opt && opt->name; opt++) {
			char label[128];
			int wide;

			label_make(label, sizeof label, opt);
			wide = columns(label, strlen(label));
			if (opt->help && wide <= LABEL_MAX && wide > column)
				column = wide;
		}
	}
	return column + GAP > 14 ? column + GAP : 14;
}

static void options_list(FILE *to, const struct opt *table, int column, const char *heading)
{
	for (const struct opt *opt = table; opt && opt->name; opt++) {
		char label[128], text[1024];

		if (opt->heading)
			heading = opt->heading;
		if (!opt->help)
			continue;
		if (heading)
			fprintf(to, "\n%s:\n", heading);
		heading = NULL;
		label_make(label, sizeof label, opt);
		text_make(text, sizeof text, opt);
		entry(to, label, text, column);
	}
}

/* One line for each kind of value that this command takes, under the names that its options give to them. */
static void values_list(FILE *to, const struct command *command, const struct opt_set *extra)
{
	bool any = false;

	for (enum opt_type type = OPT_FLAG; type <= OPT_RANGE; type++) {
		const struct opt *table = command->options;
		char names[128] = "", label[160];

		if (!opt_forms(type))
			continue;
		for (int i = 0; i == 0 || (extra && extra[i - 1].table); i++) {
			if (i)
				table = extra[i - 1].table;
			for (const struct opt *opt = table; opt && opt->name; opt++) {
				size_t length = strlen(names);
				const char *name = opt_argument(opt), *there = strstr(names, name ? name : "");

				if (opt->type != type || !opt->help)
					continue;
				/* Whole words only: "N" is not in "NS". */
				while (there &&
				       ((there != names && there[-1] != ' ') || !strchr(", ", there[strlen(name)])))
					there = strstr(there + 1, name);
				if (!there)
					snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "",
						 name);
			}
		}
		if (!names[0])
			continue;
		if (!any)
			fputs("\nValues:\n", to);
		any = true;
		snprintf(label, sizeof label, "  %s", names);
		entry(to, label, opt_forms(type), 14);
	}
}

static void usage_words(const struct command *command, FILE *to)
{
	if (command->options || command->measures || command->reports || command->serves)
		fputs(" [options]", to);
	for (const struct opt_positional *p = command->positionals; p && p->name; p++)
		fprintf(to, " %s%s%s%s", p->optional ? "[" : "", p->name, p->many ? "..." : "", p->optional ? "]" : "");
}

static void usage(const struct command *command, FILE *to)
{
	fprintf(to, "usage: ktrxer %s", command->name);
	usage_words(command, to);
	fputc('\n', to);
}

static void examples_list(const char *examples, FILE *to)
{
	if (!examples)
		return;
	fputs("\nExamples:\n", to);
	while (*examples) {
		size_t line = strcspn(examples, "\n"), command = strcspn(examples, "\t\n");

		fprintf(to, "  %.*s\n", (int)command, examples);
		if (command < line) {
			char text[512];

			snprintf(text, sizeof text, "%.*s", (int)(line - command - 1), examples + command + 1);
			fputs("      ", to);
			wrap(to, text, 6, 6);
		}
		examples += line + (examples[line] == '\n');
	}
}

void opt_help(const struct command *command, const struct opt_set *extra, FILE *to)
{
	int column = label_column(command, extra);
	bool first = true;

	usage(command, to);
	fprintf(to, "\n%s.\n", command->summary);
	for (const struct opt_positional *p = command->positionals; p && p->name; p++) {
		char label[128];

		if (first)
			fputs("\nArguments:\n", to);
		first = false;
		snprintf(label, sizeof label, "  %s", p->name);
		entry(to, label, p->help, column);
	}
	options_list(to, command->options, column, "Options");
	for (; extra && extra->table; extra++)
		options_list(to, extra->table, column, NULL);
	values_list(to, command, extra);
	examples_list(command->examples, to);
}
