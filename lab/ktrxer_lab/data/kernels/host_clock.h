/* SPDX-License-Identifier: GPL-2.0 */
/* Each network namespace is a host with a clock of its own: net/core/host_clock.c. */
#ifndef _LINUX_HOST_CLOCK_H
#define _LINUX_HOST_CLOCK_H

#include <linux/ktime.h>
#include <linux/time64.h>
#include <linux/timex.h>

struct net;

/* A time of the kernel's clock, as the clock of the host shows it; 0 stays 0. */
ktime_t host_clock_shown(struct net *net, clockid_t clock, ktime_t time);
/* The first time of the kernel's clock at which the clock of the host shows `time`; 0 stays 0. */
ktime_t host_clock_true(struct net *net, clockid_t clock, ktime_t time);

void host_clock_show(clockid_t clock, struct timespec64 *time);
ktime_t host_clock_wanted(clockid_t clock, ktime_t time);
time64_t host_clock_seconds(void);
int host_clock_settimeofday(const struct timespec64 *time);
int host_clock_adjtimex(struct __kernel_timex *txc);

#endif
