// SPDX-License-Identifier: GPL-2.0-only
/* /dev/ktx: the file operations, from open to release. */
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched/isolation.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/time.h>

#include "tx.h"

static atomic_t ktx_files = ATOMIC_INIT(0);

static int ktx_open(struct inode *inode, struct file *file)
{
	struct net *net = current->nsproxy->net_ns;
	struct ktx_file *f;

	if (!ns_capable(net->user_ns, CAP_NET_RAW))
		return -EPERM;
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f)
		return -ENOMEM;
	f->net = get_net(net);
	f->id = atomic_inc_return(&ktx_files);
	mutex_init(&f->lock);
	mutex_init(&f->take_lock);
	spin_lock_init(&f->arm_lock);
	init_completion(&f->measured);
	init_waitqueue_head(&f->readers);
	file->private_data = f;
	return nonseekable_open(inode, file);
}

/* The last descriptor is closed and the last mapping removed: the file ends here. */
static int ktx_release(struct inode *inode, struct file *file)
{
	struct ktx_file *f = file->private_data;

	if (f->ready) {
		/* Before the sender, which the notifier would kick. */
		struct net_device *dev = ktx_device_release(f);

		ktx_sender_stop(f);
		ktx_device_put(f, dev);
		ktx_ring_free(f);
	}
	put_net(f->net);
	kfree(f);
	return 0;
}

static int ktx_setup_check(const struct ktrxer_tx_setup *setup)
{
	if (setup->flags & ~KTRXER_TX_NO_COMPENSATION)
		return -EINVAL;
	if (setup->clock != CLOCK_MONOTONIC)
		return -EOPNOTSUPP;
	if (setup->timer > KTRXER_TX_TIMER_NONE || setup->late > KTRXER_TX_LATE_SHIFT)
		return -EINVAL;
	if (setup->retry_ns > (u64)KTX_RETRY_MAX_S * NSEC_PER_SEC)
		return -EINVAL;
	/* Only processors of the caller: its cpuset limits the thread, too. */
	if (setup->cpu != KTRXER_TX_ANY_CPU &&
	    (setup->cpu >= nr_cpu_ids || !cpu_online(setup->cpu) ||
	     !cpumask_test_cpu(setup->cpu, current->cpus_ptr)))
		return -EINVAL;
	return 0;
}

/*
 * Another processor of the program than the one on which it runs, so that its phase one goes on
 * while the sender spins before a probe. An isolated processor only if the program has no other.
 */
static u32 ktx_cpu_choose(u32 wanted)
{
	const struct cpumask *shared = housekeeping_cpumask(HK_TYPE_DOMAIN);
	const u32 here = raw_smp_processor_id();
	u32 cpu, chosen = here;
	bool found = false;

	if (wanted != KTRXER_TX_ANY_CPU)
		return wanted;
	for_each_cpu_wrap(cpu, current->cpus_ptr, (here + 1) % nr_cpu_ids) {
		if (!cpu_online(cpu))
			continue;
		if (cpumask_test_cpu(cpu, shared))
			return cpu;
		if (!found)
			chosen = cpu;
		found = true;
	}
	return chosen;
}

static int ktx_setup(struct file *file, struct ktrxer_tx_setup *setup)
{
	struct ktx_file *f = file->private_data;
	int ret = ktx_setup_check(setup);

	if (ret)
		return ret;
	/* Real-time threads and softirqs take time of the host: the capability is needed there. */
	if (setup->timer != KTRXER_TX_TIMER_NONE &&
	    !ktrxer_ns_may(file, &init_user_ns, CAP_NET_RAW))
		return -EPERM;
	if (f->ready)
		return -EBUSY;
	f->late = setup->late;
	f->late_ns = setup->late_ns;
	f->retry_ns = setup->retry_ns;
	f->learns_compensation = !(setup->flags & KTRXER_TX_NO_COMPENSATION);
	f->queue = setup->queue;
	f->cpu = ktx_cpu_choose(setup->cpu);
	ret = ktx_ring_make(f, setup);
	if (ret)
		return ret;
	ret = ktx_sender_start(f, setup->timer);
	if (ret)
		goto err_sender;
	/* Last, since from here on the notifier may kick the sender. */
	ret = ktx_device_bind(f, setup->ifindex, setup->queue);
	if (ret)
		goto err_device;
	ktx_wait_begin(f);
	setup->timer = f->timer_kind;
	setup->cpu = f->timer_kind == KTRXER_TX_TIMER_THREAD ? f->cpu : KTRXER_TX_ANY_CPU;
	setup->margin_ns = f->margin_ns;
	setup->softirq_late_ns = f->softirq_late_ns;
	setup->thread_late_ns = f->thread_late_ns;
	smp_store_release(&f->ready, true); /* after all of the above */
	return 0;

err_device:
	ktx_sender_stop(f);
err_sender:
	ktx_ring_free(f);
	reinit_completion(&f->measured);
	return ret;
}

