/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The judge of the bench. At the far end's device (XDP) each probe of the turn is stamped, counted by its number (the
 * first eight bytes of its payload) and dropped: the far end sends no answer. A stamp costs as much as all the rest
 * of a fast sender's packet here: beyond the numbers that have a slot only each STRIDE-th is stamped, which is enough
 * for a rate. At the sender's driver (fentry, or the tracepoints next to it) each is stamped as the driver is called
 * with it. The same for every sender.
 */
#include "farend.h"

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

enum {
	LINK = 14,
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	PROTO_UDP = 17,
	HEAD_IPV4 = 20, /* our probes carry no options */
	HEAD_IPV6 = 40,
	HEAD_UDP = 8,
	NUMBER = 8,
	FRAMES = 64, /* of one call of the driver; more are not looked at */
	STRIDE = 16,
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct farend_config);
} config SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct farend_counts);
} counts SEC(".maps");

/* The number of entries is set before loading. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} arrivals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} calls SEC(".maps");

static __always_inline __u64 read_number(const __u8 *at)
{
	__u64 number = 0;

#pragma unroll
	for (int i = 0; i < NUMBER; i++)
		number = number << 8 | at[i];
	return number;
}

/* Some verifiers allow a wide load at any offset of a packet. */
static __always_inline __u64 packet_number(const __u8 *at)
{
#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_arm64)
	return bpf_be64_to_cpu(*(const __u64 *)at);
#else
	return read_number(at);
#endif
}

static __always_inline struct farend_config *settings(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&config, &zero);
}

static __always_inline void count_probe(const struct farend_config *c, struct farend_counts *n, __u64 number)
{
	__u32 slot = (__u32)number;
	__u64 *stamp, now;

	if (number < c->slots) {
		stamp = bpf_map_lookup_elem(&arrivals, &slot);
		if (!stamp)
			return;
		if (*stamp) {
			n->again++;
			return;
		}
		now = bpf_ktime_get_ns();
		*stamp = now;
	} else {
		if (n->probes % STRIDE) {
			n->probes++;
			return;
		}
		now = bpf_ktime_get_ns();
	}
	if (!n->probes++)
		n->first_ns = now;
	n->last_ns = now;
	n->timed = n->probes;
}

SEC("xdp")
int farend(struct xdp_md *ctx)
{
	const __u8 *data = (const __u8 *)(long)ctx->data, *end = (const __u8 *)(long)ctx->data_end, *udp;
	struct farend_config *c = settings();
	struct farend_counts *n;
	__u32 zero = 0, port;
	__u64 now;
	__u16 type;

	if (!c || data + LINK + HEAD_IPV4 + HEAD_UDP > end)
		return XDP_PASS;
	type = (__u16)(data[12] << 8 | data[13]);
	if (type == TYPE_IPV4 && data[LINK] == 0x45 && data[LINK + 9] == PROTO_UDP)
		udp = data + LINK + HEAD_IPV4;
	else if (type == TYPE_IPV6 && data + LINK + HEAD_IPV6 + HEAD_UDP <= end && data[LINK + 6] == PROTO_UDP)
		udp = data + LINK + HEAD_IPV6;
	else
		return XDP_PASS;
	if (udp + HEAD_UDP > end)
		return XDP_PASS;
	port = (__u32)udp[2] << 8 | udp[3];
	n = bpf_map_lookup_elem(&counts, &zero);
	if (!n || !port)
		return XDP_PASS;
	if (port == c->port) {
		if (udp + HEAD_UDP + NUMBER > end)
			n->odd++;
		else
			count_probe(c, n, packet_number(udp + HEAD_UDP));
		return XDP_DROP;
	}
	if (port == c->cross_port) {
		now = bpf_ktime_get_ns();
		if (!n->cross++)
			n->cross_first_ns = now;
		n->cross_last_ns = now;
		n->cross_bytes += (__u64)(end - data) - LINK;
		return XDP_DROP;
	}
	return XDP_PASS;
}

/* The structs have the fields that are read here; the loader finds their offsets by BTF. */
struct sk_buff {
	unsigned char *data;
} __attribute__((preserve_access_index));

struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));

struct net {
	struct ns_common ns;
} __attribute__((preserve_access_index));

typedef struct {
	struct net *net;
} possible_net_t;

struct net_device {
	int ifindex;
	possible_net_t nd_net;
} __attribute__((preserve_access_index));

struct xdp_frame {
	void *data;
} __attribute__((preserve_access_index));

