/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Packets as tables: each field stands once, in the order of the packet, and both directions follow the table. A member
 * of 1, 2, 4 or 8 bytes is an integer, big-endian in the packet; one of another size is copied as it is.
 */
#ifndef KTRXER_METHODS_WIRE_FIELDS_H
#define KTRXER_METHODS_WIRE_FIELDS_H

#include <stddef.h>
#include <stdint.h>

struct wire_field {
	uint16_t at; /* place in the struct */
	uint8_t bytes;
};

enum { WIRE_RESERVED = UINT16_MAX }; /* the place of bytes that have no member: written as 0, not read */

#define WIRE_FIELD(type, member) { offsetof(struct type, member), sizeof(((struct type *)NULL)->member) }
#define WIRE_COUNT(fields) (sizeof(fields) / sizeof(fields)[0])
#define WIRE_BYTES(fields) wire_bytes(fields, WIRE_COUNT(fields))
#define WIRE_READ(to, fields, data) wire_read(to, fields, WIRE_COUNT(fields), data)
#define WIRE_WRITE(data, fields, from) wire_write(data, fields, WIRE_COUNT(fields), from)

/* The length of the fields in a packet. */
uint32_t wire_bytes(const struct wire_field *fields, size_t count);
/* `data` has wire_bytes() at least. */
void wire_read(void *to, const struct wire_field *fields, size_t count, const uint8_t *data);
/* Returns wire_bytes(). */
uint32_t wire_write(uint8_t *data, const struct wire_field *fields, size_t count, const void *from);

#endif
