// SPDX-License-Identifier: GPL-2.0-only
/* /dev/krx as user space calls it. */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/poll.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "rx.h"

static int krx_file_open(struct inode *inode, struct file *file)
{
	struct net *net = current->nsproxy->net_ns;
	struct krx_file *krx;

	if (!ns_capable(net->user_ns, CAP_NET_RAW))
		return -EPERM;
	krx = kzalloc(sizeof(*krx), GFP_KERNEL_ACCOUNT);
	if (!krx)
		return -ENOMEM;
	krx->net = get_net(net);
	mutex_init(&krx->lock);
	spin_lock_init(&krx->ring.lock);
	init_waitqueue_head(&krx->readers);
	file->private_data = krx; /* misc_open() has stored its own pointer there */
	return nonseekable_open(inode, file);
}

static int krx_file_release(struct inode *inode, struct file *file)
{
	struct krx_file *krx = file->private_data;

	if (krx->ready) {
		krx_device_leave(krx);
		net_disable_timestamp();
	}
	krx_table_free(rcu_dereference_protected(krx->table, true));
	krx_ring_free(&krx->ring);
	put_net(krx->net);
	kfree(krx);
	return 0;
}

static bool krx_setup_valid(const struct ktrxer_rx_setup *setup)
{
	return !(setup->flags & ~KTRXER_RX_PROMISCUOUS) && setup->snap <= KTRXER_RX_SNAP_MAX &&
	       setup->ring_bytes >= KTRXER_RX_RING_MIN && setup->ring_bytes <= KTRXER_RX_RING_MAX &&
	       !setup->reserved[0] && !setup->reserved[1] &&
	       (setup->hook == KTRXER_RX_INGRESS ? setup->ifindex != 0
						 : setup->hook == KTRXER_RX_PREROUTING) &&
	       (setup->ifindex || !setup->flags);
}

static int krx_file_prepare(struct krx_file *krx, const struct ktrxer_rx_setup *setup)
{
	int ret;

	if (krx->ready)
		return -EBUSY;
	ret = krx_ring_make(&krx->ring, setup->ring_bytes);
	if (ret)
		return ret;
	krx->snap = setup->snap ? setup->snap : KTRXER_RX_SNAP_MAX;
	krx->ifindex = setup->ifindex;
	ret = krx_device_bind(krx, setup->hook, setup->flags);
	if (ret) {
		krx_ring_free(&krx->ring);
		return ret;
	}
	net_enable_timestamp();
	/*
	 * Pairs with the acquires of mmap() and poll(), which use the ring after they have read it.
	 */
	smp_store_release(&krx->ready, true);
	return 0;
}

static long krx_file_setup(struct krx_file *krx, void __user *arg)
{
	struct ktrxer_rx_setup setup;
	long size = ktrxer_struct_take(&setup, sizeof(setup), sizeof(setup), arg);
	long ret;

	if (size < 0)
		return size;
	if (!krx_setup_valid(&setup))
		return -EINVAL;
	mutex_lock(&krx->lock);
	ret = krx_file_prepare(krx, &setup);
	mutex_unlock(&krx->lock);
	if (ret)
		return ret;
	setup.ring_bytes = krx->ring.data_bytes;
	setup.map_bytes = krx->ring.map_bytes;
	setup.tail_offset = krx->ring.tail_offset;
	setup.data_offset = krx->ring.data_offset;
	setup.map_offset = ktrxer_memory_offset(&krx->ring.memory);
	return ktrxer_struct_give(arg, &setup, sizeof(setup), size);
}

static int krx_file_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct krx_file *krx = file->private_data;

	/* Pairs with the release of krx_file_prepare(). */
	if (!smp_load_acquire(&krx->ready))
		return -ENXIO;
	return ktrxer_memory_map(&krx->ring.memory, vma);
}

/*
 * The table is complete before the first packet uses it, and the former one stays until the last
 * packet has used it.
 */
