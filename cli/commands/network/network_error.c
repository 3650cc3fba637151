/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "network_error.h"

#include "fields_common.h"
#include "error.h"

#include <string.h>

enum { ORIGIN_ICMP = 2, ORIGIN_ICMPV6 = 3, LINES_MAX = 5 };

/* Names of RFC 792, 1122, 1191, 1812 and 4443; the error number alone would say "Connection refused" of a UDP port. */
static const struct {
	uint8_t origin, type, code;
	const char *name;
} names[] = {
	{ ORIGIN_ICMP, 3, 0, "net unreachable" },
	{ ORIGIN_ICMP, 3, 1, "host unreachable" },
	{ ORIGIN_ICMP, 3, 2, "protocol unreachable" },
	{ ORIGIN_ICMP, 3, 3, "port unreachable" },
	{ ORIGIN_ICMP, 3, 4, "packet too big, and it may not be fragmented" },
	{ ORIGIN_ICMP, 3, 9, "net administratively prohibited" },
	{ ORIGIN_ICMP, 3, 10, "host administratively prohibited" },
	{ ORIGIN_ICMP, 3, 13, "administratively prohibited" },
	{ ORIGIN_ICMP, 11, 0, "time to live exceeded in transit" },
	{ ORIGIN_ICMP, 11, 1, "not all fragments came" },
	{ ORIGIN_ICMPV6, 1, 0, "no route" },
	{ ORIGIN_ICMPV6, 1, 1, "administratively prohibited" },
	{ ORIGIN_ICMPV6, 1, 3, "address unreachable" },
	{ ORIGIN_ICMPV6, 1, 4, "port unreachable" },
	{ ORIGIN_ICMPV6, 2, 0, "packet too big" },
	{ ORIGIN_ICMPV6, 3, 0, "hop limit exceeded in transit" },
};

static const char *error_text(const struct ktx_network_error *error, char *text, size_t size)
{
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].origin == error->origin && names[i].type == error->type && names[i].code == error->code)
			return names[i].name;
	return ktrxer_strerror(-error->error, text, size);
}

void network_error_say(struct cli *cli, const struct ktx_network_error *error, bool all, uint64_t *count)
{
	char from[KTRXER_ADDR_TEXT], word[64];
	const char *what = error_text(error, word, sizeof word);
	struct json *event;

	++*count;
	if (error->reporter.family)
		ktrxer_addr_format(&error->reporter, from);
	else
		strcpy(from, "this host");
	if (all || *count <= LINES_MAX)
		out_text(cli, "%s: %s", from, what);
	if (!all && *count == LINES_MAX + 1)
		out_text(cli, "(more of these are only counted)");
	event = out_event(cli, "network_error");
	if (!event)
		return;
	network_error_from(event, from);
	network_error_error(event, what);
	network_error_icmp_type(event, error->type);
	network_error_icmp_code(event, error->code);
	out_put(cli, event);
}
