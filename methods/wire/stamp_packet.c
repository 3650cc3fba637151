/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "stamp_packet.h"

#include "clock.h"

#define NTP_EPOCH 2208988800LL /* 1900 to 1970, in seconds */
#define ERA (1LL << 32)

uint64_t stamp_time_of_ns(int64_t real_ns, bool ptp)
{
	return ktrxer_time_field(real_ns, ptp ? KTX_SEND_TIME_UNIX : KTX_SEND_TIME_NTP);
}

bool stamp_time_to_ns(int64_t *real_ns, uint64_t time, bool ptp, int64_t near_ns)
{
	int64_t near_s = near_ns / KTRXER_NS_PER_S, ns, seconds;
	uint32_t low = (uint32_t)time;

	ns = ptp ? (int64_t)low : (int64_t)(((uint64_t)low * KTRXER_NS_PER_S + (1ULL << 31)) >> 32);
	if (ns > KTRXER_NS_PER_S || (ptp && ns == KTRXER_NS_PER_S)) /* rounding up to a whole second is NTP's right */
		return false;
	seconds = (int64_t)(uint32_t)(time >> 32) - (ptp ? 0 : NTP_EPOCH);
	seconds += (near_s - seconds) / ERA * ERA;
	if (near_s - seconds > ERA / 2)
		seconds += ERA;
	else if (seconds - near_s > ERA / 2)
		seconds -= ERA;
	*real_ns = seconds * KTRXER_NS_PER_S + ns;
	return true;
}

uint16_t stamp_error_write(const struct stamp_error *error)
{
	/*
	 * Beyond 2^40 ns (18 minutes) the remainder of a second does not matter, and the product below would not fit.
	 */
	const uint64_t limit = 1ULL << 40, bound = error->bound_ns < limit ? error->bound_ns : limit;
	uint64_t whole = bound / KTRXER_NS_PER_S, rest = bound % KTRXER_NS_PER_S, units;
	unsigned scale = 0;

	units = (whole << 32) + ((rest << 32) + KTRXER_NS_PER_S - 1) / KTRXER_NS_PER_S;
	if (!units)
		units = 1; /* a multiplier of 0 is forbidden */
	while (units > 255) {
		units = (units + 1) >> 1;
		scale++;
	}
	return (uint16_t)((error->synchronised ? 0x8000u : 0u) | (error->ptp ? 0x4000u : 0u) | scale << 8 | units);
}

struct stamp_error stamp_error_read(uint16_t wire)
{
	struct stamp_error error = { .synchronised = wire >> 15, .ptp = wire >> 14 & 1 };
	const uint64_t multiplier = wire & 255;
	const unsigned scale = wire >> 8 & 63;
	uint64_t whole, rest;

	error.bound_ns = UINT64_MAX;
	if (!multiplier || scale > 32 + 24) /* 2^32 s: 136 years */
		return error;
	whole = scale >= 32 ? multiplier << (scale - 32) : multiplier >> (32 - scale);
	rest = scale >= 32 ? 0 : (multiplier << scale) & 0xffffffffu;
	if (whole > UINT64_MAX / KTRXER_NS_PER_S - 1)
		return error;
	error.bound_ns = whole * KTRXER_NS_PER_S + ((rest * KTRXER_NS_PER_S + 0xffffffffu) >> 32);
	return error;
}

/* Offsets of the fields: RFC 8762, figures 2, 4, 5 and 6; the SSID of RFC 8972, figures 1 to 4. */
enum {
	OPEN_TIME = 4,
	OPEN_ERROR = 12,
	OPEN_SSID = 14,
	OPEN_RECEIVED = 16,
	OPEN_SENDER_SEQ = 24,
	OPEN_SENDER_TIME = 28,
	OPEN_SENDER_ERROR = 36,
	OPEN_SENDER_TTL = 40,

	AUTH_TIME = 16,
	AUTH_ERROR = 24,
	AUTH_SSID = 26,
	AUTH_RECEIVED = 32,
	AUTH_SENDER_SEQ = 48,
	AUTH_SENDER_TIME = 64,
	AUTH_SENDER_ERROR = 72,
	AUTH_SENDER_TTL = 80,
};

void stamp_probe_write(uint8_t *packet, const struct stamp_probe *probe, bool auth)
{
	memset(packet, 0, stamp_base_length(auth));
	store_be32(packet, probe->seq);
	store_be64(packet + (auth ? AUTH_TIME : OPEN_TIME), probe->time);
	store_be16(packet + (auth ? AUTH_ERROR : OPEN_ERROR), probe->error);
	store_be16(packet + (auth ? AUTH_SSID : OPEN_SSID), probe->ssid);
}

