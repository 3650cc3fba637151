/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Whole frames: link, IP and transport headers around a payload, built and read. */
#include "bytes.h"
#include "options.h"
#include "packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

enum {
	ETH_LENGTH = 14,
	VLAN_LENGTH = 4,
	IP4_LENGTH = 20,
	IP6_LENGTH = 40,
	L4_LENGTH = 8, /* UDP and echo */
	TCP_LENGTH = 20,
	IP_TTL_DEFAULT = 64,
	ETHERTYPE_IP4 = 0x0800,
	ETHERTYPE_IP6 = 0x86dd,
	ETHERTYPE_VLAN = 0x8100,
	IP4_DONT_FRAGMENT = 0x4000,
	ICMP_ECHO_REQUEST = 8,
	ICMP6_ECHO_REQUEST = 128,
	ICMP6_ECHO_REPLY = 129,
};

static int spec_read(struct ktrxer_frame_spec *into, const struct ktrxer_frame_spec *spec)
{
	int rc = ktrxer_options_read(into, sizeof *into, spec, offsetof(struct ktrxer_frame_spec, payload),
				     "ktrxer_frame_spec", NULL);

	if (rc)
		return rc;
	if (!into->path || into->path_size < sizeof *into->path || into->path->to.family != into->path->source.family ||
	    (unsigned)into->link > KTRXER_LINK_RAW_IP)
		return -EINVAL;
	if (!into->link)
		into->link = into->path->device.link;
	if (into->path->to.family != AF_INET && into->path->to.family != AF_INET6)
		return -EINVAL;
	if ((into->vlan && into->link == KTRXER_LINK_RAW_IP) || (into->vlan_tci && !into->vlan))
		return -EINVAL;
	if (into->proto == KTRXER_TCP)
		return into->echo_reply || into->tcp_options_length > KTRXER_TCP_OPTIONS_MAX ||
				       (into->tcp_options_length && !into->tcp_options)
			       ? -EINVAL
			       : 0;
	if (into->tcp_flags || into->tcp_options_length)
		return -EINVAL;
	if (into->proto == KTRXER_UDP)
		return into->echo_reply ? -EINVAL : 0;
	return into->proto == (into->path->to.family == AF_INET ? KTRXER_ICMP : KTRXER_ICMPV6) ? 0 : -EINVAL;
}

static uint32_t link_length(const struct ktrxer_frame_spec *s)
{
	return s->link == KTRXER_LINK_RAW_IP ? 0 : s->vlan ? ETH_LENGTH + VLAN_LENGTH : ETH_LENGTH;
}

static uint32_t transport_length(const struct ktrxer_frame_spec *s)
{
	return s->proto == KTRXER_TCP ? TCP_LENGTH + (s->tcp_options_length + 3U) / 4 * 4 : L4_LENGTH;
}

static uint32_t ip_length(const struct ktrxer_path *path)
{
	return path->to.family == AF_INET6 ? IP6_LENGTH : IP4_LENGTH;
}

int ktrxer_frame_header_length(const struct ktrxer_frame_spec *spec)
{
	struct ktrxer_frame_spec s;
	int ret = spec_read(&s, spec);

	return ret ? ret : (int)(link_length(&s) + ip_length(s.path) + transport_length(&s));
}

static void ethernet_write(uint8_t *at, const struct ktrxer_frame_spec *s)
{
	memcpy(at, s->path->next_hop_mac, 6);
	memcpy(at + 6, s->path->device.mac, 6);
	if (s->vlan) {
		store_be16(at + 12, ETHERTYPE_VLAN);
		store_be16(at + 14, s->vlan_tci);
		at += VLAN_LENGTH;
	}
	store_be16(at + 12, s->path->to.family == AF_INET6 ? ETHERTYPE_IP6 : ETHERTYPE_IP4);
}

