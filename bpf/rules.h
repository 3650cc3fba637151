/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory that the rules' program and the library share: the tables that the library fills before the program is loaded,
 * and the records that come back. Addresses and ports are in network order throughout; the program swaps no bytes.
 */
#ifndef KTRXER_BPF_RULES_H
#define KTRXER_BPF_RULES_H

#include <linux/ktrxer_view.h>

enum {
	RULES_LIST_MAX = 1024, /* rules with wildcards: each costs every packet some nanoseconds; exact ones do not */
	RULES_NONE = 0xffffffffu,
	RULES_DATA_MAX = 65536,
	RULES_FILTER_BITS = 17, /* eight places for each of the most rules that there may be */
	RULES_FILTER_WORDS = 1 << (RULES_FILTER_BITS - 6),
};

/* Values are those of enum krx_op. */
enum { RULES_CAPTURE = 1, RULES_DROP = 2, RULES_CAPTURE_DROP = 3, RULES_FORWARD = 4 };

/* Whole 5-tuples of IPv4: the key of a hash, hashed word by word. The key of IPv6 is struct krx_view. */
struct rules_key4 {
	__u32 from, to;
	__u16 from_port, to_port;
	__u32 proto;
};

/*
 * Where whole 5-tuples lie, one bit each: for most packets that no rule names this alone shows it, for a
 * fraction of the cost of a look into the hash. Multiplication by odd numbers (Knuth's golden ratio and others), the
 * upper bits are the place.
 */
struct rules_filter {
	__u64 words[RULES_FILTER_WORDS];
};
static inline __attribute__((always_inline)) __u32 rules_place(__u64 from_high, __u64 from, __u64 to_high, __u64 to,
							       __u64 ports_and_proto)
{
	__u64 x = (from ^ ports_and_proto) * 0x9e3779b97f4a7c15ULL + to * 0xc2b2ae3d27d4eb4fULL;

	x += from_high * 0xd6e8feb86659fd93ULL + to_high * 0xa0761d6478bd642fULL;
	x ^= x >> 32;
	return (__u32)((x * 0x9e3779b97f4a7c15ULL) >> (64 - RULES_FILTER_BITS));
}
static inline __attribute__((always_inline)) __u64 rules_pair(__u32 high, __u32 low)
{
	return (__u64)high << 32 | low;
}
static inline __attribute__((always_inline)) __u32 rules_place4(const struct rules_key4 *k)
{
	return rules_place(0, k->from, 0, k->to, rules_pair(k->proto, (__u32)k->from_port << 16 | k->to_port));
}
static inline __attribute__((always_inline)) __u32 rules_place6(const struct krx_view *k)
{
	return rules_place(rules_pair(k->from[0], k->from[1]), rules_pair(k->from[2], k->from[3]),
			   rules_pair(k->to[0], k->to[1]), rules_pair(k->to[2], k->to[3]),
			   rules_pair(k->proto, (__u32)k->from_port << 16 | k->to_port));
}

/* The fields of the packet, and the offset reached in its headers (rules_classify.h). */
struct rules_view {
	struct krx_view fields;
	__u32 offset;
};

struct rules_verdict {
	__u32 rank; /* in the order of asking; the smallest decides */
	__u32 rule; /* its position as the caller gave it */
	__u32 op;
};

struct rules_wild {
	struct krx_wild wild;
	__u32 rule, op; /* as in struct rules_verdict */
};

/* Constant from loading on: the verifier removes the branches that the values make needless. */
struct rules_config {
	__u32 list_count;
	__u32 snap;     /* bytes of a captured packet, 1 to RULES_DATA_MAX */
	__u32 xsk_most; /* the longest packet that AF_XDP takes; 0: no AF_XDP */
	__u8 exact4, exact6;
	__u8 raw_ip;    /* packets have no link header */
	__u8 has_frags; /* Linux 5.18: packets of several pieces, and the calls that read them */
	__u8 traced;    /* for tests: each decision is written to `control` */
	__u8 zero[3];
};
struct rules_constants {
	struct rules_config config;
	struct rules_wild list[RULES_LIST_MAX];
};

struct rules_control {
	__u32 decided; /* traced: 1 + the rule's position; 0: none */
	__u32 next;    /* rules_cases.bpf.c: the case that comes next */
};

struct rules_counts { /* one a rule and processor */
	__u64 matched, dropped;
};

/*
 * Stands before a packet: in the ring buffer, and as metadata before an AF_XDP frame (then `length` and `kept` are the
 * frame's own).
 */
struct rules_stamp {
	__u64 mono_ns;
	__u64 nic_ns; /* 0: none */
	__u32 rule;
	__u16 vlan_tpid; /* of a tag that the NIC took off; 0: none */
	__u16 vlan_tci;
};
struct rules_record {
	struct rules_stamp stamp;
	__u32 length, kept;
	__u8 data[];
};

/* Tests pass this many packets to one BPF_PROG_RUN, because a call costs 26 ms. */
enum { RULES_CASES = 1024, RULES_CASE_MOST = 256 };
struct rules_case {
	__u32 length;          /* 14 to RULES_CASE_MOST */
	__u32 decided, action; /* the answer */
	__u32 zero;
	__u8 data[RULES_CASE_MOST];
};

#endif
