/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "generate.h"

#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* DIR/NAME, blanks in NAME become '-'. NULL after a complaint. */
static FILE *create(const char *directory, const char *name)
{
	char path[PATH_MAX];
	FILE *file;

	if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) {
		fprintf(stderr, "ktrxer: --generate: %s: the path is too long\n", directory);
		return NULL;
	}
	for (char *c = path + strlen(directory); *c; c++)
		if (*c == ' ')
			*c = '-';
	file = fopen(path, "w");
	if (!file)
		fprintf(stderr, "ktrxer: --generate: %s: %s\n", path, strerror(errno));
	return file;
}

static int finish(FILE *file, const char *name)
{
	int failed = ferror(file);

	if (!fclose(file) && !failed)
		return EXIT_VALID;
	fprintf(stderr, "ktrxer: --generate: %s cannot be written: %s\n", name, strerror(errno));
	return EXIT_NO_RESULT;
}

static int generate_man(const struct command *const *commands, const char *directory)
{
	FILE *file;

	if (mkdir(directory, 0777) && errno != EEXIST) {
		fprintf(stderr, "ktrxer: --generate: %s: %s\n", directory, strerror(errno));
		return EXIT_NO_RESULT;
	}
	file = create(directory, "ktrxer.1");
	if (!file)
		return EXIT_NO_RESULT;
	opt_man_index(commands, file);
	if (finish(file, "ktrxer.1"))
		return EXIT_NO_RESULT;
	for (; *commands; commands++) {
		char name[NAME_MAX];

		if ((*commands)->hidden)
			continue;
		snprintf(name, sizeof name, "ktrxer-%s.1", (*commands)->name);
		file = create(directory, name);
		if (!file)
			return EXIT_NO_RESULT;
		opt_man(*commands, cli_common_sets(*commands), file);
		if (finish(file, name))
			return EXIT_NO_RESULT;
	}
	/* Build tools compare the directory's time, which rewriting its files does not change. */
	utimensat(AT_FDCWD, directory, NULL, 0);
	return EXIT_VALID;
}

int generate(const struct command *const *commands, int argc, char *const argv[])
{
	if (argc == 2 && !strcmp(argv[0], "man"))
		return generate_man(commands, argv[1]);
	fprintf(stderr, "usage: ktrxer --generate man DIR\n");
	return EXIT_USAGE;
}
