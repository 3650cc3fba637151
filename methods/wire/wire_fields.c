/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "wire_fields.h"

#include "bytes.h"

uint32_t wire_bytes(const struct wire_field *fields, size_t count)
{
	uint32_t bytes = 0;

	for (size_t i = 0; i < count; i++)
		bytes += fields[i].bytes;
	return bytes;
}

void wire_read(void *to, const struct wire_field *fields, size_t count, const uint8_t *data)
{
	for (size_t i = 0; i < count; data += fields[i++].bytes) {
		uint8_t *place;

		if (fields[i].at == WIRE_RESERVED)
			continue;
		place = (uint8_t *)to + fields[i].at;
		if (fields[i].bytes == 2)
			memcpy(place, &(uint16_t){ load_be16(data) }, 2);
		else if (fields[i].bytes == 4)
			memcpy(place, &(uint32_t){ load_be32(data) }, 4);
		else if (fields[i].bytes == 8)
			memcpy(place, &(uint64_t){ load_be64(data) }, 8);
		else
			memcpy(place, data, fields[i].bytes);
	}
}

uint32_t wire_write(uint8_t *data, const struct wire_field *fields, size_t count, const void *from)
{
	for (size_t i = 0; i < count; data += fields[i++].bytes) {
		const uint8_t *place;
		uint16_t two;
		uint32_t four;
		uint64_t eight;

		if (fields[i].at == WIRE_RESERVED) {
			memset(data, 0, fields[i].bytes);
			continue;
		}
		place = (const uint8_t *)from + fields[i].at;
		if (fields[i].bytes == 2) {
			memcpy(&two, place, sizeof two);
			store_be16(data, two);
		} else if (fields[i].bytes == 4) {
			memcpy(&four, place, sizeof four);
			store_be32(data, four);
		} else if (fields[i].bytes == 8) {
			memcpy(&eight, place, sizeof eight);
			store_be64(data, eight);
		} else {
			memcpy(data, place, fields[i].bytes);
		}
	}
	return wire_bytes(fields, count);
}