static long ktx_ioctl_setup(struct file *file, void __user *to)
{
	struct ktx_file *f = file->private_data;
	struct ktrxer_tx_setup setup;
	long size = ktrxer_struct_take(&setup, sizeof(setup),
				       offsetofend(struct ktrxer_tx_setup, thread_late_ns), to);
	int ret;

	if (size < 0)
		return size;
	mutex_lock(&f->lock);
	ret = ktx_setup(file, &setup);
	mutex_unlock(&f->lock);
	return ret ? ret : ktrxer_struct_give(to, &setup, sizeof(setup), size);
}

/* Cancels published probes before number `to`. Takes no lock, so it waits for no other call. */
static int ktx_cancel(struct ktx_file *f, u32 to)
{
	/* Read `sent` first, and once: probes that are sent meanwhile only reduce the rest. */
	const u32 sent = smp_load_acquire(&f->sent); /* ktx_probe_end() */
	const u32 head = smp_load_acquire(&f->ring->head); /* the program's release */

	if (ktx_before(to, sent))
		return 0;
	if (to - sent > head - sent || head - sent > f->count)
		return -EINVAL;
	atomic64_set(&f->cancel, KTX_CANCEL | to);
	return 0;
}

/* The driver's queue was full: sleep, instead of spinning until the next try. */
static void ktx_nap(u64 until)
{
	ktime_t at = ns_to_ktime(until);

	set_current_state(TASK_INTERRUPTIBLE);
	schedule_hrtimeout(&at, HRTIMER_MODE_ABS);
}

/* Phase two of KTRXER_TX_TIMER_NONE. */
static u64 ktx_kick_send(struct ktx_file *f)
{
	u64 next = 0;

	while (!signal_pending(current)) {
		ktx_ring_take(f, f->window);
		next = ktx_send_due(f, 1);
		if (next == KTX_NEVER) {
			if (!ktx_ring_has_more(f))
				break;
		} else if (f->first_call_ns) {
			ktx_nap(next);
		} else if (next > ktime_get_ns()) {
			break;
		}
		cond_resched();
	}
	ktx_ring_announce(f, KTX_NEVER);
	return next;
}

/* Called with take_lock, which this function releases. */
static void ktx_kick_work(struct ktx_file *f, struct ktrxer_tx_kick *kick)
{
	do {
		ktx_ring_take(f, 0);
		if (f->timer_kind == KTRXER_TX_TIMER_NONE)
			kick->next_ns = ktx_kick_send(f);
		else
			ktx_ring_take(f, f->window);
		mutex_unlock(&f->take_lock);
		if (f->timer_kind != KTRXER_TX_TIMER_NONE)
			return;
		smp_mb(); /* the lock is free, before the look; pairs with the one of ktx_kick() */
		/*
		 * A cancellation that came meanwhile has not waited for the lock: handle it here.
		 */
	} while (atomic64_read(&f->cancel) && !READ_ONCE(f->error) && !signal_pending(current) &&
		 mutex_trylock(&f->take_lock));
}

static long ktx_kick(struct ktx_file *f, struct ktrxer_tx_kick *kick)
{
	int ret = 0;

	if (kick->cancel > 1 || kick->reserved)
		return -EINVAL;
	kick->next_ns = KTX_NEVER;
	if (kick->cancel) {
		ret = ktx_cancel(f, kick->cancel_to);
		smp_mb(); /* the cancellation, before the look at the lock */
		if (mutex_trylock(&f->take_lock))
			ktx_kick_work(f, kick);
	} else {
		if (mutex_lock_interruptible(&f->take_lock))
			return -ERESTARTSYS;
		ktx_kick_work(f, kick);
	}
	ktx_sender_kick(f, kick->cancel || READ_ONCE(f->error));
	return READ_ONCE(f->error) ? -READ_ONCE(f->error) : ret;
}

