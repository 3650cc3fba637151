// SPDX-License-Identifier: GPL-2.0-only
/*
 * The module's own text, on a kernel that is short of memory where a test requires it: each allocation of the module
 * lowers `left`, and the one that brings it to 0 is refused. `live` counts those that were not freed. Both are
 * parameters, below /sys/module/ktrxer_failing.
 */
#include <linux/kthread.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

static atomic_t shim_left = ATOMIC_INIT(0);
static atomic_t shim_live = ATOMIC_INIT(0);
module_param_named(left, shim_left.counter, int, 0600);
module_param_named(live, shim_live.counter, int, 0400);

static bool shim_refuses(void)
{
	return atomic_dec_if_positive(&shim_left) == 0;
}

static void *shim_took(void *p)
{
	if (!ZERO_OR_NULL_PTR(p) && !IS_ERR(p))
		atomic_inc(&shim_live);
	return p;
}

static void shim_gave(const void *p)
{
	if (!ZERO_OR_NULL_PTR(p))
		atomic_dec(&shim_live);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static void *shim_kzalloc(size_t size, gfp_t flags)
{
	return shim_refuses() ? NULL : shim_took(kzalloc(size, flags));
}

static void *shim_kvcalloc(size_t n, size_t size, gfp_t flags)
{
	return shim_refuses() ? NULL : shim_took(kvcalloc(n, size, flags));
}

/* One place of the many pages of a ring counts: the others are refused by kernels with fault injection. */
static void *shim_vmap(struct page **pages, unsigned int count, unsigned long flags, pgprot_t prot)
{
	return shim_refuses() ? NULL : shim_took(vmap(pages, count, flags, prot));
}

static void *shim_vmemdup_user(const void __user *from, size_t size)
{
	return shim_refuses() ? ERR_PTR(-ENOMEM) : shim_took(vmemdup_user(from, size));
}

static void __percpu *shim_percpu(size_t size, size_t align)
{
	void __percpu *p = shim_refuses() ? NULL : __alloc_percpu(size, align);

	if (p)
		atomic_inc(&shim_live);
	return p;
}

static void shim_kfree(const void *p)
{
	shim_gave(p);
	kfree(p);
}

static void shim_kvfree(const void *p)
{
	shim_gave(p);
	kvfree(p);
}

static void shim_vunmap(const void *p)
{
	shim_gave(p);
	vunmap(p);
}

static void shim_free_percpu(void __percpu *p)
{
	if (p)
		atomic_dec(&shim_live);
	free_percpu(p);
}

/* ---------------------------------------------------------------------------------------------------------- packets */

static struct sk_buff *shim_alloc_skb(unsigned int size, gfp_t flags)
{
	return shim_refuses() ? NULL : shim_took(alloc_skb(size, flags));
}

static void shim_kfree_skb(struct sk_buff *skb)
{
	shim_gave(skb);
	kfree_skb(skb);
}

/* A packet that a driver has taken belongs to it. */
static netdev_tx_t shim_start_xmit(struct sk_buff *skb, struct net_device *dev, struct netdev_queue *txq, bool more)
{
	const netdev_tx_t ret = netdev_start_xmit(skb, dev, txq, more);

	if (dev_xmit_complete(ret))
		shim_gave(skb);
	return ret;
}

/* ---------------------------------------------------------------------------------------------- user space's memory */

static unsigned long shim_copy_to_user(void __user *to, const void *from, unsigned long n)
{
	return shim_refuses() ? n : copy_to_user(to, from, n);
}

static int shim_copy_struct(void *to, size_t size, const void __user *from, size_t theirs)
{
	return shim_refuses() ? -EFAULT : copy_struct_from_user(to, size, from, theirs);
}

/* ------------------------------------------------------------------------------------------------ other allocations */

static int shim_remap(struct vm_area_struct *vma, void *p, unsigned long at)
{
	return shim_refuses() ? -ENOMEM : remap_vmalloc_range(vma, p, at);
}

static int shim_hooks(struct net *net, const struct nf_hook_ops *ops, unsigned int n)
{
	return shim_refuses() ? -ENOMEM : nf_register_net_hooks(net, ops, n);
}

static int shim_promiscuity(struct net_device *dev, int more)
{
	return more > 0 && shim_refuses() ? -ENOMEM : dev_set_promiscuity(dev, more);
}

static int shim_notifier(struct notifier_block *block)
{
	return shim_refuses() ? -ENOMEM : register_netdevice_notifier(block);
}

static int shim_misc(struct miscdevice *misc)
{
	return shim_refuses() ? -ENOMEM : misc_register(misc);
}

#undef kzalloc
#undef kvcalloc
#undef vmap
#undef vmemdup_user
#undef alloc_percpu
#undef kfree
#undef kvfree
#undef vunmap
#undef free_percpu
#undef alloc_skb
#undef kfree_skb
#undef netdev_start_xmit
#undef copy_to_user
#undef copy_struct_from_user
#undef kthread_create
#undef remap_vmalloc_range
#undef nf_register_net_hooks
#undef dev_set_promiscuity
#undef register_netdevice_notifier
#undef misc_register
#define kzalloc shim_kzalloc
#define kvcalloc shim_kvcalloc
#define vmap shim_vmap
#define vmemdup_user shim_vmemdup_user
#define alloc_percpu(type) ((type __percpu *)shim_percpu(sizeof(type), __alignof__(type)))
#define kfree shim_kfree
#define kvfree shim_kvfree
#define vunmap shim_vunmap
#define free_percpu shim_free_percpu
#define alloc_skb shim_alloc_skb
#define kfree_skb shim_kfree_skb
#define netdev_start_xmit shim_start_xmit
#define copy_to_user shim_copy_to_user
#define copy_struct_from_user shim_copy_struct
#define kthread_create(run, data, name, ...) \
	(shim_refuses() ? ERR_PTR(-ENOMEM) : kthread_create_on_node(run, data, NUMA_NO_NODE, name, ##__VA_ARGS__))
#define remap_vmalloc_range shim_remap
#define nf_register_net_hooks shim_hooks
#define dev_set_promiscuity shim_promiscuity
#define register_netdevice_notifier shim_notifier
#define misc_register shim_misc

#include "ioctl.c"
#include "main.c"
#include "memory.c"
#include "rx_device.c"
#include "rx_file.c"
#include "rx_hook.c"
#include "rx_record.c"
#include "rx_ring.c"
#include "rx_table.c"
#include "tx_budget.c"
#include "tx_device.c"
#include "tx_file.c"
#include "tx_frame.c"
#include "tx_margin.c"
#include "tx_ring.c"
#include "tx_send.c"
#include "tx_sender.c"
#include "tx_softirq.c"
#include "tx_thread.c"
#include "tx_wait.c"
#include "trace.c"
