/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Answers of the kernel's families `nlctrl` and `netdev`. */
#include "live_device.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t features;

	(void)ktrxer_live_family_of(bytes_of(data, size));
	(void)ktrxer_live_xdp_features_of(bytes_of(data, size), 7, &features);
	return 0;
}
