/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "config.h"

#include "error.h"
#include "fields_config.h"
#include "shared_options.h"
#include "toml.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USERS, SYSTEMS, FILE_MAX = 65536 };

static const struct {
	const char *name;
	bool path;            /* relative to the folder of the file; ~/ is the home */
	bool may_be_empty;    /* an empty value takes the shipped one away */
	const char *variable; /* NULL: none */
} keys[CONFIG_KEYS] = {
	{ .name = "host" },
	{ .name = "port" },
	{ .name = "token-file", .path = true, .variable = "KTRXER_TOKEN" },
	{ .name = "directory", .path = true },
	{ .name = "style" },
	{ .name = "nq", .may_be_empty = true },
};

/* The server that networkQuality of macOS uses, for `ktrxer check` without a server. `check` asks before it is used. */
static const char shipped[] = "[check]\nnq = \"https://mensura.cdn-apple.com/api/v1/gm/config\"\n";

const char *config_key(int number)
{
	return number >= 0 && number < CONFIG_KEYS ? keys[number].name : NULL;
}

static int key_number(const char *name)
{
	for (int i = 0; i < CONFIG_KEYS; i++)
		if (!strcmp(keys[i].name, name))
			return i;
	return -1;
}

const char *config_variable(const char *key, bool *set)
{
	const int number = key_number(key);
	const char *const name = number < 0 ? NULL : keys[number].variable, *const value = name ? getenv(name) : NULL;

	*set = value && *value;
	return name;
}

static void find_files(struct config *config)
{
	const char *const base = getenv("XDG_CONFIG_HOME"), *const home = getenv("HOME");
	struct config_file *const users = &config->files[USERS];
	int length = 0;

	strcpy(config->files[SYSTEMS].path, "/etc/ktrxer/config.toml");
	if (getauxval(AT_SECURE))
		return;
	/* A relative path is invalid there (XDG Base Directory Specification). */
	if (base && base[0] == '/')
		length = snprintf(users->path, sizeof users->path, "%s/ktrxer/config.toml", base);
	else if (home && home[0] == '/')
		length = snprintf(users->path, sizeof users->path, "%s/.config/ktrxer/config.toml", home);
	if (length >= (int)sizeof users->path)
		users->path[0] = '\0';
}

/*
 * The file chooses hosts and files of this process, so another user must not write it. The group may where the file is
 * its owner's: with umask 002 each user has a group of his own.
 */
static int check_file(int fd, const char *path, struct ktrxer_error *err)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return ktrxer_fail(err, -errno, "%s: its mode cannot be read", path);
	if (!S_ISREG(st.st_mode))
		return ktrxer_fail(err, -EINVAL, "%s: it is no regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return ktrxer_fail(err, -EPERM, "%s: its owner is user %u, not user %u; `chown %u` changes that", path,
				   st.st_uid, geteuid(), geteuid());
	if (st.st_mode & S_IWOTH || (geteuid() == 0 && st.st_mode & S_IWGRP && st.st_gid != 0))
		return ktrxer_fail(err, -EPERM, "%s: other users may write it (mode %04o); `chmod go-w` changes that",
				   path, st.st_mode & 07777u);
	if (st.st_size > FILE_MAX)
		return ktrxer_fail(err, -EFBIG, "%s: it has more than %d bytes", path, FILE_MAX);
	return 0;
}

/* The whole file; how many bytes, or a negative errno. */
static int read_file(const char *path, char *text, size_t size, struct ktrxer_error *err)
{
	size_t length = 0;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0) {
		rc = -errno;
		return ktrxer_fail(err, rc, "%s: %m", path);
	}
	rc = check_file(fd, path, err);
	while (rc == 0 && length < size) {
		n = read(fd, text + length, size - length);
		if (n < 0)
			rc = ktrxer_fail(err, -errno, "%s: %m", path);
		if (n <= 0)
			break;
		length += (size_t)n;
	}
	if (rc == 0 && length == size)
		rc = ktrxer_fail(err, -EFBIG, "%s: it has more than %d bytes", path, FILE_MAX);
	close(fd);
	return rc < 0 ? rc : (int)length;
}

