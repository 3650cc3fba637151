// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device of a file. It may be renamed, go down, move to another namespace or go away at any time: the sender looks at f->dev anew for each
 * hand-over, and the notifier returns only when nobody can be using it any more.
 */
#include <linux/if_arp.h>
#include <linux/rtnetlink.h>
#include <net/net_namespace.h>
#include <net/rtnetlink.h>

#include "tx.h"

static LIST_HEAD(ktx_bound); /* under rtnl */

static int ktx_shape_of(const struct net_device *dev, struct ktx_shape *shape)
{
	shape->header = dev->hard_header_len;
	shape->headroom = LL_RESERVED_SPACE(dev);
	shape->tailroom = dev->needed_tailroom;
	switch (dev->type) {
	case ARPHRD_ETHER:
	case ARPHRD_LOOPBACK:
		shape->raw_ip = false;
		return dev->hard_header_len < ETH_HLEN ? -EOPNOTSUPP : 0;
	case ARPHRD_NONE:
	case ARPHRD_RAWIP:
	case ARPHRD_PPP:
	case ARPHRD_SLIP:
	case ARPHRD_CSLIP:
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		/* IP from the first byte on; what a tunnel puts before it is room to be left, not a header of ours. */
		shape->headroom += shape->header;
		shape->header = 0;
		shape->raw_ip = true;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

/*
 * May its driver's transmit function be called with interrupts off? Documentation/networking/netdevices.rst: it will be, by netconsole. That is so of
 * hardware; what is made of other devices (tunnels, bridges) and wireless stacks turn bottom halves on again on their way. veth's "no netpoll"
 * (since 6.2) is about its receive side.
 */
static bool ktx_device_quiet(const struct net_device *dev)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || dev->type != ARPHRD_ETHER)
		return false;
	if (dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "veth"))
		return true;
#if IS_ENABLED(CONFIG_CFG80211)
	if (dev->ieee80211_ptr)
		return false;
#endif
	return dev->dev.parent && !(dev->priv_flags & IFF_DISABLE_NETPOLL);
}

static int ktx_device_bind(struct ktx_file *f, u32 ifindex, u32 queue)
{
	struct net_device *dev;
	int ret;

	rtnl_lock();
	dev = ifindex <= INT_MAX ? __dev_get_by_index(f->net, ifindex) : NULL;
	if (!dev)
		ret = -ENODEV;
	else if (!(dev->flags & IFF_UP))
		ret = -ENETDOWN;
	else if (queue != KTRXER_TX_ANY_QUEUE && queue >= dev->real_num_tx_queues)
		ret = -EINVAL;
	else
		ret = ktx_shape_of(dev, &f->shape);
	if (!ret) {
		f->shape.quiet = ktx_device_quiet(dev);
		netdev_hold(dev, &f->tracker, GFP_KERNEL);
		rcu_assign_pointer(f->dev, dev);
		list_add(&f->node, &ktx_bound);
	}
	rtnl_unlock();
	return ret;
}

/* Under rtnl. Afterwards no sender has it. */
static void ktx_device_let_go(struct ktx_file *f)
{
	struct net_device *dev = rtnl_dereference(f->dev);

	if (!dev)
		return;
	RCU_INIT_POINTER(f->dev, NULL);
	synchronize_net();
	netdev_put(dev, &f->tracker);
	list_del(&f->node);
}

static void ktx_device_release(struct ktx_file *f)
{
	rtnl_lock();
	ktx_device_let_go(f);
	rtnl_unlock();
}

static int ktx_device_event(struct notifier_block *block, unsigned long event, void *info)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct ktx_file *f, *next;

	if (event != NETDEV_GOING_DOWN && event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	list_for_each_entry_safe(f, next, &ktx_bound, node) {
		if (rtnl_dereference(f->dev) != dev)
			continue;
		ktx_ring_fail(f, event == NETDEV_UNREGISTER ? ENODEV : ENETDOWN);
		ktx_sender_kick(f, true);
		if (event == NETDEV_UNREGISTER) /* or it moves to another namespace, which is the same to us */
			ktx_device_let_go(f);
	}
	return NOTIFY_DONE;
}

static struct notifier_block ktx_device_notifier = { .notifier_call = ktx_device_event };

static int ktx_device_init(void)
{
	return register_netdevice_notifier(&ktx_device_notifier);
}

static void ktx_device_exit(void)
{
	unregister_netdevice_notifier(&ktx_device_notifier);
}
