/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A program without functions of its own has these. */
__attribute__((weak)) struct cm_hooks cm_hooks;

static struct cm_test *first;
static size_t count;

void cm_add(struct cm_test *test)
{
	struct cm_test **at = &first;

	while (*at && (*at)->line < test->line)
		at = &(*at)->next;
	test->next = *at;
	*at = test;
	count++;
}

static void run(void **state)
{
	const struct cm_test *test = *state;

	test->run();
}

/* An argument is the name of the one test to run. */
int main(int argc, char **argv)
{
	struct CMUnitTest *tests = calloc(count + 1, sizeof *tests);
	size_t n = 0;
	int failed;

	if (!tests || !count)
		return 1;
	for (struct cm_test *test = first; test; test = test->next)
		if (argc < 2 || strcmp(argv[1], test->name) == 0)
			tests[n++] =
				(struct CMUnitTest){ test->name, run, cm_hooks.before_each, cm_hooks.after_each, test };
	if (!n) {
		fprintf(stderr, "%s: it has no test %s\n", argv[0], argv[1]);
		free(tests);
		return 2;
	}
	failed = _cmocka_run_group_tests("tests", tests, n, cm_hooks.before_all, cm_hooks.after_all);
	free(tests);
	return failed;
}
