/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef KTRXER_COMPAT_HRTIMER_H
#define KTRXER_COMPAT_HRTIMER_H

#include_next <linux/hrtimer.h>

#ifndef KTRXER_HAS_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

#endif
