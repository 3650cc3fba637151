/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The program, in the order of its instructions (jumps of classic BPF go forward only):
 *
 *	outgoing?                        refuse, where asked for
 *	link header, up to two tags      X = offset of the IP header; the kernel may have taken the outer tag away
 *	IPv4: fields into M[], ports only where ktrxer_packet_parse() would find them; then the rules in order
 *	IPv6: likewise; a packet with extension headers is accepted at once
 *
 * A load past the end of the packet would make the kernel refuse it, so every load stands behind a test of the length.
 * "No ports" is port 0, which no rule can name.
 */
#include "rule_filter.h"

#include "bytes.h"
#include "rule_match.h"

#include <errno.h>
#include <net/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ktrxer_view.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
	INSTRUCTIONS_MAX = BPF_MAXINSNS,
	WHOLE = 0x40000, /* more than any packet */

	/* words of the program's memory M[] */
	M_FROM = 0,
	M_TO,
	M_PROTO,
	M_FROM_PORT,
	M_TO_PORT,
	M_HEADER, /* bytes of the IPv4 header */
	M_NEED,   /* and 4 more: up to the ports' end */
	M_L3,
};

enum { LABEL_REFS = 80 };

/* A place further down, with the jumps whose distance to it is not known yet. */
struct label {
	uint16_t refs[LABEL_REFS];
	uint16_t count;
};

struct assembler {
	struct sock_filter code[INSTRUCTIONS_MAX];
	uint32_t length, limit;
	bool overflow;
	const struct krx_ruleset *set;
	uint32_t fields, snap;
	struct label ipv6;
	/* coarse: the rules in this section, to leave out what is said twice */
	const struct krx_rule *emitted[INSTRUCTIONS_MAX];
	uint32_t emitted_count;
};

static void emit(struct assembler *a, uint32_t code, uint32_t k, uint8_t jt, uint8_t jf)
{
	if (a->length >= a->limit) {
		a->overflow = true;
		return;
	}
	a->code[a->length++] = (struct sock_filter){ .code = (uint16_t)code, .jt = jt, .jf = jf, .k = k };
}

static void op(struct assembler *a, uint32_t code, uint32_t k)
{
	emit(a, code, k, 0, 0);
}

static void refer(struct assembler *a, struct label *label)
{
	if (a->overflow)
		return;
	if (label->count == LABEL_REFS)
		a->overflow = true;
	else
		label->refs[label->count++] = (uint16_t)(a->length - 1);
}

/* Conditional jumps reach 255 instructions: within a rule, or the reading of a header. place() checks. */
static void jump_if(struct assembler *a, uint32_t test, uint32_t k, struct label *label)
{
	emit(a, BPF_JMP | test, k, 255, 0);
	refer(a, label);
}

static void jump_unless(struct assembler *a, uint32_t test, uint32_t k, struct label *label)
{
	emit(a, BPF_JMP | test, k, 0, 255);
	refer(a, label);
}

static void jump(struct assembler *a, struct label *label)
{
	emit(a, BPF_JMP | BPF_JA, 0, 0, 0);
	refer(a, label);
}

static void place(struct assembler *a, struct label *label)
{
	for (uint16_t i = 0; i < label->count && !a->overflow; i++) {
		struct sock_filter *from = &a->code[label->refs[i]];
		uint32_t distance = a->length - label->refs[i] - 1;

		if (from->code == (BPF_JMP | BPF_JA)) {
			from->k = distance;
			continue;
		}
		if (distance > 255)
			a->overflow = true;
		else if (from->jt == 255)
			from->jt = (uint8_t)distance;
		else
			from->jf = (uint8_t)distance;
	}
	label->count = 0;
}

/* Refuses to go on with less than what `test k` asks for: the packet then counts as not IP. */
static void require(struct assembler *a, uint32_t test, uint32_t k, uint32_t else_return)
{
	emit(a, BPF_JMP | test, k, 1, 0);
	op(a, BPF_RET | BPF_K, else_return);
}