static int krx_table_publish(struct krx_file *krx, struct krx_table *table)
{
	struct krx_table *former;
	int ret;

	if (!krx->ready)
		return -ENXIO;
	table->generation = krx->generation + 1;
	former = rcu_replace_pointer(krx->table, table, lockdep_is_held(&krx->lock));
	ret = krx_device_hook(krx);
	if (!ret) {
		krx->generation = table->generation;
	} else {
		rcu_assign_pointer(krx->table, former);
		former = NULL;
	}
	synchronize_net();
	krx_table_free(former);
	return ret;
}

static long krx_file_rules(struct file *file, void __user *arg)
{
	struct krx_file *krx = file->private_data;
	struct ktrxer_rx_rules rules;
	struct krx_table *table;
	const long size = ktrxer_struct_take(&rules, sizeof(rules), sizeof(rules), arg);
	long ret;

	if (size < 0)
		return size;
	if (rules.rule_size != sizeof(struct ktrxer_rx_rule) || rules.generation)
		return -EINVAL;
	if (rules.count > KTRXER_RX_RULES_MAX)
		return -E2BIG;
	table = krx_table_make(u64_to_user_ptr(rules.rules), rules.count);
	if (IS_ERR(table))
		return PTR_ERR(table);
	if (krx_table_drops(table) && !ktrxer_ns_may(file, krx->net->user_ns, CAP_NET_ADMIN)) {
		ret = -EPERM;
	} else {
		mutex_lock(&krx->lock);
		ret = krx_table_publish(krx, table);
		rules.generation = krx->generation;
		mutex_unlock(&krx->lock);
	}
	if (ret) {
		krx_table_free(table);
		return ret;
	}
	/* The rules are in force; only their number may not have reached the caller. */
	return ktrxer_struct_give(arg, &rules, sizeof(rules), size);
}

/*
 * Nothing of user space is touched while the lock is held: a page fault there takes a lock that
 * mmap() holds when it comes here.
 */
static u32 krx_file_sums(struct krx_file *krx, struct ktrxer_rx_stats *stats, u64 *matched)
{
	const struct krx_table *table;
	u32 given = 0;

	mutex_lock(&krx->lock);
	table = rcu_dereference_protected(krx->table, lockdep_is_held(&krx->lock));
	if (table) {
		given = min(stats->count, table->match.count);
		if (matched)
			krx_table_sums(table, matched, given);
	}
	stats->count = table ? table->match.count : 0;
	spin_lock_bh(&krx->ring.lock);
	stats->captured = krx->ring.captured;
	stats->lost = krx->ring.lost;
	spin_unlock_bh(&krx->ring.lock);
	stats->state = READ_ONCE(krx->state);
	stats->generation = krx->generation;
	mutex_unlock(&krx->lock);
	return given;
}

static long krx_file_stats(struct krx_file *krx, void __user *arg)
{
	struct ktrxer_rx_stats stats;
	u64 *matched = NULL;
	long size = ktrxer_struct_take(&stats, sizeof(stats), sizeof(stats), arg), ret = 0;
	u32 given;

	if (size < 0)
		return size;
	if (stats.count > KTRXER_RX_RULES_MAX)
		return -E2BIG;
	if (stats.matched && stats.count) {
		matched = kvcalloc(stats.count, sizeof(*matched), GFP_KERNEL_ACCOUNT);
		if (!matched)
			return -ENOMEM;
	}
	given = krx_file_sums(krx, &stats, matched);
	if (matched &&
	    copy_to_user(u64_to_user_ptr(stats.matched), matched, given * sizeof(*matched)))
		ret = -EFAULT;
	kvfree(matched);
	return ret ? ret : ktrxer_struct_give(arg, &stats, sizeof(stats), size);
}

