/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_UNALIGNED_H
#define KTRXER_COMPAT_UNALIGNED_H

#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 12, 0)
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif
