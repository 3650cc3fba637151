/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_TESTS_STAMP_HEX_H
#define KTRXER_TESTS_STAMP_HEX_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* "01 02ff" to bytes; how many. */
static inline size_t from_hex(uint8_t *to, size_t room, const char *hex)
{
	size_t n = 0;
	unsigned byte;

	for (; *hex && n < room; hex += *hex == ' ' ? 1 : 2)
		if (*hex != ' ' && sscanf(hex, "%2x", &byte) == 1)
			to[n++] = (uint8_t)byte;
	return n;
}

#endif
