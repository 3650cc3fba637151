/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* This file chooses the command, parses the common options, and starts and ends what every command uses. */
#include "cli.h"

#include "config.h"
#include "error.h"
#include "generate.h"
#include "handover.h"
#include "handover_table.h"
#include "host.h"
#include "out.h"
#include "stop.h"
#include "verdict.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	NAMES_MAX = 64,
};

/* "bench rate" is two words of argv. How many the name has, 0 when they are not there. */
static int words_matched(const char *name, int argc, char *const argv[])
{
	int words = 0;

	while (*name) {
		size_t length = strcspn(name, " ");

		if (words == argc || strlen(argv[words]) != length || memcmp(argv[words], name, length) != 0)
			return 0;
		words++;
		name += length + (name[length] == ' ');
	}
	return words;
}

static const struct command *find(const struct command *const *commands, int argc, char *const argv[], int *words)
{
	const struct command *best = NULL;

	*words = 0;
	for (; *commands; commands++) {
		int matched = words_matched((*commands)->name, argc, argv);

		if (matched > *words) {
			best = *commands;
			*words = matched;
		}
	}
	return best;
}

static bool is_nested(const struct command *command, const char *word, size_t length)
{
	return strncmp(command->name, word, length) == 0 && command->name[length] == ' ';
}

/* "bench" alone, where there are only "bench rate" and its like: those are listed. */
static bool list_nested(const struct command *const *commands, const char *word)
{
	size_t length = strlen(word);
	bool any = false;

	for (; *commands; commands++) {
		if (!is_nested(*commands, word, length))
			continue;
		if (!any)
			printf("usage: ktrxer %s COMMAND\n\n", word);
		any = true;
		printf("  %-16s  %s\n", (*commands)->name + length + 1, (*commands)->summary);
	}
	return any;
}

static void list(const struct command *const *commands, FILE *to)
{
	fputs("usage: ktrxer COMMAND [options]\n\n"
	      "Probes that leave on time, with the time stamps that show it.\n\n"
	      "Commands:\n",
	      to);
	for (; *commands; commands++)
		if (!(*commands)->hidden)
			fprintf(to, "  %-16s  %s\n", (*commands)->name, (*commands)->summary);
	if (handover_table->name)
		fputs("\nExperiments (these need the Python part of ktrxer):\n", to);
	for (const struct handover *it = handover_table; it->name; it++)
		fprintf(to, "  %-16s  %s\n", it->name, it->summary);
	fputs("\n`ktrxer COMMAND --help` has more, `ktrxer version` prints the version.\n", to);
}

static bool is_handover(const char *word)
{
	for (const struct handover *it = handover_table; it->name; it++)
		if (!strcmp(it->name, word))
			return true;
	return false;
}

static const char *nearest(const struct command *const *commands, const char *word)
{
	const char *names[NAMES_MAX];
	int count = 0;

	for (const struct handover *it = handover_table; it->name && count < NAMES_MAX; it++)
		names[count++] = it->name;
	for (; *commands && count < NAMES_MAX; commands++)
		if (!(*commands)->hidden)
			names[count++] = (*commands)->name;
	return opt_nearest(word, names, count);
}

static int no_such_command(const char *program, const char *word, const char *near)
{
	char clean[65];

	snprintf(clean, sizeof clean, "%s", word);
	ktrxer_text_clean(clean, false);
	fprintf(stderr, "%s: '%s': no such command", program, clean);
	if (near)
		fprintf(stderr, "; did you mean `%s %s`?", program, near);
	fprintf(stderr, " (see `%s --help`)\n", program);
	return EXIT_USAGE;
}

/* "bench" alone, or with a word that is none of its commands. 0 if there are none. */
static int wrong_nested(const struct command *const *commands, const char *first, const char *word)
{
	const char *names[NAMES_MAX];
	char program[64];
	const size_t length = strlen(first);
	int count = 0;

	snprintf(program, sizeof program, "ktrxer %s", first);
	for (; *commands && count < NAMES_MAX; commands++)
		if (is_nested(*commands, first, length))
			names[count++] = (*commands)->name + length + 1;
	if (!count)
		return 0;
	if (word)
		return no_such_command(program, word, opt_nearest(word, names, count));
	fprintf(stderr, "%s: COMMAND is missing:", program);
	for (int i = 0; i < count; i++)
		fprintf(stderr, "%s %s", i ? "," : "", names[i]);
	fprintf(stderr, " (see `%s --help`)\n", program);
	return EXIT_USAGE;
}

/* Neither ours nor (any more) the Python part's. */
static int unknown(const struct command *const *commands, const char *word)
{
	const char *near = nearest(commands, word);

	if (is_handover(word)) {
		fprintf(stderr,
			"ktrxer %s: this command belongs to the Python part, which is not installed; install "
			"it with `make install` "
			"(or `pip install .`) in the source tree of ktrxer %s\n",
			word, ktrxer_version());
		return EXIT_USAGE;
	}
	return no_such_command("ktrxer", word, near);
}