static void ip4_write(uint8_t *at, const struct ktrxer_frame_spec *s, uint32_t total)
{
	at[0] = 0x45;
	at[1] = s->tos;
	store_be16(at + 2, (uint16_t)total);
	store_be16(at + 4, 0); /* RFC 6864: an atomic datagram needs no identification */
	store_be16(at + 6, s->may_fragment ? 0 : IP4_DONT_FRAGMENT);
	at[8] = s->ttl ? s->ttl : IP_TTL_DEFAULT;
	at[9] = s->proto;
	store_be16(at + 10, 0);
	memcpy(at + 12, s->path->source.bytes, 4);
	memcpy(at + 16, s->path->to.bytes, 4);
	store_be16(at + 10, (uint16_t)~ktrxer_sum_fold(ktrxer_sum(at, IP4_LENGTH, 0)));
}

static void ip6_write(uint8_t *at, const struct ktrxer_frame_spec *s, uint32_t total)
{
	store_be32(at, 6U << 28 | (uint32_t)s->tos << 20);
	store_be16(at + 4, (uint16_t)(total - IP6_LENGTH));
	at[6] = s->proto;
	at[7] = s->ttl ? s->ttl : IP_TTL_DEFAULT;
	memcpy(at + 8, s->path->source.bytes, 16);
	memcpy(at + 24, s->path->to.bytes, 16);
}

static uint16_t transport_sum(const uint8_t *l4, uint32_t length, const struct ktrxer_frame_spec *s)
{
	const struct ktrxer_path *path = s->path;
	uint32_t width = path->to.family == AF_INET6 ? 16 : 4;
	uint32_t sum = 0;

	if (s->proto != KTRXER_ICMP) {
		sum = ktrxer_sum(path->source.bytes, width, sum);
		sum = ktrxer_sum(path->to.bytes, width, sum);
		sum += s->proto + length; /* a folded sum and less than 2^17: no carry is lost */
	}
	sum = (uint16_t)~ktrxer_sum_fold(ktrxer_sum(l4, length, sum));
	/*
	 * UDP cannot carry 0: there it means "none was computed" (RFC 768), and over IPv6 such a packet is thrown away.
	 */
	return sum == 0 && s->proto == KTRXER_UDP ? 0xffff : (uint16_t)sum;
}

static uint8_t echo_type(const struct ktrxer_frame_spec *s)
{
	if (s->proto == KTRXER_ICMP)
		return s->echo_reply ? 0 : ICMP_ECHO_REQUEST;
	return s->echo_reply ? ICMP6_ECHO_REPLY : ICMP6_ECHO_REQUEST;
}

static void transport_write(uint8_t *at, const struct ktrxer_frame_spec *s)
{
	const uint32_t header = transport_length(s), length = header + s->payload_length;
	uint8_t options[KTRXER_TCP_OPTIONS_MAX] = { 0 };
	uint32_t field = 2;

	/* Copy before any header is written: options and payload may lie in this very slot. */
	if (s->tcp_options_length)
		memcpy(options, s->tcp_options, s->tcp_options_length);
	if (!s->payload)
		memset(at + header, 0, s->payload_length);
	else if (s->payload_length)
		memmove(at + header, s->payload, s->payload_length);
	memset(at, 0, header);
	switch (s->proto) {
	case KTRXER_UDP:
		field = 6;
		store_be16(at, s->from_port);
		store_be16(at + 2, s->to_port);
		store_be16(at + 4, (uint16_t)length);
		break;
	case KTRXER_TCP:
		field = 16;
		store_be16(at, s->from_port);
		store_be16(at + 2, s->to_port);
		store_be32(at + 4, s->tcp_sequence);
		store_be32(at + 8, s->tcp_acknowledgement);
		at[12] = (uint8_t)(header / 4 << 4);
		at[13] = s->tcp_flags;
		store_be16(at + 14, s->tcp_window);
		memcpy(at + TCP_LENGTH, options, header - TCP_LENGTH);
		break;
	default:
		at[0] = echo_type(s);
		store_be16(at + 4, s->from_port);
		store_be16(at + 6, s->to_port);
		break;
	}
	store_be16(at + field, transport_sum(at, length, s));
}

