/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer config`: each value of the configuration, with its source. */
#include "cli.h"
#include "config.h"
#include "fields_config.h"

#include <stdlib.h>

static void print_value(struct cli *cli, struct json *json, const char *key, const char *value, const char *source)
{
	out_text(cli, "%-18s  %-24s  %s", key, value ? value : "-", source);
	json_object(json, NULL);
	config_value_key(json, key);
	config_value_value(json, value);
	config_value_source(json, source);
	json_object_end(json);
}

/* The values for all commands, whether a file has them or not. */
static void print_general(struct cli *cli, struct json *json, const struct config *config)
{
	const char *key;

	for (int i = 0; (key = config_key(i)); i++) {
		const struct config_value *const value = config_find(config, "", key);
		char where[4200];
		bool set;
		const char *const variable = config_variable(key, &set);

		if (value)
			config_where(config, value, where, sizeof where);
		if (set)
			snprintf(where, sizeof where, "the environment: %s", variable);
		/* The variable holds the secret itself. */
		print_value(cli, json, key, value ? value->text : NULL,
			    value || set ? where : "none: the default of each command");
	}
}

static void print_of_commands(struct cli *cli, struct json *json, const struct config *config)
{
	for (int i = 0; i < config->count; i++) {
		const struct config_value *const value = &config->values[i];
		char name[256], where[4200];

		if (!*value->command || config_find(config, value->command, value->key) != value)
			continue;
		snprintf(name, sizeof name, "%s.%s", value->command, value->key);
		config_where(config, value, where, sizeof where);
		print_value(cli, json, name, value->text, where);
	}
}

static int run_config(struct cli *cli, const void *options)
{
	struct config *config = calloc(1, sizeof *config);
	struct ktrxer_error err = { 0 };
	struct json *json;
	int status;

	(void)options;
	if (!config) {
		cli_complain(cli, "no memory for the configuration");
		return EXIT_NO_RESULT;
	}
	if (config_load(config, &err) < 0) {
		cli_complain(cli, "%s", err.text);
		status = EXIT_USAGE;
		goto out;
	}
	json = out_end(cli);
	config_end_files_open(json);
	for (int i = 0; i < CONFIG_FILES; i++) {
		if (!config->files[i].path[0])
			continue;
		out_text(cli, "file  %s%s", config->files[i].path,
			 config->files[i].read     ? ""
			 : config->files[i].denied ? " (this user may not read it)"
						   : " (absent)");
		json_object(json, NULL);
		config_file_path(json, config->files[i].path);
		config_file_read(json, config->files[i].read);
		json_object_end(json);
	}
	json_array_end(json);
	config_end_values_open(json);
	print_general(cli, json, config);
	print_of_commands(cli, json, config);
	json_array_end(json);
	status = out_finish(cli, json);
out:
	config_free(config);
	free(config);
	return status;
}

const struct command cmd_config = {
	.name = "config",
	.summary = "The configuration: each value with its source",
	.description = OPT_PROSE(
		"Reads $XDG_CONFIG_HOME/ktrxer/config.toml (~/.config without the variable) and the system's "
		"config.toml, and prints the values that count.\n\n"
		"The keys are options: host (a command's HOST, if the command line names none), port (of `ktrxer "
		"serve`), token-file, directory (of stored runs and pictures), style (of plots), nq (of `ktrxer "
		"check`; an empty value takes the shipped one away). In the table of a command, as [run] or "
		"[ppt.direct], a key counts for that command alone, and port is any port of it. "
		"The command line wins over the environment, the environment over the user's file, that file over the "
		"system's. A relative path begins in the folder of the file.\n\n"
		"Processes that a command starts get complete command lines: for them, and in `ktrxer lab run`, the "
		"files do not count. With KTRXER_CONFIG=off no file counts."),
	.examples = OPT_PROSE("ktrxer config\tWhat counts, and from which line.\n"
			      "KTRXER_CONFIG=off ktrxer ping far\tWithout the files.\n"),
	.run = run_config,
	.reports = true,
	.unconfigured = true,
};