static __always_inline void stamp_call(const void *frame, __u64 now)
{
	struct farend_config *c = settings();
	__u8 head[LINK + HEAD_IPV6 + HEAD_UDP + NUMBER];
	__u32 slot, port;
	__u64 number, *stamp;

	if (!c || !c->port || bpf_probe_read_kernel(head, LINK + HEAD_IPV4 + HEAD_UDP + NUMBER, frame))
		return;
	if (head[12] == 0x08 && head[13] == 0x00 && head[LINK] == 0x45 && head[LINK + 9] == PROTO_UDP) {
		port = (__u32)head[LINK + HEAD_IPV4 + 2] << 8 | head[LINK + HEAD_IPV4 + 3];
		number = read_number(head + LINK + HEAD_IPV4 + HEAD_UDP);
	} else if (head[12] == 0x86 && head[13] == 0xdd && head[LINK + 6] == PROTO_UDP) {
		if (bpf_probe_read_kernel(head, sizeof head, frame))
			return;
		port = (__u32)head[LINK + HEAD_IPV6 + 2] << 8 | head[LINK + HEAD_IPV6 + 3];
		number = read_number(head + LINK + HEAD_IPV6 + HEAD_UDP);
	} else {
		return;
	}
	if (port != c->port || number >= c->slots)
		return;
	slot = (__u32)number;
	stamp = bpf_map_lookup_elem(&calls, &slot);
	/* A probe that the driver refuses is submitted again: the last time counts. */
	if (stamp)
		*stamp = now;
}

SEC("fentry/veth_xmit")
int BPF_PROG(driver_call, struct sk_buff *skb)
{
	const __u64 now = bpf_ktime_get_ns();

	(void)ctx;
	stamp_call(skb->data, now);
	return 0;
}

SEC("fentry/veth_ndo_xdp_xmit")
int BPF_PROG(driver_bulk, void *dev, int n, struct xdp_frame **frames)
{
	const __u64 now = bpf_ktime_get_ns();
	struct xdp_frame *frame;
	void *data;

	(void)ctx;
	(void)dev;
	for (int i = 0; i < FRAMES; i++) {
		if (i >= n || bpf_probe_read_kernel(&frame, sizeof frame, frames + i))
			break;
		if (bpf_probe_read_kernel(&data, sizeof data, __builtin_preserve_access_index(&frame->data)))
			break;
		stamp_call(data, now);
	}
	return 0;
}

/*
 * The same without fentry. (skb, dev): the driver's function for one packet is called next; senders that go past the
 * qdisc layer (AF_PACKET with bypass, AF_XDP) go past this, too.
 */
SEC("raw_tp/net_dev_start_xmit")
int near_call(struct bpf_raw_tracepoint_args *ctx)
{
	const __u64 now = bpf_ktime_get_ns();
	struct sk_buff *skb = (struct sk_buff *)ctx->args[0];
	void *data;

	if (!bpf_probe_read_kernel(&data, sizeof data, __builtin_preserve_access_index(&skb->data)))
		stamp_call(data, now);
	return 0;
}

/*
 * (from, to, sent, drops, err): the driver's function for a bulk has returned. It does not tell which frames those
 * were; they leave in the order of their numbers, until the driver refuses one.
 */
SEC("raw_tp/xdp_devmap_xmit")
int near_bulk(struct bpf_raw_tracepoint_args *ctx)
{
	struct net_device *to = (struct net_device *)ctx->args[1];
	const int sent = (int)ctx->args[2], drops = (int)ctx->args[3];
	const __u64 now = bpf_ktime_get_ns();
	struct farend_config *c = settings();
	unsigned int inode;
	struct net *net;
	int index;

	/* The tracepoint tells of all devices of the machine, and each namespace counts its own from 1. */
	if (!c || !c->port ||
	    bpf_probe_read_kernel(&index, sizeof index, __builtin_preserve_access_index(&to->ifindex)) ||
	    (__u32)index != c->near_index ||
	    bpf_probe_read_kernel(&net, sizeof net, __builtin_preserve_access_index(&to->nd_net.net)) ||
	    bpf_probe_read_kernel(&inode, sizeof inode, __builtin_preserve_access_index(&net->ns.inum)) ||
	    inode != c->near_netns)
		return 0;
	for (int i = 0; i < FRAMES; i++) {
		__u32 slot = (__u32)c->called;
		__u64 *stamp;

		if (i >= sent || c->called >= c->slots)
			break;
		stamp = bpf_map_lookup_elem(&calls, &slot);
		if (stamp)
			*stamp = now;
		c->called++;
	}
	if (drops > 0)
		c->called = ~0ULL;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
