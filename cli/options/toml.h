/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads a subset of TOML 1.0: tables, keys, strings on one line, numbers, booleans, arrays of these. Dotted keys,
 * arrays of tables, inline tables, dates and strings of several lines are refused by name.
 */
#ifndef KTRXER_CLI_TOML_H
#define KTRXER_CLI_TOML_H

#include <ktrxer.h>

enum {
	TOML_NAME_MAX = 64,   /* bytes of a key, and of a table's name */
	TOML_TEXT_MAX = 4096, /* bytes of a value */
};

enum toml_kind { TOML_STRING = 1, TOML_NUMBER, TOML_BOOLEAN };

/* Each element of an array is a value of its own. The strings exist during the call. */
struct toml_value {
	const char *table; /* "" before the first table; the parts of its name are joined by dots */
	const char *key;
	const char *text; /* of a string its contents; of a number without underscores */
	enum toml_kind kind;
	bool in_array;
	int line; /* counted from 1 */
};

/*
 * Calls `take` for each value, in their order. 0, or the first negative errno: that of `take`, or -EINVAL with the line
 * and the fault. The caller finds keys that are given twice.
 */
int toml_read(const char *text, size_t length,
	      int (*take)(void *context, const struct toml_value *value, struct ktrxer_error *err), void *context,
	      struct ktrxer_error *err);

#endif
