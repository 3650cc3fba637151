/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Addresses as text, and what is known of an address by its number alone. Strict: a text means one address or none, and
 * the same one under every C library, so nothing of inet_aton()'s octal and short forms, and no resolver.
 */
#include <ktrxer.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

/* The longest IPv6 address, without its scope. */
#define ADDR_NUMBER_MAX (INET6_ADDRSTRLEN - 1)

/* Decimal digits only, no leading zero, 1..max. 0: it is not that. */
static uint32_t number_parse(const char *text, uint32_t max)
{
	uint64_t value = 0;

	if (*text < '1' || *text > '9')
		return 0;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return 0;
		value = value * 10 + (uint64_t)(*text - '0');
		if (value > max)
			return 0;
	}
	return (uint32_t)value;
}

/* A scope says on which link an address is meant; only addresses that are unique on a link alone have one. */
static bool addr_takes_scope(const struct ktrxer_addr *addr)
{
	if (addr->family != AF_INET6)
		return false;
	if (addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80)
		return true;
	/* multicast within the interface (1) or the link (2) */
	return addr->bytes[0] == 0xff && ((addr->bytes[1] & 0x0f) == 1 || (addr->bytes[1] & 0x0f) == 2);
}

/* text[0..length) without its terminator: the caller cuts at brackets and colons. */
static int addr_parse(struct ktrxer_addr *addr, const char *text, size_t length)
{
	struct ktrxer_addr found = { .family = 0 };
	char number[ADDR_NUMBER_MAX + 1];
	const char *percent = memchr(text, '%', length);
	size_t digits = percent ? (size_t)(percent - text) : length;

	if (digits == 0 || digits >= sizeof number)
		return -EINVAL;
	memcpy(number, text, digits);
	number[digits] = '\0';
	found.family = memchr(number, ':', digits) ? AF_INET6 : AF_INET;
	if (inet_pton(found.family, number, found.bytes) != 1)
		return -EINVAL;
	if (percent) {
		char scope[IF_NAMESIZE];
		size_t left = length - digits - 1;

		if (!addr_takes_scope(&found) || left == 0 || left >= sizeof scope)
			return -EINVAL;
		memcpy(scope, percent + 1, left);
		scope[left] = '\0';
		/* A device may be called "3": the name counts before the number, as in getaddrinfo(). */
		found.scope_id = if_nametoindex(scope);
		if (!found.scope_id)
			found.scope_id = number_parse(scope, INT32_MAX);
		if (!found.scope_id)
			return -ENODEV;
	}
	*addr = found;
	return 0;
}

int ktrxer_addr_parse(struct ktrxer_addr *addr, const char *text)
{
	return addr && text ? addr_parse(addr, text, strnlen(text, KTRXER_ADDR_TEXT)) : -EINVAL;
}

int ktrxer_addr_port_parse(struct ktrxer_addr *addr, uint16_t *port, const char *text)
{
	struct ktrxer_addr found;
	const char *digits = NULL; /* of the port */
	const char *close, *colon;
	uint32_t number = 0;
	int ret;

	if (!addr || !port || !text)
		return -EINVAL;
	if (text[0] == '[') {
		close = strchr(text, ']');
		if (!close || (close[1] && close[1] != ':'))
			return -EINVAL;
		if (close[1])
			digits = close + 2;
		ret = addr_parse(&found, text + 1, (size_t)(close - text - 1));
		if (!ret && found.family != AF_INET6)
			ret = -EINVAL;
	} else {
		colon = strchr(text, ':');
		if (colon && !strchr(colon + 1, ':')) {
			/* one colon alone: no IPv6 address has that */
			digits = colon + 1;
			ret = addr_parse(&found, text, (size_t)(colon - text));
		} else {
			ret = ktrxer_addr_parse(&found, text);
		}
	}
	if (ret)
		return ret;
	if (digits) {
		number = number_parse(digits, UINT16_MAX);
		if (!number)
			return -EINVAL;
		*port = (uint16_t)number;
	}
	*addr = found;
	return 0;
}

/*
 * RFC 5952; by hand because inet_ntop() of glibc and of musl differ (a single zero group, IPv4-compatible addresses).
 */