static uint32_t verdict_of(const struct assembler *a, const struct krx_rule *rule)
{
	/* With fewer fields than the rule has, another rule may decide. */
	if (a->fields != KRX_FIELDS_ALL || (rule->op != KRX_FORWARD && rule->op != KRX_DROP))
		return a->snap;
	if (rule->op == KRX_DROP) /* the back end that drops the packet counts it */
		return 0;
	return a->snap < KRX_HEADERS_SNAP ? a->snap : KRX_HEADERS_SNAP;
}

/* Only a rule without any field matches a packet that is not IP. */
static uint32_t verdict_not_ip(const struct assembler *a)
{
	for (int rank = 0; rank < krx_ruleset_count(a->set); rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(a->set, rank);

		if (!krx_rule_fields(rule))
			return verdict_of(a, rule);
	}
	return 0;
}

static bool rule_is_of_family(const struct krx_rule *rule, int family)
{
	return (!rule->from.family || rule->from.family == family) && (!rule->to.family || rule->to.family == family);
}

static bool side_is_same(const struct ktrxer_addr *a, uint8_t a_prefix, const struct ktrxer_addr *b, uint8_t b_prefix)
{
	return ktrxer_addr_equal(a, b) && (!a->family || a_prefix == b_prefix);
}

/* True if two rules are equal in these fields. */
static bool rule_is_same(const struct krx_rule *a, const struct krx_rule *b, uint32_t fields)
{
	return (!(fields & KRX_FIELD_PROTO) || a->proto == b->proto) &&
	       (!(fields & KRX_FIELD_FROM) || side_is_same(&a->from, a->from_prefix, &b->from, b->from_prefix)) &&
	       (!(fields & KRX_FIELD_TO) || side_is_same(&a->to, a->to_prefix, &b->to, b->to_prefix)) &&
	       (!(fields & KRX_FIELD_FROM_PORT) || a->from_port == b->from_port) &&
	       (!(fields & KRX_FIELD_TO_PORT) || a->to_port == b->to_port);
}

static bool rule_is_stated(const struct assembler *a, const struct krx_rule *rule)
{
	for (uint32_t i = 0; i < a->emitted_count; i++)
		if (rule_is_same(a->emitted[i], rule, a->fields))
			return true;
	return false;
}

/* `at` is M_FROM or M_TO for IPv4, else the address's offset in the IPv6 header. */
static void emit_addr(struct assembler *a, const struct ktrxer_addr *addr, uint8_t prefix, uint32_t at,
		      struct label *next)
{
	for (uint32_t bit = 0; bit < prefix; bit += 32) {
		uint32_t left = prefix - bit;

		if (addr->family == AF_INET)
			op(a, BPF_LD | BPF_MEM, at);
		else
			op(a, BPF_LD | BPF_W | BPF_IND, at + bit / 8);
		if (left < 32)
			op(a, BPF_ALU | BPF_AND | BPF_K, ~(UINT32_MAX >> left));
		jump_unless(a, BPF_JEQ | BPF_K, load_be32(addr->bytes + bit / 8), next);
	}
}

static void emit_rule(struct assembler *a, const struct krx_rule *rule, int family)
{
	uint32_t fields = krx_rule_fields(rule) & a->fields;
	struct label next = { .count = 0 };

	/* The most selective fields come first: most packets then leave a rule after two instructions. */
	if (fields & KRX_FIELD_TO_PORT) {
		op(a, BPF_LD | BPF_MEM, M_TO_PORT);
		jump_unless(a, BPF_JEQ | BPF_K, rule->to_port, &next);
	}
	if (fields & KRX_FIELD_FROM_PORT) {
		op(a, BPF_LD | BPF_MEM, M_FROM_PORT);
		jump_unless(a, BPF_JEQ | BPF_K, rule->from_port, &next);
	}
	if (fields & KRX_FIELD_FROM)
		emit_addr(a, &rule->from, rule->from_prefix, family == AF_INET ? M_FROM : 8, &next);
	if (fields & KRX_FIELD_TO)
		emit_addr(a, &rule->to, rule->to_prefix, family == AF_INET ? M_TO : 24, &next);
	if (fields & KRX_FIELD_PROTO) {
		op(a, BPF_LD | BPF_MEM, M_PROTO);
		jump_unless(a, BPF_JEQ | BPF_K, rule->proto, &next);
	}
	op(a, BPF_RET | BPF_K, verdict_of(a, rule));
	place(a, &next);
}

