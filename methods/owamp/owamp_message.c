/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_message.h"

#include "bytes.h"
#include "owamp_schedule.h"
#include "owamp_sender.h"
#include "owamp_server.h"

#include <errno.h>

ssize_t owamp_message_length(const uint8_t *data, size_t have, bool testing)
{
	size_t length = OWAMP_STOP_BYTES;
	uint32_t count;

	if (have < OWAMP_BLOCK)
		return 0;
	count = load_be32(data + 4);
	if (testing != (data[0] == OWAMP_STOP_SESSIONS))
		return -EBADMSG;
	switch (data[0]) {
	case OWAMP_REQUEST_SESSION:
		return count <= OWAMP_SLOTS_MOST
			       ? OWAMP_REQUEST_BYTES + (ssize_t)count * OWAMP_SLOT_BYTES + OWAMP_HMAC_BYTES
			       : OWAMP_REQUEST_BYTES;
	case OWAMP_START_SESSIONS:
		return OWAMP_COMMAND_BYTES;
	case OWAMP_FETCH_SESSION:
		return OWAMP_FETCH_BYTES;
	case OWAMP_STOP_SESSIONS:
		break;
	default:
		return -EBADMSG;
	}
	if (count > OWAMP_SERVER_SESSIONS)
		return -EBADMSG;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t skips;

		if (have < length + OWAMP_STOPPED_BYTES)
			return 0;
		skips = load_be32(data + length + OWAMP_STOPPED_BYTES - 4);
		if (skips > OWAMP_SKIPS_MOST)
			return -EBADMSG;
		length += owamp_padded(OWAMP_STOPPED_BYTES + (size_t)skips * OWAMP_SKIP_BYTES);
	}
	return (ssize_t)length + OWAMP_HMAC_BYTES;
}