static void addr6_format(const uint8_t *bytes, char *text, size_t size)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	unsigned int group[8];
	int best = -1, best_length = 1, i;
	size_t n = 0;

	if (!memcmp(bytes, mapped, sizeof mapped)) {
		snprintf(text, size, "::ffff:%u.%u.%u.%u", bytes[12], bytes[13], bytes[14], bytes[15]);
		return;
	}
	for (i = 0; i < 8; i++)
		group[i] = (unsigned int)bytes[2 * i] << 8 | bytes[2 * i + 1];
	for (i = 0; i < 8; i++) {
		int length = 0;

		while (i + length < 8 && group[i + length] == 0)
			length++;
		if (length > best_length) {
			best = i;
			best_length = length;
		}
	}
	for (i = 0; i < 8; i++) {
		if (i == best) {
			n += (size_t)snprintf(text + n, size - n, "::");
			i += best_length - 1;
		} else {
			bool first = i == 0 || (best >= 0 && i == best + best_length);

			n += (size_t)snprintf(text + n, size - n, "%s%x", first ? "" : ":", group[i]);
		}
	}
}

const char *ktrxer_addr_format(const struct ktrxer_addr *addr, char text[KTRXER_ADDR_TEXT])
{
	char device[IF_NAMESIZE];
	const uint8_t *b;
	size_t n;

	if (!text)
		return "";
	text[0] = '\0';
	if (!addr)
		return text;
	b = addr->bytes;
	switch (addr->family) {
	case AF_INET:
		snprintf(text, KTRXER_ADDR_TEXT, "%u.%u.%u.%u", b[0], b[1], b[2], b[3]);
		break;
	case AF_INET6:
		addr6_format(b, text, KTRXER_ADDR_TEXT);
		if (!addr->scope_id)
			break;
		n = strlen(text);
		if (if_indextoname(addr->scope_id, device))
			snprintf(text + n, KTRXER_ADDR_TEXT - n, "%%%s", device);
		else
			snprintf(text + n, KTRXER_ADDR_TEXT - n, "%%%u", addr->scope_id);
		break;
	default:
		snprintf(text, KTRXER_ADDR_TEXT, "none");
	}
	return text;
}

bool ktrxer_addr_equal(const struct ktrxer_addr *a, const struct ktrxer_addr *b)
{
	if (!a || !b || a->family != b->family)
		return false;
	switch (a->family) {
	case AF_INET:
		return !memcmp(a->bytes, b->bytes, 4);
	case AF_INET6:
		return !memcmp(a->bytes, b->bytes, 16) && a->scope_id == b->scope_id;
	default:
		return true;
	}
}

struct addr_block {
	uint8_t family, prefix;
	uint8_t bytes[16];
};

static bool addr_in_block(const struct ktrxer_addr *addr, const struct addr_block *block)
{
	unsigned int whole = block->prefix / 8, rest = block->prefix % 8;

	if (addr->family != block->family || memcmp(addr->bytes, block->bytes, whole))
		return false;
	return !rest || !((addr->bytes[whole] ^ block->bytes[whole]) >> (8 - rest));
}

bool ktrxer_addr_is_local_use(const struct ktrxer_addr *addr)
{
	/*
	 * Multicast and broadcast are left out on purpose: they reach more hosts than one thinks of. So are the
	 * translated ones (::ffff:0:0/96, 64:ff9b::/96), which lead to addresses of any kind.
	 */
	static const struct addr_block blocks[] = {
		{ AF_INET, 8, { 10 } },         /* RFC 1918 */
		{ AF_INET, 12, { 172, 16 } },   /* RFC 1918 */
		{ AF_INET, 16, { 192, 168 } },  /* RFC 1918 */
		{ AF_INET, 10, { 100, 64 } },   /* RFC 6598, behind a carrier's NAT */
		{ AF_INET, 16, { 169, 254 } },  /* RFC 3927, link-local */
		{ AF_INET, 8, { 127 } },        /* loopback */
		{ AF_INET, 24, { 192, 0, 2 } }, /* RFC 5737, documentation */
		{ AF_INET, 24, { 198, 51, 100 } },
		{ AF_INET, 24, { 203, 0, 113 } },
		{ AF_INET, 15, { 198, 18 } },                 /* RFC 2544, benchmarks */
		{ AF_INET6, 128, { [15] = 1 } },              /* loopback */
		{ AF_INET6, 10, { 0xfe, 0x80 } },             /* link-local */
		{ AF_INET6, 7, { 0xfc } },                    /* RFC 4193, unique local */
		{ AF_INET6, 32, { 0x20, 0x01, 0x0d, 0xb8 } }, /* RFC 3849, documentation */
		{ AF_INET6, 20, { 0x3f, 0xff } },             /* RFC 9637, documentation */
		{ AF_INET6, 48, { 0x20, 0x01, 0x00, 0x02 } }, /* RFC 5180, benchmarks */
	};
	for (size_t i = 0; addr && i < sizeof blocks / sizeof blocks[0]; i++)
		if (addr_in_block(addr, &blocks[i]))
			return true;
	return false;
}
