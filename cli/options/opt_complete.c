/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Completion: which words may stand at the cursor. All shells are told the same, from the tables. */
#include "opt.h"

#include "handover_table.h"

#include <string.h>

enum kind { NOTHING, WORDS, FILES, DIRECTORIES, DEVICES, HOSTS };

static enum kind kind_of(const char *argument, const char *const *choices)
{
	if (choices)
		return WORDS;
	if (!argument)
		return NOTHING;
	if (strstr(argument, "FILE"))
		return FILES;
	if (!strcmp(argument, "DIR"))
		return DIRECTORIES;
	if (!strncmp(argument, "DEV", 3))
		return DEVICES;
	if (!strncmp(argument, "HOST", 4))
		return HOSTS;
	return NOTHING;
}

static void words(const char *const *choices, FILE *to)
{
	for (int i = 0; choices[i]; i++)
		fprintf(to, "%s%s", i ? " " : "", choices[i]);
}

/* Calls `each` for all options of a command that are not hidden. */
static void each_option(const struct command *command, opt_extra_of extra_of,
			void (*each)(const struct command *command, const struct opt *opt, FILE *to), FILE *to)
{
	const struct opt_set *extra = extra_of(command);
	const struct opt *table = command->options;

	for (int i = 0; i == 0 || (extra && extra[i - 1].table); i++) {
		if (i)
			table = extra[i - 1].table;
		for (const struct opt *opt = table; opt && opt->name; opt++)
			if (opt->help)
				each(command, opt, to);
	}
}

/* The first words of commands, each once: "bench rate" and "bench pairs" begin alike. */
static bool first_of_its_name(const struct command *const *commands, const struct command *const *it)
{
	size_t length = strcspn((*it)->name, " ");

	for (; commands != it; commands++)
		if (!(*commands)->hidden && strcspn((*commands)->name, " ") == length &&
		    !memcmp((*commands)->name, (*it)->name, length))
			return false;
	return true;
}

static void first_words(const struct command *const *commands, FILE *to)
{
	for (const struct command *const *it = commands; *it; it++)
		if (!(*it)->hidden && first_of_its_name(commands, it))
			fprintf(to, "%.*s ", (int)strcspn((*it)->name, " "), (*it)->name);
	for (const struct handover *it = handover_table; it->name; it++)
		fprintf(to, "%s ", it->name);
	fputs("help", to);
}

/* The Python part's options, from its help: `lab run` has others than `lab vm`. */
#define PYTHON_OPTIONS "sed -nE '/^options:/,/^$/s/^  (-[A-Za-z0-9]( [^,]*)?, )?(--[a-z][a-z-]*).*/\\3/p'"

/* ------------------------------------------------------------------------------------------------------------ bash */

static void bash_answer(enum kind kind, const char *const *choices, FILE *to)
{
	switch (kind) {
	case WORDS:
		fputs("COMPREPLY=($(compgen -W '", to);
		words(choices, to);
		fputs("' -- \"$cur\"))", to);
		return;
	case FILES:
		fputs("compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\")", to);
		return;
	case DIRECTORIES:
		fputs("compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$cur\")", to);
		return;
	case DEVICES:
		fputs("COMPREPLY=($(compgen -W \"$(command ls /sys/class/net 2>/dev/null)\" -- \"$cur\"))", to);
		return;
	case HOSTS:
		fputs("COMPREPLY=($(compgen -A hostname -- \"$cur\"))", to);
		return;
	case NOTHING:
		fputs("COMPREPLY=()", to);
		return;
	}
}

static void bash_value(const struct command *command, const struct opt *opt, FILE *to)
{
	const char *argument = opt_argument(opt);

	(void)command;
	if (!argument)
		return;
	fprintf(to, "\t\t--%s", opt->name);
	if (opt->letter)
		fprintf(to, "|-%c", opt->letter);
	fputs(") ", to);
	bash_answer(kind_of(argument, opt->choices), opt->choices, to);
	fputs("; return ;;\n", to);
}

static void bash_name(const struct command *command, const struct opt *opt, FILE *to)
{
	(void)command;
	fprintf(to, "--%s ", opt->name);
	if (opt_negatable(opt))
		fprintf(to, "--no-%s ", opt->name);
}

