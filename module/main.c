// SPDX-License-Identifier: GPL-2.0-only
/*
 * ktrxer.ko sends probes at their times (/dev/ktx) and captures packets by rules (/dev/krx).
 * <linux/ktrxer.h> is the specification of both devices.
 */
#include <linux/module.h>

#include "module.h"

static int __init ktrxer_init(void)
{
	int ret;

	ret = ktx_init();
	if (ret)
		return ret;
	ret = krx_init();
	if (ret)
		goto err_krx;
	return 0;

err_krx:
	ktx_exit();
	return ret;
}

static void __exit ktrxer_exit(void)
{
	krx_exit();
	ktx_exit();
}

module_init(ktrxer_init);
module_exit(ktrxer_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Precisely timed packets: /dev/ktx and /dev/krx");
MODULE_VERSION("0.1.0");
