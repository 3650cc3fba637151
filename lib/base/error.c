/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int ktrxer_fail(struct ktrxer_error *err, int code, const char *format, ...)
{
	const int saved = errno;
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	errno = code < 0 ? -code : code; /* for %m */
	if (vsnprintf(err->text, sizeof err->text, format, args) < 0)
		err->text[0] = '\0';
	va_end(args);
	errno = saved;
	for (char *c = err->text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			*c = '?';
	return code;
}

const char *ktrxer_strerror(int code, char *text, size_t size)
{
	/*
	 * The XSI and the GNU function differ in what they return; glibc and musl each have one of them under this
	 * name.
	 */
#if defined(__GLIBC__) && defined(_GNU_SOURCE)
	const char *word = strerror_r(-code, text, size);

	if (word != text)
		snprintf(text, size, "%s", word);
#else
	if (strerror_r(-code, text, size) != 0)
		snprintf(text, size, "error %d", -code);
#endif
	return text;
}
