/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a packet says of itself, for rules: one text for the kernel, where the bytes lie in a socket buffer, and for tests and fuzzers in
 * user space, where they hold it against the library's parser.
 *
 * Whoever includes this has defined struct krx_source with a member `length`, and
 *	static const __u8 *krx_take(const struct krx_source *s, __u32 at, __u32 n, void *room);
 * which gives `n` bytes from offset `at` of the network header on, or NULL when there are fewer.
 */
#ifndef KTRXER_MODULE_RX_CLASSIFY_H
#define KTRXER_MODULE_RX_CLASSIFY_H

#include <linux/ktrxer.h>

/*
 * Also the key of the hash of whole 5-tuples: hashed as words, so it has no padding. Addresses and ports are as in the packet; of IPv4
 * the first word counts and the others are 0. No ports is port 0, which no rule can name.
 */
struct krx_view {
	__u32 from[4], to[4];
	__u16 from_port, to_port;
	__u8 proto;
	__u8 version; /* 4, 6; 0: not IP, and nothing else counts */
	__u16 zero;
};

enum {
	KRX_TYPE_IPV4 = 0x0800,
	KRX_TYPE_IPV6 = 0x86dd,
	KRX_TYPE_VLAN = 0x8100,
	KRX_TYPE_SERVICE = 0x88a8,
	KRX_TYPE_RAW = 0x10000, /* no link header: the IP version tells */
	KRX_TAGS_MAX = 2,

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

static inline __u32 krx_number(const __u8 *p)
{
	return (__u32)p[0] << 8 | p[1];
}

/* `end` is where the packet ends by its own word, cut to what is there. */
static inline void krx_classify_ports(struct krx_view *v, const struct krx_source *s, __u32 at, __u32 end)
{
	const __u8 *p;
	__u32 room;

	switch (v->proto) {
	case KRX_PROTO_TCP:
	case KRX_PROTO_UDP:
	case KRX_PROTO_DCCP:
	case KRX_PROTO_SCTP:
	case KRX_PROTO_UDP_LITE:
		break;
	default:
		return;
	}
	if (at + 4 > end)
		return;
	p = krx_take(s, at, 4, &room);
	if (!p)
		return;
	memcpy(&v->from_port, p, 2);
	memcpy(&v->to_port, p + 2, 2);
}

static inline void krx_classify_ipv4(struct krx_view *v, const struct krx_source *s, __u32 at)
{
	__u32 room[5], header, total, end = s->length;
	const __u8 *p = krx_take(s, at, 20, room);

	if (!p || p[0] >> 4 != 4)
		return;
	v->version = 4;
	v->proto = p[9];
	memcpy(v->from, p + 12, 4);
	memcpy(v->to, p + 16, 4);
	header = (p[0] & 15) * 4;
	total = krx_number(p + 2);
	/* A total of 0 is what Linux has for a merged packet of more than 64 KiB. */
	if (header < 20 || (total && total < header))
		return;
	if (krx_number(p + 6) & 0x1fff) /* a fragment after the first */
		return;
	if (total && at + total < end)
		end = at + total;
	krx_classify_ports(v, s, at + header, end);
}

/* Steps over extension headers. False: what comes is not a transport header. */
static inline _Bool krx_classify_extensions(struct krx_view *v, const struct krx_source *s, __u32 *at, __u32 end)
{
	__u32 room, length;
	const __u8 *p;
	_Bool later;
	int i;

	for (i = 0; i <= KTRXER_RX_EXTENSIONS_MAX; i++) {
		switch (v->proto) {
		case KRX_PROTO_HOPS:
		case KRX_PROTO_ROUTING:
		case KRX_PROTO_FRAGMENT:
		case KRX_PROTO_AH:
		case KRX_PROTO_DESTINATION:
			break;
		default:
			return 1;
		}
		/* Each is 8 bytes or longer: where there are fewer than 4 it does not end in the packet either. */
		if (i == KTRXER_RX_EXTENSIONS_MAX || *at + 4 > end)
			return 0;
		p = krx_take(s, *at, 4, &room);
		if (!p)
			return 0;
		length = (p[1] + 1) * 8;
		later = 0;
		if (v->proto == KRX_PROTO_FRAGMENT) {
			length = 8;
			later = krx_number(p + 2) & 0xfff8;
		} else if (v->proto == KRX_PROTO_AH) {
			length = (p[1] + 2) * 4;
		}
		if (*at + length > end)
			return 0;
		*at += length;
		v->proto = p[0];
		if (later) /* what follows is the middle of something */
			return 0;
	}
	return 0;
}

static inline void krx_classify_ipv6(struct krx_view *v, const struct krx_source *s, __u32 at)
{
	__u32 room[10], length, end = s->length;
	const __u8 *p = krx_take(s, at, 40, room);

	if (!p || p[0] >> 4 != 6)
		return;
	v->version = 6;
	v->proto = p[6];
	memcpy(v->from, p + 8, 16);
	memcpy(v->to, p + 24, 16);
	length = krx_number(p + 4);
	at += 40;
	/* 0 is a jumbogram, or a merged packet; 59 says that nothing follows. */
	if ((length || v->proto == KRX_PROTO_NONE) && at + length < end)
		end = at + length;
	if (krx_classify_extensions(v, s, &at, end))
		krx_classify_ports(v, s, at, end);
}

/* `type` is the Ethernet type behind `tags` VLAN tags, or KRX_TYPE_RAW; offset 0 is what follows it. */
static inline void krx_classify(struct krx_view *v, const struct krx_source *s, __u32 type, __u32 tags)
{
	__u32 at = 0, room;
	const __u8 *p;

	memset(v, 0, sizeof(*v));
	for (; tags < KRX_TAGS_MAX && (type == KRX_TYPE_VLAN || type == KRX_TYPE_SERVICE); tags++, at += 4) {
		p = krx_take(s, at, 4, &room);
		if (!p)
			return;
		type = krx_number(p + 2);
	}
	if (type == KRX_TYPE_RAW) {
		p = krx_take(s, 0, 1, &room);
		if (!p)
			return;
		type = p[0] >> 4 == 4 ? KRX_TYPE_IPV4 : KRX_TYPE_IPV6; /* krx_classify_ipv6() looks again */
	}
	if (type == KRX_TYPE_IPV4)
		krx_classify_ipv4(v, s, at);
	else if (type == KRX_TYPE_IPV6)
		krx_classify_ipv6(v, s, at);
}

#endif
