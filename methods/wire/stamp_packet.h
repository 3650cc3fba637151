/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * STAMP on the wire: test packets of sender and reflector (RFC 8762), open (44 bytes) and authenticated (112), and the
 * TLVs behind them (RFC 8972). Readers fill a struct; writers fill memory that the caller laid out. Errata 8199 and
 * 8339 of RFC 8972 are followed.
 */
#ifndef KTRXER_METHODS_STAMP_PACKET_H
#define KTRXER_METHODS_STAMP_PACKET_H

#include "bytes.h"
#include "sha256.h"

enum {
	STAMP_OPEN_LENGTH = 44,
	STAMP_AUTH_LENGTH = 112,
	STAMP_TWAMP_REPLY = 41, /* the shortest answer of TWAMP (RFC 5357, 4.2.1): it ends with the sender's TTL */
	STAMP_MAC_LENGTH = 16,  /* HMAC-SHA-256, its first half */
	STAMP_MAC_AT = 96,
	STAMP_TLV_HEAD = 4,
};

static inline size_t stamp_base_length(bool auth)
{
	return auth ? STAMP_AUTH_LENGTH : STAMP_OPEN_LENGTH;
}

/*
 * Nanoseconds since 1970 as NTP's 64 bits (RFC 5905, 6: seconds since 1900 and 2^-32 s) or as PTP's truncated 64
 * (seconds and nanoseconds). Both wrap within 136 years. PTP counts TAI; what we write is UTC in either format, since
 * the kernel's offset of TAI is rarely set: between two hosts that differ in this a constant of whole seconds shows as
 * clock offset.
 */
uint64_t stamp_time_of_ns(int64_t real_ns, bool ptp);
/* Takes the time nearest to `near_ns`, within 68 years. False: PTP nanoseconds beyond a second. */
bool stamp_time_to_ns(int64_t *real_ns, uint64_t time, bool ptp, int64_t near_ns);

/* The Error Estimate (RFC 4656, 4.1.2; RFC 8186): Multiplier * 2^(Scale - 32) seconds. */
struct stamp_error {
	bool synchronised; /* S: by an external source */
	bool ptp;          /* Z: the format of the timestamps beside it */
	uint64_t bound_ns; /* rounded up; UINT64_MAX: Multiplier 0, which says that the timestamp means nothing */
};
uint16_t stamp_error_write(const struct stamp_error *error);
struct stamp_error stamp_error_read(uint16_t wire);

struct stamp_probe {
	uint32_t seq;
	uint64_t time;
	uint16_t error;
	uint16_t ssid; /* 0: none */
};

struct stamp_reply {
	uint32_t seq;
	uint64_t time; /* T3 */
	uint16_t error;
	uint16_t ssid;
	uint64_t received; /* T2 */
	uint32_t sender_seq;
	uint64_t sender_time;
	uint16_t sender_error;
	uint8_t sender_ttl;
};

/* The base packet, all but the HMAC; what must be zero is made so. */
void stamp_probe_write(uint8_t *packet, const struct stamp_probe *probe, bool auth);
void stamp_reply_write(uint8_t *packet, const struct stamp_reply *reply, bool auth);
/* False: too short. Fields that must be zero are not read (RFC 8762: ignored on receipt). */
bool stamp_probe_read(struct stamp_probe *probe, const uint8_t *packet, size_t length, bool auth);
bool stamp_reply_read(struct stamp_reply *reply, const uint8_t *packet, size_t length, bool auth);
/* T3 alone, at the last moment. */
void stamp_reply_set_time(uint8_t *packet, uint64_t time, bool auth);

/*
 * Is this a reflector's answer, by all appearances: zeros where only an answer has zeros between values, and T2 at most
 * 16 s before T3? The padding of a TWAMP sender is random or zero; that it looks like this by chance is a matter of
 * 2^-44. Two reflectors that answer such packets would answer each other for ever.
 */
bool stamp_looks_reflected(const uint8_t *packet, size_t length, bool auth);

/* The HMAC of an authenticated base packet: of its bytes before it. */
void stamp_sign(uint8_t packet[STAMP_AUTH_LENGTH], const struct hmac_key *key);
bool stamp_is_signed(const uint8_t packet[STAMP_AUTH_LENGTH], const struct hmac_key *key);

enum stamp_tlv_flag { STAMP_TLV_UNKNOWN = 0x80, STAMP_TLV_MALFORMED = 0x40, STAMP_TLV_INTEGRITY = 0x20 };

