/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First byte: which kind of reflector. The rest: packets, each with one byte of length before it. */
#include "reflector.h"
#include "stamp_packet.h"

#include <stdlib.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void one(struct reflector *r, const uint8_t *data, uint32_t length, uint8_t how, uint64_t now)
{
	struct reflector_arrival a = { .from = { .family = how & 1 ? AF_INET6 : AF_INET, .bytes = { 10, how } },
				       .to = { .family = how & 1 ? AF_INET6 : AF_INET, .bytes = { 10, 9 } },
				       .from_port = 1000,
				       .to_port = 862,
				       .tos = how,
				       .ttl = how,
				       .now_ns = now,
				       .received_real_ns = 1795000000000000000LL };
	struct reflector_answer answer;
	uint8_t *packet = malloc(length ? length : 1); /* of the exact size, so that a byte beyond it is seen */

	if (!packet)
		return;
	if (length)
		memcpy(packet, data, length);
	if (reflector_answer(r, packet, length, length, &a, &answer) == REFLECTOR_ANSWER) {
		reflector_finish(r, packet, &answer, a.received_real_ns + 1000);
		if (!stamp_looks_reflected(packet, length, answer.auth))
			abort();
		/* It must not answer its own answer. */
		if (reflector_answer(r, packet, length, length, &a, &answer) == REFLECTOR_ANSWER)
			abort();
		if (answer.follow)
			reflector_sent(r, answer.session, answer.seq, a.received_real_ns + 2000, how & 2);
	} else if (length && memcmp(packet, data, length) != 0) {
		abort();
	}
	free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct reflector *kinds[4];
	struct bytes b = bytes_of(data, size);
	uint8_t how = bytes_u8(&b);
	uint64_t now = 1000;

	if (!kinds[0]) {
		struct hmac_key key;

		hmac_key_set(&key, "", 0);
		for (int i = 0; i < 4; i++) {
			struct reflector_options o = { .dscp_granted = REFLECTOR_DSCP_DEFAULT,
						       .dscp_trusted = REFLECTOR_DSCP_TRUSTED,
						       .stateless = i == 1,
						       .ptp = i == 2,
						       .tlv_key = i == 2 ? &key : NULL,
						       .auth_key = i == 3 ? &key : NULL };

			if (reflector_new(&kinds[i], &o) < 0)
				abort();
		}
	}
	while (bytes_left(&b)) {
		uint32_t length = bytes_u8(&b);

		if (length > bytes_left(&b))
			length = (uint32_t)bytes_left(&b);
		one(kinds[how & 3], bytes_take(&b, length), length, how >> 2, now++);
	}
	return 0;
}
