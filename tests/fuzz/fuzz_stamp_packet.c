/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A test packet of either role and mode, and its TLVs. */
#include "stamp_packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const uint8_t *packet, size_t length, uint32_t at)
{
	struct stamp_tlv tlv;
	enum stamp_tlv_found found;

	do {
		uint32_t before = at;

		found = stamp_tlv_next(&tlv, packet, length, &at);
		if (found != STAMP_TLV_OK)
			break;
		if (at <= before || at > length || tlv.value < packet || tlv.value + tlv.length > packet + length)
			abort();
		if (tlv.length == 4)
			stamp_cos_read(tlv.value);
		if (tlv.length == 16)
			(void)stamp_follow_up_read(tlv.value), (void)stamp_limits_read(tlv.value),
				(void)stamp_clock_read(tlv.value);
		stamp_tlv_length_ok(tlv.type, tlv.length);
	} while (found == STAMP_TLV_OK);
	if (found == STAMP_TLV_CUT && tlv.at >= length)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (int auth = 0; auth < 2; auth++) {
		const size_t base = stamp_base_length(auth);
		struct stamp_probe probe;
		struct stamp_reply reply;
		int64_t ns;

		if (stamp_probe_read(&probe, data, size, auth) != (size >= base))
			abort();
		stamp_reply_read(&reply, data, size, auth);
		stamp_looks_reflected(data, size, auth);
		for (int ptp = 0; ptp < 2; ptp++) {
			/*
			 * A time that is read and written again is the same time (to the nanosecond, which is coarser
			 * than NTP's).
			 */
			if (stamp_time_to_ns(&ns, reply.received, ptp, 1795000000000000000LL)) {
				int64_t again;

				if (!stamp_time_to_ns(&again, stamp_time_of_ns(ns, ptp), ptp, 1795000000000000000LL) ||
				    again != ns)
					abort();
			}
		}
		stamp_error_read(reply.error);
		walk(data, size, (uint32_t)base);
	}
	return 0;
}
