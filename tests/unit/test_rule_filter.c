/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The generated program, run by a small machine of our own and looked at by the kernel's checker. */
#include "base_limits.h"
#include "cm.h"
#include "random_packets.h"
#include "rule_filter.h"
#include "rule_match.h"

#include <net/if_arp.h>
#include <linux/if_packet.h>
#include <stdlib.h>
#include <unistd.h>

/* The kernel's data beside the bytes. */
struct ancillary {
	uint32_t packet_type, hardware_type, tag_present;
};

static bool load(const uint8_t *frame, uint32_t length, const struct ancillary *aux, uint32_t size, uint32_t at,
		 uint32_t *value)
{
	if (size == BPF_W && at >= (uint32_t)SKF_AD_OFF) {
		switch (at - (uint32_t)SKF_AD_OFF) {
		case SKF_AD_PKTTYPE:
			*value = aux->packet_type;
			return true;
		case SKF_AD_HATYPE:
			*value = aux->hardware_type;
			return true;
		case SKF_AD_VLAN_TAG_PRESENT:
			*value = aux->tag_present;
			return true;
		}
		fail_msg("unknown ancillary load");
	}
	if (at > length || length - at < (size == BPF_W ? 4 : size == BPF_H ? 2 : 1))
		return false;
	*value = size == BPF_W ? load_be32(frame + at) : size == BPF_H ? load_be16(frame + at) : frame[at];
	return true;
}

/* Only what the compiler emits; anything else fails the test. */
static uint32_t run(const struct krx_filter *f, const uint8_t *frame, uint32_t length, const struct ancillary *aux)
{
	uint32_t a = 0, x = 0, m[16] = { 0 };

	for (uint32_t pc = 0; pc < f->length; pc++) {
		const struct sock_filter *i = &f->code[pc];
		bool yes;

		switch (i->code) {
		case BPF_RET | BPF_K:
			return i->k;
		case BPF_LD | BPF_W | BPF_ABS:
		case BPF_LD | BPF_H | BPF_ABS:
		case BPF_LD | BPF_B | BPF_ABS:
			if (!load(frame, length, aux, BPF_SIZE(i->code), i->k, &a))
				return 0;
			continue;
		case BPF_LD | BPF_W | BPF_IND:
		case BPF_LD | BPF_H | BPF_IND:
		case BPF_LD | BPF_B | BPF_IND:
			if (!load(frame, length, aux, BPF_SIZE(i->code), i->k + x, &a))
				return 0;
			continue;
		case BPF_LD | BPF_W | BPF_LEN:
			a = length;
			continue;
		case BPF_LD | BPF_IMM:
			a = i->k;
			continue;
		case BPF_LDX | BPF_IMM:
			x = i->k;
			continue;
		case BPF_LD | BPF_MEM:
			a = m[i->k];
			continue;
		case BPF_LDX | BPF_MEM:
			x = m[i->k];
			continue;
		case BPF_ST:
			m[i->k] = a;
			continue;
		case BPF_STX:
			m[i->k] = x;
			continue;
		case BPF_MISC | BPF_TAX:
			x = a;
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= i->k;
			continue;
		case BPF_ALU | BPF_LSH | BPF_K:
			a <<= i->k;
			continue;
		case BPF_ALU | BPF_RSH | BPF_K:
			a >>= i->k;
			continue;
		case BPF_ALU | BPF_ADD | BPF_K:
			a += i->k;
			continue;
		case BPF_ALU | BPF_ADD | BPF_X:
			a += x;
			continue;
		case BPF_ALU | BPF_SUB | BPF_X:
			a -= x;
			continue;
		case BPF_JMP | BPF_JA:
			pc += i->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= i->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_X:
			yes = a >= x;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = a & i->k;
			break;
		default:
			fail_msg("instruction %u: unexpected code %#x", pc, i->code);
			return 0;
		}
		pc += yes ? i->jt : i->jf;
	}
	fail_msg("ran off the end");
	return 0;
}

/* The kernel's own opinion; no privilege is needed for a filter on a UDP socket. */
static void kernel_takes(const struct krx_filter *f)
{
	struct sock_fprog program = { .len = f->length, .filter = f->code };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	if (fd < 0)
		return;
	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program))
		fail_msg("the kernel refuses the program of %u instructions", f->length);
	close(fd);
}

/*
 * The filter of a rule set accepts a frame whenever a rule matches, and whole for a capture. If nothing is left out, it
 * accepts no other packet but those with IPv6 extension headers. A tag is offered in both ways: in the frame and beside
 * it.
 */
