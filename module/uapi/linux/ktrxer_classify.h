/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The one classifier of packets: module, library and BPF program include it, each with its own
 * source of bytes (docs/decisions/0017-receive-rules.md).
 *
 * The including file has defined struct krx_source with a member `length`, and static const __u8
 * *krx_take(const struct krx_source *s, unsigned long at, unsigned int n, void *room); which gives
 * `n` bytes from offset `at` of the source on, or NULL when there are fewer. `room` has space for a
 * copy of them. KRX_WORD and KRX_HALF load from an unaligned address. KRX_RELOAD gives an offset
 * back: BPF hides its value from the verifier there.
 */
#ifndef _LINUX_KTRXER_CLASSIFY_H
#define _LINUX_KTRXER_CLASSIFY_H

#include <linux/ktrxer.h>
#include <linux/ktrxer_view.h>

#ifndef KRX_WORD
static KRX_INLINE __u32 krx_word(const __u8 *p)
{
	__u32 word;

	memcpy(&word, p, sizeof(word));
	return word;
}

static KRX_INLINE __u16 krx_half(const __u8 *p)
{
	__u16 half;

	memcpy(&half, p, sizeof(half));
	return half;
}

#define KRX_WORD(p) krx_word(p)
#define KRX_HALF(p) krx_half(p)
#endif
#ifndef KRX_RELOAD
#define KRX_RELOAD(s, at) (at)
#endif

enum {
	KRX_TYPE_IPV4 = 0x0800,
	KRX_TYPE_IPV6 = 0x86dd,
	KRX_TYPE_VLAN = 0x8100,
	KRX_TYPE_SERVICE = 0x88a8,
	KRX_TYPE_RAW = 0x10000, /* no link header: the first byte has the IP version */
	KRX_TAGS_MAX = 2,
};

/*
 * Where the headers are: offsets in the source. Only the library reads all of it; the compiler
 * leaves out what is not read.
 */
struct krx_walk {
	__u32 type;	       /* the Ethernet type behind the tags; 0: a tag is cut short */
	__u32 tags;
	unsigned long l3;
	/* the header that was reached: the transport header, unless `bad` or `later` */
	unsigned long at;
	unsigned long claimed; /* the end of the packet by its own length */
	unsigned long end;     /* the same, cut to the source */
	_Bool fragment;
	_Bool later;	       /* a fragment after the first one: it has no transport header */
	_Bool bad;	       /* a length is wrong, or a header is cut short */
};

/* A number of two bytes, in the machine's order. */
static KRX_INLINE __u32 krx_number(const __u8 *p)
{
	return (__u32)p[0] << 8 | p[1];
}

static KRX_INLINE void krx_walk_end(struct krx_walk *w, const struct krx_source *s,
				    unsigned long claimed)
{
	w->claimed = claimed;
	w->end = claimed < s->length ? claimed : s->length;
}

static KRX_INLINE void krx_classify_ipv4(struct krx_view *v, struct krx_walk *w,
					 const struct krx_source *s)
{
	__u32 room[5], header, total;
	const __u8 *p = krx_take(s, w->l3, 20, room);

	w->bad = !p || p[0] >> 4 != 4;
	if (w->bad)
		return;
	v->version = 4;
	v->proto = p[9];
	v->from[0] = KRX_WORD(p + 12);
	v->to[0] = KRX_WORD(p + 16);
	header = (p[0] & 15) * 4;
	total = krx_number(p + 2);
	w->fragment = krx_number(p + 6) & 0x3fff;
	w->later = krx_number(p + 6) & 0x1fff;
	w->bad = header < 20 || (total && total < header);
	if (w->bad)
		return;
	/* A total of 0 is what Linux has for a merged packet of more than 64 KiB. */
	krx_walk_end(w, s, total ? w->l3 + total : s->length);
	w->at = w->l3 + header;
	w->bad = w->at > w->end;
}

