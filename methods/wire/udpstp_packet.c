/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_packet.h"

#include "bytes.h"
#include "wire_fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Where the parts of the common end are, from its begin. */
enum { AUTH_TIME = 1, AUTH_DIGEST = 5, AUTH_KEY_ID = 37, AUTH_CHECKSUM = 39, LOAD_CHECKSUM = 30 };

#define RATE(F) \
	F(rate.interval_us[0]), F(rate.payload[0]), F(rate.burst[0]), F(rate.interval_us[1]), F(rate.payload[1]), \
		F(rate.burst[1]), F(rate.add)

/* clang-format off */
#define F(member) WIRE_FIELD(udpstp_setup, member)
static const struct wire_field setup_fields[] = {
	F(version), F(index), F(count), F(ident), F(request), F(answer), F(max_mbit_s), F(port), F(modifiers),
};
#undef F
#define F(member) WIRE_FIELD(udpstp_activation, member)
static const struct wire_field activation_fields[] = {
	F(version), F(request), F(response), F(low_ms), F(upper_ms), F(trial_ms), F(test_s), { WIRE_RESERVED, 1 },
	F(tos), F(row), F(one_way), F(high_speed_delta), F(slow_adjust), F(sequence_errors), F(ignore_reordering),
	F(modifiers), F(algorithm), { WIRE_RESERVED, 1 }, RATE(F), F(interval_ms),
};
#undef F
#define F(member) WIRE_FIELD(udpstp_load, member)
static const struct wire_field load_fields[] = {
	F(action), F(stopped), F(sequence), F(payload), F(status_errors), F(status_s), F(status_ns), F(sent_s),
	F(sent_ns), F(answer_delay_ms),
};
#undef F
#define F(member) WIRE_FIELD(udpstp_status, member)
static const struct wire_field status_fields[] = {
	F(action), F(stopped), F(sequence), RATE(F), F(interval_number),
	F(interval.datagrams), F(interval.bytes), F(interval.lasts_us), F(interval.lost), F(interval.reordered),
	F(interval.duplicates), F(interval.variation_min), F(interval.variation_max), F(interval.variation_sum),
	F(interval.variation_count), F(interval.rtt_min), F(interval.rtt_max), F(interval.accumulated_ms),
	F(lost), F(reordered), F(duplicates), F(clock_delta_min), F(variation_min), F(variation_max), F(variation_sum),
	F(variation_count), F(rtt_min), F(rtt_variation), F(minimum_new), { WIRE_RESERVED, 3 }, F(trial_us),
	F(trial_datagrams), F(trial_bytes), F(sent_s), F(sent_ns),
};
#undef F
/* clang-format on */

static void pdu_write(uint8_t *data, size_t length, enum udpstp_pdu pdu, const struct wire_field *fields, size_t count,
		      const void *from)
{
	memset(data, 0, length);
	store_be16(data, (uint16_t)pdu);
	wire_write(data + sizeof(uint16_t), fields, count, from);
}