static void compare(struct chance *c, const struct krx_rule *rules, int count, const struct krx_filter_options *options,
		    uint64_t *accepted)
{
	struct krx_ruleset *set;
	struct krx_filter filter;
	uint32_t whole = options->snap ? options->snap : 0x40000;

	assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
	assert_int_equal(krx_filter_compile(&filter, set, options), 0);
	assert_true(filter.length <= 4096);
	kernel_takes(&filter);
	for (int i = 0; i < 200; i++) {
		enum ktrxer_link link = options->link       ? options->link
					: chance_next(c, 2) ? KTRXER_LINK_ETHERNET
							    : KTRXER_LINK_RAW_IP;
		struct ancillary aux = { .packet_type = chance_next(c, 5) };
		struct ktrxer_packet_view view;
		uint8_t frame[256], *exact;
		uint32_t length = chance_frame(c, frame, link), offered = length, got;
		int match;

		ktrxer_packet_parse(&view, frame, length, link);
		match = krx_ruleset_match(set, &view);
		aux.hardware_type =
			link == KTRXER_LINK_ETHERNET ? (chance_next(c, 2) ? ARPHRD_ETHER : ARPHRD_LOOPBACK) : 0xfffe;
		if (view.vlans && chance_next(c, 2)) {
			aux.tag_present = 1;
			offered -= 4;
			memmove(frame + 12, frame + 16, length - 16);
		}
		exact = malloc(offered ? offered : 1); /* a sanitizer sees the machine's own mistakes */
		assert_non_null(exact);
		memcpy(exact, frame, offered);
		got = run(&filter, exact, offered, &aux);
		free(exact);
		if (options->skip_outgoing && aux.packet_type == PACKET_OUTGOING) {
			assert_int_equal(got, 0);
			continue;
		}
		*accepted += got > 0;
		if (match >= 0 && rules[match].op == KRX_CAPTURE && got != whole)
			fail_msg("packet %d: rule %d captures it, the filter says %u", i, match, got);
		if (match >= 0 && !got)
			fail_msg("packet %d: rule %d matches it, the filter refuses it", i, match);
		if (filter.fields != KRX_FIELDS_ALL || (view.version == 6 && view.options))
			continue;
		if (match >= 0 && rules[match].op == KRX_FORWARD)
			assert_int_equal(got, whole < KRX_HEADERS_SNAP ? whole : KRX_HEADERS_SNAP);
		if (match < 0)
			assert_int_equal(got, 0);
	}
	krx_filter_free(&filter);
	krx_ruleset_free(set);
}

TEST(agrees_with_the_matcher)
{
	static const enum ktrxer_link links[] = { KTRXER_LINK_ETHERNET, KTRXER_LINK_RAW_IP, (enum ktrxer_link)0 };
	struct chance c = { .state = 7 };
	struct krx_rule rules[40];
	uint64_t accepted = 0;

	for (int round = 0; round < 600; round++) {
		struct krx_filter_options options = { .link = links[round % 3],
						      .skip_outgoing = round % 2,
						      .snap = round % 5 ? 0 : 96 };
		int count = (int)chance_next(&c, round % 4 ? 8 : 40);

		for (int i = 0; i < count; i++)
			rules[i] = chance_rule(&c, (uint32_t)round % 11);
		compare(&c, rules, count, &options, &accepted);
	}
	assert_true(accepted > 20000);
	assert_true(accepted < 100000);
}

/* The filter gets coarser with the number of rules, step by step, and never loses a packet. */
TEST(degrades_without_losing)
{
	struct krx_filter_options options = { .link = KTRXER_LINK_ETHERNET };
	struct krx_rule *rules = calloc(KRX_RULES_MAX, sizeof *rules);
	struct chance c = { .state = 9 };
	uint32_t seen = 0;

	assert_non_null(rules);
	for (int count = 100; count <= KRX_RULES_MAX; count = count * 3 / 2) {
		for (uint32_t kind = 0; kind < 5; kind++) {
			/* Kernels may have less room for filters. */
			options.limit = (uint16_t)(chance_next(&c, 2) ? 0 : 64u << chance_next(&c, 6));
			uint64_t accepted = 0;
			struct krx_ruleset *set;
			struct krx_filter filter;

			for (int i = 0; i < count; i++) {
				rules[i] = chance_rule(&c,
						       kind < 3 ? 9 : 10); /* 10: no wildcard that would end the list */
				if (kind == 0 || rules[i].from.family != rules[i].to.family || !rules[i].from_port)
					continue;
				/* Spread one field so wide that it alone fills the program. */
				if (kind == 1)
					rules[i].from_port = (uint16_t)(1 + i);
				if (kind >= 2)
					store_be16(rules[i].from.bytes + 2, (uint16_t)i);
				if (kind >= 3)
					store_be16(rules[i].to.bytes + 2, (uint16_t)i);
				if (kind >= 4) {
					rules[i].proto = i % 2 ? 17 : 6;
					rules[i].to_port = (uint16_t)(1 + i);
				}
				rules[i].from_prefix = rules[i].to_prefix = rules[i].to.family == AF_INET ? 32 : 128;
			}
			assert_int_equal(krx_ruleset_new(&set, rules, sizeof(struct krx_rule), count, NULL), 0);
			assert_int_equal(krx_filter_compile(&filter, set, &options), 0);
			seen |= 1u << filter.fields;
			assert_true(filter.length <= (options.limit ? options.limit : 4096));
			krx_filter_free(&filter);
			krx_ruleset_free(set);
			compare(&c, rules, count, &options, &accepted);
		}
	}
	assert_true(seen & (1u << KRX_FIELDS_ALL));
	assert_true(seen & (1u << KRX_FIELD_PROTO));
	assert_true(seen & (seen - 1) & (seen - 2)); /* three kinds of coarseness at least */
	free(rules);
}

TEST(takes_nothing_without_rules)
{
	struct krx_filter_options options = { .link = KTRXER_LINK_ETHERNET };
	struct chance c = { .state = 1 };
	uint64_t accepted = 0;

	compare(&c, NULL, 0, &options, &accepted);
	assert_int_equal(accepted, 0);
}
