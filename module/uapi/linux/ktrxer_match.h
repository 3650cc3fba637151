/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A table of rules for module and library: rules are checked as they are added, then packets are
 * looked up. The including file has defined
 * static __u32 krx_hash(const void *words, __u32 count, __u32 seed);
 */
#ifndef _LINUX_KTRXER_MATCH_H
#define _LINUX_KTRXER_MATCH_H

#include <linux/ktrxer.h>
#include <linux/ktrxer_view.h>

#define KRX_NONE 0xffffffffU

/* A whole 5-tuple. Of two equal ones the first decides. */
struct krx_exact {
	struct krx_view key;
	/* of the key, all of its bits: most different keys in one bucket have different hashes */
	__u32 hash;
	__u32 rule;
};

struct krx_match {
	__u32 count, exact_count, wild_count, wild_most;
	__u32 bucket_mask;	 /* buckets - 1: a power of two, at most half of them taken */
	__u32 seed;
	__u8 *op;		 /* of each rule */
	struct krx_exact *exact; /* room for all rules */
	struct krx_wild *wild;	 /* room for wild_most */
	__u32 *buckets;		 /* places in `exact`, KRX_NONE: empty */
};

static inline _Bool krx_view_same(const struct krx_view *a, const struct krx_view *b)
{
	/* not as arrays: a kernel that checks bounds would, of each word */
	const __u32 *p = a->from, *q = b->from;
	const __u32 *r = a->to, *s = b->to;
	int i;

	for (i = 0; i < 4; i++)
		if (p[i] != q[i] || r[i] != s[i])
			return 0;
	return a->from_port == b->from_port && a->to_port == b->to_port && a->proto == b->proto &&
	       a->version == b->version;
}

static inline __u32 krx_match_hash(const struct krx_match *m, const struct krx_view *key)
{
	return krx_hash(key, sizeof(*key) / 4, m->seed);
}

/* The bucket of the key, or the empty one that it would have. */
static inline __u32 krx_match_bucket(const struct krx_match *m, const struct krx_view *key,
				     __u32 hash)
{
	const struct krx_exact *exact;
	__u32 at, place;

	for (at = hash & m->bucket_mask;; at = (at + 1) & m->bucket_mask) {
		place = m->buckets[at];
		if (place == KRX_NONE)
			return at;
		exact = &m->exact[place];
		if (exact->hash == hash && krx_view_same(&exact->key, key))
			return at;
	}
}

/* The mask of a prefix; false: the address has bits beyond it, or there are not so many. */
static inline _Bool krx_match_side(__u32 value[4], __u32 mask[4], const __u8 address[16],
				   __u32 prefix, __u32 bits)
{
	__u8 *bytes = (__u8 *)mask;
	__u32 i;

	if (prefix > bits)
		return 0;
	memset(mask, 0, 16);
	for (i = 0; i < prefix; i++)
		bytes[i / 8] |= 0x80 >> i % 8;
	for (i = 0; i < 16; i++)
		if (address[i] & ~bytes[i])
			return 0;
	memcpy(value, address, 16);
	return 1;
}

/*
 * Adds a rule behind the rules before it. -EINVAL: the rule contradicts itself; -E2BIG: too many
 * rules that are no whole 5-tuple.
 */
static inline int krx_match_add(struct krx_match *m, const struct ktrxer_rx_rule *rule)
{
	const __u32 bits = rule->family == 4 ? 32 : rule->family == 6 ? 128 : 0;
	struct krx_wild wild = { .rule = m->count };
	struct krx_exact *exact;
	__u32 bucket;

	if (rule->op < KTRXER_RX_CAPTURE || rule->op > KTRXER_RX_FORWARD ||
	    (rule->family && !bits) || rule->reserved[0] || rule->reserved[1] ||
	    rule->reserved[2] ||
	    !krx_match_side(wild.from, wild.from_mask, rule->from, rule->from_prefix, bits) ||
	    !krx_match_side(wild.to, wild.to_mask, rule->to, rule->to_prefix, bits))
		return -EINVAL;
	memcpy(&wild.from_port, &rule->from_port, 2);
	memcpy(&wild.to_port, &rule->to_port, 2);
	wild.proto = rule->proto;
	wild.version = rule->family;
	wild.anything = !rule->family && !rule->proto && !wild.from_port && !wild.to_port;
	m->op[m->count++] = rule->op;
	if (!bits || rule->from_prefix != bits || rule->to_prefix != bits || !wild.proto ||
	    !wild.from_port || !wild.to_port) {
		if (m->wild_count == m->wild_most)
			return -E2BIG;
		m->wild[m->wild_count++] = wild;
		return 0;
	}
	exact = &m->exact[m->exact_count];
	memset(exact, 0, sizeof(*exact));
	memcpy(exact->key.from, wild.from, 16);
	memcpy(exact->key.to, wild.to, 16);
	exact->key.from_port = wild.from_port;
	exact->key.to_port = wild.to_port;
	exact->key.proto = wild.proto;
	exact->key.version = wild.version;
	exact->rule = wild.rule;
	exact->hash = krx_match_hash(m, &exact->key);
	bucket = krx_match_bucket(m, &exact->key, exact->hash);
	if (m->buckets[bucket] == KRX_NONE)
		m->buckets[bucket] = m->exact_count++;
	return 0;
}

/* The rule that a linear scan would find first; KRX_NONE: no rule fits the packet. */
static inline __u32 krx_match_find(const struct krx_match *m, const struct krx_view *v)
{
	__u32 best = KRX_NONE, i;

	if (m->exact_count && v->from_port && v->to_port) {
		i = m->buckets[krx_match_bucket(m, v, krx_match_hash(m, v))];
		if (i != KRX_NONE)
			best = m->exact[i].rule;
	}
	for (i = 0; i < m->wild_count && m->wild[i].rule < best; i++)
		if (krx_match_wild(&m->wild[i], v))
			return m->wild[i].rule;
	return best;
}

#endif
