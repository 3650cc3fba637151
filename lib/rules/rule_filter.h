/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * This makes a classic BPF program of a rule set for SO_ATTACH_FILTER, so that the socket receives only packets that
 * match a rule. The program accepts every packet that matches a rule, except those of `drop` rules: a tap cannot drop,
 * another back end does. It may accept more: packets with IPv6 extension headers where a rule for IPv6 exists, and much
 * more when the set is too large for the kernel's 4096 instructions. Then the program compares fewer fields (`fields`),
 * in the end none. krx_ruleset_match() decides afterwards. Packets of `forward` rules are accepted as well, but cut to
 * their headers: a classic BPF program cannot count them. Each takes a slot of the ring. Narrower forward rules avoid
 * this, or none, because a packet without a rule is forwarded, too.
 */
#ifndef KTRXER_LIB_RULE_FILTER_H
#define KTRXER_LIB_RULE_FILTER_H

#include "rule_match.h"

#include <linux/filter.h>

struct krx_filter_options {
	enum ktrxer_link
		link;       /* what every packet begins with; 0: by the type of the packet's device (SKF_AD_HATYPE) */
	uint32_t snap;      /* bytes of a captured packet, 0: all of them */
	uint16_t limit;     /* instructions; 0: the kernel's 4096 */
	bool skip_outgoing; /* packets that this host sends are refused, despite the rules */
};

struct krx_filter {
	struct sock_filter *code; /* NULL: krx_filter_free() was here */
	uint16_t length;
	uint32_t fields; /* enum krx_field: those that are looked at; KRX_FIELDS_ALL: nothing had to be left out */
};

/* 0 or -ENOMEM: a set too large gives a coarser filter, never an error. */
int krx_filter_compile(struct krx_filter *filter, const struct krx_ruleset *set,
		       const struct krx_filter_options *options);
void krx_filter_free(struct krx_filter *filter);

#endif
