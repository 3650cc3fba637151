/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a packet says of itself, for rules: one text for two compilers. In the kernel the verifier sees that nothing past the packet
 * is read; in user space tests and fuzzers hold it against ktrxer_packet_parse(), whose answer it must always give.
 *
 * Of a packet in pieces only the first is looked at, and of that the first 32 KiB (a piece is a page): a packet whose headers are
 * longer has no ports here.
 */
#ifndef KTRXER_BPF_RULES_CLASSIFY_H
#define KTRXER_BPF_RULES_CLASSIFY_H

#include "rules.h"

#ifdef __bpf__
/* The verifier follows one register: the compiler must not work the same address out a second time. */
#define RULES_ONCE(x) asm volatile("" : "+r"(x))
#define RULES_FORGET() asm volatile("" ::: "memory")
#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_arm64) || defined(__TARGET_ARCH_s390) || defined(__TARGET_ARCH_powerpc)
#define RULES_WORD(p) (*(const __u32 *)(p))
#define RULES_HALF(p) (*(const __u16 *)(p))
#endif
#else
#define RULES_ONCE(x)
#define RULES_FORGET()
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#endif

#ifndef RULES_WORD /* unaligned loads by bytes, where the processor has no others */
static __always_inline __u32 rules_word(const __u8 *p)
{
	__u32 word;

	__builtin_memcpy(&word, p, sizeof word);
	return word;
}
static __always_inline __u16 rules_half(const __u8 *p)
{
	__u16 half;

	__builtin_memcpy(&half, p, sizeof half);
	return half;
}
#define RULES_WORD(p) rules_word(p)
#define RULES_HALF(p) rules_half(p)
#endif

enum {
	RULES_REACH = 0x7fff,
	RULES_NO_LIMIT = 0xfffff,
	RULES_EXTENSIONS_MAX = 16, /* KTRXER_IPV6_EXTENSIONS_MAX */
};

/* A number of the packet's, in the machine's order. */
static __always_inline __u32 rules_number(const __u8 *p)
{
	return (__u32)p[0] << 8 | p[1];
}

/* `n` bytes at offset `at`, none of them at or past `limit`; 0: there are fewer. */
static __always_inline const __u8 *rules_take(const __u8 *data, const __u8 *end, __u64 at, __u64 limit, __u64 n)
{
	const __u8 *p = data;

	RULES_ONCE(at);
	if (at > RULES_REACH || at + n > limit)
		return (const __u8 *)0;
	p += at;
	RULES_ONCE(p);
	return p + n > end ? (const __u8 *)0 : p;
}

static __always_inline _Bool rules_has_ports(__u32 proto)
{
	return proto == 17 || proto == 6 || proto == 132 || proto == 33 || proto == 136;
}

static __always_inline void rules_ports(struct rules_view *v, const __u8 *data, const __u8 *end, __u64 at, __u64 limit)
{
	const __u8 *p;

	if (!rules_has_ports(v->key.proto))
		return;
	p = rules_take(data, end, at, limit, 4);
	if (!p)
		return;
	v->key.from_port = RULES_HALF(p);
	v->key.to_port = RULES_HALF(p + 2);
}

static __always_inline void rules_ipv4(struct rules_view *v, const __u8 *data, const __u8 *end, __u64 at)
{
	const __u8 *p = rules_take(data, end, at, RULES_NO_LIMIT, 20);
	__u64 header, total;

	if (!p || p[0] >> 4 != 4)
		return;
	v->version = 4;
	v->key.proto = p[9];
	v->key.from[0] = RULES_WORD(p + 12);
	v->key.to[0] = RULES_WORD(p + 16);
	header = (__u64)(p[0] & 15) * 4;
	total = rules_number(p + 2);
	/* A total of 0 is what Linux shows for a merged packet of more than 64 KiB. */
	if (header < 20 || (total && total < header))
		return;
	if (rules_number(p + 6) & 0x1fff) /* a fragment after the first */
		return;
	rules_ports(v, data, end, at + header, total ? at + total : RULES_NO_LIMIT);
}