void opt_complete_bash(const struct command *const *commands, opt_extra_of extra_of, FILE *to)
{
	fputs("# bash completion for ktrxer; made from its option tables: do not edit.\n"
	      "_ktrxer() {\n"
	      "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} first=${COMP_WORDS[1]} command "
	      "words=''\n"
	      "\tCOMPREPLY=()\n"
	      "\t# Bash splits --name=value into three words.\n"
	      "\tif [[ $cur == '=' ]]; then cur=''\n"
	      "\telif [[ $prev == '=' ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
	      "\tif ((COMP_CWORD == 1)); then\n"
	      "\t\tCOMPREPLY=($(compgen -W '--help --version ",
	      to);
	first_words(commands, to);
	fputs("' -- \"$cur\"))\n\t\treturn\n\tfi\n\tcommand=$first\n\tcase \"$first ${COMP_WORDS[2]}\" in\n", to);
	for (const struct command *const *it = commands; *it; it++)
		if (!(*it)->hidden && strchr((*it)->name, ' '))
			fprintf(to, "\t'%s') ((COMP_CWORD > 2)) && command='%s' ;;\n", (*it)->name, (*it)->name);
	fputs("\t*) ;;\n\tesac\n\tcase $command in\n\thelp) COMPREPLY=($(compgen -W '", to);
	first_words(commands, to);
	fputs("' -- \"$cur\")); return ;;\n", to);
	for (const struct command *const *it = commands; *it; it++) {
		const struct opt_positional *positional = (*it)->positionals;

		if ((*it)->hidden)
			continue;
		fprintf(to, "\t'%s')\n\t\tcase $prev in\n", (*it)->name);
		each_option(*it, extra_of, bash_value, to);
		fputs("\t\t*) ;;\n\t\tesac\n\t\twords='", to);
		each_option(*it, extra_of, bash_name, to);
		fputs("--help'\n", to);
		if (positional && positional->name) {
			fputs("\t\tif [[ $cur != -* ]]; then ", to);
			bash_answer(kind_of(positional->name, positional->choices), positional->choices, to);
			fputs("; return; fi\n", to);
		}
		fputs("\t\t;;\n", to);
	}
	/* A word that only begins names ("bench"): the second words. */
	for (const struct command *const *it = commands; *it; it++) {
		size_t length = strcspn((*it)->name, " ");

		if ((*it)->hidden || !(*it)->name[length] || !first_of_its_name(commands, it))
			continue;
		fprintf(to, "\t'%.*s') words='", (int)length, (*it)->name);
		for (const struct command *const *other = it; *other; other++)
			if (!(*other)->hidden && !strncmp((*other)->name, (*it)->name, length) &&
			    (*other)->name[length] == ' ')
				fprintf(to, "%s ", (*other)->name + length + 1);
		fputs("' ;;\n", to);
	}
	fputs("\t*)\n"
	      "\t\tif [[ $cur != -* ]]; then compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -f -- \"$cur\"); "
	      "return; fi\n"
	      "\t\twords=$(\"${COMP_WORDS[0]}\" help \"$first\" \"${COMP_WORDS[2]}\" 2>/dev/null | " PYTHON_OPTIONS ")\n"
	      "\t\t;;\n"
	      "\tesac\n"
	      "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
	      "}\n"
	      "complete -F _ktrxer ktrxer\n",
	      to);
}

/* ------------------------------------------------------------------------------------------------------------- zsh */

/* Inside a single-quoted _arguments specification: brackets, colons and the quote itself mean something. */
static void zsh_text(const char *text, FILE *to)
{
	for (; *text; text++) {
		if (*text == '\'')
			fputs("'\\''", to);
		else if (strchr("[]:\\", *text))
			fprintf(to, "\\%c", *text);
		else
			fputc(*text, to);
	}
}

static void zsh_action(const char *argument, const char *const *choices, FILE *to)
{
	fputc(':', to);
	zsh_text(argument, to);
	fputc(':', to);
	switch (kind_of(argument, choices)) {
	case WORDS:
		fputc('(', to);
		words(choices, to);
		fputc(')', to);
		return;
	case FILES:
		fputs("_files", to);
		return;
	case DIRECTORIES:
		fputs("_files -/", to);
		return;
	case DEVICES:
		fputs("_net_interfaces", to);
		return;
	case HOSTS:
		fputs("_hosts", to);
		return;
	case NOTHING:
		fputc(' ', to);
		return;
	}
}

