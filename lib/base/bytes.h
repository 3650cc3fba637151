/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The one set of accessors to bytes that came from a network or a file. A cursor has its end; a read past it returns
 * 0 and marks the cursor as failed: parse first, test `ok` once. Nothing here reads outside [at, end), ever.
 * Order is big-endian ("network") unless the name says le; stores have no bounds and are for memory that we laid out
 * ourselves.
 */
#ifndef KTRXER_LIB_BYTES_H
#define KTRXER_LIB_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool ok;
};

static inline struct bytes bytes_of(const void *data, size_t length)
{
	return (struct bytes){ .at = data, .end = (const uint8_t *)data + length, .ok = true };
}

static inline size_t bytes_left(const struct bytes *b)
{
	return b->ok ? (size_t)(b->end - b->at) : 0;
}

/* `n` bytes, or NULL (and failed) when there are fewer. */
static inline const uint8_t *bytes_take(struct bytes *b, size_t n)
{
	const uint8_t *p = b->at;

	if (!b->ok || (size_t)(b->end - b->at) < n) {
		b->ok = false;
		return NULL;
	}
	b->at += n;
	return p;
}

static inline bool bytes_skip(struct bytes *b, size_t n)
{
	return bytes_take(b, n) != NULL;
}

/* A cursor over the next `n` bytes alone; failed when there are fewer. */
static inline struct bytes bytes_sub(struct bytes *b, size_t n)
{
	const uint8_t *p = bytes_take(b, n);

	return p ? bytes_of(p, n) : (struct bytes){ .at = b->at, .end = b->at, .ok = false };
}

static inline uint16_t load_be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static inline uint32_t load_be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t load_be64(const uint8_t *p)
{
	return (uint64_t)load_be32(p) << 32 | load_be32(p + 4);
}

static inline uint16_t load_le16(const uint8_t *p)
{
	return (uint16_t)(p[1] << 8 | p[0]);
}

static inline uint32_t load_le32(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

static inline void store_be16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static inline void store_be32(uint8_t *p, uint32_t v)
{
	store_be16(p, (uint16_t)(v >> 16));
	store_be16(p + 2, (uint16_t)v);
}

static inline void store_be64(uint8_t *p, uint64_t v)
{
	store_be32(p, (uint32_t)(v >> 32));
	store_be32(p + 4, (uint32_t)v);
}

static inline uint8_t bytes_u8(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 1);

	return p ? p[0] : 0;
}

static inline uint16_t bytes_be16(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 2);

	return p ? load_be16(p) : 0;
}

static inline uint32_t bytes_be32(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 4);

	return p ? load_be32(p) : 0;
}

static inline uint64_t bytes_be64(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 8);

	return p ? load_be64(p) : 0;
}

static inline uint16_t bytes_le16(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 2);

	return p ? load_le16(p) : 0;
}

static inline uint32_t bytes_le32(struct bytes *b)
{
	const uint8_t *p = bytes_take(b, 4);

	return p ? load_le32(p) : 0;
}

/* Kernel structures (netlink, ring headers, files that state their order) are in the machine's own order. */
static inline bool bytes_copy(struct bytes *b, void *to, size_t n)
{
	const uint8_t *p = bytes_take(b, n);

	if (p)
		memcpy(to, p, n);
	else
		memset(to, 0, n);
	return p != NULL;
}

#endif