/* Help is a result: when it cannot be written, that is a failure. */
static int flushed(int status)
{
	if (fflush(stdout) || ferror(stdout)) {
		if (errno == EPIPE)
			return status;
		fprintf(stderr, "ktrxer: standard output cannot be written: %s\n", strerror(errno));
		return EXIT_NO_RESULT;
	}
	return status;
}

static int begin(struct cli *cli)
{
	int ret = verdict_open(cli);

	if (ret)
		return ret;
	cli->stop_fd = stop_open();
	if (cli->stop_fd < 0)
		return cli->stop_fd;
	return cli->command->serves ? 0 : cli_helpers_start(cli);
}

int cli_helpers_start(struct cli *cli)
{
	int ret = out_open(cli, STDOUT_FILENO);

	if (!ret && cli->common.stop_on_eof)
		ret = stop_watch_input();
	if (!ret && cli->command->measures)
		ret = host_watch_start(cli);
	return ret;
}

static int end(struct cli *cli, int status)
{
	if (cli->out && !out_finished(cli) && cli->command->measures) {
		int failed;

		/* Nothing was measured, and people have read the complaint already. */
		cli->no_result = true;
		verdict_say_complaints(cli);
		failed = out_finish(cli, out_end(cli));
		status = status ? status : failed;
	}
	host_watch_stop(cli, NULL);
	if (cli->out)
		status = out_close(cli, status);
	verdict_close(cli);
	/* The stop descriptor stays open: a signal, or the end of input, may still want to write to it. */
	return status;
}

static int run(struct cli *cli, const void *options)
{
	int status, ret = begin(cli);

	if (ret) {
		fprintf(stderr, "ktrxer %s: cannot begin: %s\n", cli->command->name, strerror(-ret));
		return end(cli, EXIT_NO_RESULT);
	}
	status = cli->command->run(cli, options);
	/* A slip (a negative errno, say) must not turn into success by the shell's taking eight bits of it. */
	if (status != EXIT_VALID && status != EXIT_USAGE && status != EXIT_DOUBTFUL)
		status = EXIT_NO_RESULT;
	return end(cli, status);
}

static int usage_error(const struct command *command, const char *text)
{
	fprintf(stderr, "ktrxer %s: %s (see `ktrxer %s --help`)\n", command->name, text, command->name);
	return EXIT_USAGE;
}

/* The presets exist as long as the configuration. A command that prints the configuration reads it itself. */
static int parse(struct cli *cli, void *options, struct config *config, int argc, char *const argv[],
		 struct ktrxer_error *err)
{
	const struct command *command = cli->command;
	const struct opt_set common[] = { { cli_common_sets(command)->table, &cli->common }, { NULL } };
	struct opt_preset presets[CONFIG_KEYS + 2] = { { NULL } };
	struct ktrxer_error ignored = { 0 };
	int ret = command->unconfigured ? 0 : config_load(config, err);

	/* A wrong file hides no help. */
	if (ret)
		return opt_parse(command, options, common, NULL, argc, argv, &ignored) == OPT_HELP ? OPT_HELP : ret;
	config_presets(config, command->name, presets);
	return opt_parse(command, options, common, presets, argc, argv, err);
}

static int parse_and_run(struct cli *cli, int argc, char *const argv[])
{
	const struct command *command = cli->command;
	void *options = calloc(1, command->options_size ? command->options_size : 1);
	struct config *config = calloc(1, sizeof *config);
	struct ktrxer_error err = { 0 };
	int ret, status = EXIT_NO_RESULT;

	if (!options || !config) {
		fprintf(stderr, "ktrxer %s: out of memory\n", command->name);
		goto out;
	}
	ret = parse(cli, options, config, argc, argv, &err);
	if (ret == OPT_HELP) {
		opt_help(command, cli_common_sets(command), stdout);
		status = flushed(EXIT_VALID);
	} else if (ret) {
		status = usage_error(command, err.text);
	} else if (cli->common.json && command->lines) {
		status = usage_error(command, "--json: the Python part of ktrxer does this, and is not installed; "
					      "without --json there are JSON lines");
	} else {
		cli->common.jsonl |= command->lines;
		status = run(cli, options);
	}
	opt_free(command, options);
	config_free(config);
out:
	free(config);
	free(options);
	return status;
}

static bool asks_for_help(char *const argv[])
{
	bool asks = !strcmp(argv[1], "help");

	for (; *argv; argv++)
		asks |= !strcmp(*argv, "--help") || !strcmp(*argv, "-h");
	return asks;
}

/* The configuration as JSON in the environment of the Python part. False after a message. */
static bool export_config(void)
{
	struct config *config = calloc(1, sizeof *config);
	struct json *json = json_new(false);
	struct ktrxer_error err = { 0 };
	const char *text;
	bool ok = false;

	if (!config || !json)
		goto out;
	if (config_load(config, &err) < 0)
		goto out;
	config_json(config, json);
	text = json_text(json, NULL);
	ok = getenv(CONFIG_VARIABLE) || (text && setenv(CONFIG_VARIABLE, text, 1) == 0);
out:
	if (!ok)
		fprintf(stderr, "ktrxer: %s\n", err.text[0] ? err.text : "no memory for the configuration");
	if (config)
		config_free(config);
	free(config);
	json_free(json);
	return ok;
}