int ktrxer_frame_build(uint8_t *frame, uint32_t capacity, const struct ktrxer_frame_spec *spec)
{
	struct ktrxer_frame_spec s;
	uint32_t link, ip, headers, total;
	int ret = spec_read(&s, spec);

	if (ret)
		return ret;
	if (!frame)
		return -EINVAL;
	link = link_length(&s);
	ip = ip_length(s.path);
	headers = ip + transport_length(&s);
	/* IPv6 does not count its own header in its 16 bits; that is 40 bytes more, which no device's MTU has. */
	if (s.payload_length > UINT16_MAX - headers)
		return -EMSGSIZE;
	total = headers + s.payload_length;
	if (link + total > capacity || (s.path->mtu && total > s.path->mtu))
		return -EMSGSIZE;
	transport_write(frame + link + ip, &s);
	if (link)
		ethernet_write(frame, &s);
	if (s.path->to.family == AF_INET6)
		ip6_write(frame + link, &s, total);
	else
		ip4_write(frame + link, &s, total);
	return (int)(link + total);
}

int ktrxer_frame_checksum(uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	struct ktrxer_packet_view view;
	uint32_t field;
	uint16_t sum;
	bool moved;

	if (!frame)
		return -EINVAL;
	ktrxer_packet_parse(&view, frame, length, link);
	if (view.malformed || view.fragment || !view.version || !view.l4 || view.end > length)
		return -EBADMSG;
	switch (view.proto) {
	case KTRXER_UDP:
		field = view.l4 + 6U;
		break;
	case KTRXER_TCP:
		field = view.l4 + 16U;
		break;
	case KTRXER_ICMP:
	case KTRXER_ICMPV6:
		field = view.l4 + 2U;
		break;
	default:
		return -EBADMSG;
	}
	if (field + 2 > view.end)
		return -EBADMSG;
	sum = ktrxer_transport_checksum(frame, &view);
	if (!sum) {
		/*
		 * Either the sum is 0 (TCP and ICMP may have that), or it could not be made: only a true one moves with
		 * the data.
		 */
		frame[view.l4] ^= 1;
		moved = ktrxer_transport_checksum(frame, &view) != 0;
		frame[view.l4] ^= 1;
		if (!moved)
			return -EBADMSG;
	}
	store_be16(frame + field, sum);
	return 0;
}

int ktrxer_frame_read_sized(struct ktrxer_frame_view *to, size_t size, const uint8_t *frame, uint32_t length,
			    enum ktrxer_link link)
{
	struct ktrxer_packet_view packet;
	struct ktrxer_frame_view view;
	const uint8_t *transport;
	bool whole;

	if (!to || !size || !frame)
		return -EINVAL;
	ktrxer_packet_parse(&packet, frame, length, link);
	view = (struct ktrxer_frame_view){
		.from = packet.from,
		.to = packet.to,
		.from_port = packet.ports ? packet.from_port : packet.icmp_id,
		.to_port = packet.ports ? packet.to_port : packet.icmp_seq,
		.proto = packet.proto,
		.tos = packet.tos,
		.ttl = packet.ttl,
		.icmp_type = packet.icmp_type,
		.icmp_code = packet.icmp_code,
		.payload = packet.payload ? packet.payload : packet.l4,
		.vlan = packet.vlans,
		.vlan_tci = packet.vlan_tci,
		.ethertype = packet.ethertype,
		.network = packet.l3,
		.transport = packet.l4,
		.version = packet.version,
		.ports = packet.ports,
		.fragment = packet.fragment,
		.first_fragment = packet.first_fragment,
		.malformed = packet.malformed,
	};
	view.payload_length = packet.l4 && !packet.malformed ? packet.end - view.payload : 0;
	whole = !packet.malformed && !packet.fragment && packet.version && packet.l4;
	if (whole && packet.proto == KTRXER_TCP) {
		transport = frame + packet.l4;
		view.tcp_sequence = load_be32(transport + 4);
		view.tcp_acknowledgement = load_be32(transport + 8);
		view.tcp_flags = transport[13];
		view.tcp_window = load_be16(transport + 14);
	}
	ktrxer_result_write(to, size, &view, sizeof view);
	return whole ? 0 : -EBADMSG;
}