static void emit_rules(struct assembler *a, int family)
{
	a->emitted_count = 0;
	for (int rank = 0; rank < krx_ruleset_count(a->set) && !a->overflow; rank++) {
		const struct krx_rule *rule = krx_ruleset_ranked(a->set, rank);

		if (!rule_is_of_family(rule, family))
			continue;
		if (a->fields != KRX_FIELDS_ALL) {
			if (rule_is_stated(a, rule))
				continue;
			/* Each rule takes an instruction at least: there is room for all that fit the program. */
			if (a->emitted_count < INSTRUCTIONS_MAX)
				a->emitted[a->emitted_count++] = rule;
		}
		emit_rule(a, rule, family);
		/* An address of no bits is a field that says nothing but the family, and that is known here. */
		if (!(krx_rule_fields(rule) & a->fields))
			return;
	}
	op(a, BPF_RET | BPF_K, 0);
}

static bool any_rule_of_family(const struct assembler *a, int family)
{
	for (int rank = 0; rank < krx_ruleset_count(a->set); rank++)
		if (rule_is_of_family(krx_ruleset_ranked(a->set, rank), family))
			return true;
	return false;
}

/* A = bytes from the IP header on. */
static void emit_left(struct assembler *a)
{
	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	op(a, BPF_ALU | BPF_SUB | BPF_X, 0);
}

static void emit_version(struct assembler *a)
{
	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_RSH | BPF_K, 4);
}

/* A = a protocol: jumps where `is` holds for it. */
static void jump_if_proto(struct assembler *a, _Bool (*is)(uint8_t proto), struct label *label)
{
	for (uint32_t proto = 0; proto < 256; proto++)
		if (is((uint8_t)proto))
			jump_if(a, BPF_JEQ | BPF_K, proto, label);
}

static void emit_has_ports(struct assembler *a, struct label *no)
{
	struct label yes = { .count = 0 };

	op(a, BPF_LD | BPF_MEM, M_PROTO);
	jump_if_proto(a, krx_proto_has_ports, &yes);
	jump(a, no);
	place(a, &yes);
}

static void emit_no_ports(struct assembler *a)
{
	op(a, BPF_LD | BPF_IMM, 0);
	op(a, BPF_ST, M_FROM_PORT);
	op(a, BPF_ST, M_TO_PORT);
}

/* X = offset of the header. */
static void emit_ipv4(struct assembler *a, uint32_t not_ip)
{
	struct label done = { .count = 0 }, untold = { .count = 0 };

	emit_left(a);
	require(a, BPF_JGE | BPF_K, 20, not_ip);
	emit_version(a);
	require(a, BPF_JEQ | BPF_K, 4, not_ip);
	op(a, BPF_LD | BPF_W | BPF_IND, 12);
	op(a, BPF_ST, M_FROM);
	op(a, BPF_LD | BPF_W | BPF_IND, 16);
	op(a, BPF_ST, M_TO);
	op(a, BPF_LD | BPF_B | BPF_IND, 9);
	op(a, BPF_ST, M_PROTO);
	emit_no_ports(a);
	if (!(a->fields & (KRX_FIELD_FROM_PORT | KRX_FIELD_TO_PORT)))
		goto rules;

	emit_has_ports(a, &done);
	op(a, BPF_LD | BPF_H | BPF_IND, 6);
	jump_if(a, BPF_JSET | BPF_K, 0x1fff, &done);
	op(a, BPF_LD | BPF_B | BPF_IND, 0);
	op(a, BPF_ALU | BPF_AND | BPF_K, 15);
	op(a, BPF_ALU | BPF_LSH | BPF_K, 2);
	jump_unless(a, BPF_JGE | BPF_K, 20, &done);
	op(a, BPF_ST, M_HEADER);
	op(a, BPF_ALU | BPF_ADD | BPF_K, 4);
	op(a, BPF_ST, M_NEED);
	op(a, BPF_STX, M_L3);
	op(a, BPF_LD | BPF_H | BPF_IND, 2);
	jump_if(a, BPF_JEQ | BPF_K, 0, &untold);
	op(a, BPF_LDX | BPF_MEM, M_NEED);
	jump_unless(a, BPF_JGE | BPF_X, 0, &done);
	place(a, &untold);
	op(a, BPF_LDX | BPF_MEM, M_L3);
	emit_left(a);
	op(a, BPF_LDX | BPF_MEM, M_NEED);
	jump_unless(a, BPF_JGE | BPF_X, 0, &done);
	op(a, BPF_LD | BPF_MEM, M_L3);
	op(a, BPF_LDX | BPF_MEM, M_HEADER);
	op(a, BPF_ALU | BPF_ADD | BPF_X, 0);
	op(a, BPF_MISC | BPF_TAX, 0);
	op(a, BPF_LD | BPF_H | BPF_IND, 0);
	op(a, BPF_ST, M_FROM_PORT);
	op(a, BPF_LD | BPF_H | BPF_IND, 2);
	op(a, BPF_ST, M_TO_PORT);
	place(a, &done);
rules:
	emit_rules(a, AF_INET);
}

