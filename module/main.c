// SPDX-License-Identifier: GPL-2.0-only
/* ktrxer.ko: probes out at their times (/dev/ktx), packets in by rules (/dev/krx). <linux/ktrxer.h> says how to talk to it. */
#include <linux/module.h>

#include "module.h"

/* All of it but rx_hook.c is one translation unit (docs/decisions/0027-module-size.md). What a file offers to others stands in rx.h or tx.h. */
#include "rx_device.c"
#include "rx_file.c"
#include "rx_ring.c"
#include "rx_table.c"
#include "tx_device.c"
#include "tx_file.c"
#include "tx_frame.c"
#include "tx_lead.c"
#include "tx_ring.c"
#include "tx_send.c"
#include "tx_softirq.c"
#include "tx_thread.c"
#include "tx_wait.c"

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
