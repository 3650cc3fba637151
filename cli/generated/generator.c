/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `generator --generate man DIR`: for the build, over all commands of all programs. */
#include "cli.h"
#include "commands.h"
#ifdef KTRXER_HAVE_BENCH
#include "bench_command_table.h"
#endif

#include <stdlib.h>
#include <string.h>

enum { COMMANDS_MAX = 64 };

static int add(const struct command **all, int count, const struct command *const *table)
{
	for (; *table && count < COMMANDS_MAX; table++)
		if (!(*table)->program) /* described in the table of that program */
			all[count++] = *table;
	return count;
}

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct command *const *)a)->name, (*(const struct command *const *)b)->name);
}

int main(int argc, char *argv[])
{
	const struct command *all[COMMANDS_MAX + 1] = { NULL };
	int count = 0;

#ifdef KTRXER_HAVE_BENCH
	count = add(all, count, bench_command_table);
#endif
	count = add(all, count, command_table);
	qsort(all, (size_t)count, sizeof *all, by_name);
	return cli_main(argc, argv, all);
}
