/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A whole capture file. */
#include "pcapng.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_error err = { 0 };
	struct ktrxer_capture_packet packet;
	struct ktrxer_capture *capture;
	volatile uint8_t sum = 0;
	FILE *stream;
	int ret;

	if (!size)
		return 0;
	stream = fmemopen((void *)(uintptr_t)data, size, "rb");
	if (!stream)
		return 0;
	if (ktrxer_capture_stream(&capture, stream, "fuzz", &err)) {
		if (!err.text[0])
			abort();
		return 0;
	}
	while ((ret = ktrxer_capture_next(capture, &packet, &err)) == 1)
		for (uint32_t i = 0; i < packet.length; i++)
			sum = (uint8_t)(sum + packet.data[i]);
	if (ret < 0 && !err.text[0])
		abort();
	ktrxer_capture_close(capture);
	return 0;
}
