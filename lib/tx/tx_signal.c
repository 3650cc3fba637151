/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tx.h"

#include <unistd.h>

void ktx_signal(int fd)
{
	const uint64_t one = 1;

	(void)!write(fd, &one, sizeof one);
}

void ktx_signal_clear(int fd)
{
	uint64_t count;

	(void)!read(fd, &count, sizeof count);
}
