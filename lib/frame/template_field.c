/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Which bytes of a frame may vary, by what name, and which checksums they are in. */
#include "template_plan.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <sys/socket.h>

enum { PROTO_SCTP = 132 };

/* clang-format off */
static const char *const field_names[] = {
	"bytes", "source address", "destination address", "source port", "destination port", "IP identification",
	"flow label", "TOS", "TTL", "ICMP identifier", "ICMP sequence number", "TCP sequence number", "payload",
};
/* clang-format on */

const char *ktrxer_template_field_name(enum ktx_field field)
{
	return (unsigned)field < sizeof field_names / sizeof field_names[0] ? field_names[field] : "field";
}

static bool is_icmp(const struct ktrxer_packet_view *view)
{
	return (view->version == 4 && view->proto == KTRXER_ICMP) ||
	       (view->version == 6 && view->proto == KTRXER_ICMPV6);
}

static bool is_echo(const struct ktrxer_packet_view *view, const uint8_t *frame)
{
	return is_icmp(view) && view->l4 && view->payload &&
	       (view->version == 4 ? frame[view->l4] == 0 || frame[view->l4] == 8
				   : frame[view->l4] == 128 || frame[view->l4] == 129);
}

uint32_t ktrxer_template_transport_sum_at(const struct ktrxer_packet_view *view, const uint8_t *frame)
{
	uint32_t at = 0;

	if (!view->l4)
		return 0;
	if (view->proto == KTRXER_UDP)
		at = view->l4 + 6U;
	else if (view->proto == KTRXER_TCP)
		at = view->l4 + 16U;
	else if (is_icmp(view))
		at = view->l4 + 2U;
	/* A UDP sender need not make one over IPv4. */
	return at && view->proto == KTRXER_UDP && load_be16(frame + at) == 0 ? 0 : at;
}

static bool ports_there(const struct ktrxer_packet_view *view)
{
	return view->l4 && view->ports &&
	       (view->proto == KTRXER_UDP || view->proto == KTRXER_TCP || view->proto == PROTO_SCTP);
}

static bool set(struct template_place *place, uint32_t at, uint32_t width)
{
	place->at = at;
	place->width = width;
	return true;
}

static bool address_find(struct template_place *place, const struct ktx_vary *vary,
			 const struct ktrxer_packet_view *view)
{
	const bool source = vary->field == KTX_FIELD_SOURCE;

	if (view->version == 4)
		return set(place, view->l3 + (source ? 12U : 16U), 4);
	if (view->version != 6)
		return false;
	/* Numbers have 64 bits: they count hosts in a network. A table has whole addresses. */
	return vary->how == KTX_VARY_TABLE ? set(place, view->l3 + (source ? 8U : 24U), 16)
					   : set(place, view->l3 + (source ? 16U : 32U), 8);
}

static bool name_find(struct template_place *place, const struct ktx_vary *vary, const struct ktrxer_packet_view *view,
		      const uint8_t *frame)
{
	const bool v4 = view->version == 4, v6 = view->version == 6;

	switch (vary->field) {
	case KTX_FIELD_BYTES:
		return set(place, vary->at, vary->width);
	case KTX_FIELD_SOURCE:
	case KTX_FIELD_DESTINATION:
		return address_find(place, vary, view);
	case KTX_FIELD_SOURCE_PORT:
		return ports_there(view) && set(place, view->l4, 2);
	case KTX_FIELD_DESTINATION_PORT:
		return ports_there(view) && set(place, view->l4 + 2U, 2);
	case KTX_FIELD_IP_ID:
		return v4 && set(place, view->l3 + 4U, 2);
	case KTX_FIELD_FLOW_LABEL:
		if (!v6)
			return false;
		place->most = 0xfffff;
		place->keep = load_be32(frame + view->l3) & ~0xfffffU;
		return set(place, view->l3, 4);
	case KTX_FIELD_TOS:
		return v4 && set(place, view->l3 + 1U, 1);
	case KTX_FIELD_TTL:
		return (v4 || v6) && set(place, view->l3 + (v4 ? 8U : 7U), 1);
	case KTX_FIELD_ICMP_ID:
		return is_echo(view, frame) && set(place, view->l4 + 4U, 2);
	case KTX_FIELD_ICMP_SEQUENCE:
		return is_echo(view, frame) && set(place, view->l4 + 6U, 2);
	case KTX_FIELD_TCP_SEQUENCE:
		return view->l4 && view->proto == KTRXER_TCP && set(place, view->l4 + 4U, 4);
	case KTX_FIELD_PAYLOAD:
		if (!view->payload)
			return false;
		return set(place, view->payload + vary->at, vary->width);
	}
	return false;
}

/* True if [at, at + width) is a part of [from, from + length). */
static bool within(const struct template_place *p, uint32_t from, uint32_t length)
{
	return p->at >= from && p->at - from < length && p->width <= length - (p->at - from);
}

/* A sum is of words from `base` on: a field that ends inside of one has its bytes at the other place there. */
static uint8_t in_sum(const struct template_place *p, uint32_t base)
{
	return (p->at + p->width - base) & 1 ? VARY_IN_SWAPPED : VARY_IN;
}

static bool in_link(const struct template_place *p, const struct ktrxer_packet_view *view, uint32_t length)
{
	if (!view->version) /* no IP: addresses, and whatever stands behind the type */
		return within(p, 0, 12) || within(p, 14U + 4U * view->vlans, length);
	if (view->l3 < 14)
		return false;
	if (within(p, 0, 12))
		return true;
	for (uint32_t i = 0; i < view->vlans; i++)
		if (within(p, 14 + 4 * i, 2)) /* the tag; a type follows it */
			return true;
	return false;
}

