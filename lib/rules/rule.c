/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * OP PROTO from ADDR[:PORT] to ADDR[:PORT] [prio N]
 *
 * Words are separated by blanks. IPv6 stands in brackets when a port follows: [2001:db8::/32]:53. The text is a user's:
 * each mistake has its own line, which says how to write it right.
 */
#include "rule.h"

#include "error.h"
#include "options.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ktrxer.h>
#include <linux/ktrxer_view.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static const char *const op_names[] = {
	[KRX_CAPTURE] = "capture",
	[KRX_DROP] = "drop",
	[KRX_CAPTURE_DROP] = "capture+drop",
	[KRX_FORWARD] = "forward",
};

/* The first name of a number is the one that is written. */
static const struct {
	const char *name;
	uint8_t proto;
} proto_names[] = {
	{ "any", 0 },    { "udp", KTRXER_UDP },      { "tcp", KTRXER_TCP },       { "icmp", KTRXER_ICMP },
	{ "sctp", 132 }, { "icmp6", KTRXER_ICMPV6 }, { "icmpv6", KTRXER_ICMPV6 },
};

enum { PROTO_NAMES = sizeof proto_names / sizeof proto_names[0], WORDS = 8, WORD_SIZE = 80 };

static const char *op_name(enum krx_op op)
{
	return op >= KRX_CAPTURE && op <= KRX_FORWARD ? op_names[op] : NULL;
}

uint32_t krx_rule_fields(const struct krx_rule *rule)
{
	return (rule->proto ? KRX_FIELD_PROTO : 0u) | (rule->from.family ? KRX_FIELD_FROM : 0u) |
	       (rule->to.family ? KRX_FIELD_TO : 0u) | (rule->from_port ? KRX_FIELD_FROM_PORT : 0u) |
	       (rule->to_port ? KRX_FIELD_TO_PORT : 0u);
}

void krx_rule_pack(struct ktrxer_rx_rule *to, const struct krx_rule *rule)
{
	const int family = rule->from.family ? rule->from.family : rule->to.family;

	*to = (struct ktrxer_rx_rule){
		.op = (uint8_t)rule->op,
		.family = family == AF_INET    ? 4
			  : family == AF_INET6 ? 6
					       : 0,
		.proto = rule->proto,
		.from_prefix = rule->from.family ? rule->from_prefix : 0,
		.to_prefix = rule->to.family ? rule->to_prefix : 0,
		.from_port = htons(rule->from_port),
		.to_port = htons(rule->to_port),
	};
	/* Without a family an address means any address, and its bytes mean nothing. */
	if (rule->from.family)
		memcpy(to->from, rule->from.bytes, rule->from.family == AF_INET ? 4 : sizeof to->from);
	if (rule->to.family)
		memcpy(to->to, rule->to.bytes, rule->to.family == AF_INET ? 4 : sizeof to->to);
}

static int addr_check(const struct ktrxer_addr *addr, uint8_t prefix, const char *side, struct ktrxer_error *err)
{
	struct ktrxer_addr masked = *addr;
	char text[KTRXER_ADDR_TEXT], want[KTRXER_ADDR_TEXT];
	uint32_t bits = addr->family == AF_INET ? 32 : 128;

	if (!addr->family)
		return 0;
	if (addr->family != AF_INET && addr->family != AF_INET6)
		return ktrxer_fail(err, -EINVAL, "rule: the '%s' address is neither IPv4 nor IPv6", side);
	if (addr->scope_id)
		return ktrxer_fail(err, -EINVAL, "rule: the '%s' address names a device (%%...); leave the %% part out",
				   side);
	if (prefix > bits)
		return ktrxer_fail(err, -EINVAL, "rule: '/%u' after 'from' or 'to' is too long; IPv%d has %u bits",
				   prefix, bits == 32 ? 4 : 6, bits);
	for (uint32_t i = prefix; i < bits; i++)
		masked.bytes[i / 8] &= (uint8_t)~(0x80 >> i % 8);
	if (!ktrxer_addr_equal(&masked, addr))
		return ktrxer_fail(err, -EINVAL,
				   "rule: '%s/%u' has bits beyond its prefix; write %s/%u, or leave out the /%u",
				   ktrxer_addr_format(addr, text), prefix, ktrxer_addr_format(&masked, want), prefix,
				   prefix);
	return 0;
}

