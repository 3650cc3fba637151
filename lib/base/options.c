/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "options.h"

#include "error.h"

#include <errno.h>
#include <string.h>

int ktrxer_options_copy(void *to, size_t known, const void *from, size_t size, size_t least, const char *what,
			struct ktrxer_error *err)
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

int ktrxer_options_read(void *to, size_t known, const void *from, size_t least, const char *what,
			struct ktrxer_error *err)
{
	size_t size;

	if (!from)
		return ktrxer_fail(err, -EINVAL, "%s: it is NULL; begin with its _INIT macro", what);
	memcpy(&size, from, sizeof size);
	return ktrxer_options_copy(to, known, from, size, least, what, err);
}

void ktrxer_result_write(void *to, size_t size, const void *from, size_t known)
{
	const size_t common = size < known ? size : known;

	memcpy(to, from, common);
	memset((uint8_t *)to + common, 0, size - common);
}
