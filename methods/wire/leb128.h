/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Numbers of seven bits a byte, the lowest first: the highest bit of a byte says that another follows. */
#ifndef KTRXER_METHODS_LEB128_H
#define KTRXER_METHODS_LEB128_H

#include "bytes.h"

/* Writes at most ten bytes. Returns the end. */
uint8_t *leb128_write(uint8_t *out, uint64_t value);
/* More than 64 bits, or the end before the last byte: the cursor fails. */
uint64_t leb128_read(struct bytes *b);

#endif