static void zsh_one(const struct opt *opt, const char *dashes, const char *name, bool value, FILE *to)
{
	const char *argument = opt_argument(opt);

	fprintf(to, " \\\n\t\t\t'%s%s%s%s[", opt->type == OPT_LIST ? "*" : "", dashes, name,
		value && dashes[1] ? "="
		: value		   ? "+"
				   : "");
	zsh_text(opt->help, to);
	fputc(']', to);
	if (value)
		zsh_action(argument, opt->choices, to);
	fputc('\'', to);
}

static void zsh_option(const struct command *command, const struct opt *opt, FILE *to)
{
	const char letter[2] = { opt->letter, '\0' };

	(void)command;
	zsh_one(opt, "--", opt->name, opt_argument(opt), to);
	if (opt->letter)
		zsh_one(opt, "-", letter, opt_argument(opt), to);
	if (opt_negatable(opt))
		zsh_one(opt, "--no-", opt->name, false, to);
}

void opt_complete_zsh(const struct command *const *commands, opt_extra_of extra_of, FILE *to)
{
	fputs("#compdef ktrxer\n# zsh completion for ktrxer; made from its option tables: do not edit.\n"
	      "_ktrxer() {\n\tlocal -a commands\n\tlocal command\n\tcommands=(\n",
	      to);
	for (const struct command *const *it = commands; *it; it++) {
		if ((*it)->hidden || !first_of_its_name(commands, it))
			continue;
		fprintf(to, "\t\t'%.*s:", (int)strcspn((*it)->name, " "), (*it)->name);
		zsh_text((*it)->summary, to);
		fputs("'\n", to);
	}
	for (const struct handover *it = handover_table; it->name; it++) {
		fprintf(to, "\t\t'%s:", it->name);
		zsh_text(it->summary, to);
		fputs("'\n", to);
	}
	fputs("\t\t'help:Explain a command'\n\t)\n"
	      "\tif ((CURRENT == 2)); then\n\t\t_describe command commands\n\t\t_arguments '--help[Print help]' "
	      "'--version[Print the "
	      "version]'\n\t\treturn\n\tfi\n"
	      "\tcommand=$words[2]\n\tshift words\n\t((CURRENT--))\n\tcase \"$command $words[2]\" in\n",
	      to);
	for (const struct command *const *it = commands; *it; it++)
		if (!(*it)->hidden && strchr((*it)->name, ' '))
			fprintf(to,
				"\t'%s') if ((CURRENT > 2)); then command='%s'; shift words; ((CURRENT--)); fi ;;\n",
				(*it)->name, (*it)->name);
	fputs("\tesac\n\tcase $command in\n", to);
	for (const struct command *const *it = commands; *it; it++) {
		if ((*it)->hidden)
			continue;
		fprintf(to, "\t'%s')\n\t\t_arguments -s", (*it)->name);
		each_option(*it, extra_of, zsh_option, to);
		fputs(" \\\n\t\t\t'--help[Print help]'", to);
		for (const struct opt_positional *p = (*it)->positionals; p && p->name; p++) {
			fprintf(to, " \\\n\t\t\t'%s", p->many ? "*" : p->optional ? ":" : "");
			zsh_action(p->name, p->choices, to);
			fputc('\'', to);
		}
		fputs("\n\t\t;;\n", to);
	}
	for (const struct command *const *it = commands; *it; it++) {
		size_t length = strcspn((*it)->name, " ");

		if ((*it)->hidden || !(*it)->name[length] || !first_of_its_name(commands, it))
			continue;
		fprintf(to, "\t'%.*s') _values command", (int)length, (*it)->name);
		for (const struct command *const *other = it; *other; other++)
			if (!(*other)->hidden && !strncmp((*other)->name, (*it)->name, length) &&
			    (*other)->name[length] == ' ') {
				fprintf(to, " '%s[", (*other)->name + length + 1);
				zsh_text((*other)->summary, to);
				fputs("]'", to);
			}
		fputs(" ;;\n", to);
	}
	fputs("\thelp) _describe command commands ;;\n"
	      "\t*)\n\t\tif [[ $PREFIX == -* ]]; then\n"
	      "\t\t\tcompadd -- ${(f)\"$(ktrxer help $command $words[2] 2>/dev/null | " PYTHON_OPTIONS ")\"}\n"
	      "\t\telse _files; fi ;;\n\tesac\n}\n_ktrxer \"$@\"\n",
	      to);
}

/* ------------------------------------------------------------------------------------------------------------ fish */

