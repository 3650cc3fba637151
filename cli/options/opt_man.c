/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Manual pages in mdoc. Strings of the tables are text, never markup, and are escaped. */
#include "opt.h"

#include "handover_table.h"

#include <ctype.h>
#include <string.h>

/* The date of the page's form; the version is that of its subject. A build gives the same page each time. */
#define PAGE_DATE "November 1, 2026"

/* One character that roff would take for its own. */
static void put(char c, bool line_begins, FILE *to)
{
	if (c == '\\')
		fputs("\\e", to);
	else if (c == '-')
		fputs("\\-", to);
	else if ((c == '.' || c == '\'') && line_begins)
		fprintf(to, "\\&%c", c);
	else
		fputc(c, to);
}

/* Running text; a new sentence begins a new line, as mdoc wants it. Newlines become blanks, empty lines paragraphs. */
static void text(const char *s, FILE *to)
{
	bool begins = true;

	for (; *s; s++) {
		if (s[0] == '\n' && s[1] == '\n') {
			while (s[1] == '\n')
				s++;
			fputs("\n.Pp\n", to);
			begins = true;
		} else if (*s == '\n' || (*s == ' ' && begins)) {
			if (!begins)
				fputc('\n', to);
			begins = true;
		} else if (s[0] == '.' && s[1] == ' ' && isupper((unsigned char)s[2])) {
			fputs(".\n", to);
			begins = true;
			s++;
		} else {
			put(*s, begins, to);
			begins = false;
		}
	}
	if (!begins)
		fputc('\n', to);
}

/* Help in the tables is a sentence without its full stop. */
static void sentence(const char *s, FILE *to)
{
	char full[1024];

	snprintf(full, sizeof full, "%c%s.", toupper((unsigned char)*s), *s ? s + 1 : "");
	text(full, to);
}

/* A word as an argument of a macro: quoted, so that neither blanks nor the names of macros mean anything. */
static void word(const char *s, FILE *to)
{
	fputs(" \"\\&", to);
	for (; *s; s++) {
		if (*s == '"')
			fputs("\\(dq", to);
		else
			put(*s, false, to);
	}
	fputc('"', to);
}

static void head(const char *title, const char *name, const char *summary, FILE *to)
{
	fprintf(to,
		".\\\" SPDX-License-Identifier: MIT OR Apache-2.0\n.\\\" Made from the option tables: do not "
		"edit.\n.Dd %s\n.Dt ",
		PAGE_DATE);
	for (; *title; title++)
		fputc(*title == ' ' ? '-' : toupper((unsigned char)*title), to);
	fputs(" 1\n.Os\n.Sh NAME\n.Nm ", to);
	for (; *name; name++)
		fputc(*name == ' ' ? '-' : *name, to);
	fputs("\n.Nd ", to);
	text(summary, to);
}

static void option(const struct opt *opt, FILE *to)
{
	const char *argument = opt_argument(opt);

	fputs(".It", to);
	if (opt->letter)
		fprintf(to, " Fl %s%c ,", opt->letter == '4' || opt->letter == '6' ? "\\&" : "", opt->letter);
	fputs(" Fl \\-", to);
	for (const char *c = opt->name; *c; c++)
		put(*c, false, to);
	if (opt_negatable(opt)) {
		fputs(" , Fl \\-no\\-", to);
		for (const char *c = opt->name; *c; c++)
			put(*c, false, to);
	}
	if (argument) {
		fputs(" Ar", to);
		word(argument, to);
	}
	fputc('\n', to);
	sentence(opt->help, to);
	if (opt->type == OPT_CHOICE) {
		fputs("One of", to);
		for (int i = 0; opt->choices[i]; i++) {
			fputs(i ? " ,\n.Cm" : "\n.Cm", to);
			word(opt->choices[i], to);
		}
		fputs(" .\n", to);
	}
	if (opt->type == OPT_LIST)
		fputs("It may be given several times.\n", to);
	if (opt->fallback && opt->type != OPT_FLAG) {
		fputs("The default is\n.Cm", to);
		word(opt->fallback, to);
		fputs(" .\n", to);
	}
	if (opt_negatable(opt))
		fputs("This is the default.\n", to);
}

