/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "leb128.h"

uint8_t *leb128_write(uint8_t *out, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		*out++ = (uint8_t)(value | 0x80);
	*out++ = (uint8_t)value;
	return out;
}

uint64_t leb128_read(struct bytes *b)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		const uint8_t byte = bytes_u8(b);

		if (shift == 63 && byte > 1)
			break;
		value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	b->ok = false;
	return 0;
}