/* Steps over the extension headers of IPv6. */
static KRX_INLINE void krx_walk_extensions(struct krx_view *v, struct krx_walk *w,
					   const struct krx_source *s)
{
	__u32 room, length;
	const __u8 *p;
	int i;

	for (i = 0; i <= KTRXER_RX_EXTENSIONS_MAX && !w->later; i++) {
		if (!krx_proto_is_extension(v->proto))
			return;
		w->bad = 1;
		/* Each has 8 bytes or more: where there are fewer than 4 it is cut short, too. */
		if (i == KTRXER_RX_EXTENSIONS_MAX || w->at + 4 > w->end)
			return;
		p = krx_take(s, w->at, 4, &room);
		if (!p)
			return;
		length = (p[1] + 1) * 8;
		if (v->proto == KRX_PROTO_FRAGMENT) {
			length = 8;
			w->fragment = 1;
			w->later = krx_number(p + 2) & 0xfff8;
		} else if (v->proto == KRX_PROTO_AH) {
			length = (p[1] + 2) * 4;
		}
		if (w->at + length > w->end)
			return;
		w->bad = 0;
		w->at = KRX_RELOAD(s, w->at + length);
		v->proto = p[0];
	}
}

static KRX_INLINE void krx_classify_ipv6(struct krx_view *v, struct krx_walk *w,
					 const struct krx_source *s)
{
	__u32 room[10], length;
	const __u8 *p = krx_take(s, w->l3, 40, room);
	int i;

	w->bad = !p || p[0] >> 4 != 6;
	if (w->bad)
		return;
	v->version = 6;
	v->proto = p[6];
	for (i = 0; i < 4; i++) {
		v->from[i] = KRX_WORD(p + 8 + 4 * i);
		v->to[i] = KRX_WORD(p + 24 + 4 * i);
	}
	length = krx_number(p + 4);
	w->at = w->l3 + 40;
	/* 0: a jumbogram, or a merged packet; next header 59: no header follows. */
	krx_walk_end(w, s, length || v->proto == KRX_PROTO_NONE ? w->at + length : s->length);
	krx_walk_extensions(v, w, s);
}

/*
 * `type` is the Ethernet type behind `tags` VLAN tags, or KRX_TYPE_RAW; offset 0 of the source is
 * what follows it.
 */
static KRX_INLINE void krx_classify(struct krx_view *v, struct krx_walk *w,
				    const struct krx_source *s, __u32 type, __u32 tags)
{
	const __u8 *p;
	__u32 room;

	*v = (struct krx_view){ .version = 0 };
	*w = (struct krx_walk){ .tags = tags, .end = s->length };
	while (w->tags < KRX_TAGS_MAX && (type == KRX_TYPE_VLAN || type == KRX_TYPE_SERVICE)) {
		p = krx_take(s, w->l3, 4, &room);
		w->bad = !p;
		if (!p)
			return;
		type = krx_number(p + 2);
		w->tags++;
		w->l3 += 4;
	}
	w->type = type;
	if (type == KRX_TYPE_RAW) {
		p = krx_take(s, 0, 1, &room);
		w->bad = !p;
		if (!p)
			return;
		/* krx_classify_ipv6() checks the version */
		type = p[0] >> 4 == 4 ? KRX_TYPE_IPV4 : KRX_TYPE_IPV6;
	}
	if (type == KRX_TYPE_IPV4)
		krx_classify_ipv4(v, w, s);
	else if (type == KRX_TYPE_IPV6)
		krx_classify_ipv6(v, w, s);
	if (!v->version || w->bad || w->later || !krx_proto_has_ports(v->proto) ||
	    w->at + 4 > w->end)
		return;
	p = krx_take(s, w->at, 4, &room);
	if (!p)
		return;
	v->from_port = KRX_HALF(p);
	v->to_port = KRX_HALF(p + 2);
}

#endif
