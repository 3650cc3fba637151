/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "icmp_error.h"

#include "bytes.h"

#include <errno.h>
#include <string.h>

enum { ORIGIN_ICMP = 2, ORIGIN_ICMPV6 = 3 }; /* SO_EE_ORIGIN_* */
enum { ICMP_HEADER = 8, QUOTED_TRANSPORT = 8, ECHO_REQUEST = 8, ECHO_REQUEST6 = 128 };

static bool is_error(const struct ktrxer_frame_view *view)
{
	if (view->proto == KTRXER_ICMPV6)
		return view->icmp_type >= 1 && view->icmp_type <= 4;
	return view->proto == KTRXER_ICMP && (view->icmp_type == 3 || view->icmp_type == 11 || view->icmp_type == 12);
}

static bool is_address(const uint8_t *bytes, const struct ktrxer_addr *addr)
{
	return !memcmp(bytes, addr->bytes, addr->family == 2 ? 4 : 16);
}

bool icmp_error_read(struct ktx_network_error *error, const struct krx_packet *packet,
		     const struct ktrxer_frame_view *view, const struct icmp_error_probe *probe)
{
	const bool six = view->version == 6;
	const uint32_t begin = view->transport + ICMP_HEADER;
	const uint8_t *quote = packet->data + begin, *transport;
	uint32_t length, header;

	if (!view->transport || !is_error(view) || packet->length < begin + (six ? 40u : 20u))
		return false;
	length = packet->length - begin;
	header = six ? 40 : 4u * (quote[0] & 15u);
	/* A router quotes at least the IP header and eight bytes behind it. */
	if (quote[0] >> 4 != view->version || header < 20 || length < header + QUOTED_TRANSPORT ||
	    quote[six ? 6 : 9] != probe->proto || !is_address(quote + (six ? 8 : 12), &probe->from) ||
	    !is_address(quote + (six ? 24 : 16), &probe->to))
		return false;
	transport = quote + header;
	if (probe->proto == KTRXER_UDP
		    ? load_be16(transport) != probe->id
		    : transport[0] != (six ? ECHO_REQUEST6 : ECHO_REQUEST) || load_be16(transport + 4) != probe->id)
		return false;
	*error = (struct ktx_network_error){ .when_ns = packet->mono_ns,
					     .error = EHOSTUNREACH,
					     .origin = six ? ORIGIN_ICMPV6 : ORIGIN_ICMP,
					     .type = view->icmp_type,
					     .code = view->icmp_code,
					     .reporter = view->from };
	length -= header;
	error->quoted_length = (uint16_t)(length < sizeof error->quoted ? length : sizeof error->quoted);
	memcpy(error->quoted, transport, error->quoted_length);
	return true;
}
