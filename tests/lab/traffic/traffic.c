// SPDX-License-Identifier: GPL-2.0-only
/*
 * Cross traffic for the lab's devices, as a NIC brings it: a hard timer stands for its interrupt, in which UDP packets
 * of 100 to 1400 bytes come in by a device of this namespace (netif_rx) at random (Poisson) times from a seed; the host
 * routes them on. It runs while the module is loaded:
 *
 *   insmod traffic.ko device=in0 source=10.8.0.2 target=10.9.0.3 rate=12000 seed=7
 *
 * /sys/module/traffic/parameters/brought says how many it has been, late ones included: what comes while interrupts are
 * off comes after it.
 */
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/inet.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/ip.h>
#include <net/net_namespace.h>

enum {
	SIZE_MIN = 100,
	SIZE_MOST = 1400,  /* on IP */
	PLANNED = 1 << 15, /* gaps and sizes, made beforehand: a NIC does not throw dice in its interrupt */
	AT_ONCE = 64,      /* packets of one interrupt */
	FRACTION = 16,     /* bits of a logarithm behind the point */
};

static char *device = "in0";
module_param(device, charp, 0444);
static char *source = "10.8.0.2";
module_param(source, charp, 0444);
static char *target = "10.9.0.3";
module_param(target, charp, 0444);
static uint rate = 12000;
module_param(rate, uint, 0444);
static ulong seed = 7;
module_param(seed, ulong, 0444);
static ulong brought;
module_param(brought, ulong, 0444);
static ulong refused;
module_param(refused, ulong, 0444);

struct planned {
	u32 gap_ns;
	u32 size;
};

static struct planned *plan;
static struct net_device *dev;
static struct hrtimer timer;
static u64 next_ns, random_state;
static u32 at;
static u8 head[ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr)];

/* Knuth's 64-bit LCG; its high half is good enough for traffic. */
static u32 dice(void)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return random_state >> 32;
}

/*
 * -ln(x / 2^32), FRACTION bits: the whole part of the binary logarithm by the highest bit, the rest by squaring (one
 * bit of it each).
 */
static u32 minus_ln(u32 x)
{
	const int top = fls(x) - 1;
	u64 mantissa = (u64)x << (31 - top); /* 2^31 to 2^32: 1 to 2 */
	u32 log2 = top << FRACTION;
	int bit;

	for (bit = FRACTION - 1; bit >= 0; bit--) {
		mantissa = mantissa * mantissa >> 31;
		if (mantissa >> 32) {
			mantissa >>= 1;
			log2 |= 1U << bit;
		}
	}
	return ((u64)((32U << FRACTION) - log2) * 45426) >> 16; /* ln 2 = 45426 / 65536 */
}

static void plan_make(void)
{
	const u32 mean_ns = NSEC_PER_SEC / rate;
	int i;

	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	for (i = 0; i < PLANNED; i++) {
		plan[i].gap_ns = (u64)minus_ln(dice() | 1) * mean_ns >> FRACTION;
		plan[i].size = SIZE_MIN + (dice() >> 8) % (SIZE_MOST - SIZE_MIN + 1);
	}
}

static void head_make(void)
{
	struct ethhdr *eth = (void *)head;
	struct iphdr ip = { .version = 4,
			    .ihl = 5,
			    .ttl = 64,
			    .protocol = IPPROTO_UDP,
			    .frag_off = htons(IP_DF),
			    .saddr = in_aton(source),
			    .daddr = in_aton(target) };
	struct udphdr udp = { .source = htons(40999), .dest = htons(9) };

	ether_addr_copy(eth->h_dest, dev->dev_addr);
	eth_zero_addr(eth->h_source);
	eth->h_source[0] = 2;
	eth->h_proto = htons(ETH_P_IP);
	memcpy(head + ETH_HLEN, &ip, sizeof(ip));
	memcpy(head + ETH_HLEN + sizeof(ip), &udp, sizeof(udp));
}

static void bring(u32 size)
{
	struct sk_buff *skb = netdev_alloc_skb_ip_align(dev, ETH_HLEN + size);
	struct iphdr *ip;
	struct udphdr *udp;

	brought++;
	if (!skb) {
		refused++;
		return;
	}
	memcpy(skb_put(skb, ETH_HLEN + size), head, sizeof(head));
	ip = (void *)(skb->data + ETH_HLEN);
	ip->tot_len = htons(size);
	ip->check = ip_fast_csum(ip, 5);
	udp = (void *)(ip + 1);
	udp->len = htons(size - sizeof(*ip));
	skb->protocol = eth_type_trans(skb, dev);
	if (netif_rx(skb) != NET_RX_SUCCESS)
		refused++;
}

static enum hrtimer_restart interrupt(struct hrtimer *t)
{
	const u64 now = ktime_get_ns();
	int left = AT_ONCE;

	while (next_ns <= now && left--) {
		const struct planned *one = &plan[at++ & (PLANNED - 1)];

		bring(one->size);
		next_ns += one->gap_ns;
	}
	hrtimer_set_expires(t, ns_to_ktime(next_ns));
	return HRTIMER_RESTART;
}

static int __init traffic_init(void)
{
	if (!rate || rate > 1000000)
		return -EINVAL;
	plan = vmalloc(PLANNED * sizeof(*plan));
	if (!plan)
		return -ENOMEM;
	dev = dev_get_by_name(current->nsproxy->net_ns, device);
	if (!dev) {
		vfree(plan);
		return -ENODEV;
	}
	plan_make();
	head_make();
	next_ns = ktime_get_ns() + NSEC_PER_MSEC;
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timer.function = interrupt;
	hrtimer_start(&timer, ns_to_ktime(next_ns), HRTIMER_MODE_ABS_PINNED_HARD);
	return 0;
}

static void __exit traffic_exit(void)
{
	hrtimer_cancel(&timer);
	dev_put(dev);
	vfree(plan);
}

module_init(traffic_init);
module_exit(traffic_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("cross traffic of the device lab");
