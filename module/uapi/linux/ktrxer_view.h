/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The fields of a packet that rules compare, and the comparison with one rule: the same code in the
 * module, the library and the BPF program. BPF defines KRX_INLINE (always) and KRX_CONST (volatile
 * constants) before it includes this header.
 */
#ifndef _LINUX_KTRXER_VIEW_H
#define _LINUX_KTRXER_VIEW_H

#include <linux/types.h>

#ifndef KRX_INLINE
#define KRX_INLINE inline
#endif
#ifndef KRX_CONST
#define KRX_CONST const
#endif

/*
 * The key of the hash of whole 5-tuples: hashed as words, so it has no padding. Addresses and ports
 * are in network order; an IPv4 address is the first word, and the other three are 0. A packet
 * without ports has port 0, which no rule can name.
 */
struct krx_view {
	__u32 from[4], to[4];
	__u16 from_port, to_port;
	__u8 proto;
	__u8 version; /* 4, 6; 0: not IP, and nothing else counts */
	__u16 zero;
};

/* A rule with wildcards: (packet & mask) == value; a mask of 0 is a wildcard. */
struct krx_wild {
	__u32 from[4], from_mask[4], to[4], to_mask[4];
	__u16 from_port, to_port;
	__u8 proto, version; /* 4, 6; 0: both */
	__u8 anything;       /* matches every packet, also one that is not IP */
	__u8 zero;
	__u32 rule; /* its rank */
};

enum {
	KRX_PROTO_HOPS = 0,
	KRX_PROTO_TCP = 6,
	KRX_PROTO_UDP = 17,
	KRX_PROTO_DCCP = 33,
	KRX_PROTO_ROUTING = 43,
	KRX_PROTO_FRAGMENT = 44,
	KRX_PROTO_AH = 51,
	KRX_PROTO_NONE = 59,
	KRX_PROTO_DESTINATION = 60,
	KRX_PROTO_SCTP = 132,
	KRX_PROTO_UDP_LITE = 136,
};

static KRX_INLINE _Bool krx_proto_has_ports(__u8 proto)
{
	return proto == KRX_PROTO_UDP || proto == KRX_PROTO_TCP || proto == KRX_PROTO_SCTP ||
	       proto == KRX_PROTO_DCCP || proto == KRX_PROTO_UDP_LITE;
}

/* Extension headers of IPv6. */
static KRX_INLINE _Bool krx_proto_is_extension(__u8 proto)
{
	return proto == KRX_PROTO_HOPS || proto == KRX_PROTO_ROUTING ||
	       proto == KRX_PROTO_FRAGMENT || proto == KRX_PROTO_AH ||
	       proto == KRX_PROTO_DESTINATION;
}

static KRX_INLINE _Bool krx_match_wild(KRX_CONST struct krx_wild *w, const struct krx_view *v)
{
	/* These are no arrays, because a kernel that checks bounds would check each word. */
	KRX_CONST __u32 *from_mask = w->from_mask, *to_mask = w->to_mask, *from_is = w->from,
			*to_is = w->to;
	const __u32 *from = v->from, *to = v->to;
	int i;

	if (w->anything)
		return 1;
	if (!v->version || (w->version && w->version != v->version) ||
	    (w->proto && w->proto != v->proto) || (w->from_port && w->from_port != v->from_port) ||
	    (w->to_port && w->to_port != v->to_port))
		return 0;
	for (i = 0; i < 4; i++)
		if ((from[i] & from_mask[i]) != from_is[i] || (to[i] & to_mask[i]) != to_is[i])
			return 0;
	return 1;
}

#endif
