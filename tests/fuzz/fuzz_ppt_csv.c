/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A file of gaps, and the estimate from it: any bytes end in a result or in an error with a text. */
#include "ppt_samples.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void estimate(const struct ppt_samples *samples)
{
	struct ppt_train trains[2];
	struct ktrxer_error err = { 0 };
	struct ppt_result result;

	if (ppt_trains_split(trains, samples->sizes, samples->gaps_ns, samples->count, 0, 0, &err) == 0 &&
	    ppt_estimate(trains, ppt_resolution_ns(samples->gaps_ns, samples->count), -1, &result, &err) == 0) {
		if (result.gaps[0].kept < 1 || result.gaps[0].kept > result.gaps[0].count ||
		    result.reading > PPT_COALESCED)
			abort();
	} else if (!err.text[0]) {
		abort();
	}
	ppt_trains_free(trains);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_error err = { 0 };
	struct ppt_samples samples;
	FILE *stream;

	if (!size)
		return 0;
	stream = fmemopen((void *)(uintptr_t)data, size, "rb");
	if (!stream)
		return 0;
	if (ppt_csv_read(&samples, stream, "fuzz", &err) == 0)
		estimate(&samples);
	else if (!err.text[0])
		abort();
	ppt_samples_free(&samples);
	fclose(stream);
	return 0;
}
