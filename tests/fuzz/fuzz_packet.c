/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* First byte: which link. The rest: a frame, in which the parser finds what the reference finds. */
#include "../unit/packet_reference.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_packet_view view;
	uint32_t length;

	if (!size)
		return 0;
	length = (uint32_t)size - 1;
	ktrxer_packet_parse(&view, data + 1, length, data[0] & 1 ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET);
	if (view.end > length || view.l3 > length || view.l4 > view.end || view.payload > view.end)
		abort();
	if (view.ports && (!view.l4 || view.l4 + 4u > view.end))
		abort();
	if (packet_differs(data + 1, length, data[0] & 1 ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET))
		abort();
	ktrxer_transport_checksum(data + 1, &view);
	ktrxer_sum(data + 1, length, 0);
	return 0;
}
