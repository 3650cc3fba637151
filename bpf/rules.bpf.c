/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The kernel's part of the receiver: rules in front of the stack. A packet is classified, looked up in the hash of
 * whole 5-tuples, then compared with the rules with wildcards that come before the one found there. A captured packet
 * goes to the program by the ring buffer, or (capture+drop) by AF_XDP. A packet without a rule costs the look-up, and
 * nothing is written for it.
 *
 * Compiled twice: rules_nic.bpf.c reads the NIC's own stamps and the tags that it removed, where kernel and driver
 * offer them.
 */
#include "rules_classify.h"

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

/* Alone in its section, so that the library finds it at the start. */
const volatile struct rules_constants constants = { .config = { .snap = RULES_DATA_MAX } };

/* The numbers of entries are set when it is loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rules_key4);
	__type(value, struct rules_verdict);
} exact4 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct krx_view);
	__type(value, struct rules_verdict);
} exact6 SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rules_filter);
} filter SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rules_counts);
} counts SEC(".maps");

/* Packets for which the ring buffer had no room. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

/*
 * The fields of the current packet. Not on the stack: there the verifier would follow each field along each path
 * through the headers, and loading would take seconds. The verifier does not track a map's memory, so that all paths
 * are equal from here on.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rules_view);
} views SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} packets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} sockets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct rules_control);
} control SEC(".maps");

/* Returns the place in the list of the first matching rule with wildcards before `rank`; -1: none. */
static __always_inline int rules_list(const struct krx_view *v, __u32 rank)
{
	for (__u32 i = 0; i < RULES_LIST_MAX; i++) {
		const volatile struct rules_wild *w = &constants.list[i];

		if (i >= constants.config.list_count || w->wild.rule > rank)
			break;
		if (krx_match_wild(&w->wild, v))
			return (int)i;
	}
	return -1;
}

/* False: no rule's 5-tuple lies there. */
static __always_inline _Bool rules_maybe(__u64 place)
{
	__u32 zero = 0;
	const struct rules_filter *f = bpf_map_lookup_elem(&filter, &zero);

	return f && f->words[place >> 6 & (RULES_FILTER_WORDS - 1)] >> (place & 63) & 1;
}

/* The rank of the deciding rule, and the rest of its verdict; RULES_NONE. */
static __always_inline __u32 rules_decide(const struct krx_view *v, struct rules_verdict *verdict)
{
	const volatile struct rules_config *c = &constants.config;
	const struct rules_verdict *found = (void *)0;
	__u32 rank = RULES_NONE;

	if (v->version == 4 && c->exact4 && v->from_port && v->to_port) {
		struct rules_key4 key = { .from = v->from[0],
					  .to = v->to[0],
					  .from_port = v->from_port,
					  .to_port = v->to_port,
					  .proto = v->proto };

		if (rules_maybe(rules_place4(&key)))
			found = bpf_map_lookup_elem(&exact4, &key);
	} else if (v->version == 6 && c->exact6 && v->from_port && v->to_port) {
		if (rules_maybe(rules_place6(v)))
			found = bpf_map_lookup_elem(&exact6, v);
	}
	if (found) {
		*verdict = *found;
		rank = found->rank;
	}
	if (c->list_count) {
		__u32 at = (__u32)rules_list(v, rank);

		if (at < RULES_LIST_MAX) {
			const volatile struct rules_wild *w = &constants.list[at];

			rank = w->wild.rule;
			verdict->rule = w->rule;
			verdict->op = w->op;
		}
	}
	return rank;
}

#ifdef RULES_NIC
extern int bpf_xdp_metadata_rx_timestamp(const struct xdp_md *ctx, __u64 *timestamp) __ksym;
extern int bpf_xdp_metadata_rx_vlan_tag(const struct xdp_md *ctx, __be16 *proto, __u16 *tci) __ksym;

/* Fields without a value of the driver stay 0. */
static __always_inline void nic_words(struct xdp_md *ctx, struct rules_stamp *s)
{
	__u64 stamp = 0;
	__be16 tpid = 0;
	__u16 tci = 0;

	if (!bpf_xdp_metadata_rx_timestamp(ctx, &stamp))
		s->nic_ns = stamp;
	if (!bpf_xdp_metadata_rx_vlan_tag(ctx, &tpid, &tci)) {
		s->vlan_tpid = tpid;
		s->vlan_tci = tci;
	}
}
#else
static __always_inline void nic_words(struct xdp_md *ctx, struct rules_stamp *s)
{
	(void)ctx;
	(void)s;
}
#endif

