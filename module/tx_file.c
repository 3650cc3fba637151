// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* /dev/ktx: what a program may ask of a file, from open to release. */
#include "module.h"

int ktx_init(void)
{
	return 0;
}

void ktx_exit(void)
{
}
