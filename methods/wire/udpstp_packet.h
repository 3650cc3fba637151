/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The PDUs of UDPSTP, the UDP Speed Test Protocol (RFC 9946), version 20: layouts, the keys of its authenticated mode
 * and its header checksum. All fields are big-endian. The last 41 bytes of each PDU but the Load PDU are the same: mode
 * of authentication, time, HMAC-SHA-256, number of the key, one reserved byte, checksum (0: not used).
 */
#ifndef KTRXER_METHODS_UDPSTP_PACKET_H
#define KTRXER_METHODS_UDPSTP_PACKET_H

#include "clock.h"
#include "sha256.h"

enum {
	UDPSTP_PORT = 24601,
	UDPSTP_VERSION = 20,
	UDPSTP_SETUP_BYTES = 56,
	UDPSTP_NULL_BYTES = 48,
	UDPSTP_ACTIVATION_BYTES = 104,
	UDPSTP_LOAD_HEAD = 32,
	UDPSTP_STATUS_BYTES = 204,
	UDPSTP_AUTH_BYTES = 41,
	UDPSTP_AUTH_WINDOW_S = 150, /* older and newer requests are refused */
};

enum udpstp_pdu {
	UDPSTP_SETUP = 0xace1,
	UDPSTP_ACTIVATION = 0xace2,
	UDPSTP_LOAD = 0xbeef,
	UDPSTP_NULL = 0xdead,
	UDPSTP_STATUS = 0xfeed,
};

enum { UDPSTP_SETUP_REQUEST = 1, UDPSTP_SETUP_RESPONSE = 2 };       /* udpstp_setup.request */
enum { UDPSTP_UP = 1, UDPSTP_DOWN = 2 };                            /* udpstp_activation.request */
enum { UDPSTP_ACTIVATION_ACCEPTED = 1, UDPSTP_ACTIVATION_BAD = 2 }; /* udpstp_activation.response */
enum { UDPSTP_GOES_ON = 0, UDPSTP_STOP = 2 };                       /* action of load and status */
enum { UDPSTP_OPEN = 0, UDPSTP_AUTHENTICATED = 1 };                 /* udpstp_auth.mode */
enum { UDPSTP_JUMBO = 1, UDPSTP_MTU_1500 = 2 };                     /* udpstp_setup.modifiers */
enum { UDPSTP_START_INDEX = 1, UDPSTP_RANDOM_PAYLOAD = 2 };         /* udpstp_activation.modifiers */
enum { UDPSTP_ALGORITHM_B = 0, UDPSTP_ALGORITHM_C = 1 };            /* udpstp_activation.algorithm */

#define UDPSTP_BANDWIDTH_UP 0x8000u     /* bit of udpstp_setup.max_mbit_s: of the direction up */
#define UDPSTP_SEARCH 0xffffu           /* udpstp_activation.row: no row is asked for */
#define UDPSTP_RANDOM_SIZE 0x80000000u  /* bit of a size: it is the largest of random sizes */
#define UDPSTP_UNKNOWN UINT32_MAX       /* of a delay */

enum udpstp_answer {
	UDPSTP_NO_ANSWER = 0,
	UDPSTP_ACCEPTED = 1,
	UDPSTP_BAD_VERSION = 2,
	UDPSTP_BAD_JUMBO = 3,
	UDPSTP_AUTH_NOT_CONFIGURED = 4,
	UDPSTP_AUTH_REQUIRED = 5,
	UDPSTP_AUTH_INVALID = 6,
	UDPSTP_AUTH_FAILED = 7,
	UDPSTP_AUTH_TIME = 8,
	UDPSTP_BANDWIDTH_REQUIRED = 9,
	UDPSTP_CAPACITY_EXCEEDED = 10,
	UDPSTP_BAD_MTU = 11,
	UDPSTP_BAD_CONNECTIONS = 12,
	UDPSTP_NO_CONNECTION = 13,
	UDPSTP_ANSWERS
};

struct udpstp_setup {
	uint16_t version;
	uint8_t index, count; /* of several connections of one test */
	uint16_t ident;
	uint8_t request, answer;
	uint16_t max_mbit_s, port;
	uint8_t modifiers;
};