static void fish_text(const char *text, FILE *to)
{
	fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			fputc('\\', to);
		fputc(*text, to);
	}
	fputc('\'', to);
}

static void fish_when(const struct command *command, FILE *to)
{
	const char *second = strchr(command->name, ' ');

	fprintf(to, "complete -c ktrxer -n '__fish_seen_subcommand_from %.*s", (int)strcspn(command->name, " "),
		command->name);
	if (second)
		fprintf(to, "; and __fish_seen_subcommand_from %s", second + 1);
	fputc('\'', to);
}

static void fish_answer(const char *argument, const char *const *choices, FILE *to)
{
	switch (kind_of(argument, choices)) {
	case WORDS:
		fputs(" -x -a '", to);
		words(choices, to);
		fputc('\'', to);
		return;
	case FILES:
		fputs(" -r -F", to);
		return;
	case DIRECTORIES:
		fputs(" -x -a '(__fish_complete_directories)'", to);
		return;
	case DEVICES:
		fputs(" -x -a '(command ls /sys/class/net)'", to);
		return;
	case HOSTS:
		fputs(" -x -a '(__fish_print_hostnames)'", to);
		return;
	case NOTHING:
		fputs(" -x", to);
		return;
	}
}

static void fish_option(const struct command *command, const struct opt *opt, FILE *to)
{
	const char *argument = opt_argument(opt);

	fish_when(command, to);
	if (opt->letter)
		fprintf(to, " -s %c", opt->letter);
	fprintf(to, " -l %s", opt->name);
	if (argument)
		fish_answer(argument, opt->choices, to);
	fputs(" -d ", to);
	fish_text(opt->help, to);
	fputc('\n', to);
	if (opt_negatable(opt)) {
		fish_when(command, to);
		fprintf(to, " -l no-%s\n", opt->name);
	}
}

void opt_complete_fish(const struct command *const *commands, opt_extra_of extra_of, FILE *to)
{
	fputs("# fish completion for ktrxer; made from its option tables: do not edit.\n"
	      "complete -c ktrxer -f\n"
	      "complete -c ktrxer -n __fish_use_subcommand -l help -d 'Print help'\n"
	      "complete -c ktrxer -n __fish_use_subcommand -l version -d 'Print the version'\n"
	      "complete -c ktrxer -n __fish_use_subcommand -a help -d 'Explain a command'\n"
	      "function __ktrxer_python_options\n"
	      "\tset -l words (commandline -opc)\n"
	      "\tktrxer help $words[2..3] 2>/dev/null | " PYTHON_OPTIONS "\n"
	      "end\n",
	      to);
	for (const struct handover *it = handover_table; it->name; it++) {
		fprintf(to, "complete -c ktrxer -n __fish_use_subcommand -a %s -d ", it->name);
		fish_text(it->summary, to);
		fprintf(to, "\ncomplete -c ktrxer -n '__fish_seen_subcommand_from %s' -F\n", it->name);
		fprintf(to, "complete -c ktrxer -n '__fish_seen_subcommand_from %s; and string match -q -- \"-*\" (commandline -ct)' -a ", it->name);
		fputs("'(__ktrxer_python_options)'\n", to);
	}
	for (const struct command *const *it = commands; *it; it++) {
		const char *second = strchr((*it)->name, ' ');
		size_t length = strcspn((*it)->name, " ");

		if ((*it)->hidden)
			continue;
		if (first_of_its_name(commands, it)) {
			fprintf(to, "complete -c ktrxer -n __fish_use_subcommand -a %.*s -d ", (int)length,
				(*it)->name);
			fish_text((*it)->summary, to);
			fputc('\n', to);
		}
		if (second) {
			fprintf(to, "complete -c ktrxer -n '__fish_seen_subcommand_from %.*s' -a %s -d ", (int)length,
				(*it)->name, second + 1);
			fish_text((*it)->summary, to);
			fputc('\n', to);
		}
		each_option(*it, extra_of, fish_option, to);
		fish_when(*it, to);
		fputs(" -l help -d 'Print help'\n", to);
		for (const struct opt_positional *p = (*it)->positionals; p && p->name; p++) {
			enum kind kind = kind_of(p->name, p->choices);

			if (kind == NOTHING)
				continue;
			fish_when(*it, to);
			fish_answer(p->name, p->choices, to);
			fputc('\n', to);
		}
	}
}
