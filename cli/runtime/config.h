/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The configuration: defaults of a few options, from $XDG_CONFIG_HOME/ktrxer/config.toml (~/.config without the
 * variable) and /etc/ktrxer/config.toml, and one value that this program has itself. The command line wins over the
 * environment, the environment over the user's file, the user's file over the system's, that over the own value, and in
 * a file the table of a command over the keys before the first table.
 */
#ifndef KTRXER_CLI_CONFIG_H
#define KTRXER_CLI_CONFIG_H

#include "json.h"
#include "opt.h"

/*
 * Set to CONFIG_OFF for the processes that a command of the Python part starts: their command lines are complete. For
 * that part itself it holds the configuration as JSON.
 */
#define CONFIG_VARIABLE "KTRXER_CONFIG"
#define CONFIG_OFF "off"
#define CONFIG_SHIPPED_WORD "shipped with ktrxer"

enum { CONFIG_KEYS = 6, CONFIG_FILES = 2, CONFIG_SHIPPED = CONFIG_FILES, CONFIG_VALUES_MAX = 128 };

struct config_file {
	char path[4096]; /* "": the place is not known */
	bool read;       /* it exists, and was read */
	bool denied;     /* this user may not read it, or a folder above it */
};

struct config_value {
	char *command;  /* "run"; "": of all commands that have the option */
	char *key;      /* of config_key() */
	char *text;     /* as it would stand on the command line */
	int file, line; /* CONFIG_SHIPPED: it has no file */
};

struct config {
	struct config_file files[CONFIG_FILES]; /* the user's, the system's */
	struct config_value values[CONFIG_VALUES_MAX];
	int count;
	char where[CONFIG_KEYS][4200]; /* of config_presets() */
};

/* The name of a key: an option of that name, or for "host" the command's HOST. NULL past the last. */
const char *config_key(int number);
/* The variable wins over the files. NULL: the key has none. *set: whether it is set. */
const char *config_variable(const char *key, bool *set);
/*
 * 0; a negative errno with file, line and fault. An absent file is no fault. A process with a setuid bit or file
 * capabilities reads the system's file alone. Whatever it returns, config_free() is right afterwards.
 */
int config_load(struct config *config, struct ktrxer_error *err);
void config_free(struct config *config);
/* NULL: no file has a value for `command` ("": any). */
const struct config_value *config_find(const struct config *config, const char *command, const char *key);
/* "/etc/ktrxer/config.toml:3", or CONFIG_SHIPPED_WORD */
void config_where(const struct config *config, const struct config_value *value, char *out, size_t size);
/* The presets of a command for opt_parse(); they point into `config`. */
void config_presets(struct config *config, const char *command, struct opt_preset presets[CONFIG_KEYS + 2]);
/* Writes an array with a group config_value (cli/commands/config/fields.toml) for each value, for the Python part. */
void config_json(const struct config *config, struct json *json);

#endif