int krx_rule_check(const struct krx_rule *rule, struct ktrxer_error *err)
{
	int family, ret;

	if (!op_name(rule->op))
		return ktrxer_fail(err, -EINVAL, "rule: operation number %d does not exist; 1 to 4 do", (int)rule->op);
	ret = addr_check(&rule->from, rule->from_prefix, "from", err);
	if (!ret)
		ret = addr_check(&rule->to, rule->to_prefix, "to", err);
	if (ret)
		return ret;
	if (rule->from.family && rule->to.family && rule->from.family != rule->to.family)
		return ktrxer_fail(err, -EINVAL,
				   "rule: 'from' and 'to' are of different kinds (IPv4, IPv6); no packet has both");
	if ((rule->from_port || rule->to_port) && rule->proto && !krx_proto_has_ports(rule->proto))
		return ktrxer_fail(err, -EINVAL, "rule: protocol %u has no ports; leave the ports out", rule->proto);
	family = rule->from.family ? rule->from.family : rule->to.family;
	if (rule->proto == KTRXER_ICMP && family == AF_INET6)
		return ktrxer_fail(err, -EINVAL, "rule: icmp belongs to IPv4; for IPv6 addresses write icmp6");
	if (rule->proto == KTRXER_ICMPV6 && family == AF_INET)
		return ktrxer_fail(err, -EINVAL, "rule: icmp6 belongs to IPv6; for IPv4 addresses write icmp");
	return 0;
}

/* Digits only, at most `max`. */
static bool number_parse(const char *text, uint64_t max, uint64_t *value)
{
	uint64_t n = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		n = n * 10 + (uint64_t)(*text - '0');
		if (n > max)
			return false;
	}
	*value = n;
	return true;
}

/* Words of `text`; how many, or -1: too many, -2: one is too long. */
static int words_split(char words[WORDS][WORD_SIZE], const char *text)
{
	int count = 0;

	for (;;) {
		size_t length;

		text += strspn(text, " \t\n\r");
		if (!*text)
			return count;
		if (count == WORDS)
			return -1;
		length = strcspn(text, " \t\n\r");
		if (length >= WORD_SIZE)
			return -2;
		memcpy(words[count], text, length);
		words[count++][length] = '\0';
		text += length;
	}
}

static int op_parse(enum krx_op *op, const char *word, struct ktrxer_error *err)
{
	for (int i = KRX_CAPTURE; i <= KRX_FORWARD; i++) {
		if (!strcmp(word, op_names[i])) {
			*op = (enum krx_op)i;
			return 0;
		}
	}
	return ktrxer_fail(err, -EINVAL, "rule: no operation '%s'; there are capture, drop, capture+drop and forward",
			   word);
}

static int proto_parse(uint8_t *proto, const char *word, struct ktrxer_error *err)
{
	uint64_t number;

	for (int i = 0; i < PROTO_NAMES; i++) {
		if (!strcmp(word, proto_names[i].name)) {
			*proto = proto_names[i].proto;
			return 0;
		}
	}
	if (!number_parse(word, 255, &number) || !number)
		return ktrxer_fail(err, -EINVAL,
				   "rule: no protocol '%s'; write udp, tcp, icmp, icmp6, sctp, any, or a number from 1 "
				   "to 255",
				   word);
	*proto = (uint8_t)number;
	return 0;
}

/* "/24" at the end of `text`, cut off. -EINVAL: no number follows the slash. */
static int prefix_cut(char *text, bool *given, uint8_t *prefix)
{
	char *slash = strchr(text, '/');
	uint64_t number;

	if (!slash)
		return 0;
	if (*given || !number_parse(slash + 1, 128, &number))
		return -EINVAL;
	*slash = '\0';
	*given = true;
	*prefix = (uint8_t)number;
	return 0;
}

/* ADDR[:PORT]; `word` is cut to pieces, `whole` is for the message. */
static int side_parse(struct ktrxer_addr *addr, uint8_t *prefix, uint16_t *port, char *word, const char *side,
		      struct ktrxer_error *err)
{
	char whole[WORD_SIZE];
	char *address = word, *digits = NULL, *rest = NULL;
	bool given = false;
	uint64_t number;

	memcpy(whole, word, sizeof whole);
	if (word[0] == '[') {
		char *close = strchr(word, ']');

		if (!close)
			return ktrxer_fail(err, -EINVAL, "rule: '%s' after '%s' has no closing ']'", whole, side);
		*close = '\0';
		address = word + 1;
		rest = close + 1;
		digits = strchr(rest, ':');
	} else if (strchr(word, ':') == strrchr(word, ':')) {
		digits = strchr(word, ':'); /* one colon alone: no IPv6 address has that */
	}
	if (digits)
		*digits++ = '\0';
	if (prefix_cut(address, &given, prefix) ||
	    (rest && *rest && (*rest != '/' || prefix_cut(rest, &given, prefix))))
		return ktrxer_fail(err, -EINVAL,
				   "rule: '%s' after '%s': a prefix is written ADDR/BITS, a port :PORT behind it",
				   whole, side);
	if (digits && (!number_parse(digits, 65535, &number) || !number))
		return ktrxer_fail(err, -EINVAL, "rule: port '%s' in '%s' after '%s' is not a number from 1 to 65535",
				   digits, whole, side);
	if (digits)
		*port = (uint16_t)number;

