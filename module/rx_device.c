// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files and their devices. A device may go down, be renamed, move to another namespace or be
 * removed at any time. All functions run under RTNL.
 */
#include <linux/limits.h>
#include <linux/notifier.h>
#include <linux/poll.h>
#include <linux/rtnetlink.h>

#include "rx.h"

static LIST_HEAD(krx_files);

static void krx_state_set(struct krx_file *krx, u32 state)
{
	WRITE_ONCE(krx->state, state);
	WRITE_ONCE(krx_ring_info(&krx->ring)->state, state);
	WRITE_ONCE(krx->events, krx->events + 1);
	smp_store_release(&krx_ring_info(&krx->ring)->events, krx->events); /* after the state */
	wake_up_interruptible_poll(&krx->readers, EPOLLPRI | EPOLLERR | EPOLLHUP);
}

static void krx_hooks_set(struct krx_file *krx, u32 hook)
{
	static const struct nf_hook_ops ingress = {
		.hook = krx_hook_ingress,
		.pf = NFPROTO_NETDEV,
		.hooknum = NF_NETDEV_INGRESS,
		.priority = INT_MIN,
	};
	static const struct nf_hook_ops prerouting = {
		.hook = krx_hook_prerouting,
		.hooknum = NF_INET_PRE_ROUTING,
		.priority = INT_MIN,
	};

	if (hook == KTRXER_RX_INGRESS) {
		krx->ops[0] = ingress;
		krx->ops[0].dev = krx->dev;
		krx->ops_count = 1;
	} else {
		krx->ops[0] = krx->ops[1] = prerouting;
		krx->ops[0].pf = NFPROTO_IPV4;
		krx->ops[1].pf = NFPROTO_IPV6;
		krx->ops_count = 2;
	}
	krx->ops[0].priv = krx->ops[1].priv = krx;
}

int krx_device_bind(struct krx_file *krx, u32 hook, u32 flags)
{
	struct net_device *dev = NULL;
	int ret = 0;

	rtnl_lock();
	if (krx->ifindex) {
		dev = __dev_get_by_index(krx->net, krx->ifindex);
		ret = !dev                            ? -ENODEV
		      : flags & KTRXER_RX_PROMISCUOUS ? dev_set_promiscuity(dev, 1)
						      : 0;
		if (ret)
			goto out;
		krx->dev = dev;
		krx->promiscuous = flags & KTRXER_RX_PROMISCUOUS;
		if (!netif_running(dev))
			krx_state_set(krx, KTRXER_RX_DOWN);
	}
	krx_hooks_set(krx, hook);
	list_add(&krx->list, &krx_files);
out:
	rtnl_unlock();
	return ret;
}

int krx_device_hook(struct krx_file *krx)
{
	int ret = 0;

	rtnl_lock();
	if (krx->ifindex && !krx->dev)
		ret = -ENODEV;
	else if (!krx->hooked)
		ret = nf_register_net_hooks(krx->net, krx->ops, krx->ops_count);
	if (!ret)
		krx->hooked = true;
	rtnl_unlock();
	return ret;
}

/* Hooks may still use the file until a grace period has passed. */
static void krx_device_part(struct krx_file *krx)
{
	if (krx->hooked)
		nf_unregister_net_hooks(krx->net, krx->ops, krx->ops_count);
	krx->hooked = false;
	if (krx->promiscuous)
		dev_set_promiscuity(krx->dev, -1);
	krx->promiscuous = false;
	krx->dev = NULL;
}

void krx_device_leave(struct krx_file *krx)
{
	rtnl_lock();
	krx_device_part(krx);
	list_del(&krx->list);
	rtnl_unlock();
	synchronize_net();
}

/* Under RTNL, as all notifiers of devices are. */
static int krx_device_event(struct notifier_block *block, unsigned long event, void *info)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(info);
	struct krx_file *krx;

	list_for_each_entry(krx, &krx_files, list) {
		if (krx->dev != dev)
			continue;
		switch (event) {
		case NETDEV_UP:
			krx_state_set(krx, KTRXER_RX_UP);
			break;
		case NETDEV_DOWN:
			krx_state_set(krx, KTRXER_RX_DOWN);
			break;
		case NETDEV_UNREGISTER: /* also when the device moves to another namespace */
			krx_device_part(krx);
			krx_state_set(krx, KTRXER_RX_GONE);
			break;
		}
	}
	return NOTIFY_DONE;
}

static struct notifier_block krx_device_events = { .notifier_call = krx_device_event };

int krx_device_init(void)
{
	return register_netdevice_notifier(&krx_device_events);
}

void krx_device_exit(void)
{
	unregister_netdevice_notifier(&krx_device_events);
}
