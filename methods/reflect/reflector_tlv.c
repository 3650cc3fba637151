/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "reflector_tlv.h"

#include <sys/socket.h>

enum { KTRXER_REFLECTOR_TLVS_MAX = 64 /* of one packet that are looked at; the rest is sent back as it came */ };

/* The result of a first walk, which changes nothing. */
struct survey {
	uint32_t ends[KTRXER_REFLECTOR_TLVS_MAX]; /* offsets of headers */
	int count;                                /* whole TLVs */
	bool cut;                                 /* and one behind them whose length lies, at `cut_at` */
	uint32_t cut_at;
	int malformed;       /* the first with a length that is wrong for its type; count: none */
	int hmac;            /* index of the HMAC TLV, -1: none */
	bool hmac_misplaced; /* something other than padding behind it, or another one */
	bool needs_hmac;     /* there is something else than one padding TLV */
};

static void survey_take(struct survey *s, const uint8_t *packet, uint32_t length, bool auth)
{
	uint32_t at = (uint32_t)stamp_base_length(auth);
	enum stamp_tlv_found found;
	struct stamp_tlv tlv;

	*s = (struct survey){ .hmac = -1, .malformed = KTRXER_REFLECTOR_TLVS_MAX };
	while ((found = stamp_tlv_next(&tlv, packet, length, &at)) == STAMP_TLV_OK &&
	       s->count < KTRXER_REFLECTOR_TLVS_MAX) {
		if (s->hmac >= 0 && tlv.type != STAMP_TLV_PADDING)
			s->hmac_misplaced = true;
		if (tlv.type == STAMP_TLV_HMAC && s->hmac < 0)
			s->hmac = s->count;
		if (tlv.type != STAMP_TLV_PADDING || s->count)
			s->needs_hmac = true;
		if (s->malformed == KTRXER_REFLECTOR_TLVS_MAX && !stamp_tlv_length_ok(tlv.type, tlv.length))
			s->malformed = s->count;
		s->ends[s->count++] = tlv.at;
	}
	if (s->malformed > s->count)
		s->malformed = s->count;
	s->cut = found == STAMP_TLV_CUT;
	s->cut_at = tlv.at;
	s->needs_hmac |= s->cut;
}

/* Over the sequence number of the request, which is in the packet no more. */
static bool hmac_right(uint8_t *packet, const struct survey *s, uint32_t request_seq,
		       const struct reflector_tlv_context *c)
{
	const uint32_t own_seq = load_be32(packet);
	const uint8_t *value = packet + s->ends[s->hmac] + STAMP_TLV_HEAD;
	uint8_t mac[STAMP_MAC_LENGTH];

	store_be32(packet, request_seq);
	stamp_tlv_mac(packet, c->auth, s->ends[s->hmac], c->key, mac);
	store_be32(packet, own_seq);
	return secret_equal(mac, value, sizeof mac);
}

/* RFC 8972, 4.8: HMAC first, before any data is used. */
static bool integrity_holds(uint8_t *packet, const struct survey *s, uint32_t request_seq,
			    const struct reflector_tlv_context *c)
{
	if (s->hmac < 0)
		return !(c->auth && s->needs_hmac);
	if (!c->key || s->hmac_misplaced || s->malformed <= s->hmac)
		return false;
	return hmac_right(packet, s, request_seq, c);
}

enum location { /* RFC 8972, table 5 */
		LOCATION_MAC = 1,
		LOCATION_EUI64 = 3,
		LOCATION_TO = 4,
		LOCATION_TO_V4 = 5,
		LOCATION_TO_V6 = 6,
		LOCATION_FROM = 7,
		LOCATION_FROM_V4 = 8,
		LOCATION_FROM_V6 = 9,
};

