/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* The bytes of an XDP packet, as the classifier (ktrxer_classify.h) reads them. */
#ifndef KTRXER_BPF_RULES_SOURCE_H
#define KTRXER_BPF_RULES_SOURCE_H

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

#endif