struct reading {
	struct config *config;
	int file;
	bool refused; /* by keep(), whose error has file and line */
};

/* A path: ~/ is the home, and a relative one begins in the folder of the file. A new string, or NULL: no memory. */
static char *path_of(const char *text, const char *file)
{
	const char *const home = getenv("HOME"), *slash = strrchr(file, '/');
	const bool at_home = text[0] == '~' && text[1] == '/' && home;
	const size_t before = at_home ? strlen(home) : text[0] == '/' ? 0 : (size_t)(slash + 1 - file);
	char *made = malloc(before + strlen(text) + 1);

	if (!made)
		return NULL;
	memcpy(made, at_home ? home : file, before);
	strcpy(made + before, at_home ? text + 1 : text);
	return made;
}

static int unknown_key(const char *key, const char *path, int line, struct ktrxer_error *err)
{
	const char *names[CONFIG_KEYS], *near;

	for (int i = 0; i < CONFIG_KEYS; i++)
		names[i] = keys[i].name;
	near = opt_nearest(key, names, CONFIG_KEYS);
	if (near)
		return ktrxer_fail(err, -EINVAL, "%s:%d: '%s': no such key; did you mean %s?", path, line, key, near);
	return ktrxer_fail(err, -EINVAL,
			   "%s:%d: '%s': no such key; there are host, port, token-file, directory, style, nq", path,
			   line, key);
}

static int keep(const struct reading *reading, const struct toml_value *found, struct ktrxer_error *err)
{
	struct config *const config = reading->config;
	const char *const path = reading->file < CONFIG_FILES ? config->files[reading->file].path : CONFIG_SHIPPED_WORD;
	const int number = key_number(found->key);
	struct config_value *value;

	if (number < 0)
		return unknown_key(found->key, path, found->line, err);
	if (found->in_array || found->kind == TOML_BOOLEAN || (!*found->text && !keys[number].may_be_empty))
		return ktrxer_fail(err, -EINVAL, "%s:%d: %s: one string or number is wanted", path, found->line,
				   found->key);
	for (int i = 0; i < config->count; i++)
		if (config->values[i].file == reading->file && !strcmp(config->values[i].key, found->key) &&
		    !strcmp(config->values[i].command, found->table))
			return ktrxer_fail(err, -EINVAL, "%s:%d: %s: given twice, first in line %d", path, found->line,
					   found->key, config->values[i].line);
	if (config->count == CONFIG_VALUES_MAX)
		return ktrxer_fail(err, -E2BIG, "%s:%d: more than %d values", path, found->line, CONFIG_VALUES_MAX);
	value = &config->values[config->count++];
	*value = (struct config_value){ .command = strdup(found->table),
					.key = strdup(found->key),
					.text = keys[number].path ? path_of(found->text, path) : strdup(found->text),
					.file = reading->file,
					.line = found->line };
	/* The name of a command with two words: [ppt.direct] is `ppt direct`. */
	for (char *at = value->command; at && *at; at++)
		if (*at == '.')
			*at = ' ';
	return value->command && value->key && value->text ? 0 : ktrxer_fail(err, -ENOMEM, "no memory");
}

static int take(void *context, const struct toml_value *found, struct ktrxer_error *err)
{
	struct reading *reading = context;
	const int rc = keep(reading, found, err);

	reading->refused = rc < 0;
	return rc;
}

