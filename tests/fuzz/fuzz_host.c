/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Random text in place of /proc/stat: one reading per line. */
#include "host.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct host_load load = { 0 };

	while (size) {
		const uint8_t *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) : size;
		struct host_cpu cpu;

		if (!host_cpu_parse(&cpu, (const char *)data, length))
			host_load_add(&load, &cpu);
		length += end != NULL;
		data += length;
		size -= length;
	}
	if (host_load_cpu(&load) < -1 || host_load_cpu(&load) > 10000 || host_load_steal(&load) < -1 ||
	    host_load_steal(&load) > 10000)
		abort();
	return 0;
}