static void emit_ipv6(struct assembler *a, uint32_t not_ip)
{
	struct label done = { .count = 0 }, extended = { .count = 0 }, plain = { .count = 0 }, untold = { .count = 0 };

	emit_left(a);
	require(a, BPF_JGE | BPF_K, 40, not_ip);
	emit_version(a);
	require(a, BPF_JEQ | BPF_K, 6, not_ip);
	op(a, BPF_LD | BPF_B | BPF_IND, 6);
	op(a, BPF_ST, M_PROTO);
	if (any_rule_of_family(a, AF_INET6)) {
		jump_if_proto(a, krx_proto_is_extension, &extended);
		jump(a, &plain);
		place(a, &extended);
		op(a, BPF_RET | BPF_K, a->snap);
		place(a, &plain);
	}
	emit_no_ports(a);
	if (a->fields & (KRX_FIELD_FROM_PORT | KRX_FIELD_TO_PORT)) {
		emit_has_ports(a, &done);
		op(a, BPF_LD | BPF_H | BPF_IND, 4);
		jump_if(a, BPF_JEQ | BPF_K, 0, &untold);
		jump_unless(a, BPF_JGE | BPF_K, 4, &done);
		place(a, &untold);
		emit_left(a);
		jump_unless(a, BPF_JGE | BPF_K, 44, &done);
		op(a, BPF_LD | BPF_H | BPF_IND, 40);
		op(a, BPF_ST, M_FROM_PORT);
		op(a, BPF_LD | BPF_H | BPF_IND, 42);
		op(a, BPF_ST, M_TO_PORT);
		place(a, &done);
	}
	emit_rules(a, AF_INET6);
}

/* A = ethertype; goes on below when it is no tag. */
static void emit_is_tag(struct assembler *a, struct label *no)
{
	struct label yes = { .count = 0 };

	jump_if(a, BPF_JEQ | BPF_K, ETH_P_8021Q, &yes);
	jump_unless(a, BPF_JEQ | BPF_K, ETH_P_8021AD, no);
	place(a, &yes);
}