/* Steps over extension headers. False: what comes is not a transport header that is whole. */
static __always_inline _Bool rules_extensions(struct rules_view *v, const __u8 *data, const __u8 *end, __u64 *offset, __u64 limit)
{
	__u64 at = *offset;

	for (int i = 0; i <= RULES_EXTENSIONS_MAX; i++) {
		const __u32 proto = v->key.proto;
		const _Bool fragment = proto == 44;
		const __u8 *p, *q = data;
		__u64 length;
		_Bool later;

		if (proto != 0 && proto != 43 && proto != 44 && proto != 51 && proto != 60) {
			*offset = at;
			return 1;
		}
		p = rules_take(data, end, at, limit, 4);
		/* Two bytes are enough for those that are no fragment headers, but then the 8 that follow are not there either. */
		if (i == RULES_EXTENSIONS_MAX || !p)
			return 0;
		length = fragment ? 8 : proto == 51 ? ((__u64)p[1] + 2) * 4 : ((__u64)p[1] + 1) * 8;
		later = fragment && rules_number(p + 2) & 0xfff8;
		at += length;
		if (at > limit || at > RULES_REACH)
			return 0;
		/* By way of memory, of which the verifier does not know what is in it: so all rounds look alike to it. */
		v->offset = (__u16)at;
		RULES_FORGET();
		at = v->offset;
		RULES_ONCE(at);
		if (at > RULES_REACH)
			return 0;
		q += at;
		if (q > end)
			return 0;
		v->key.proto = p[0];
		if (later)
			return 0;
	}
	return 0;
}

static __always_inline void rules_ipv6(struct rules_view *v, const __u8 *data, const __u8 *end, __u64 at)
{
	const __u8 *p = rules_take(data, end, at, RULES_NO_LIMIT, 40);
	__u64 length, limit;

	if (!p || p[0] >> 4 != 6)
		return;
	v->version = 6;
	v->key.proto = p[6];
	for (int i = 0; i < 4; i++) {
		v->key.from[i] = RULES_WORD(p + 8 + 4 * i);
		v->key.to[i] = RULES_WORD(p + 24 + 4 * i);
	}
	length = rules_number(p + 4);
	at += 40;
	/* 0 is a jumbogram, or a merged packet; 59 says that nothing follows. */
	limit = length || v->key.proto == 59 ? at + length : RULES_NO_LIMIT;
	if (rules_extensions(v, data, end, &at, limit))
		rules_ports(v, data, end, at, limit);
}

/* `v` is all zeros when it comes here. */
static __always_inline void rules_classify(struct rules_view *v, const __u8 *data, const __u8 *end, _Bool raw_ip)
{
	const __u8 *p;
	__u64 at = 0;
	__u32 type;

	if (raw_ip) {
		p = rules_take(data, end, 0, RULES_NO_LIMIT, 1);
		if (!p)
			return;
		type = p[0] >> 4 == 4 ? 0x0800 : 0x86dd; /* rules_ipv6() looks again */
	} else {
		p = rules_take(data, end, 0, RULES_NO_LIMIT, 14);
		if (!p)
			return;
		type = rules_number(p + 12);
		at = 14;
		/* At most two tags are looked behind. */
		if (type == 0x8100 || type == 0x88a8) {
			p = rules_take(data, end, at, RULES_NO_LIMIT, 4);
			if (!p)
				return;
			type = rules_number(p + 2);
			at = 18;
			if (type == 0x8100 || type == 0x88a8) {
				p = rules_take(data, end, at, RULES_NO_LIMIT, 4);
				if (!p)
					return;
				type = rules_number(p + 2);
				at = 22;
			}
		}
	}
	if (type == 0x0800)
		rules_ipv4(v, data, end, at);
	else if (type == 0x86dd)
		rules_ipv6(v, data, end, at);
}

/* Does this rule of the list speak for the packet? */
static __always_inline _Bool rules_wild_matches(const volatile struct rules_wild *w, const struct rules_view *v)
{
	if (!w->fields)
		return 1;
	if (!v->version || (w->family && w->family != v->version) || (w->proto && w->proto != v->key.proto) ||
	    (w->from_port && w->from_port != v->key.from_port) || (w->to_port && w->to_port != v->key.to_port))
		return 0;
	for (int i = 0; i < 4; i++)
		if ((v->key.from[i] & w->from_mask[i]) != w->from[i] || (v->key.to[i] & w->to_mask[i]) != w->to[i])
			return 0;
	return 1;
}

#endif
