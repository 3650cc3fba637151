/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Whole numbers: the largest common divisor; 128-bit products and quotients that are the same on compilers without
 * __int128 (32-bit ARM and MIPS).
 */
#ifndef KTRXER_LIB_WIDE_H
#define KTRXER_LIB_WIDE_H

#include <stdint.h>

struct wide {
	uint64_t high, low;
};

static inline struct wide wide_multiply_portable(uint64_t a, uint64_t b)
{
	uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
	uint64_t low = a0 * b0;
	uint64_t middle = a1 * b0 + (low >> 32); /* cannot overflow: (2^32-1)^2 + 2^32-1 < 2^64 */
	uint64_t other = a0 * b1 + (uint32_t)middle;

	return (struct wide){ .high = a1 * b1 + (middle >> 32) + (other >> 32), .low = other << 32 | (uint32_t)low };
}

/* value / by with value.high < by, so that the quotient fits. One bit at a time: it is not in the way of any probe. */
static inline uint64_t wide_divide_portable(struct wide value, uint64_t by, uint64_t *remainder)
{
	uint64_t rest = value.high, quotient = 0;

	for (int bit = 63; bit >= 0; bit--) {
		uint64_t carry = rest >> 63;

		rest = rest << 1 | (value.low >> bit & 1);
		quotient <<= 1;
		if (carry || rest >= by) {
			rest -= by;
			quotient |= 1;
		}
	}
	*remainder = rest;
	return quotient;
}

static inline struct wide wide_multiply(uint64_t a, uint64_t b)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 product = (unsigned __int128)a * b;

	return (struct wide){ .high = (uint64_t)(product >> 64), .low = (uint64_t)product };
#else
	return wide_multiply_portable(a, b);
#endif
}

static inline uint64_t wide_divide(struct wide value, uint64_t by, uint64_t *remainder)
{
#ifdef __SIZEOF_INT128__
	unsigned __int128 number = (unsigned __int128)value.high << 64 | value.low;

	*remainder = (uint64_t)(number % by);
	return (uint64_t)(number / by);
#else
	return wide_divide_portable(value, by, remainder);
#endif
}

/* The largest common divisor; of 0 and another number: that number. */
static inline uint64_t common_divisor(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static inline struct wide wide_add(struct wide a, uint64_t b)
{
	a.low += b;
	a.high += a.low < b;
	return a;
}

#endif
