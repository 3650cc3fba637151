/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The compound probes of a capture file. */
#include "ppt_samples.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_error err = { 0 };
	struct ppt_capture_counts counts;
	struct ppt_samples samples;
	FILE *stream;

	if (!size)
		return 0;
	stream = fmemopen((void *)(uintptr_t)data, size, "rb");
	if (!stream)
		return 0;
	if (ppt_capture_read(&samples, stream, "fuzz", 0, &counts, &err) < 0) {
		if (!err.text[0])
			abort();
	} else if (samples.count != counts.compound.probes || samples.count > counts.packets / 2) {
		abort();
	}
	for (size_t i = 0; i < samples.count; i++)
		if (samples.gaps_ns[i] < 0 || samples.sizes[i] >= counts.compound.heading_bytes)
			abort();
	ppt_samples_free(&samples);
	return 0;
}