/* Fields of the IP header that say nothing of lengths or of what comes next. */
static bool in_ip_header(struct template_place *p, const struct ktrxer_packet_view *view, bool *address)
{
	const uint32_t l3 = view->l3;

	if (view->version == 4) {
		*address = within(p, l3 + 12, 4) || within(p, l3 + 16, 4);
		p->in_ip = in_sum(p, l3);
		return *address || within(p, l3 + 1, 1) || within(p, l3 + 4, 2) || within(p, l3 + 8, 1);
	}
	*address = within(p, l3 + 8, 16) || within(p, l3 + 24, 16);
	return *address || within(p, l3 + 1, 3) || within(p, l3 + 7, 1) || (p->keep && within(p, l3, 4));
}

static bool in_transport_part(const struct template_place *p, const struct ktrxer_packet_view *view)
{
	const uint32_t l4 = view->l4;

	if (view->payload && within(p, view->payload, view->end - view->payload))
		return true;
	switch (view->proto) {
	case KTRXER_UDP:
		return within(p, l4, 2) || within(p, l4 + 2, 2) || within(p, l4, 4);
	case KTRXER_TCP: /* ports and numbers; flags and window; the urgent pointer */
		return within(p, l4, 12) || within(p, l4 + 13, 3) || within(p, l4 + 18, 2);
	default:
		return is_icmp(view) && within(p, l4 + 4, 4);
	}
}

static int stands_for(struct template_place *p, const struct ktx_vary *vary, const struct ktrxer_packet_view *view,
		      const uint8_t *frame, uint32_t length, struct ktrxer_error *err)
{
	const char *name = ktrxer_template_field_name(vary->field);
	bool address = false;
	uint32_t sum;

	if (in_link(p, view, length))
		return 0;
	if (view->version && p->at >= view->end && within(p, view->end, length - view->end))
		return 0; /* behind the packet: padding */
	if (!view->version || view->malformed)
		return ktrxer_fail(err, -EBADMSG, "%s at offset %u: this frame is no whole IP packet", name, p->at);
	if (in_ip_header(p, view, &address) && !address)
		return 0;
	if (view->fragment)
		return ktrxer_fail(err, -EBADMSG,
				   "%s at offset %u: the checksum of a fragment is not all here; give a whole packet",
				   name, p->at);
	sum = ktrxer_template_transport_sum_at(view, frame);
	if (address) {
		/* UDP, TCP and ICMPv6 sum them too (pseudo header); words begin with the address. */
		if (sum && !(view->version == 4 && is_icmp(view)))
			p->in_transport = in_sum(p, view->l3 + (view->version == 4 ? 12U : 8U));
		return 0;
	}
	p->in_ip = VARY_NOT_IN;
	if (!view->l4 || p->at < view->l4)
		return ktrxer_fail(err, -EINVAL,
				   "%s: %u bytes at offset %u: a length, a type, a checksum or an option is among "
				   "them; these cannot vary",
				   name, p->width, p->at);
	if (!sum && view->proto != KTRXER_UDP)
		return ktrxer_fail(err, -EOPNOTSUPP,
				   "%s at offset %u: nothing here keeps the checksum of IP protocol %u right; UDP, TCP "
				   "and ICMP it does",
				   name, p->at, view->proto);
	if (!in_transport_part(p, view))
		return ktrxer_fail(err, -EINVAL,
				   "%s: %u bytes at offset %u: a length, a type, a checksum or an option is among "
				   "them; these cannot vary",
				   name, p->width, p->at);
	if (sum)
		p->in_transport = in_sum(p, view->l4);
	return 0;
}

int ktrxer_template_place_find(struct template_place *place, const struct ktx_vary *vary,
			       const struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length,
			       struct ktrxer_error *err)
{
	const char *name = ktrxer_template_field_name(vary->field);
	const bool by_offset = vary->field == KTX_FIELD_BYTES || vary->field == KTX_FIELD_PAYLOAD;

	*place = (struct template_place){ .most = UINT64_MAX };
	if ((unsigned)vary->field > KTX_FIELD_PAYLOAD)
		return ktrxer_fail(err, -EINVAL, "field %d is unknown to this version", (int)vary->field);
	if (by_offset && vary->width != 1 && vary->width != 2 && vary->width != 4 && vary->width != 8)
		return ktrxer_fail(err, -EINVAL, "%s: a width of %u bytes; it is 1, 2, 4 or 8", name, vary->width);
	if (by_offset && vary->at > length)
		return ktrxer_fail(err, -EBADMSG, "%s at offset %u: the frame has %u bytes", name, vary->at, length);
	if (!name_find(place, vary, view, frame))
		return ktrxer_fail(err, -EBADMSG, "this frame has no %s (IPv%u, protocol %u)", name, view->version,
				   view->proto);
	if (place->at > length || place->width > length - place->at ||
	    (vary->field == KTX_FIELD_PAYLOAD && place->at + place->width > view->end))
		return ktrxer_fail(err, -EBADMSG, "%s: %u bytes at offset %u pass the end of the packet (%u)", name,
				   place->width, place->at, vary->field == KTX_FIELD_PAYLOAD ? view->end : length);
	if (place->width < 8 && place->most == UINT64_MAX)
		place->most = (1ULL << 8 * place->width) - 1;
	return stands_for(place, vary, view, frame, length, err);
}
