/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "packet_text.h"

#include "fields_packets.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

static const char *const directions[] = { "in", "broadcast", "multicast", "other", "out" };

static const char *direction_name(const struct krx_packet *packet)
{
	return packet->direction < sizeof directions / sizeof directions[0] ? directions[packet->direction] : "unknown";
}

static const char *proto_name(uint8_t proto, char number[12])
{
	switch (proto) {
	case KTRXER_ICMP:
		return "icmp";
	case KTRXER_TCP:
		return "tcp";
	case KTRXER_UDP:
		return "udp";
	case 132:
		return "sctp";
	case KTRXER_ICMPV6:
		return "icmp6";
	default:
		snprintf(number, 12, "proto %u", proto);
		return number;
	}
}

__attribute__((format(printf, 3, 4))) static void add(char text[PACKET_TEXT], size_t *n, const char *format, ...)
{
	va_list args;
	int more;

	va_start(args, format);
	more = vsnprintf(text + *n, PACKET_TEXT - *n, format, args);
	va_end(args);
	if (more > 0)
		*n += (size_t)more < PACKET_TEXT - *n ? (size_t)more : PACKET_TEXT - 1 - *n;
}

static void add_side(char text[PACKET_TEXT], size_t *n, const struct ktrxer_addr *addr, bool ports, uint16_t port)
{
	char number[KTRXER_ADDR_TEXT];

	ktrxer_addr_format(addr, number);
	if (!ports)
		add(text, n, "%s", number);
	else if (addr->family == AF_INET6)
		add(text, n, "[%s]:%u", number, port);
	else
		add(text, n, "%s:%u", number, port);
}

static void add_icmp(char text[PACKET_TEXT], size_t *n, const struct ktrxer_frame_view *view)
{
	bool six = view->version == 6;

	if (view->icmp_type == (six ? 128 : 8))
		add(text, n, " echo request id %u seq %u", view->from_port, view->to_port);
	else if (view->icmp_type == (six ? 129 : 0))
		add(text, n, " echo reply id %u seq %u", view->from_port, view->to_port);
	else
		add(text, n, " type %u code %u", view->icmp_type, view->icmp_code);
}

/* The time of day for a person: of CLOCK_REALTIME's stamps their own, of others by what the clocks say now. */
static int64_t time_of_day(const struct krx_packet *packet)
{
	struct ktrxer_clock_pair pair;

	if (packet->clock == KTRXER_CLOCK_REALTIME)
		return packet->raw_ns;
	ktrxer_clock_pair_read(&pair);
	return (int64_t)packet->mono_ns + pair.real_ns - (int64_t)pair.mono_ns;
}

static void add_time(char *text, size_t *n, int64_t ns)
{
	time_t seconds = (time_t)(ns / KTRXER_NS_PER_S);
	const char *zone = "";
	struct tm day = { 0 };

#ifdef KTRXER_SMALL
	/* UTC: the time zones of musl are 4 KB of the static program. */
	seconds %= 24 * 60 * 60;
	day = (struct tm){ .tm_hour = (int)(seconds / 3600),
			   .tm_min = (int)(seconds / 60 % 60),
			   .tm_sec = (int)(seconds % 60) };
	zone = "Z";
#else
	localtime_r(&seconds, &day);
#endif
	add(text, n, "%02d:%02d:%02d.%09lld%s", day.tm_hour, day.tm_min, day.tm_sec, (long long)(ns % KTRXER_NS_PER_S),
	    zone);
}

const char *packet_text(const struct krx_packet *packet, char text[PACKET_TEXT])
{
	struct ktrxer_frame_view view;
	char number[12];
	size_t n = 0;

	(void)ktrxer_frame_read(&view, packet->data, packet->length, (enum ktrxer_link)packet->link);
	add_time(text, &n, time_of_day(packet));
	if (view.vlan)
		add(text, &n, " vlan %u", view.vlan_tci & 0xfffu);
	if (!view.version) {
		add(text, &n, " ethertype 0x%04x", view.ethertype);
	} else {
		add(text, &n, " %s ", proto_name(view.proto, number));
		add_side(text, &n, &view.from, view.ports, view.from_port);
		add(text, &n, " > ");
		add_side(text, &n, &view.to, view.ports, view.to_port);
		if (view.transport && (view.proto == (view.version == 6 ? KTRXER_ICMPV6 : KTRXER_ICMP)))
			add_icmp(text, &n, &view);
		if (view.fragment)
			add(text, &n, view.first_fragment ? " first fragment" : " fragment");
	}
	add(text, &n, " length %u", packet->original_length);
	if (view.malformed)
		add(text, &n, " (%s)", packet->length < packet->original_length ? "headers cut short" : "malformed");
	if (packet->direction >= 3)
		add(text, &n, " (%s)", packet->direction == 3 ? "to another host" : direction_name(packet));
	return text;
}

const char *const packet_sources[PACKET_SOURCES] = { NULL, "nic", "xdp", "kernel", "user" };

static const char *source_name(uint8_t source)
{
	return source < PACKET_SOURCES ? packet_sources[source] : NULL;
}

static const char *clock_name(uint8_t clock)
{
	static const char *const names[] = { NULL, "realtime", "monotonic", "tai", "phc" };

	return clock < sizeof names / sizeof names[0] ? names[clock] : NULL;
}

void packet_json(const struct krx_packet *packet, struct json *json)
{
	struct ktrxer_frame_view view;
	char text[KTRXER_ADDR_TEXT];

	(void)ktrxer_frame_read(&view, packet->data, packet->length, (enum ktrxer_link)packet->link);
	recv_packet_time_ns(json, packet->mono_ns);
	recv_packet_bound_ns_or_null(json, packet->bound_ns != UINT32_MAX, packet->bound_ns);
	recv_packet_raw_ns(json, packet->raw_ns);
	recv_packet_clock(json, clock_name(packet->clock));
	recv_packet_source(json, source_name(packet->source));
	recv_packet_rule(json, packet->rule);
	recv_packet_direction(json, direction_name(packet));
	recv_packet_length(json, packet->original_length);
	if (view.vlan)
		recv_packet_vlan(json, view.vlan_tci & 0xfffu);
	if (!view.version) {
		recv_packet_ethertype(json, view.ethertype);
		return;
	}
	recv_packet_proto(json, view.proto);
	recv_packet_from(json, ktrxer_addr_format(&view.from, text));
	recv_packet_to(json, ktrxer_addr_format(&view.to, text));
	if (view.ports) {
		recv_packet_from_port(json, view.from_port);
		recv_packet_to_port(json, view.to_port);
	}
}

bool packet_udp(struct packet_udp *udp, const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_frame_view view;

	(void)ktrxer_frame_read(&view, frame, length, link);
	if (!view.version || view.proto != KTRXER_UDP || !view.ports)
		return false;
	*udp = (struct packet_udp){
		.from = view.from, .to = view.to, .from_port = view.from_port, .to_port = view.to_port
	};
	return true;
}