/* One row of the sending rate table: two transmitters, the second one with one more datagram. Sizes are payloads. */
struct udpstp_rate {
	uint32_t interval_us[2], payload[2], burst[2], add;
};

struct udpstp_activation {
	uint16_t version;
	uint8_t request, response;
	uint16_t low_ms, upper_ms, trial_ms, test_s;
	uint8_t tos;
	uint16_t row;
	uint8_t one_way, high_speed_delta;
	uint16_t slow_adjust, sequence_errors;
	uint8_t ignore_reordering, modifiers, algorithm;
	struct udpstp_rate rate;
	uint16_t interval_ms;
};

struct udpstp_load {
	uint8_t action, stopped;
	uint32_t sequence;
	uint16_t payload, status_errors;
	uint32_t status_s, status_ns, sent_s, sent_ns;
	uint16_t answer_delay_ms;
};

/* A sub-interval; delays are ms, lasts is us. */
struct udpstp_interval {
	uint32_t datagrams;
	uint64_t bytes;
	uint32_t lasts_us, lost, reordered, duplicates;
	uint32_t variation_min, variation_max, variation_sum, variation_count;
	uint32_t rtt_min, rtt_max, accumulated_ms;
};

struct udpstp_status {
	uint8_t action, stopped;
	uint32_t sequence;
	struct udpstp_rate rate;
	uint32_t interval_number;
	struct udpstp_interval interval;
	uint32_t lost, reordered, duplicates, clock_delta_min;
	uint32_t variation_min, variation_max, variation_sum, variation_count;
	uint32_t rtt_min, rtt_variation;
	uint8_t minimum_new;
	uint32_t trial_us, trial_datagrams, trial_bytes, sent_s, sent_ns;
};

/* Reading: 0, or -EBADMSG for a wrong length, identifier, value or checksum. `length` is what was received. */
int udpstp_setup_read(struct udpstp_setup *setup, const uint8_t *data, size_t length);
int udpstp_activation_read(struct udpstp_activation *activation, const uint8_t *data, size_t length);
/* The head alone is read; `whole` is the length of the datagram, which the field of its length must state. */
int udpstp_load_read(struct udpstp_load *load, const uint8_t *data, size_t length, size_t whole);
int udpstp_status_read(struct udpstp_status *status, const uint8_t *data, size_t length);
bool udpstp_is(const uint8_t *data, size_t length, enum udpstp_pdu pdu);

/* Writing: into a buffer of the length of the PDU. The bytes of the authentication are 0: udpstp_sign() sets them. */
void udpstp_setup_write(uint8_t *data, const struct udpstp_setup *setup);
void udpstp_null_write(uint8_t *data);
void udpstp_activation_write(uint8_t *data, const struct udpstp_activation *activation);
void udpstp_load_write(uint8_t *data, const struct udpstp_load *load);
void udpstp_status_write(uint8_t *data, const struct udpstp_status *status);

/*
 * The keys of a test are derived from the shared one and the time in the client's first PDU (NIST SP 800-108, counter
 * mode, HMAC-SHA-256, label "UDPSTP", context the time in decimal, 512 bits).
 */
struct udpstp_keys {
	struct hmac_key client, server; /* each signs its own PDUs */
};

void udpstp_keys_derive(struct udpstp_keys *keys, const void *secret, size_t length, uint32_t unix_s);
/* Returns how a PDU with the common end is authenticated. */
uint8_t udpstp_auth_mode(const uint8_t *data, size_t length);
uint32_t udpstp_auth_time(const uint8_t *data, size_t length);
void udpstp_sign(uint8_t *data, size_t length, const struct hmac_key *key, uint8_t key_id, uint32_t unix_s);
bool udpstp_signed_by(const uint8_t *data, size_t length, const struct hmac_key *key);

/* Seconds since 1970. Not by time(): where it is a system call, the server's filter does not allow it. */
static inline uint32_t udpstp_unix_now(void)
{
	return (uint32_t)(ktrxer_real_now_ns() / KTRXER_NS_PER_S);
}

#endif