	if (!strcmp(address, "any") && word[0] != '[') {
		if (given)
			return ktrxer_fail(err, -EINVAL, "rule: 'any' after '%s' takes no prefix", side);
		return 0;
	}
	if (strchr(address, '%'))
		return ktrxer_fail(err, -EINVAL,
				   "rule: '%s' after '%s' names a device; a rule has none, leave the %% part out",
				   whole, side);
	if (ktrxer_addr_parse(addr, address) || (word[0] == '[' && addr->family != AF_INET6))
		return ktrxer_fail(err, -EINVAL,
				   "rule: '%s' after '%s' is no address; write 192.0.2.1, 192.0.2.0/24:53, "
				   "[2001:db8::1]:53 or any",
				   whole, side);
	if (!given)
		*prefix = addr->family == AF_INET ? 32 : 128;
	return 0;
}

int krx_rule_parse_sized(struct krx_rule *to, size_t size, const char *text, struct ktrxer_error *err)
{
	char words[WORDS][WORD_SIZE];
	struct krx_rule found = { 0 };
	uint64_t number = 0;
	int count, ret;

	if (!to || !size)
		return ktrxer_fail(err, -EINVAL, "rule: no place for it (NULL)");
	count = text ? words_split(words, text) : 0;
	if (count == -2)
		return ktrxer_fail(err, -EINVAL, "rule: a word of more than %d characters", WORD_SIZE - 1);
	if (count == 0)
		return ktrxer_fail(err, -EINVAL,
				   "rule: it is empty; write for example 'capture udp from any to 192.0.2.1:53'");
	ret = op_parse(&found.op, words[0], err);
	if (!ret && count > 1)
		ret = proto_parse(&found.proto, words[1], err);
	if (ret)
		return ret;
	if ((count != 6 && count != 8) || strcmp(words[2], "from") || strcmp(words[4], "to") ||
	    (count == 8 && strcmp(words[6], "prio")))
		return ktrxer_fail(err, -EINVAL,
				   "rule '%.100s': it is written OP PROTO from ADDR[:PORT] to ADDR[:PORT] [prio N]",
				   text);
	ret = side_parse(&found.from, &found.from_prefix, &found.from_port, words[3], "from", err);
	if (!ret)
		ret = side_parse(&found.to, &found.to_prefix, &found.to_port, words[5], "to", err);
	if (ret)
		return ret;
	if (count == 8 && !number_parse(words[7], UINT32_MAX, &number))
		return ktrxer_fail(err, -EINVAL,
				   "rule: priority '%s' is not a number from 0 to %u; smaller comes first", words[7],
				   UINT32_MAX);
	found.priority = (uint32_t)number;
	ret = krx_rule_check(&found, err);
	if (!ret)
		ktrxer_result_write(to, size, &found, sizeof found);
	return ret;
}

static size_t side_format(char *text, size_t size, const struct ktrxer_addr *addr, uint8_t prefix, uint16_t port)
{
	char number[KTRXER_ADDR_TEXT], bits[8] = "", digits[8] = "";
	bool six = addr->family == AF_INET6;
	int n;

	if (addr->family && prefix != (six ? 128 : 32))
		snprintf(bits, sizeof bits, "/%u", prefix);
	if (port)
		snprintf(digits, sizeof digits, ":%u", port);
	n = snprintf(text, size, "%s%s%s%s%s", six && port ? "[" : "",
		     addr->family ? ktrxer_addr_format(addr, number) : "any", bits, six && port ? "]" : "", digits);
	return n < 0 || (size_t)n >= size ? size - 1 : (size_t)n;
}

const char *krx_rule_format_sized(const struct krx_rule *from, size_t size, char text[KRX_RULE_TEXT])
{
	struct krx_rule rule;
	const char *op, *proto = NULL;
	char number[8];
	size_t n;

	if (!text)
		return "";
	text[0] = '\0';
	if (!from || ktrxer_options_copy(&rule, sizeof rule, from, size, KRX_RULE_LEAST, "krx_rule", NULL))
		return text;
	for (int i = 0; i < PROTO_NAMES && !proto; i++)
		if (proto_names[i].proto == rule.proto)
			proto = proto_names[i].name;
	if (!proto) {
		snprintf(number, sizeof number, "%u", rule.proto);
		proto = number;
	}
	op = op_name(rule.op);
	/* The longest: "capture+drop icmp6 from [", 39 + 4 + 7 characters, " to ", as many, " prio 4294967295". */
	n = (size_t)snprintf(text, KRX_RULE_TEXT, "%s %s from ", op ? op : "?", proto);
	n += side_format(text + n, KRX_RULE_TEXT - n, &rule.from, rule.from_prefix, rule.from_port);
	n += (size_t)snprintf(text + n, KRX_RULE_TEXT - n, " to ");
	n += side_format(text + n, KRX_RULE_TEXT - n, &rule.to, rule.to_prefix, rule.to_port);
	if (rule.priority)
		snprintf(text + n, KRX_RULE_TEXT - n, " prio %u", rule.priority);
	return text;
}
