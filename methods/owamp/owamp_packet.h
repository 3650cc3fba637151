/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The messages of OWAMP (RFC 4656) in unauthenticated mode: OWAMP-Control and the packets of OWAMP-Test. All fields are
 * big-endian; times are NTP's 64 bits (stamp_packet.h), and durations have 32 bits of seconds and 32 of their fraction.
 * HMAC fields are written as zeros and are not read (RFC 4656, 3.2).
 */
#ifndef KTRXER_METHODS_OWAMP_PACKET_H
#define KTRXER_METHODS_OWAMP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OWAMP_PORT = 861,
	OWAMP_SID = 16,
	OWAMP_BLOCK = 16, /* messages are made of blocks of so many bytes */
	OWAMP_GREETING_BYTES = 64,
	OWAMP_SETUP_BYTES = 164,
	OWAMP_START_BYTES = 48, /* Server-Start */
	OWAMP_REQUEST_BYTES = 112,
	OWAMP_SLOT_BYTES = 16,
	OWAMP_HMAC_BYTES = 16,
	OWAMP_ACCEPT_BYTES = 48,  /* Accept-Session */
	OWAMP_COMMAND_BYTES = 32, /* Start-Sessions, Start-Ack, Fetch-Ack */
	OWAMP_STOP_BYTES = 16,    /* Stop-Sessions, before its sessions */
	OWAMP_STOPPED_BYTES = 24, /* one session of it, before its skip ranges */
	OWAMP_SKIP_BYTES = 8,
	OWAMP_FETCH_BYTES = 48,
	OWAMP_RECORD_BYTES = 25,
	OWAMP_TEST_BYTES = 14, /* a test packet without padding */
	OWAMP_TTL = 255,       /* of test packets as they are sent */
	OWAMP_COUNT_LEAST = 1024,
};

/* OWAMP_OPEN: bit of owamp_greeting.modes, and the mode of a set-up. The other bits of a mode have no meaning. */
enum { OWAMP_OPEN = 1, OWAMP_MODES = 7 };

enum owamp_command {
	OWAMP_REQUEST_SESSION = 1,
	OWAMP_START_SESSIONS = 2,
	OWAMP_STOP_SESSIONS = 3,
	OWAMP_FETCH_SESSION = 4
};

enum owamp_accept {
	OWAMP_OK = 0,
	OWAMP_FAILURE = 1,
	OWAMP_INTERNAL = 2,
	OWAMP_NOT_SUPPORTED = 3,
	OWAMP_NEVER = 4, /* a limit that does not change */
	OWAMP_BUSY = 5,
};

/* 0: an exponential deviate with the mean `time`, 1: exactly `time` (RFC 4656, 3.6). */
enum { OWAMP_SLOT_EXPONENTIAL = 0, OWAMP_SLOT_FIXED = 1 };
struct owamp_slot {
	uint8_t type;
	uint64_t time;
};

struct owamp_greeting {
	uint32_t modes; /* 0: the server does not want this client */
	uint32_t count; /* of the keys of other modes: a power of two, 1024 at least */
};

struct owamp_start {
	uint8_t accept;
	uint64_t time; /* when the server began */
};

struct owamp_request {
	uint8_t version; /* of IP: 4 or 6, or what a client has sent */
	bool conf_sender, conf_receiver;
	uint32_t slots, packets;
	uint16_t sender_port, receiver_port;
	uint8_t sender[16], receiver[16]; /* the first four bytes for IPv4 */
	uint8_t sid[OWAMP_SID];
	uint32_t padding;
	uint64_t start, timeout;
	uint32_t type_p; /* DSCP << 24; anything else is not supported */
};

struct owamp_accepted {
	uint8_t accept;
	uint16_t port;
	uint8_t sid[OWAMP_SID];
};

struct owamp_stopped {
	uint8_t sid[OWAMP_SID];
	uint32_t next, skips;
};

struct owamp_skip {
	uint32_t first, last;
};

struct owamp_fetch {
	uint32_t begin, end;
	uint8_t sid[OWAMP_SID];
};

struct owamp_fetched {
	uint8_t accept;
	bool finished;
	uint32_t next, skips, records;
};

struct owamp_record {
	uint32_t seq;
	uint16_t send_error, receive_error; /* stamp_error_read() */
	uint64_t sent, received;            /* received 0: the packet was lost */
	uint8_t ttl;
};