static void emit_ethernet(struct assembler *a, struct label *ipv4, uint32_t not_ip)
{
	struct label untagged = { .count = 0 }, v4 = { .count = 0 };

	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	require(a, BPF_JGE | BPF_K, 14, not_ip);
	op(a, BPF_LDX | BPF_IMM, 14);
	op(a, BPF_LD | BPF_H | BPF_ABS, 12);
	emit_is_tag(a, &untagged);
	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	require(a, BPF_JGE | BPF_K, 18, not_ip);
	op(a, BPF_LDX | BPF_IMM, 18);
	op(a, BPF_LD | BPF_H | BPF_ABS, 16);
	emit_is_tag(a, &untagged);
	/* Where the kernel holds a tag beside the packet, this would be the third. */
	op(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
	require(a, BPF_JEQ | BPF_K, 0, not_ip);
	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	require(a, BPF_JGE | BPF_K, 22, not_ip);
	op(a, BPF_LDX | BPF_IMM, 22);
	op(a, BPF_LD | BPF_H | BPF_ABS, 20);
	place(a, &untagged);
	jump_if(a, BPF_JEQ | BPF_K, ETH_P_IP, &v4);
	require(a, BPF_JEQ | BPF_K, ETH_P_IPV6, not_ip);
	jump(a, &a->ipv6);
	place(a, &v4);
	jump(a, ipv4);
}

static void emit_raw(struct assembler *a, struct label *ipv4, uint32_t not_ip)
{
	struct label v4 = { .count = 0 };

	op(a, BPF_LDX | BPF_IMM, 0);
	op(a, BPF_LD | BPF_W | BPF_LEN, 0);
	require(a, BPF_JGE | BPF_K, 1, not_ip);
	emit_version(a);
	jump_if(a, BPF_JEQ | BPF_K, 4, &v4);
	require(a, BPF_JEQ | BPF_K, 6, not_ip);
	jump(a, &a->ipv6);
	place(a, &v4);
	jump(a, ipv4);
}

static void assemble(struct assembler *a, const struct krx_filter_options *options)
{
	struct label ipv4 = { .count = 0 }, ethernet = { .count = 0 };
	uint32_t not_ip;

	a->length = 0;
	a->overflow = false;
	a->ipv6.count = 0;
	a->snap = options->snap ? options->snap : WHOLE;
	not_ip = verdict_not_ip(a);

	if (options->skip_outgoing) {
		op(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
		emit(a, BPF_JMP | BPF_JEQ | BPF_K, PACKET_OUTGOING, 0, 1);
		op(a, BPF_RET | BPF_K, 0);
	}
	if (!a->fields) { /* too many kinds of rules for any test */
		op(a, BPF_RET | BPF_K, a->snap);
		return;
	}
	if (!options->link) {
		op(a, BPF_LD | BPF_W | BPF_ABS, (uint32_t)(SKF_AD_OFF + SKF_AD_HATYPE));
		jump_if(a, BPF_JEQ | BPF_K, ARPHRD_ETHER, &ethernet);
		jump_if(a, BPF_JEQ | BPF_K, ARPHRD_LOOPBACK, &ethernet);
	}
	if (options->link != KTRXER_LINK_ETHERNET)
		emit_raw(a, &ipv4, not_ip);
	place(a, &ethernet);
	if (options->link != KTRXER_LINK_RAW_IP)
		emit_ethernet(a, &ipv4, not_ip);
	place(a, &ipv4);
	emit_ipv4(a, not_ip);
	place(a, &a->ipv6);
	emit_ipv6(a, not_ip);
}

int krx_filter_compile(struct krx_filter *filter, const struct krx_ruleset *set,
		       const struct krx_filter_options *options)
{
	/*
	 * The first level that fits is taken, from all fields to none. The packets that a tool requires have its own
	 * address in `to`.
	 */
	static const uint32_t levels[] = {
		KRX_FIELDS_ALL,
		KRX_FIELD_PROTO | KRX_FIELD_FROM | KRX_FIELD_TO | KRX_FIELD_TO_PORT,
		KRX_FIELD_PROTO | KRX_FIELD_FROM | KRX_FIELD_TO,
		KRX_FIELD_PROTO | KRX_FIELD_TO | KRX_FIELD_TO_PORT,
		KRX_FIELD_PROTO | KRX_FIELD_FROM | KRX_FIELD_FROM_PORT,
		KRX_FIELD_PROTO | KRX_FIELD_TO,
		KRX_FIELD_PROTO | KRX_FIELD_FROM,
		KRX_FIELD_PROTO,
		0,
	};
	struct assembler *a = calloc(1, sizeof *a);
	int ret = -ENOMEM;

	*filter = (struct krx_filter){ .code = NULL };
	if (!a)
		return ret;
	a->set = set;
	a->limit = options->limit && options->limit < INSTRUCTIONS_MAX ? options->limit : INSTRUCTIONS_MAX;
	for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
		a->fields = levels[i];
		assemble(a, options);
		if (!a->overflow)
			break;
	}
	filter->code = calloc(a->length, sizeof *filter->code);
	if (filter->code) {
		memcpy(filter->code, a->code, a->length * sizeof *filter->code);
		filter->length = (uint16_t)a->length;
		filter->fields = a->fields;
		ret = 0;
	}
	free(a);
	return ret;
}

void krx_filter_free(struct krx_filter *filter)
{
	free(filter->code);
	filter->code = NULL;
	filter->length = 0;
}
