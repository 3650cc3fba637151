// SPDX-License-Identifier: GPL-2.0
/* A module for the tests of the lab's way to build modules: it greets, and it says what a timer of its own saw. */
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>

static char *name = "default";
module_param(name, charp, 0444);
MODULE_PARM_DESC(name, "a name in the message");

static struct hrtimer timer;

static enum hrtimer_restart fired(struct hrtimer *t)
{
	pr_info("hello: late by %lld ns\n", ktime_to_ns(ktime_sub(ktime_get(), hrtimer_get_expires(t))));
	return HRTIMER_NORESTART;
}

static int __init hello_init(void)
{
	pr_info("hello: hello %s\n", name);
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_HARD);
	timer.function = fired;
	hrtimer_start(&timer, ktime_add_ms(ktime_get(), 10), HRTIMER_MODE_ABS_HARD);
	return 0;
}

static void __exit hello_exit(void)
{
	hrtimer_cancel(&timer);
	pr_info("hello: bye %s\n", name);
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("says hello");
