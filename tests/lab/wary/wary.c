// SPDX-License-Identifier: GPL-2.0-only
/*
 * A device `wary0` that loses each frame which it gets with interrupts off, as a port of a switch does:
 * dsa_enqueue_skb() takes such a call for one of netpoll. `dsa` makes it look like such a port. Writing to `retype`
 * announces a change of the device's type.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/rtnetlink.h>

static bool dsa;
module_param(dsa, bool, 0400);
static atomic_t wary_taken = ATOMIC_INIT(0), wary_lost = ATOMIC_INIT(0);
module_param_named(taken, wary_taken.counter, int, 0400);
module_param_named(lost, wary_lost.counter, int, 0400);

static struct platform_device *wary_platform;
static struct net_device *wary_device;
static struct platform_driver wary_driver = { .driver = { .name = "wary" } };
static struct device_type wary_type = { .name = "dsa" };

static netdev_tx_t wary_xmit(struct sk_buff *skb, struct net_device *dev)
{
	atomic_inc(irqs_disabled() ? &wary_lost : &wary_taken);
	dev_kfree_skb_any(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops wary_ops = { .ndo_start_xmit = wary_xmit, .ndo_set_mac_address = eth_mac_addr };

static int wary_retype(const char *value, const struct kernel_param *parameter)
{
	rtnl_lock();
	call_netdevice_notifiers(NETDEV_PRE_TYPE_CHANGE, wary_device);
	call_netdevice_notifiers(NETDEV_POST_TYPE_CHANGE, wary_device);
	rtnl_unlock();
	return 0;
}

static const struct kernel_param_ops wary_retype_ops = { .set = wary_retype };
module_param_cb(retype, &wary_retype_ops, NULL, 0200);

static int __init wary_init(void)
{
	int ret = platform_driver_register(&wary_driver);

	if (ret)
		return ret;
	wary_platform = platform_device_register_simple("wary", -1, NULL, 0);
	if (IS_ERR(wary_platform)) {
		ret = PTR_ERR(wary_platform);
		goto err_platform;
	}
	wary_device = alloc_netdev(0, "wary0", NET_NAME_UNKNOWN, ether_setup);
	if (!wary_device) {
		ret = -ENOMEM;
		goto err_alloc;
	}
	wary_device->netdev_ops = &wary_ops;
	eth_hw_addr_random(wary_device);
	SET_NETDEV_DEV(wary_device, &wary_platform->dev);
	if (dsa)
		SET_NETDEV_DEVTYPE(wary_device, &wary_type);
	ret = register_netdev(wary_device);
	if (!ret)
		return 0;
	free_netdev(wary_device);
err_alloc:
	platform_device_unregister(wary_platform);
err_platform:
	platform_driver_unregister(&wary_driver);
	return ret;
}

static void __exit wary_exit(void)
{
	unregister_netdev(wary_device);
	free_netdev(wary_device);
	platform_device_unregister(wary_platform);
	platform_driver_unregister(&wary_driver);
}

module_init(wary_init);
module_exit(wary_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A device that loses frames which come with interrupts off");
