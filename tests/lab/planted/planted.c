// SPDX-License-Identifier: GPL-2.0-only
/*
 * Faults on purpose, one a load (`insmod planted.ko fault=...`): what looks for faults in ktrxer.ko must see each of
 * these.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

static char *fault = "";
module_param(fault, charp, 0);

static int planted_bytes = 40; /* not known to the compiler: it would see through the fault */
module_param(planted_bytes, int, 0);

static DEFINE_MUTEX(planted_a);
static DEFINE_MUTEX(planted_b);
static DEFINE_SPINLOCK(planted_lock);
static volatile u8 planted_sink;
static u8 planted_array[8];

/* One byte behind what was asked for. */
static void planted_slab(void)
{
	u8 *p = kmalloc(planted_bytes, GFP_KERNEL);

	if (p)
		planted_sink = p[planted_bytes];
	kfree(p);
}

static void planted_vmalloc(void)
{
	u8 *p = vmalloc(planted_bytes);

	if (p)
		planted_sink = p[planted_bytes];
	vfree(p);
}

static void planted_freed(void)
{
	u8 *p = kmalloc(planted_bytes, GFP_KERNEL);

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(p);
	kfree(p);
	planted_sink = *(volatile u8 *)p;
}

static void planted_leak(void)
{
	void *p = kmalloc(planted_bytes + 3000, GFP_KERNEL);

	memset(p, 0x5a, 1);
}

/* a before b, then b before a. */
static void planted_order(void)
{
	mutex_lock(&planted_a);
	mutex_lock(&planted_b);
	mutex_unlock(&planted_b);
	mutex_unlock(&planted_a);
	mutex_lock(&planted_b);
	mutex_lock(&planted_a);
	mutex_unlock(&planted_a);
	mutex_unlock(&planted_b);
}

static void planted_sleep(void)
{
	spin_lock(&planted_lock);
	mutex_lock(&planted_a);
	mutex_unlock(&planted_a);
	spin_unlock(&planted_lock);
}

static void planted_shift(void)
{
	planted_sink = 1 << planted_bytes;
}

static void planted_bounds(void)
{
	planted_sink = planted_array[planted_bytes];
}

static enum hrtimer_restart planted_fired(struct hrtimer *timer)
{
	return HRTIMER_NORESTART;
}

/* Its memory goes while it runs. */
static void planted_timer(void)
{
	struct hrtimer *timer = kzalloc(sizeof(*timer), GFP_KERNEL);

	if (!timer)
		return;
	hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	timer->function = planted_fired;
	hrtimer_start(timer, ms_to_ktime(100000), HRTIMER_MODE_REL);
	kfree(timer);
}

static const struct {
	const char *name;
	void (*plant)(void);
} planted[] = {
	{ "slab", planted_slab },   { "vmalloc", planted_vmalloc }, { "freed", planted_freed },
	{ "leak", planted_leak },   { "order", planted_order },     { "sleep", planted_sleep },
	{ "shift", planted_shift }, { "bounds", planted_bounds },   { "timer", planted_timer },
};

static int __init planted_init(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(planted); i++) {
		if (!strcmp(fault, planted[i].name)) {
			planted[i].plant();
			return 0;
		}
	}
	return -EINVAL;
}

static void __exit planted_exit(void)
{
}

module_init(planted_init);
module_exit(planted_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Faults on purpose");