static void location_address(uint8_t *sub, const struct ktrxer_addr *addr, uint8_t v4, uint8_t v6)
{
	const bool is_v6 = addr->family == AF_INET6;

	sub[1] = is_v6 ? v6 : v4;
	memset(sub + STAMP_TLV_HEAD, 0, 16);
	memcpy(sub + STAMP_TLV_HEAD, addr->bytes, is_v6 ? 16 : 4);
}

static void location_sub(uint8_t *sub, uint16_t length, const struct reflector_arrival *a)
{
	const uint8_t type = sub[1];

	sub[0] = 0;
	if (type == LOCATION_MAC && length == 8) {
		/* A socket does not tell link addresses: "does not have the Source MAC Address", so zeros as EUI-64. */
		sub[1] = LOCATION_EUI64;
		memset(sub + STAMP_TLV_HEAD, 0, 8);
	} else if (type == LOCATION_TO && length == 16) {
		location_address(sub, &a->to, LOCATION_TO_V4, LOCATION_TO_V6);
	} else if (type == LOCATION_FROM && length == 16) {
		location_address(sub, &a->from, LOCATION_FROM_V4, LOCATION_FROM_V6);
	} else if (type == LOCATION_MAC || type == LOCATION_TO || type == LOCATION_FROM) {
		sub[0] = STAMP_TLV_MALFORMED;
	} else {
		sub[0] = STAMP_TLV_UNKNOWN;
	}
}

static void location(uint8_t *value, uint16_t length, const struct reflector_arrival *a)
{
	struct stamp_tlv sub;
	uint32_t at = 4;
	enum stamp_tlv_found found;

	store_be16(value, a->to_port);
	store_be16(value + 2, a->from_port);
	for (int i = 0;
	     i < KTRXER_REFLECTOR_TLVS_MAX && (found = stamp_tlv_next(&sub, value, length, &at)) != STAMP_TLV_END;
	     i++) {
		if (found == STAMP_TLV_CUT)
			value[sub.at] = STAMP_TLV_MALFORMED;
		if (found != STAMP_TLV_OK)
			return;
		location_sub(value + sub.at, sub.length, a);
	}
}

static void time_info(uint8_t value[4], const struct reflector_tlv_context *c)
{
	const uint8_t sync = c->synchronised ? STAMP_SYNC_NTP : STAMP_SYNC_FREE;

	value[0] = sync;
	value[1] = c->arrival->nic_stamp ? STAMP_BY_HARDWARE : STAMP_BY_SOFTWARE;
	value[2] = sync;
	value[3] = STAMP_BY_SOFTWARE; /* T3 in the packet is ours; the follow-up tells the kernel's */
}

static void class_of_service(uint8_t value[4], struct reflector_tlv_context *c)
{
	struct stamp_cos cos = stamp_cos_read(value);

	cos.dscp2 = c->arrival->tos >> 2;
	cos.ecn = c->arrival->tos & 3;
	cos.reverse = c->dscp_granted >> cos.dscp1 & 1 ? 0 : 1;
	/* `tos` stays as it was without the grant: the DSCP that arrived, or 0 if that is not granted either. */
	if (!cos.reverse)
		c->tos = (uint8_t)(cos.dscp1 << 2);
	stamp_cos_write(value, &cos);
}

static void direct(uint8_t value[12], const struct reflector_session *session)
{
	store_be32(value + 4, session ? session->received : 0);
	store_be32(value + 8, session ? session->sent : 0);
}

/*
 * RFC 8972, 4.7: one earlier answer in each TLV. With two in a request what has piled up in a queue of this host is
 * told soon after.
 */
static void follow_up(uint8_t value[16], struct reflector_tlv_context *c)
{
	struct reflector_session *s = c->session;
	struct stamp_follow_up follow = { 0 };
	struct reflector_left left;

	if (s && reflector_session_report(s, &left)) {
		follow.seq = left.seq;
		follow.time = stamp_time_of_ns(left.real_ns, c->ptp);
		follow.method = left.method;
	}
	stamp_follow_up_write(value, &follow);
	c->follow = s != NULL;
}