void stamp_reply_write(uint8_t *packet, const struct stamp_reply *reply, bool auth)
{
	const struct stamp_probe head = { reply->seq, reply->time, reply->error, reply->ssid };

	stamp_probe_write(packet, &head, auth);
	store_be64(packet + (auth ? AUTH_RECEIVED : OPEN_RECEIVED), reply->received);
	store_be32(packet + (auth ? AUTH_SENDER_SEQ : OPEN_SENDER_SEQ), reply->sender_seq);
	store_be64(packet + (auth ? AUTH_SENDER_TIME : OPEN_SENDER_TIME), reply->sender_time);
	store_be16(packet + (auth ? AUTH_SENDER_ERROR : OPEN_SENDER_ERROR), reply->sender_error);
	packet[auth ? AUTH_SENDER_TTL : OPEN_SENDER_TTL] = reply->sender_ttl;
}

void stamp_reply_set_time(uint8_t *packet, uint64_t time, bool auth)
{
	store_be64(packet + (auth ? AUTH_TIME : OPEN_TIME), time);
}

bool stamp_probe_read(struct stamp_probe *probe, const uint8_t *packet, size_t length, bool auth)
{
	struct bytes b = bytes_of(packet, length);
	struct bytes base = bytes_sub(&b, stamp_base_length(auth));

	probe->seq = bytes_be32(&base);
	if (auth)
		bytes_skip(&base, AUTH_TIME - 4);
	probe->time = bytes_be64(&base);
	probe->error = bytes_be16(&base);
	probe->ssid = bytes_be16(&base);
	return base.ok;
}

bool stamp_reply_read(struct stamp_reply *reply, const uint8_t *packet, size_t length, bool auth)
{
	struct bytes b = bytes_of(packet, length);
	struct bytes base =
		bytes_sub(&b, !auth && length < STAMP_OPEN_LENGTH ? STAMP_TWAMP_REPLY : stamp_base_length(auth));
	const size_t gap[4] = { 12, 4, 8, 12 };

	reply->seq = bytes_be32(&base);
	bytes_skip(&base, auth ? gap[0] : 0);
	reply->time = bytes_be64(&base);
	reply->error = bytes_be16(&base);
	reply->ssid = bytes_be16(&base);
	bytes_skip(&base, auth ? gap[1] : 0);
	reply->received = bytes_be64(&base);
	bytes_skip(&base, auth ? gap[2] : 0);
	reply->sender_seq = bytes_be32(&base);
	bytes_skip(&base, auth ? gap[3] : 0);
	reply->sender_time = bytes_be64(&base);
	reply->sender_error = bytes_be16(&base);
	bytes_skip(&base, auth ? 6 : 2);
	reply->sender_ttl = bytes_u8(&base);
	return base.ok;
}

static bool all_zero(const uint8_t *at, size_t n)
{
	uint8_t any = 0;

	while (n--)
		any |= *at++;
	return !any;
}

bool stamp_looks_reflected(const uint8_t *packet, size_t length, bool auth)
{
	struct stamp_reply reply;
	uint32_t dwell;

	/* A TWAMP reflector's answer may end after the TTL. */
	if (length < (auth ? AUTH_SENDER_TTL : OPEN_SENDER_TTL) + 1u)
		return false;
	if (auth) {
		if (!all_zero(packet + 28, 4) || !all_zero(packet + 40, 8) || !all_zero(packet + 52, 12) ||
		    !all_zero(packet + 74, 6))
			return false;
		reply.time = load_be64(packet + AUTH_TIME);
		reply.received = load_be64(packet + AUTH_RECEIVED);
	} else {
		if (!all_zero(packet + 38, 2))
			return false;
		reply.time = load_be64(packet + OPEN_TIME);
		reply.received = load_be64(packet + OPEN_RECEIVED);
		/* The bytes behind the TTL are a TWAMP reflector's padding: they prove nothing. */
	}
	dwell = (uint32_t)(reply.time >> 32) - (uint32_t)(reply.received >> 32);
	return reply.received && dwell <= 16;
}

void stamp_sign(uint8_t packet[STAMP_AUTH_LENGTH], const struct hmac_key *key)
{
	uint8_t mac[SHA256_LENGTH];

	hmac_sha256(key, packet, STAMP_MAC_AT, mac);
	memcpy(packet + STAMP_MAC_AT, mac, STAMP_MAC_LENGTH);
}

bool stamp_is_signed(const uint8_t packet[STAMP_AUTH_LENGTH], const struct hmac_key *key)
{
	uint8_t mac[SHA256_LENGTH];

	hmac_sha256(key, packet, STAMP_MAC_AT, mac);
	return secret_equal(mac, packet + STAMP_MAC_AT, STAMP_MAC_LENGTH);
}