/* A record of one of a few sizes: the verifier requires a constant. */
static __always_inline _Bool keep(struct xdp_md *ctx, const struct rules_stamp *stamp, __u32 length, __u64 kept,
				  const __u64 size)
{
	struct rules_record *r = bpf_ringbuf_reserve(&packets, sizeof *r + size, 0);

	if (!r)
		return 0;
	RULES_ONCE(kept);
	if (kept > size)
		kept = size;
	r->stamp = *stamp;
	r->length = length;
	r->kept = (__u32)kept;
	if (kept < 1 ||
	    (constants.config.has_frags ? bpf_xdp_load_bytes(ctx, 0, r->data, (__u32)kept)
					: bpf_probe_read_kernel(r->data, (__u32)kept, (const void *)(long)ctx->data)))
		r->kept = 0;
	bpf_ringbuf_submit(r, 0);
	return 1;
}

static __always_inline void keep_by_ring(struct xdp_md *ctx, const struct rules_stamp *stamp, __u32 length)
{
	__u32 zero = 0, kept = length < constants.config.snap ? length : constants.config.snap;
	__u64 *none;
	_Bool done;

	if (kept <= 128)
		done = keep(ctx, stamp, length, kept, 128);
	else if (kept <= 512)
		done = keep(ctx, stamp, length, kept, 512);
	else if (kept <= 1600)
		done = keep(ctx, stamp, length, kept, 1600);
	else if (kept <= 9600)
		done = keep(ctx, stamp, length, kept, 9600);
	else
		done = keep(ctx, stamp, length, kept, RULES_DATA_MAX);
	if (done)
		return;
	none = bpf_map_lookup_elem(&lost, &zero);
	if (none)
		*none += 1;
}

/*
 * To the AF_XDP socket of this queue, the stamp before it. Negative: there is none, or the packet is too long for it.
 */
static __always_inline int keep_by_socket(struct xdp_md *ctx, const struct rules_stamp *stamp, __u32 length)
{
	__u32 queue = ctx->rx_queue_index;
	struct rules_stamp *meta;

	if (length > constants.config.xsk_most || !bpf_map_lookup_elem(&sockets, &queue) ||
	    bpf_xdp_adjust_meta(ctx, -(int)sizeof *meta))
		return -1;
	meta = (void *)(long)ctx->data_meta;
	if ((void *)(meta + 1) > (void *)(long)ctx->data)
		return -1;
	*meta = *stamp;
	return (int)bpf_redirect_map(&sockets, queue, XDP_DROP);
}

static __always_inline int keep_packet(struct xdp_md *ctx, const struct rules_verdict *verdict, __u32 length)
{
	struct rules_stamp stamp = { .mono_ns = bpf_ktime_get_ns(), .rule = verdict->rule };

	nic_words(ctx, &stamp);
	if (verdict->op == RULES_CAPTURE_DROP) {
		if (constants.config.xsk_most) {
			int rc = keep_by_socket(ctx, &stamp, length);

			if (rc >= 0)
				return rc;
		}
		keep_by_ring(ctx, &stamp, length);
		return XDP_DROP;
	}
	keep_by_ring(ctx, &stamp, length);
	return XDP_PASS;
}

static __always_inline struct rules_control *control_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline int rules_run(struct xdp_md *ctx)
{
	const volatile struct rules_config *c = &constants.config;
	struct rules_verdict verdict = { 0 };
	struct rules_control *reported;
	struct rules_counts *n;
	struct rules_view *view;
	__u32 length, rank, zero = 0;

	view = bpf_map_lookup_elem(&views, &zero);
	if (!view)
		return XDP_PASS;
	rules_classify(view, (const __u8 *)(long)ctx->data, (const __u8 *)(long)ctx->data_end, c->raw_ip);
	rank = rules_decide(&view->fields, &verdict);
	if (c->traced) {
		reported = control_get();
		if (reported)
			reported->decided = rank == RULES_NONE ? 0 : verdict.rule + 1;
	}
	if (rank == RULES_NONE)
		return XDP_PASS;
	n = bpf_map_lookup_elem(&counts, &verdict.rule);
	if (!n)
		return XDP_PASS;
	n->matched++;
	if (verdict.op == RULES_DROP || verdict.op == RULES_CAPTURE_DROP)
		n->dropped++;
	if (verdict.op == RULES_DROP)
		return XDP_DROP;
	if (verdict.op == RULES_FORWARD)
		return XDP_PASS;
	length = c->has_frags ? (__u32)bpf_xdp_get_buff_len(ctx) : (__u32)(ctx->data_end - ctx->data);
	return keep_packet(ctx, &verdict, length);
}

SEC("xdp")
int rules(struct xdp_md *ctx)
{
	return rules_run(ctx);
}

/* bpf_probe_read_kernel(), where the kernel is older than 5.18 */
char LICENSE[] SEC("license") = "GPL";