static long ktx_ioctl_kick(struct ktx_file *f, void __user *to)
{
	struct ktrxer_tx_kick kick;
	long size = ktrxer_struct_take(&kick, sizeof(kick),
				       offsetofend(struct ktrxer_tx_kick, next_ns), to),
	     ret;

	if (size < 0)
		return size;
	ret = ktx_kick(f, &kick);
	return ret ? ret : ktrxer_struct_give(to, &kick, sizeof(kick), size);
}

/* Compares the number of the command only: its size may grow. */
static long ktx_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	struct ktx_file *f = file->private_data;
	void __user *to = (void __user *)argument;

	if (_IOC_TYPE(command) != KTRXER_IOC)
		return -ENOTTY;
	switch (_IOC_NR(command)) {
	case _IOC_NR(KTRXER_IOC_VERSION):
		return ktrxer_version_get(to);
	case _IOC_NR(KTRXER_IOC_FEATURES):
		return ktrxer_features_get(to);
	case _IOC_NR(KTRXER_TX_SETUP):
		return ktx_ioctl_setup(file, to);
	case _IOC_NR(KTRXER_TX_KICK):
		/* Pairs with the end of ktx_setup(), as the two below do. */
		return smp_load_acquire(&f->ready) ? ktx_ioctl_kick(f, to) : -ENXIO;
	default:
		return -ENOTTY;
	}
}

static int ktx_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct ktx_file *f = file->private_data;

	if (!smp_load_acquire(&f->ready)) /* ktx_setup() */
		return -ENXIO;
	return ktrxer_memory_map(&f->memory, vma);
}

static __poll_t ktx_poll(struct file *file, poll_table *table)
{
	struct ktx_file *f = file->private_data;
	__poll_t mask = 0;

	poll_wait(file, &f->readers, table);
	if (!smp_load_acquire(&f->ready)) /* ktx_setup() */
		return EPOLLERR;
	if (smp_load_acquire(&f->sent) != /* ktx_probe_end() */
	    READ_ONCE(f->ring->seen))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(f->error))
		mask |= EPOLLERR;
	return mask;
}

#ifdef CONFIG_PROC_FS
/* Each number is read at its own moment. */
static void ktx_show_fdinfo(struct seq_file *out, struct file *file)
{
	static const char *const timers[] = { "auto", "softirq", "thread", "none" };
	const struct ktx_file *f = file->private_data;
	const struct net_device *dev;

	seq_printf(out, "ktx-file:\t%u\n", f->id);
	if (!smp_load_acquire(&f->ready)) /* ktx_setup() */
		return;
	rcu_read_lock();
	dev = rcu_dereference(f->dev);
	seq_printf(out, "ktx-ifindex:\t%d\n", dev ? dev->ifindex : 0);
	rcu_read_unlock();
	seq_printf(out, "ktx-timer:\t%s\n", timers[f->timer_kind]);
	if (f->timer_kind == KTRXER_TX_TIMER_THREAD)
		seq_printf(out, "ktx-cpu:\t%u\n", f->cpu);
	seq_printf(out, "ktx-slots:\t%u\n", f->count);
	seq_printf(out, "ktx-published:\t%u\n", READ_ONCE(f->head));
	seq_printf(out, "ktx-prepared:\t%u\n", READ_ONCE(f->taken));
	seq_printf(out, "ktx-reported:\t%u\n", READ_ONCE(f->sent));
	seq_printf(out, "ktx-error:\t%d\n", READ_ONCE(f->error));
}
#endif

static const struct file_operations ktx_operations = {
	.owner = THIS_MODULE,
	.open = ktx_open,
	.release = ktx_release,
	.unlocked_ioctl = ktx_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = ktx_mmap,
	.poll = ktx_poll,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = ktx_show_fdinfo,
#endif
};

static struct miscdevice ktx_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "ktx",
	.fops = &ktx_operations,
	.mode = 0660,
};

int ktx_init(void)
{
	int ret = ktx_device_init();

	if (ret)
		return ret;
	ret = misc_register(&ktx_device);
	if (ret)
		ktx_device_exit();
	return ret;
}

void ktx_exit(void)
{
	misc_deregister(&ktx_device);
	ktx_device_exit();
}
