// SPDX-License-Identifier: GPL-2.0-only OR MIT
#include "module.h"

int krx_init(void)
{
	return 0;
}

void krx_exit(void)
{
}
