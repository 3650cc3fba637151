/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First byte: link, protocol and IP version of the trace. The rest: a frame that might be an answer to one of its
 * probes. */
#include "trace_probe.h"

#include <stdlib.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t protos[] = { KTRXER_UDP, KTRXER_TCP, KTRXER_ICMP, KTRXER_ICMPV6 };
	struct trace_probe p = { .port = 33434, .flow_base = 30000, .icmp_id = 0x1234, .secret = { 1, 2, 3, 4, 5, 6 } };
	const struct trace_sent sent = { .number = 9, .want = { 3, 1 } };
	struct trace_changes changes;
	struct trace_reply reply;
	uint32_t number;
	bool whole;

	if (!size)
		return 0;
	p.proto = protos[data[0] >> 1 & 3];
	ktrxer_addr_parse(&p.path.source, data[0] & 8 ? "2001:db8::1" : "192.0.2.1");
	ktrxer_addr_parse(&p.path.to, data[0] & 8 ? "2001:db8:1::9" : "198.51.100.9");
	if (!trace_reply_parse(&reply, data + 1, (uint32_t)size - 1,
			       data[0] & 1 ? KTRXER_LINK_ETHERNET : KTRXER_LINK_RAW_IP))
		return 0;
	if (reply.label_count > TRACE_LABELS_MAX || reply.kind == TRACE_NO_REPLY)
		abort();
	/* Each byte that is said to be there can be read. */
	if (reply.quote.has_payload && reply.quote.payload + TRACE_PAYLOAD_READ > data + size)
		abort();
	if (trace_probe_number(&p, &reply, &number, &whole))
		trace_probe_fits(&p, &reply, &sent, &changes);
	return 0;
}