static void limits(uint8_t value[16], const struct reflector_tlv_context *c)
{
	const struct reflector_session *s = c->session;
	const struct stamp_limits l = { .rate = c->rate,
					.refused = c->refused,
					.dropped = (uint32_t)c->arrival->overflows,
					.copies = s && !s->copies_unknown ? STAMP_COPIES_COUNTED | s->copies : 0 };

	stamp_limits_write(value, &l);
}

/* A digest of the adjustment: the adjustment itself and the time of day give the time since the host was started. */
static void clock_state(uint8_t value[16], const struct reflector_tlv_context *c)
{
	const struct stamp_clock clock = { .adjusted_ns = c->arrival->adjusted.ns - c->adjusted_from_ns,
					   .bound_ns = c->arrival->adjusted.bound_ns,
					   .origin = (uint32_t)c->adjusted_from_ns };

	stamp_clock_write(value, &clock);
}

/* Returns the flags of the answer's TLV. */
static uint8_t understand(uint8_t *tlv, struct reflector_tlv_context *c)
{
	const uint16_t length = load_be16(tlv + 2);
	uint8_t *value = tlv + STAMP_TLV_HEAD;

	switch (tlv[1]) {
	case STAMP_TLV_PADDING:
	case STAMP_TLV_HMAC:
		return 0;
	case STAMP_TLV_LOCATION:
		location(value, length, c->arrival);
		return 0;
	case STAMP_TLV_TIME_INFO:
		time_info(value, c);
		return 0;
	case STAMP_TLV_COS:
		class_of_service(value, c);
		return 0;
	case STAMP_TLV_DIRECT:
		direct(value, c->session);
		return 0;
	case STAMP_TLV_ACCESS: /* 3GPP or not; anything else is to be discarded */
		return value[0] >> 4 == 1 || value[0] >> 4 == 2 ? 0 : STAMP_TLV_UNKNOWN;
	case STAMP_TLV_FOLLOW_UP:
		follow_up(value, c);
		return 0;
	case STAMP_TLV_LIMITS:
		limits(value, c);
		return 0;
	case STAMP_TLV_CLOCK:
		clock_state(value, c);
		return 0;
	default:
		return STAMP_TLV_UNKNOWN;
	}
}

/* A follow-up TLV of the wrong length is answered with zeros (4.7), as many as there is room for. */
static void wrong_length(uint8_t *tlv)
{
	const uint16_t length = load_be16(tlv + 2);

	tlv[0] = STAMP_TLV_MALFORMED;
	if (tlv[1] == STAMP_TLV_FOLLOW_UP)
		memset(tlv + STAMP_TLV_HEAD, 0, length < 12 ? length : 12);
}

void reflector_tlvs(uint8_t *packet, uint32_t length, uint32_t request_seq, struct reflector_tlv_context *c)
{
	struct survey s;

	survey_take(&s, packet, length, c->auth);
	if (!s.count && !s.cut)
		return;
	if (!integrity_holds(packet, &s, request_seq, c)) {
		c->integrity_bad = true;
		for (int i = 0; i < s.count; i++)
			packet[s.ends[i]] = STAMP_TLV_INTEGRITY;
		if (s.malformed < s.count)
			packet[s.ends[s.malformed]] |= STAMP_TLV_MALFORMED;
		if (s.cut)
			packet[s.cut_at] = STAMP_TLV_INTEGRITY | STAMP_TLV_MALFORMED;
		return;
	}
	for (int i = 0; i < s.malformed; i++)
		packet[s.ends[i]] = understand(packet + s.ends[i], c);
	if (s.malformed < s.count)
		wrong_length(packet + s.ends[s.malformed]);
	else if (s.cut)
		packet[s.cut_at] = STAMP_TLV_MALFORMED;
	if (s.hmac >= 0)
		stamp_tlv_mac(packet, c->auth, s.ends[s.hmac], c->key, packet + s.ends[s.hmac] + STAMP_TLV_HEAD);
}