enum stamp_tlv_type {
	STAMP_TLV_PADDING = 1,
	STAMP_TLV_LOCATION = 2,
	STAMP_TLV_TIME_INFO = 3,
	STAMP_TLV_COS = 4,
	STAMP_TLV_DIRECT = 5,
	STAMP_TLV_ACCESS = 6,
	STAMP_TLV_FOLLOW_UP = 7,
	STAMP_TLV_HMAC = 8,
	/* Experimental (RFC 8972, 5.1): `ktrxer serve` alone understands these. */
	STAMP_TLV_LIMITS = 241,
	STAMP_TLV_CLOCK = 242,
};

struct stamp_tlv {
	uint8_t flags, type;
	uint16_t length;      /* as it says */
	uint32_t at;          /* of its header, from the start of the packet */
	const uint8_t *value; /* NULL: it is cut */
};

enum stamp_tlv_found {
	STAMP_TLV_END = 0, /* no more */
	STAMP_TLV_OK = 1,
	STAMP_TLV_CUT = 2,  /* its length lies, or its header is not all there: nothing behind it can be read */
	STAMP_TLV_FILL = 3, /* type 0 and length 0, no TLV: the zeros that a TWAMP sender fills up with */
};

/*
 * Walks the TLVs: begin with *at = the base length. *at moves on; after anything but OK it is not to be called again.
 */
enum stamp_tlv_found stamp_tlv_next(struct stamp_tlv *tlv, const uint8_t *packet, size_t length, uint32_t *at);
/* True if this length is right for this type, and for unknown types. */
bool stamp_tlv_length_ok(uint8_t type, uint16_t length);
/* A sender's TLV: header (U is 1, RFC 8972 section 4) and zeros. Returns how long both are; `to` NULL: just that. */
uint32_t stamp_tlv_write(uint8_t *to, uint8_t type, uint16_t length);
/* HMAC over the sequence number and what stands between base packet and the HMAC TLV at `mac_at`. */
void stamp_tlv_mac(const uint8_t *packet, bool auth, uint32_t mac_at, const struct hmac_key *key,
		   uint8_t mac[STAMP_MAC_LENGTH]);

/* Values. */
enum stamp_sync { STAMP_SYNC_NTP = 1, STAMP_SYNC_PTP = 2, STAMP_SYNC_FREE = 5 };
enum stamp_method { STAMP_BY_HARDWARE = 1, STAMP_BY_SOFTWARE = 2, STAMP_BY_CONTROL_PLANE = 3 };

struct stamp_cos {
	uint8_t dscp1, dscp2, ecn,
		reverse; /* asked for; received; received; reverse path: 1 when dscp1 was not granted */
};
struct stamp_cos stamp_cos_read(const uint8_t value[4]);
void stamp_cos_write(uint8_t value[4], const struct stamp_cos *cos);

struct stamp_follow_up {
	uint32_t seq; /* of the reflector's answer that the time belongs to */
	uint64_t time;
	uint8_t method;
};
struct stamp_follow_up stamp_follow_up_read(const uint8_t value[16]);
void stamp_follow_up_write(uint8_t value[16], const struct stamp_follow_up *follow);

/* Probes that the reflector itself did not answer, so far: counts of all its clients, which begin anew after 2^32. */
#define STAMP_COPIES_COUNTED (1U << 31)
struct stamp_limits {
	uint32_t rate;    /* answers a second to one network; 0: no limit */
	uint32_t refused; /* probes beyond it */
	uint32_t dropped; /* datagrams that its socket had no room for */
	/*
	 * requests of this session, with this one, that were answered before: STAMP_COPIES_COUNTED | count; 0: they
	 * are not counted
	 */
	uint32_t copies;
};
struct stamp_limits stamp_limits_read(const uint8_t value[16]);
void stamp_limits_write(uint8_t value[16], const struct stamp_limits *limits);

/* How far the kernel of the reflector had adjusted the clock of T2 and T3, between the two. */
struct stamp_clock {
	int64_t adjusted_ns;
	uint32_t bound_ns;
	uint32_t origin; /* adjusted_ns counts from a time that this number names */
};
struct stamp_clock stamp_clock_read(const uint8_t value[16]);
void stamp_clock_write(uint8_t value[16], const struct stamp_clock *clock);

#endif