enum stamp_tlv_found stamp_tlv_next(struct stamp_tlv *tlv, const uint8_t *packet, size_t length, uint32_t *at)
{
	struct bytes b = bytes_of(packet, length);

	*tlv = (struct stamp_tlv){ .at = *at };
	if (!bytes_skip(&b, *at) || !bytes_left(&b))
		return STAMP_TLV_END;
	tlv->flags = bytes_u8(&b);
	tlv->type = bytes_u8(&b);
	tlv->length = bytes_be16(&b);
	if (b.ok && !tlv->type && !tlv->length)
		return STAMP_TLV_FILL;
	tlv->value = bytes_take(&b, tlv->length);
	if (!b.ok)
		return length - *at < STAMP_TLV_HEAD && all_zero(packet + *at, length - *at) ? STAMP_TLV_FILL
											     : STAMP_TLV_CUT;
	*at += STAMP_TLV_HEAD + tlv->length;
	return STAMP_TLV_OK;
}

bool stamp_tlv_length_ok(uint8_t type, uint16_t length)
{
	switch (type) {
	case STAMP_TLV_LOCATION:
		return length >= 4;
	case STAMP_TLV_TIME_INFO:
	case STAMP_TLV_COS:
	case STAMP_TLV_ACCESS:
		return length == 4;
	case STAMP_TLV_DIRECT:
		return length == 12;
	case STAMP_TLV_FOLLOW_UP:
	case STAMP_TLV_HMAC:
	case STAMP_TLV_LIMITS:
	case STAMP_TLV_CLOCK:
		return length == 16;
	default:
		return true;
	}
}

uint32_t stamp_tlv_write(uint8_t *to, uint8_t type, uint16_t length)
{
	if (to) {
		to[0] = STAMP_TLV_UNKNOWN;
		to[1] = type;
		store_be16(to + 2, length);
		memset(to + STAMP_TLV_HEAD, 0, length);
	}
	return STAMP_TLV_HEAD + (uint32_t)length;
}

void stamp_tlv_mac(const uint8_t *packet, bool auth, uint32_t mac_at, const struct hmac_key *key,
		   uint8_t mac[STAMP_MAC_LENGTH])
{
	const size_t base = stamp_base_length(auth);
	uint8_t full[SHA256_LENGTH];
	struct sha256 message;

	hmac_begin(&message, key);
	sha256_add(&message, packet, 4);
	sha256_add(&message, packet + base, mac_at - base);
	hmac_end(&message, key, full);
	memcpy(mac, full, STAMP_MAC_LENGTH);
}

struct stamp_cos stamp_cos_read(const uint8_t value[4])
{
	return (struct stamp_cos){ .dscp1 = value[0] >> 2,
				   .dscp2 = (uint8_t)((value[0] & 3) << 4 | value[1] >> 4),
				   .ecn = value[1] >> 2 & 3,
				   .reverse = value[1] & 3 };
}

void stamp_cos_write(uint8_t value[4], const struct stamp_cos *cos)
{
	value[0] = (uint8_t)(cos->dscp1 << 2 | (cos->dscp2 >> 4 & 3));
	value[1] = (uint8_t)((cos->dscp2 & 15) << 4 | (cos->ecn & 3) << 2 | (cos->reverse & 3));
	value[2] = value[3] = 0;
}

struct stamp_follow_up stamp_follow_up_read(const uint8_t value[16])
{
	return (struct stamp_follow_up){ .seq = load_be32(value), .time = load_be64(value + 4), .method = value[12] };
}

void stamp_follow_up_write(uint8_t value[16], const struct stamp_follow_up *follow)
{
	store_be32(value, follow->seq);
	store_be64(value + 4, follow->time);
	value[12] = follow->method;
	memset(value + 13, 0, 3);
}

struct stamp_limits stamp_limits_read(const uint8_t value[16])
{
	return (struct stamp_limits){ load_be32(value), load_be32(value + 4), load_be32(value + 8),
				      load_be32(value + 12) };
}

void stamp_limits_write(uint8_t value[16], const struct stamp_limits *limits)
{
	store_be32(value, limits->rate);
	store_be32(value + 4, limits->refused);
	store_be32(value + 8, limits->dropped);
	store_be32(value + 12, limits->copies);
}

struct stamp_clock stamp_clock_read(const uint8_t value[16])
{
	return (struct stamp_clock){ (int64_t)load_be64(value), load_be32(value + 8), load_be32(value + 12) };
}

void stamp_clock_write(uint8_t value[16], const struct stamp_clock *clock)
{
	store_be64(value, (uint64_t)clock->adjusted_ns);
	store_be32(value + 8, clock->bound_ns);
	store_be32(value + 12, clock->origin);
}