/* The Internet checksum over a PDU that includes its checksum is 0. */
static bool checksum_fits(const uint8_t *data, size_t length)
{
	uint32_t sum = 0;

	for (size_t i = 0; i + 1 < length; i += 2)
		sum += load_be16(data + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum == 0xffff;
}

bool udpstp_is(const uint8_t *data, size_t length, enum udpstp_pdu pdu)
{
	return length >= 2 && load_be16(data) == (uint16_t)pdu;
}

/* A whole PDU with the common end. */
static bool is_whole(const uint8_t *data, size_t length, size_t wanted, enum udpstp_pdu pdu)
{
	return length == wanted && udpstp_is(data, length, pdu) &&
	       (!load_be16(data + length - 2) || checksum_fits(data, length));
}

int udpstp_setup_read(struct udpstp_setup *s, const uint8_t *data, size_t length)
{
	if (!is_whole(data, length, UDPSTP_SETUP_BYTES, UDPSTP_SETUP))
		return -EBADMSG;
	WIRE_READ(s, setup_fields, data + sizeof(uint16_t));
	return s->request == UDPSTP_SETUP_REQUEST || s->request == UDPSTP_SETUP_RESPONSE ? 0 : -EBADMSG;
}

int udpstp_activation_read(struct udpstp_activation *a, const uint8_t *data, size_t length)
{
	if (!is_whole(data, length, UDPSTP_ACTIVATION_BYTES, UDPSTP_ACTIVATION))
		return -EBADMSG;
	WIRE_READ(a, activation_fields, data + sizeof(uint16_t));
	return a->request == UDPSTP_UP || a->request == UDPSTP_DOWN ? 0 : -EBADMSG;
}

int udpstp_load_read(struct udpstp_load *l, const uint8_t *data, size_t length, size_t whole)
{
	if (length < UDPSTP_LOAD_HEAD || !udpstp_is(data, length, UDPSTP_LOAD))
		return -EBADMSG;
	if (load_be16(data + LOAD_CHECKSUM) && !checksum_fits(data, UDPSTP_LOAD_HEAD))
		return -EBADMSG;
	WIRE_READ(l, load_fields, data + sizeof(uint16_t));
	return l->payload == whole && l->action <= UDPSTP_STOP && l->sequence && l->sent_ns < 1000000000u &&
			       l->status_ns < 1000000000u
		       ? 0
		       : -EBADMSG;
}

int udpstp_status_read(struct udpstp_status *s, const uint8_t *data, size_t length)
{
	if (!is_whole(data, length, UDPSTP_STATUS_BYTES, UDPSTP_STATUS))
		return -EBADMSG;
	WIRE_READ(s, status_fields, data + sizeof(uint16_t));
	return s->action <= UDPSTP_STOP && s->sequence && s->sent_ns < 1000000000u ? 0 : -EBADMSG;
}

void udpstp_setup_write(uint8_t *data, const struct udpstp_setup *s)
{
	pdu_write(data, UDPSTP_SETUP_BYTES, UDPSTP_SETUP, setup_fields, WIRE_COUNT(setup_fields), s);
}

void udpstp_null_write(uint8_t *data)
{
	/* Version and request, which is at the place of an index. */
	const struct udpstp_setup request = { .version = UDPSTP_VERSION, .index = 1 };

	pdu_write(data, UDPSTP_NULL_BYTES, UDPSTP_NULL, setup_fields, WIRE_COUNT(setup_fields), &request);
}

void udpstp_activation_write(uint8_t *data, const struct udpstp_activation *a)
{
	pdu_write(data, UDPSTP_ACTIVATION_BYTES, UDPSTP_ACTIVATION, activation_fields, WIRE_COUNT(activation_fields),
		  a);
}

void udpstp_load_write(uint8_t *data, const struct udpstp_load *l)
{
	pdu_write(data, UDPSTP_LOAD_HEAD, UDPSTP_LOAD, load_fields, WIRE_COUNT(load_fields), l);
}

void udpstp_status_write(uint8_t *data, const struct udpstp_status *s)
{
	pdu_write(data, UDPSTP_STATUS_BYTES, UDPSTP_STATUS, status_fields, WIRE_COUNT(status_fields), s);
}

void udpstp_keys_derive(struct udpstp_keys *keys, const void *secret, size_t length, uint32_t unix_s)
{
	static const char label[] = "UDPSTP";
	char context[16];
	const int context_length = snprintf(context, sizeof context, "%lu", (unsigned long)unix_s);
	struct hmac_key shared;
	uint8_t block[SHA256_LENGTH];

	hmac_key_set(&shared, secret, length);
	for (uint8_t i = 1; i <= 2; i++) {
		const uint8_t counter[4] = { 0, 0, 0, i }, bits[4] = { 0, 0, 2, 0 };
		struct sha256 message;

		hmac_begin(&message, &shared);
		sha256_add(&message, counter, sizeof counter);
		sha256_add(&message, label, sizeof label); /* its NUL is the separator */
		sha256_add(&message, context, (size_t)context_length);
		sha256_add(&message, bits, sizeof bits);
		hmac_end(&message, &shared, block);
		hmac_key_set(i == 1 ? &keys->client : &keys->server, block, sizeof block);
	}
	secret_forget(block, sizeof block);
	secret_forget(&shared, sizeof shared);
}

uint8_t udpstp_auth_mode(const uint8_t *data, size_t length)
{
	return data[length - UDPSTP_AUTH_BYTES];
}

uint32_t udpstp_auth_time(const uint8_t *data, size_t length)
{
	return load_be32(data + length - UDPSTP_AUTH_BYTES + AUTH_TIME);
}

/* The digest is that of the PDU whose digest and checksum are 0. */
static void digest_of(uint8_t digest[SHA256_LENGTH], const uint8_t *data, size_t length, const struct hmac_key *key)
{
	static const uint8_t zero[SHA256_LENGTH];
	const size_t auth = length - UDPSTP_AUTH_BYTES;
	struct sha256 message;

	hmac_begin(&message, key);
	sha256_add(&message, data, auth + AUTH_DIGEST);
	sha256_add(&message, zero, sizeof zero);
	sha256_add(&message, data + auth + AUTH_KEY_ID, AUTH_CHECKSUM - AUTH_KEY_ID);
	sha256_add(&message, zero, UDPSTP_AUTH_BYTES - AUTH_CHECKSUM);
	hmac_end(&message, key, digest);
}

void udpstp_sign(uint8_t *data, size_t length, const struct hmac_key *key, uint8_t key_id, uint32_t unix_s)
{
	uint8_t *auth = data + length - UDPSTP_AUTH_BYTES;

	auth[0] = UDPSTP_AUTHENTICATED;
	store_be32(auth + AUTH_TIME, unix_s);
	auth[AUTH_KEY_ID] = key_id;
	digest_of(auth + AUTH_DIGEST, data, length, key);
}

bool udpstp_signed_by(const uint8_t *data, size_t length, const struct hmac_key *key)
{
	uint8_t digest[SHA256_LENGTH];

	if (udpstp_auth_mode(data, length) != UDPSTP_AUTHENTICATED)
		return false;
	digest_of(digest, data, length, key);
	return secret_equal(digest, data + length - UDPSTP_AUTH_BYTES + AUTH_DIGEST, sizeof digest);
}