struct owamp_test_packet {
	uint32_t seq;
	uint64_t time;
	uint16_t error;
};

/* Reading: 0 or -EBADMSG. The length is that of the message, unless the function has a parameter for it. */
int owamp_greeting_read(struct owamp_greeting *greeting, const uint8_t data[OWAMP_GREETING_BYTES]);
int owamp_setup_read(uint32_t *mode, const uint8_t data[OWAMP_SETUP_BYTES]);
int owamp_start_read(struct owamp_start *start, const uint8_t data[OWAMP_START_BYTES]);
int owamp_request_read(struct owamp_request *request, const uint8_t data[OWAMP_REQUEST_BYTES]);
int owamp_slot_read(struct owamp_slot *slot, const uint8_t data[OWAMP_SLOT_BYTES]);
int owamp_accepted_read(struct owamp_accepted *accepted, const uint8_t data[OWAMP_ACCEPT_BYTES]);
int owamp_stop_read(uint8_t *accept, uint32_t *sessions, const uint8_t data[OWAMP_STOP_BYTES]);
int owamp_stopped_read(struct owamp_stopped *stopped, const uint8_t data[OWAMP_STOPPED_BYTES]);
int owamp_skip_read(struct owamp_skip *skip, const uint8_t data[OWAMP_SKIP_BYTES]);
int owamp_fetch_read(struct owamp_fetch *fetch, const uint8_t data[OWAMP_FETCH_BYTES]);
int owamp_fetched_read(struct owamp_fetched *fetched, const uint8_t data[OWAMP_COMMAND_BYTES]);
void owamp_record_read(struct owamp_record *record, const uint8_t data[OWAMP_RECORD_BYTES]);
int owamp_test_read(struct owamp_test_packet *packet, const uint8_t *data, size_t length);

/* Writing the whole message; fields that must be zero are. */
void owamp_greeting_write(uint8_t data[OWAMP_GREETING_BYTES], const struct owamp_greeting *greeting);
void owamp_setup_write(uint8_t data[OWAMP_SETUP_BYTES], uint32_t mode);
void owamp_start_write(uint8_t data[OWAMP_START_BYTES], const struct owamp_start *start);
void owamp_request_write(uint8_t data[OWAMP_REQUEST_BYTES], const struct owamp_request *request);
void owamp_slot_write(uint8_t data[OWAMP_SLOT_BYTES], const struct owamp_slot *slot);
void owamp_accepted_write(uint8_t data[OWAMP_ACCEPT_BYTES], const struct owamp_accepted *accepted);
/* Start-Sessions is owamp_command_write(data, OWAMP_START_SESSIONS), and Start-Ack has `accept` in the same place. */
void owamp_command_write(uint8_t data[OWAMP_COMMAND_BYTES], uint8_t first);
void owamp_stop_write(uint8_t data[OWAMP_STOP_BYTES], uint8_t accept, uint32_t sessions);
void owamp_stopped_write(uint8_t data[OWAMP_STOPPED_BYTES], const struct owamp_stopped *stopped);
void owamp_skip_write(uint8_t data[OWAMP_SKIP_BYTES], const struct owamp_skip *skip);
void owamp_fetch_write(uint8_t data[OWAMP_FETCH_BYTES], const struct owamp_fetch *fetch);
void owamp_fetched_write(uint8_t data[OWAMP_COMMAND_BYTES], const struct owamp_fetched *fetched);
void owamp_record_write(uint8_t data[OWAMP_RECORD_BYTES], const struct owamp_record *record);
/* All but the padding. */
void owamp_test_write(uint8_t data[OWAMP_TEST_BYTES], const struct owamp_test_packet *packet);

/* So many bytes, padded to whole blocks. */
static inline size_t owamp_padded(size_t bytes)
{
	return (bytes + OWAMP_BLOCK - 1) / OWAMP_BLOCK * OWAMP_BLOCK;
}

/* Durations of 32 bits of seconds and 32 of their fraction. */
static inline uint64_t owamp_time_of_ns(uint64_t ns)
{
	return (ns / 1000000000u) << 32 | ((ns % 1000000000u) << 32) / 1000000000u;
}

/* Rounded to the next nanosecond; up to 2^32 s. */
static inline uint64_t owamp_time_to_ns(uint64_t time)
{
	return (time >> 32) * 1000000000u + (((time & UINT32_MAX) * 1000000000u + (1u << 31)) >> 32);
}

#endif
