/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes as each message of OWAMP: what is read is written back the same. And as the records of a session. */
#include "owamp_delays.h"
#include "owamp_packet.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads it, writes it, and reads and writes that: both times the same bytes. */
#define ROUND(type, name, length) \
	do { \
		uint8_t first[OWAMP_SETUP_BYTES], second[OWAMP_SETUP_BYTES]; \
		struct type value; \
		if (size >= (length) && owamp_##name##_read(&value, data) == 0) { \
			owamp_##name##_write(first, &value); \
			if (owamp_##name##_read(&value, first) < 0) \
				abort(); \
			owamp_##name##_write(second, &value); \
			if (memcmp(first, second, length) != 0) \
				abort(); \
		} \
	} while (0)

static void records(const uint8_t *data, size_t size)
{
	struct owamp_record r[64];
	struct owamp_delays d;
	uint32_t count = 0;

	for (; count < 64 && size >= OWAMP_RECORD_BYTES; count++) {
		owamp_record_read(&r[count], data);
		r[count].seq %= 128; /* the caller refuses higher ones */
		data += OWAMP_RECORD_BYTES;
		size -= OWAMP_RECORD_BYTES;
	}
	if (owamp_delays_of(&d, r, count, 128, 0, NULL) < 0 || d.arrived + d.duplicates > count ||
	    d.lost + d.arrived != d.sent)
		abort();
	owamp_delays_free(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct owamp_test_packet packet;
	uint8_t again[OWAMP_TEST_BYTES], accept;
	uint32_t mode, sessions;

	ROUND(owamp_greeting, greeting, OWAMP_GREETING_BYTES);
	ROUND(owamp_start, start, OWAMP_START_BYTES);
	ROUND(owamp_request, request, OWAMP_REQUEST_BYTES);
	ROUND(owamp_slot, slot, OWAMP_SLOT_BYTES);
	ROUND(owamp_accepted, accepted, OWAMP_ACCEPT_BYTES);
	ROUND(owamp_stopped, stopped, OWAMP_STOPPED_BYTES);
	ROUND(owamp_skip, skip, OWAMP_SKIP_BYTES);
	ROUND(owamp_fetch, fetch, OWAMP_FETCH_BYTES);
	ROUND(owamp_fetched, fetched, OWAMP_COMMAND_BYTES);
	if (size >= OWAMP_SETUP_BYTES)
		(void)owamp_setup_read(&mode, data);
	if (size >= OWAMP_STOP_BYTES && owamp_stop_read(&accept, &sessions, data) == 0 && accept > OWAMP_BUSY)
		abort();
	if (owamp_test_read(&packet, data, size) == 0) {
		owamp_test_write(again, &packet);
		if (memcmp(again, data, sizeof again) != 0)
			abort();
	}
	records(data, size);
	return 0;
}
