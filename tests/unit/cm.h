/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Unit tests. `TEST(name) { ... }` is one; a program's tests run in the order of their lines. cm.c has the main().
 */
#ifndef KTRXER_TESTS_CM_H
#define KTRXER_TESTS_CM_H

/* cmocka wants these four before itself, in this order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct cm_test {
	const char *name;
	void (*run)(void);
	int line;
	struct cm_test *next;
};

void cm_add(struct cm_test *test);

/* Functions that a program may set: 0, or its tests fail. */
extern struct cm_hooks {
	int (*before_all)(void **), (*after_all)(void **);
	int (*before_each)(void **), (*after_each)(void **);
} cm_hooks;

#define TEST(test_name)                                                                 \
	static void test_name(void);                                                    \
	__attribute__((constructor)) static void cm_add_##test_name(void)               \
	{                                                                               \
		static struct cm_test test = { #test_name, test_name, __LINE__, NULL }; \
                                                                                        \
		cm_add(&test);                                                          \
	}                                                                               \
	static void test_name(void)

/* Nothing is skipped without a reason; scripts/test-cross prints it beside the name. */
#define cm_skip(reason)                              \
	do {                                         \
		print_message("skip: %s\n", reason); \
		skip();                              \
	} while (0)

#endif