static long krx_file_ioctl(struct file *file, unsigned int command, unsigned long argument)
{
	void __user *arg = (void __user *)argument;

	if (_IOC_TYPE(command) != KTRXER_IOC)
		return -ENOTTY;
	switch (_IOC_NR(command)) {
	case _IOC_NR(KTRXER_IOC_VERSION):
		return ktrxer_version_get(arg);
	case _IOC_NR(KTRXER_IOC_FEATURES):
		return ktrxer_features_get(arg);
	case _IOC_NR(KTRXER_RX_SETUP):
		return krx_file_setup(file->private_data, arg);
	case _IOC_NR(KTRXER_RX_RULES):
		return krx_file_rules(file, arg);
	case _IOC_NR(KTRXER_RX_STATS):
		return krx_file_stats(file->private_data, arg);
	default:
		return -ENOTTY;
	}
}

static __poll_t krx_file_poll(struct file *file, poll_table *wait)
{
	struct krx_file *krx = file->private_data;
	__poll_t mask = 0;
	u32 state;

	poll_wait(file, &krx->readers, wait);
	/* Pairs with the release of krx_file_prepare(). */
	if (!smp_load_acquire(&krx->ready))
		return EPOLLERR;
	state = READ_ONCE(krx->state);
	if (krx_ring_readable(&krx->ring))
		mask |= EPOLLIN | EPOLLRDNORM;
	/* Once for each change, so that a device that stays down causes no second wake-up. */
	if (READ_ONCE(krx->events) != READ_ONCE(*krx_ring_seen(&krx->ring)))
		mask |= EPOLLPRI | (state != KTRXER_RX_UP ? EPOLLERR : 0);
	if (state == KTRXER_RX_GONE)
		mask |= EPOLLHUP;
	return mask;
}

#ifdef CONFIG_PROC_FS
static void krx_file_show_fdinfo(struct seq_file *out, struct file *file)
{
	static const char *const ops[] = { "", "capture", "drop", "capture+drop", "forward" };
	struct krx_file *krx = file->private_data;
	struct ktrxer_rx_stats stats = { .count = KTRXER_RX_RULES_MAX };
	const struct krx_table *table;
	u64 *matched;
	u32 given = 0, i;

	if (!smp_load_acquire(&krx->ready)) /* krx_file_prepare() */
		return;
	matched = kvcalloc(stats.count, sizeof(*matched), GFP_KERNEL_ACCOUNT);
	if (matched)
		given = krx_file_sums(krx, &stats, matched);
	seq_printf(out, "krx-ifindex:\t%u\n", krx->ifindex);
	seq_printf(out, "krx-state:\t%u\n", stats.state);
	seq_printf(out, "krx-captured:\t%llu\n", stats.captured);
	seq_printf(out, "krx-lost:\t%llu\n", stats.lost);
	seq_printf(out, "krx-generation:\t%u\n", stats.generation);
	rcu_read_lock();
	table = rcu_dereference(krx->table);
	for (i = 0; table && i < min(given, table->match.count); i++)
		seq_printf(out, "krx-rule:\t%u %s %llu\n", i, ops[table->match.op[i]], matched[i]);
	rcu_read_unlock();
	kvfree(matched);
}
#endif

static const struct file_operations krx_file_operations = {
	.owner = THIS_MODULE,
	.open = krx_file_open,
	.release = krx_file_release,
	.unlocked_ioctl = krx_file_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = krx_file_mmap,
	.poll = krx_file_poll,
#ifdef CONFIG_PROC_FS
	.show_fdinfo = krx_file_show_fdinfo,
#endif
};

static struct miscdevice krx_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "krx",
	.mode = 0660,
	.fops = &krx_file_operations,
};

int krx_init(void)
{
	int ret;

	ret = krx_device_init();
	if (ret)
		return ret;
	ret = misc_register(&krx_misc);
	if (ret)
		goto err_misc;
	return 0;

err_misc:
	krx_device_exit();
	return ret;
}

void krx_exit(void)
{
	misc_deregister(&krx_misc);
	krx_device_exit();
}