static int load_file(struct config *config, int which, char *text, struct ktrxer_error *err)
{
	struct config_file *const file = &config->files[which];
	struct reading reading = { .config = config, .file = which };
	struct ktrxer_error why = { 0 };
	int length, rc;

	if (!file->path[0])
		return 0;
	length = read_file(file->path, text, FILE_MAX + 1, err);
	/* `sudo -u` may leave the home of the other user, which this one cannot search. */
	if (length == -ENOENT || length == -ENOTDIR || length == -EACCES) {
		file->denied = length == -EACCES;
		*err = (struct ktrxer_error){ 0 };
		return 0;
	}
	if (length < 0)
		return length;
	file->read = true;
	rc = toml_read(text, (size_t)length, take, &reading, &why);
	if (rc < 0 && !reading.refused)
		return ktrxer_fail(err, rc, "%s: %s", file->path, why.text);
	if (rc < 0)
		*err = why;
	return rc;
}

int config_load(struct config *config, struct ktrxer_error *err)
{
	struct reading of_this = { .config = config, .file = CONFIG_SHIPPED };
	char *text;
	int rc = 0;

	config->count = 0;
	memset(config->files, 0, sizeof config->files);
	if (getenv(CONFIG_VARIABLE))
		return 0;
	find_files(config);
	text = malloc(FILE_MAX + 1);
	if (!text)
		return ktrxer_fail(err, -ENOMEM, "no memory for the configuration");
	for (int i = 0; i < CONFIG_FILES && rc == 0; i++)
		rc = load_file(config, i, text, err);
	free(text);
	return rc == 0 ? toml_read(shipped, sizeof shipped - 1, take, &of_this, err) : rc;
}

void config_free(struct config *config)
{
	for (int i = 0; i < config->count; i++) {
		free(config->values[i].command);
		free(config->values[i].key);
		free(config->values[i].text);
	}
	config->count = 0;
}

const struct config_value *config_find(const struct config *config, const char *command, const char *key)
{
	bool set;

	config_variable(key, &set);
	for (int file = 0; file <= CONFIG_SHIPPED && !set; file++)
		for (int general = *command == '\0'; general < 2; general++)
			for (int i = 0; i < config->count; i++) {
				const struct config_value *const value = &config->values[i];

				if (value->file == file && !strcmp(value->key, key) &&
				    !strcmp(value->command, general ? "" : command))
					return value;
			}
	return NULL;
}

void config_where(const struct config *config, const struct config_value *value, char *out, size_t size)
{
	if (value->file == CONFIG_SHIPPED)
		snprintf(out, size, CONFIG_SHIPPED_WORD);
	else
		snprintf(out, size, "%s:%d", config->files[value->file].path, value->line);
}

void config_presets(struct config *config, const char *command, struct opt_preset presets[CONFIG_KEYS + 2])
{
	int count = 0;

	for (int i = 0; i < CONFIG_KEYS; i++) {
		const struct config_value *const value = config_find(config, command, keys[i].name);
		bool servers;

		if (!value)
			continue;
		config_where(config, value, config->where[i], sizeof config->where[i]);
		servers = !strcmp(value->key, "port") && !value->command[0];
		presets[count++] = (struct opt_preset){ .name = value->key,
							.value = value->text,
							.where = config->where[i],
							.fallback = servers ? SERVER_PORT : NULL };
		/* `trace` has a port of its own, and the server's beside it. */
		if (servers) {
			presets[count] = presets[count - 1];
			presets[count++].name = "server-port";
		}
	}
	presets[count] = (struct opt_preset){ 0 };
}

void config_json(const struct config *config, struct json *json)
{
	json_array(json, NULL);
	for (int i = 0; i < config->count; i++) {
		const struct config_value *const value = &config->values[i];
		char name[2 * TOML_NAME_MAX + 2], where[4200];

		/* The user's file wins over the system's. */
		if (config_find(config, value->command, value->key) != value)
			continue;
		snprintf(name, sizeof name, "%s%s%s", value->command, *value->command ? "." : "", value->key);
		config_where(config, value, where, sizeof where);
		json_object(json, NULL);
		config_value_key(json, name);
		config_value_value(json, value->text);
		config_value_source(json, where);
		json_object_end(json);
	}
	json_array_end(json);
}
