/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_SCHED_ISOLATION_H
#define KTRXER_COMPAT_SCHED_ISOLATION_H

#include_next <linux/sched/isolation.h>

#ifndef KTRXER_HAS_HK_TYPE_DOMAIN
#define HK_TYPE_DOMAIN HK_FLAG_DOMAIN
#endif

#endif
