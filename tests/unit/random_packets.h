/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Rules and frames by chance, from small pools so that they meet often. The same seed gives the same ones everywhere; a
 * failing test prints its round.
 */
#ifndef KTRXER_TESTS_RANDOM_PACKETS_H
#define KTRXER_TESTS_RANDOM_PACKETS_H

#include "bytes.h"
#include "rule_match.h"

#include <linux/ktrxer_view.h>
#include <string.h>
#include <sys/socket.h>

struct chance {
	uint64_t state;
};

static inline uint32_t chance_next(struct chance *c, uint32_t below)
{
	c->state = c->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(((c->state >> 33) * below) >> 31);
}

static inline uint8_t chance_proto(struct chance *c)
{
	static const uint8_t pool[] = { 17, 17, 17, 6, 6, 132, 33, 136, 1, 58, 47 };

	return pool[chance_next(c, sizeof pool)];
}

/* 10.0.0-1.0-3, 2001:db8:0-1::0-3 */
static inline void chance_addr(struct chance *c, int family, uint8_t bytes[16])
{
	memset(bytes, 0, 16);
	if (family == AF_INET) {
		bytes[0] = 10;
		bytes[2] = (uint8_t)chance_next(c, 2);
		bytes[3] = (uint8_t)chance_next(c, 4);
	} else {
		memcpy(bytes, "\x20\x01\x0d\xb8", 4);
		bytes[5] = (uint8_t)chance_next(c, 2);
		bytes[15] = (uint8_t)chance_next(c, 4);
	}
}

static inline uint16_t chance_port(struct chance *c)
{
	return (uint16_t)(chance_next(c, 8) ? 1 + chance_next(c, 4) : 0);
}

static inline void chance_side(struct chance *c, int family, struct ktrxer_addr *addr, uint8_t *prefix)
{
	static const uint8_t four[] = { 32, 32, 32, 24, 31, 8, 0, 23 }, six[] = { 128, 128, 128, 64, 127, 48, 0, 33 };

	if (!chance_next(c, 3))
		return;
	addr->family = (uint8_t)family;
	chance_addr(c, family, addr->bytes);
	*prefix = (family == AF_INET ? four : six)[chance_next(c, 8)];
	for (uint32_t i = *prefix; i < 128; i++)
		addr->bytes[i / 8] &= (uint8_t)~(0x80 >> i % 8);
}

/* `exactness` of 10 rules name a whole 5-tuple. */
static inline struct krx_rule chance_rule(struct chance *c, uint32_t exactness)
{
	int family = chance_next(c, 2) ? AF_INET : AF_INET6;
	struct krx_rule rule = { .op = chance_next(c, 3) ? KRX_CAPTURE : KRX_FORWARD };

	rule.priority = chance_next(c, 4);
	if (chance_next(c, 10) < exactness) {
		static const uint8_t ported[] = { 17, 6, 132, 33, 136 };

		rule.proto = ported[chance_next(c, 5)];
		rule.from.family = rule.to.family = (uint8_t)family;
		chance_addr(c, family, rule.from.bytes);
		chance_addr(c, family, rule.to.bytes);
		rule.from_prefix = rule.to_prefix = family == AF_INET ? 32 : 128;
		rule.from_port = (uint16_t)(1 + chance_next(c, 4));
		rule.to_port = (uint16_t)(1 + chance_next(c, 4));
		return rule;
	}
	chance_side(c, family, &rule.from, &rule.from_prefix);
	chance_side(c, family, &rule.to, &rule.to_prefix);
	if (chance_next(c, 2))
		rule.proto = chance_proto(c);
	if (rule.proto == 58 && (rule.from.family == AF_INET || rule.to.family == AF_INET))
		rule.proto = 1;
	if (rule.proto == 1 && (rule.from.family == AF_INET6 || rule.to.family == AF_INET6))
		rule.proto = 58;
	if (!rule.proto || krx_proto_has_ports(rule.proto)) {
		rule.from_port = chance_next(c, 2) ? chance_port(c) : 0;
		rule.to_port = chance_next(c, 2) ? chance_port(c) : 0;
	}
	return rule;
}

/* A frame of at most 256 bytes, often right, sometimes damaged or cut. */
static inline uint32_t chance_frame(struct chance *c, uint8_t frame[256], enum ktrxer_link link)
{
	int family = chance_next(c, 2) ? AF_INET : AF_INET6;
	uint8_t proto = chance_proto(c), address[16];
	uint32_t n = 0, l3;

	memset(frame, 0, 256);
	if (link == KTRXER_LINK_ETHERNET) {
		static const uint16_t tags[] = { 0x8100, 0x88a8 };
		uint32_t count = chance_next(c, 3) ? 0 : chance_next(c, 4);

		n = 12;
		while (count--) {
			store_be16(frame + n, tags[chance_next(c, 2)]);
			store_be16(frame + n + 2, (uint16_t)chance_next(c, 4096));
			n += 4;
		}
		store_be16(frame + n, family == AF_INET ? 0x0800 : 0x86dd);
		if (!chance_next(c, 20))
			store_be16(frame + n, 0x0806);
		n += 2;
	}
	l3 = n;
	if (family == AF_INET) {
		uint32_t words = chance_next(c, 4) ? 5 : 3 + chance_next(c, 13);

		frame[n] = (uint8_t)(0x40 | words);
		if (!chance_next(c, 6))
			store_be16(frame + n + 6, (uint16_t)(0x2000 | chance_next(c, 2)));
		frame[n + 9] = proto;
		chance_addr(c, family, address);
		memcpy(frame + n + 12, address, 4);
		chance_addr(c, family, address);
		memcpy(frame + n + 16, address, 4);
		n += words < 5 ? 20 : words * 4;
	} else {
		static const uint8_t extensions[] = { 0, 43, 44, 51, 60 };
		uint32_t at = n + 6, count = chance_next(c, 4) ? 0 : chance_next(c, 4);

		frame[n] = 0x60;
		chance_addr(c, family, frame + n + 8);
		chance_addr(c, family, frame + n + 24);
		n += 40;
		while (count--) {
			frame[at] = extensions[chance_next(c, 5)];
			at = n;
			if (frame[at - 0] == 44)
				store_be16(frame + n + 2, (uint16_t)(chance_next(c, 2) << 3 | chance_next(c, 2)));
			n += 8;
		}
		frame[at] = proto;
	}
	store_be16(frame + n, chance_port(c));
	store_be16(frame + n + 2, chance_port(c));
	store_be16(frame + n + 4, 8);
	frame[n + 12] = 0x50;
	n += 8 + chance_next(c, 20);
	if (family == AF_INET)
		store_be16(frame + l3 + 2, (uint16_t)(n - l3));
	else
		store_be16(frame + l3 + 4, (uint16_t)(n - l3 - 40));
	if (!chance_next(c, 8)) /* a length that lies */
		store_be16(frame + l3 + (family == AF_INET ? 2 : 4), (uint16_t)chance_next(c, 70));
	if (!chance_next(c, 8))
		frame[chance_next(c, n)] = (uint8_t)chance_next(c, 256);
	if (!chance_next(c, 6))
		n = chance_next(c, n + 1);
	return n;
}

#endif
