/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The classifier (ktrxer_classify.h) over an XDP packet: the verifier must see that nothing past the packet is read.
 *
 * Of a packet in pieces only the first piece is read, and of that the first 32 KiB (a piece is a page): a packet whose headers are longer
 * has no ports here.
 */
#ifndef KTRXER_BPF_RULES_CLASSIFY_H
#define KTRXER_BPF_RULES_CLASSIFY_H

#define KRX_INLINE inline __attribute__((always_inline))
#define KRX_CONST const volatile
#include "rules.h"

/* The verifier follows one register: the compiler must not compute the same address a second time. */
#define RULES_ONCE(x) asm volatile("" : "+r"(x))

#if defined(__TARGET_ARCH_x86) || defined(__TARGET_ARCH_arm64) || defined(__TARGET_ARCH_s390) ||                       \
	defined(__TARGET_ARCH_powerpc)
#define KRX_WORD(p) (*(const __u32 *)(p))
#define KRX_HALF(p) (*(const __u16 *)(p))
#else
#define memcpy __builtin_memcpy
#endif

enum { RULES_REACH = 0x7fff };

struct krx_source {
	const __u8 *at, *end;
	unsigned long length;
	volatile __u32 *offset;
};

static KRX_INLINE const __u8 *krx_take(const struct krx_source *s, unsigned long at, unsigned int n, void *room)
{
	const __u8 *p = s->at;

	(void)room;
	RULES_ONCE(at);
	if (at > RULES_REACH)
		return (const __u8 *)0;
	p += at;
	RULES_ONCE(p);
	return p + n > s->end ? (const __u8 *)0 : p;
}

/* By way of a map's memory, whose value the verifier does not follow: so all rounds of the loop look alike to it. */
static KRX_INLINE unsigned long rules_reload(const struct krx_source *s, unsigned long at)
{
	*s->offset = (__u32)at;
	return *s->offset;
}
#define KRX_RELOAD(s, at) rules_reload(s, at)

#include <linux/ktrxer_classify.h>

static KRX_INLINE void rules_classify(struct rules_view *v, const __u8 *data, const __u8 *end, _Bool raw_ip)
{
	const __u32 base = raw_ip ? 0 : 14;
	struct krx_source source = { .at = data + base, .end = end, .offset = &v->offset };
	struct krx_walk walk;

	if (source.at > end) {
		v->fields.version = 0;
		return;
	}
	source.length = (unsigned long)(end - source.at);
	krx_classify(&v->fields, &walk, &source, raw_ip ? KRX_TYPE_RAW : krx_number(data + 12), 0);
}

#endif
