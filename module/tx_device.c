// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device of a file. It may be renamed, go down, move to another namespace or go away at any
 * time: the sender reads f->dev anew for each submission, and the notifier returns after the last
 * sender has stopped using it.
 */
#include <linux/if_arp.h>
#include <linux/moduleparam.h>
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
		/*
		 * The frame begins with the IP header; a tunnel puts its own header before it, into
		 * the headroom.
		 */
		shape->headroom += shape->header;
		shape->header = 0;
		shape->raw_ip = true;
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static char *guard_drivers = "";
module_param(guard_drivers, charp, 0644);
MODULE_PARM_DESC(
	guard_drivers,
	"drivers that may be called with interrupts off, separated by commas; none (default)");

static bool ktx_list_has(const char *list, const char *name)
{
	const size_t length = strlen(name);

	while (*list) {
		const size_t n = strcspn(list, "\n ,");

		if (n && n == length && !strncmp(list, name, n))
			return true;
		list += n;
		list += strspn(list, "\n ,");
	}
	return false;
}

static bool ktx_driver_allowed(const char *name)
{
	bool allowed;

	kernel_param_lock(THIS_MODULE);
	allowed = ktx_list_has(guard_drivers, name);
	kernel_param_unlock(THIS_MODULE);
	return allowed;
}

/*
 * True if the driver's transmit function may be called with interrupts off. A driver can take
 * that for a call of netpoll and lose the frame, so the administrator must allow it by its name.
 * Never where it is known to fail: the ports of a switch (DSA), wireless devices, devices made of
 * other devices, and PREEMPT_RT, where the lock of the queue may sleep. veth refuses netpoll since
 * 6.2 because of its receive side only.
 */
static bool ktx_device_quiet(const struct net_device *dev)
{
	const struct device *parent = dev->dev.parent;
	const bool veth = dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "veth");

	if (IS_ENABLED(CONFIG_PREEMPT_RT) || dev->type != ARPHRD_ETHER)
		return false;
	if (dev->dev.type &&
	    (!strcmp(dev->dev.type->name, "dsa") || !strcmp(dev->dev.type->name, "wlan")))
		return false;
#if IS_ENABLED(CONFIG_CFG80211)
	if (dev->ieee80211_ptr)
		return false;
#endif
	if (veth)
		return ktx_driver_allowed("veth");
	return parent && parent->driver && !(dev->priv_flags & IFF_DISABLE_NETPOLL) &&
	       ktx_driver_allowed(parent->driver->name);
}

int ktx_device_bind(struct ktx_file *f, u32 ifindex, u32 queue)
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

struct net_device *ktx_device_release(struct ktx_file *f)
{
	struct net_device *dev;

	rtnl_lock();
	dev = rtnl_dereference(f->dev);
	RCU_INIT_POINTER(f->dev, NULL);
	if (dev)
		list_del(&f->node);
	rtnl_unlock();
	return dev;
}

void ktx_device_put(struct ktx_file *f, struct net_device *dev)
{
	if (dev)
		netdev_put(dev, &f->tracker);
}

static int ktx_device_event(struct notifier_block *block, unsigned long event, void *info)
{
	struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct ktx_file *f, *next;
	LIST_HEAD(left);

	/* A device of another type needs another link header than the prepared frames have. */
	if (event != NETDEV_GOING_DOWN && event != NETDEV_UNREGISTER &&
	    event != NETDEV_PRE_TYPE_CHANGE)
		return NOTIFY_DONE;
	list_for_each_entry_safe(f, next, &ktx_bound, node) {
		if (rtnl_dereference(f->dev) != dev)
			continue;
		ktx_ring_fail(f, event == NETDEV_GOING_DOWN ? ENETDOWN : ENODEV);
		ktx_sender_kick(f, true);
		/* NETDEV_UNREGISTER comes also when the device moves to another namespace. */
		if (event != NETDEV_GOING_DOWN) {
			RCU_INIT_POINTER(f->dev, NULL);
			list_move(&f->node, &left);
		}
	}
	if (list_empty(&left))
		return NOTIFY_DONE;
	synchronize_net(); /* once for all files: afterwards no sender uses the device */
	list_for_each_entry_safe(f, next, &left, node) {
		list_del(&f->node);
		ktx_device_put(f, dev);
	}
	return NOTIFY_DONE;
}

static struct notifier_block ktx_device_notifier = { .notifier_call = ktx_device_event };

int ktx_device_init(void)
{
	return register_netdevice_notifier(&ktx_device_notifier);
}

void ktx_device_exit(void)
{
	unregister_netdevice_notifier(&ktx_device_notifier);
}
