/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_UNALIGNED_H
#define KTRXER_COMPAT_UNALIGNED_H

#ifndef KTRXER_HAS_UNALIGNED_H
#include <asm/unaligned.h>
#else
#include_next <linux/unaligned.h>
#endif

#endif