static void options(const struct opt *table, bool *open, FILE *to)
{
	for (const struct opt *opt = table; opt && opt->name; opt++) {
		if (!opt->help)
			continue;
		if (opt->heading) {
			if (*open)
				fputs(".El\n", to);
			*open = false;
			fputs(".Ss ", to);
			text(opt->heading, to);
		}
		if (!*open)
			fputs(".Bl -tag -width Ds\n", to);
		*open = true;
		option(opt, to);
	}
}

static void synopsis(const struct command *command, FILE *to)
{
	const char *name = command->name;

	fputs(".Sh SYNOPSIS\n.Nm ktrxer\n.Cm", to);
	word(name, to);
	fputc('\n', to);
	if (command->options || command->measures || command->reports || command->serves)
		fputs(".Op Ar options\n", to);
	for (const struct opt_positional *p = command->positionals; p && p->name; p++) {
		fputs(p->optional ? ".Op Ar" : ".Ar", to);
		word(p->name, to);
		fputs(p->many ? " ...\n" : "\n", to);
	}
}

static bool takes(const struct command *command, const struct opt_set *extra, enum opt_type type)
{
	const struct opt *table = command->options;

	for (int i = 0; i == 0 || (extra && extra[i - 1].table); i++) {
		if (i)
			table = extra[i - 1].table;
		for (const struct opt *opt = table; opt && opt->name; opt++)
			if (opt->type == type && opt->help)
				return true;
	}
	return false;
}

static void values(const struct command *command, const struct opt_set *extra, FILE *to)
{
	bool any = false;

	for (enum opt_type type = OPT_FLAG; type <= OPT_RANGE; type++) {
		const char *forms = opt_forms(type);

		if (!forms || !takes(command, extra, type))
			continue;
		fputs(any ? "" : ".Ss Values\n.Bl -bullet -compact\n", to);
		any = true;
		fputs(".It\n", to);
		text(forms, to);
	}
	if (any)
		fputs(".El\n", to);
}

static void examples(const char *lines, FILE *to)
{
	if (!lines)
		return;
	fputs(".Sh EXAMPLES\n.Bl -tag -width Ds\n", to);
	while (*lines) {
		size_t line = strcspn(lines, "\n"), command = strcspn(lines, "\t\n");
		char copy[512];

		snprintf(copy, sizeof copy, "%.*s", (int)command, lines);
		fputs(".It Li", to);
		word(copy, to);
		fputc('\n', to);
		if (command < line) {
			snprintf(copy, sizeof copy, "%.*s", (int)(line - command - 1), lines + command + 1);
			text(copy, to);
		}
		lines += line + (lines[line] == '\n');
	}
	fputs(".El\n", to);
}

static void exit_status(const struct command *command, FILE *to)
{
	fputs(".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\n", to);
	fputs(command->measures
		      ? "The measurement is valid.\n.It 1\nThere is no result: no answer came, or it failed.\n"
		      : "Success.\n.It 1\nIt failed; a line on standard error says why.\n",
	      to);
	fputs(".It 2\nThe command line was wrong.\n", to);
	if (command->measures)
		fputs(".It 3\nThe result is printed, and it is degraded or invalid; the reasons are printed, too.\n",
		      to);
	fputs(".It 130\nCtrl-C came before there was a result.\n.El\n", to);
}

void opt_man(const struct command *command, const struct opt_set *extra, FILE *to)
{
	char title[96];
	bool open = false;

	snprintf(title, sizeof title, "ktrxer-%s", command->name);
	head(title, title, command->summary, to);
	synopsis(command, to);
	fputs(".Sh DESCRIPTION\n", to);
	if (command->description)
		text(command->description, to);
	else
		sentence(command->summary, to);
	if (command->positionals && command->positionals->name) {
		fputs(".Pp\nThe arguments are:\n.Bl -tag -width Ds\n", to);
		for (const struct opt_positional *p = command->positionals; p->name; p++) {
			fputs(".It Ar", to);
			word(p->name, to);
			fputc('\n', to);
			sentence(p->help, to);
		}
		fputs(".El\n", to);
	}
	fputs(".Pp\nThe options are:\n", to);
	options(command->options, &open, to);
	for (const struct opt_set *set = extra; set && set->table; set++)
		options(set->table, &open, to);
	if (!open)
		fputs(".Bl -tag -width Ds\n", to);
	fputs(".It Fl h , Fl \\-help\nPrint a summary of all this.\n.El\n", to);
	values(command, extra, to);
	exit_status(command, to);
	examples(command->examples, to);
	fputs(".Sh SEE ALSO\n.Xr ktrxer 1\n", to);
}

/* Both tables are sorted; mdoc wants one list in order. */
static void see_also(const struct command *const *it, FILE *to)
{
	const struct handover *python = handover_table;
	bool first = true;

	fputs(".Sh SEE ALSO\n", to);
	while (*it || python->name) {
		bool from_python = !*it || (python->name && strcmp(python->name, (*it)->name) < 0);
		const char *name = from_python ? python->name : (*it)->name;
		bool hidden = !from_python && (*it)->hidden;

		python += from_python;
		it += !from_python;
		if (hidden)
			continue;
		fputs(first ? ".Xr ktrxer-" : " 1 ,\n.Xr ktrxer-", to);
		for (; *name; name++)
			fputc(*name == ' ' ? '-' : *name, to);
		first = false;
	}
	fputs(" 1\n", to);
}

void opt_man_index(const struct command *const *commands, FILE *to)
{
	const struct command *const *it;

	head("ktrxer", "ktrxer", "probes that leave on time, with the time stamps that show it", to);
	fputs(".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n.Nm\n.Cm help\n.Op Ar command\n.Nm\n.Fl \\-version\n"
	      ".Sh DESCRIPTION\n.Nm\nmeasures networks with probes that leave at their send time, and says how far "
	      "each one missed.\n"
	      "Every result carries its uncertainty and a verdict: valid, degraded or invalid, and why.\n.Pp\n"
	      "The commands are:\n.Bl -tag -width Ds\n.It Cm help Op Ar command\nExplain a command\n",
	      to);
	for (it = commands; *it; it++) {
		if ((*it)->hidden)
			continue;
		fputs(".It Cm", to);
		word((*it)->name, to);
		fputc('\n', to);
		text((*it)->summary, to);
	}
	fputs(".El\n", to);
	if (handover_table->name)
		fputs(".Pp\nThese need the Python part:\n.Bl -tag -width Ds\n", to);
	for (const struct handover *python = handover_table; python->name; python++) {
		fputs(".It Cm", to);
		word(python->name, to);
		fputc('\n', to);
		text(python->summary, to);
	}
	if (handover_table->name)
		fputs(".El\n", to);
	fputs(".Sh ENVIRONMENT\n.Bl -tag -width Ds\n.It Ev KTRXER_PY\n"
	      "Absolute path of the Python part, instead of the installed one; not heeded with privileges.\n"
	      ".It Ev KTRXER_TOKEN\nThe token of\n.Cm serve\nand of its clients, where no\n.Fl \\-token\\-file\nis "
	      "given.\n.El\n"
	      ".Sh EXIT STATUS\n.Bl -tag -width Ds\n.It 0\nThe measurement is valid, or the command succeeded.\n.It 1\n"
	      "There is no result, or the command failed.\n.It 2\nThe command line was "
	      "wrong.\n.It 3\nThe result is degraded or invalid.\n"
	      ".It 130\nCtrl-C came before there was a result.\n.El\n",
	      to);
	see_also(commands, to);
}