/* Another program of ktrxer gets the whole command line. */
static int other_program(const struct command *command, char *const argv[])
{
	if (command->tables && !asks_for_help(argv) && handover_through(HANDOVER_PYTHON, command->program, argv))
		return EXIT_NO_RESULT;
	if (handover_try(command->program, argv) == 0)
		fprintf(stderr,
			"ktrxer %s: the program %s is neither in this build, in folders that no other user may change, "
			"nor installed; "
			"install it with `make install` in the source tree of ktrxer %s\n",
			command->name, command->program, ktrxer_version());
	return EXIT_NO_RESULT;
}

/* ktrxer help, ktrxer help COMMAND. */
static int help(const struct command *const *commands, int argc, char *const argv[])
{
	const struct command *command;
	int words;

	if (argc == 0) {
		list(commands, stdout);
		return flushed(EXIT_VALID);
	}
	command = find(commands, argc, argv, &words);
	if (!command && is_handover(argv[0])) {
		/* `help lab run` is `lab run --help`. */
		bool nested = argc > 1 && argv[1][0] != '-' && argv[1][0];
		char *const ask[] = { (char[]){ "ktrxer" }, argv[0], nested ? argv[1] : (char[]){ "--help" },
				      nested ? (char[]){ "--help" } : NULL, NULL };

		if (handover_try(HANDOVER_PYTHON, ask))
			return EXIT_NO_RESULT;
	}
	if (command && command->program)
		return other_program(command, argv - 2);
	if (command)
		opt_help(command, cli_common_sets(command), stdout);
	else if (!list_nested(commands, argv[0]))
		return unknown(commands, argv[0]);
	return flushed(EXIT_VALID);
}

#ifdef KTRXER_HAVE_MAN
/* `ktrxer --complete WORD...`, which the shells call. Of another program's command that program has the options. */
static int complete(const struct command *const *commands, int argc, char *const argv[])
{
	const int count = argc - 2;
	char *const *words = argv + 2;
	const struct command *command;
	const char *program = NULL;
	int matched;

	command = count > 1 ? find(commands, count - 1, words, &matched) : NULL;
	if (command && command->program)
		program = command->program;
	else if (count > 1 && is_handover(words[0]))
		program = HANDOVER_PYTHON;
	if (program)
		return handover_try(program, argv) ? EXIT_NO_RESULT : EXIT_VALID;
	opt_complete(commands, command, command ? cli_common_sets(command) : NULL, command ? matched : 0, count, words,
		     stdout);
	return flushed(EXIT_VALID);
}
#endif

/*
 * Descriptors 0 to 2 are there, whatever our parent did: else the first socket that we open would become "standard
 * output". One that was closed fails to write, as it should: /dev/null is opened for reading.
 */
static void keep_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int cli_main(int argc, char *const argv[], const struct command *const *commands)
{
	struct cli cli = { .argc = argc, .argv = argv, .stop_fd = -1 };
	const char *word = argc > 1 ? argv[1] : NULL;
	int words, ret;

	keep_standard_descriptors();
	/* write() reports a reader that has ended; SIGPIPE would end this process without its accounts. */
	signal(SIGPIPE, SIG_IGN);
	if (!word) {
		list(commands, stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V") || !strcmp(word, "-v") ||
	    (!strcmp(word, "version") && argc == 2)) {
		printf("ktrxer %s\n", ktrxer_version());
		return flushed(EXIT_VALID);
	}
	if (!strcmp(word, "--help") || !strcmp(word, "-h"))
		return help(commands, 0, NULL);
	if (!strcmp(word, "help"))
		return help(commands, argc - 2, argv + 2);
#ifdef KTRXER_HAVE_MAN
	if (!strcmp(word, "--generate"))
		return generate(commands, argc - 2, argv + 2);
	if (!strcmp(word, "--complete"))
		return complete(commands, argc, argv);
#endif
	if (word[0] == '-') {
		fprintf(stderr,
			"ktrxer: %.64s: no such option; options stand after the command: ktrxer COMMAND %.64s (see "
			"`ktrxer --help`)\n",
			word, word);
		return EXIT_USAGE;
	}
	cli.command = find(commands, argc - 1, argv + 1, &words);
	if (cli.command && cli.command->program)
		return other_program(cli.command, argv);
	if (cli.command)
		return parse_and_run(&cli, argc - 1 - words, argv + 1 + words);
	if (argc > 2 && !strcmp(argv[2], "--help") && list_nested(commands, word))
		return flushed(EXIT_VALID);
	ret = wrong_nested(commands, word, argv[2]);
	if (ret)
		return ret;
	/* A word that looks like one of ours is a slip of the finger, whatever the Python part may know. */
	if (is_handover(word) || !nearest(commands, word)) {
		if (!asks_for_help(argv) && !export_config())
			return EXIT_USAGE;
		ret = handover_try(HANDOVER_PYTHON, argv);
		if (ret)
			return EXIT_NO_RESULT;
	}
	return unknown(commands, word);
}
