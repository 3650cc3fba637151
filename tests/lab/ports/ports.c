// SPDX-License-Identifier: GPL-2.0-only
/*
 * A switch with one port, `lan0`, for the kernel's own DSA core; `conduit` names the device that its frames leave by,
 * without a tag. Debian builds no driver of a switch that works without one (dsa_loop). Its PHY always has a link.
 */
#include <linux/etherdevice.h>
#include <linux/mii.h>
#include <linux/module.h>
#include <linux/phylink.h>
#include <linux/platform_device.h>
#include <net/dsa.h>

enum { PORT, CPU_PORT, PORTS };

static char *conduit = "wire0";
module_param(conduit, charp, 0400);

static struct platform_device *ports_platform;
static struct platform_driver ports_driver = { .driver = { .name = "ports" } }; /* phylib looks at the driver's owner */
static struct net_device *ports_conduit;
static struct dsa_chip_data ports_data = { .port_names = { [PORT] = "lan0", [CPU_PORT] = "cpu" } };
static struct dsa_switch ports_switch;

static enum dsa_tag_protocol ports_tag(struct dsa_switch *ds, int port, enum dsa_tag_protocol proto)
{
	return DSA_TAG_PROTO_NONE;
}

static int ports_setup(struct dsa_switch *ds)
{
	return 0;
}

static int ports_phy_read(struct dsa_switch *ds, int port, int reg)
{
	switch (reg) {
	case MII_BMCR:
		return BMCR_SPEED100 | BMCR_ANENABLE | BMCR_FULLDPLX;
	case MII_BMSR:
		return BMSR_100FULL | BMSR_100HALF | BMSR_ANEGCAPABLE | BMSR_ANEGCOMPLETE | BMSR_LSTATUS;
	case MII_ADVERTISE:
		return ADVERTISE_CSMA | ADVERTISE_100FULL | ADVERTISE_100HALF;
	case MII_LPA:
		return LPA_LPACK | LPA_100FULL | LPA_100HALF;
	default:
		return 0;
	}
}

static int ports_phy_write(struct dsa_switch *ds, int port, int reg, u16 value)
{
	return 0;
}

static void ports_caps(struct dsa_switch *ds, int port, struct phylink_config *config)
{
	bitmap_fill(config->supported_interfaces, PHY_INTERFACE_MODE_MAX);
	__clear_bit(PHY_INTERFACE_MODE_NA, config->supported_interfaces);
	config->mac_capabilities = ~0;
}

static const struct dsa_switch_ops ports_ops = {
	.get_tag_protocol = ports_tag,
	.setup = ports_setup,
	.phy_read = ports_phy_read,
	.phy_write = ports_phy_write,
	.phylink_get_caps = ports_caps,
};

static int __init ports_init(void)
{
	int ret = platform_driver_register(&ports_driver);

	if (ret)
		return ret;
	ports_platform = platform_device_register_simple("ports", -1, NULL, 0);
	if (IS_ERR(ports_platform)) {
		ret = PTR_ERR(ports_platform);
		goto err_platform;
	}
	ports_conduit = dev_get_by_name(&init_net, conduit);
	if (!ports_conduit) {
		ret = -ENODEV;
		goto err_conduit;
	}
	ports_data.netdev[CPU_PORT] = &ports_conduit->dev;
	ports_platform->dev.platform_data = &ports_data;
	ports_switch.dev = &ports_platform->dev;
	ports_switch.num_ports = PORTS;
	ports_switch.ops = &ports_ops;
	ret = dsa_register_switch(&ports_switch);
	if (!ret)
		return 0;
	dev_put(ports_conduit);
err_conduit:
	ports_platform->dev.platform_data = NULL; /* static: the core would free it */
	platform_device_unregister(ports_platform);
err_platform:
	platform_driver_unregister(&ports_driver);
	return ret;
}

static void __exit ports_exit(void)
{
	dsa_unregister_switch(&ports_switch);
	dev_put(ports_conduit);
	ports_platform->dev.platform_data = NULL;
	platform_device_unregister(ports_platform);
	platform_driver_unregister(&ports_driver);
}

module_init(ports_init);
module_exit(ports_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A switch with one port, for the DSA core");
