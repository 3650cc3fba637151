/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes as an answer to a probe of `ping` and of the one-sided `pair`: no figure is of bytes that are not there. */
#include "echo.h"

#include <netinet/in.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t protos[] = { IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_ICMPV6, IPPROTO_TCP };

	for (size_t i = 0; i < sizeof protos; i++) {
		struct echo_reply reply;

		if (!echo_reply_parse(&reply, data, (uint32_t)size, protos[i]))
			continue;
		if (reply.bytes > size || (reply.has_number && reply.bytes < ECHO_PAYLOAD_NUMBER) ||
		    (reply.has_secret && reply.bytes < ECHO_PAYLOAD_FULL))
			abort();
	}
	return 0;
}
