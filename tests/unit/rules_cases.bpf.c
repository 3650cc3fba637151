/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * This runs the rules' program on many packets in one BPF_PROG_RUN with repetitions. Each run takes the next case,
 * makes the packet that it was given into that, decides, and writes the answer beside the case.
 */
#include "rules.bpf.c"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RULES_CASES);
	__type(key, __u32);
	__type(value, struct rules_case);
} cases SEC(".maps");

SEC("xdp")
int rules_cases(struct xdp_md *ctx)
{
	struct rules_control *reported = control_get();
	struct rules_case *one;
	__u32 at, have, length;

	if (!reported)
		return XDP_ABORTED;
	at = reported->next++ % RULES_CASES;
	one = bpf_map_lookup_elem(&cases, &at);
	if (!one)
		return XDP_ABORTED;
	length = one->length;
	have = (__u32)bpf_xdp_get_buff_len(ctx);
	one->action = RULES_NONE;
	if (length < 14 || length > RULES_CASE_MOST)
		return XDP_ABORTED;
	if (have != length && bpf_xdp_adjust_tail(ctx, (int)length - (int)have))
		return XDP_ABORTED;
	if (bpf_xdp_store_bytes(ctx, 0, one->data, length))
		return XDP_ABORTED;
	one->action = (__u32)rules_run(ctx);
	one->decided = reported->decided;
	return XDP_PASS;
}
