/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_LIB_OPTIONS_H
#define KTRXER_LIB_OPTIONS_H

#include "error.h"

#include <errno.h>
#include <string.h>

/*
 * An option struct of the caller's size becomes one of ours. Fields that an older caller does not know are zero; fields
 * that a newer caller knows and we do not must be zero, or what they ask for would be ignored in silence. `least` is
 * the end of the struct's first version.
 */
static inline int ktrxer_options_copy(void *to, size_t known, const void *from, size_t size, size_t least,
				      const char *what, struct ktrxer_error *err)
{
	const uint8_t *extra = (const uint8_t *)from + known;

	memset(to, 0, known);
	if (size < least)
		return ktrxer_fail(err, -EINVAL, "%s: `size` is %zu, at least %zu is expected; use its _INIT macro",
				   what, size, least);
	memcpy(to, from, size < known ? size : known);
	for (size_t i = known; i < size; i++)
		if (*extra++)
			return ktrxer_fail(err, -E2BIG, "%s: made for a newer libktrxer than this one, %s", what,
					   ktrxer_version());
	return 0;
}

/* The same for a struct that begins with its `size`. NULL is refused. */
static inline int ktrxer_options_read(void *to, size_t known, const void *from, size_t least, const char *what,
				      struct ktrxer_error *err)
{
	size_t size;

	if (!from)
		return ktrxer_fail(err, -EINVAL, "%s: it is NULL; begin with its _INIT macro", what);
	memcpy(&size, from, sizeof size);
	return ktrxer_options_copy(to, known, from, size, least, what, err);
}

#endif
