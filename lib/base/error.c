/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void ktrxer_text_va(char *to, size_t size, const char *format, va_list args)
{
	static const char mark[] = " ... ";
	char whole[5120]; /* the longest path, and the sentence about it */
	size_t length, first;

	if (vsnprintf(whole, sizeof whole, format, args) < 0)
		whole[0] = '\0';
	length = strlen(whole);
	if (length < size) {
		memcpy(to, whole, length + 1);
		return;
	}
	first = size / 3;
	memcpy(to, whole, first);
	memcpy(to + first, mark, sizeof mark - 1);
	first += sizeof mark - 1;
	memcpy(to + first, whole + length + 1 - (size - first), size - first);
}

void ktrxer_text(char *to, size_t size, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	ktrxer_text_va(to, size, format, args);
	va_end(args);
}

void ktrxer_text_clean(char *text, bool lines)
{
	for (unsigned char *c = (unsigned char *)text; *c; c++) {
		if (*c == 0xc2 && (c[1] & 0xe0) == 0x80) { /* U+0080 to U+009F */
			*c++ = '?';
			*c = '?';
		}
		if ((*c < 0x20 && !(lines && (*c == '\n' || *c == '\t'))) || *c == 0x7f)
			*c = '?';
	}
}

int ktrxer_fail(struct ktrxer_error *err, int code, const char *format, ...)
{
	const int saved = errno;
	va_list args;

	if (!err)
		return code;
	err->code = code;
	va_start(args, format);
	errno = code < 0 ? -code : code; /* for %m */
	ktrxer_text_va(err->text, sizeof err->text, format, args);
	va_end(args);
	errno = saved;
	ktrxer_text_clean(err->text, false);
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
