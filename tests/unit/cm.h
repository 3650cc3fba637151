/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* cmocka wants these four before itself, in this order. */
#ifndef KTRXER_TESTS_CM_H
#define KTRXER_TESTS_CM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Nothing is skipped without a reason; scripts/test-cross prints it beside the name. */
#define cm_skip(reason)                         \
	do {                                        \
		print_message("skip: %s\n", reason);    \
		skip();                                 \
	} while (0)

#endif
