/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_packet.h"

#include "bytes.h"

#include <errno.h>
#include <stdio.h>

/* Where the parts of the common end are, from its begin. */
enum { AUTH_TIME = 1, AUTH_DIGEST = 5, AUTH_KEY_ID = 37, AUTH_CHECKSUM = 39, LOAD_CHECKSUM = 30 };

/* ---------------------------------------------------------------------------------------------------------- reading */

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

static bool begin(struct bytes *b, const uint8_t *data, size_t length, size_t wanted, enum udpstp_pdu pdu)
{
	*b = bytes_of(data, length);
	if (length != wanted || bytes_be16(b) != (uint16_t)pdu)
		return false;
	return !load_be16(data + length - 2) || checksum_fits(data, length);
}

int udpstp_setup_read(struct udpstp_setup *s, const uint8_t *data, size_t length)
{
	struct bytes b;

	if (!begin(&b, data, length, UDPSTP_SETUP_BYTES, UDPSTP_SETUP))
		return -EBADMSG;
	s->version = bytes_be16(&b);
	s->index = bytes_u8(&b);
	s->count = bytes_u8(&b);
	s->ident = bytes_be16(&b);
	s->request = bytes_u8(&b);
	s->answer = bytes_u8(&b);
	s->max_mbit_s = bytes_be16(&b);
	s->port = bytes_be16(&b);
	s->modifiers = bytes_u8(&b);
	return b.ok && (s->request == UDPSTP_SETUP_REQUEST || s->request == UDPSTP_SETUP_RESPONSE) ? 0 : -EBADMSG;
}

static void rate_read(struct udpstp_rate *rate, struct bytes *b)
{
	for (int i = 0; i < 2; i++) {
		rate->interval_us[i] = bytes_be32(b);
		rate->payload[i] = bytes_be32(b);
		rate->burst[i] = bytes_be32(b);
	}
	rate->add = bytes_be32(b);
}

int udpstp_activation_read(struct udpstp_activation *a, const uint8_t *data, size_t length)
{
	struct bytes b;

	if (!begin(&b, data, length, UDPSTP_ACTIVATION_BYTES, UDPSTP_ACTIVATION))
		return -EBADMSG;
	a->version = bytes_be16(&b);
	a->request = bytes_u8(&b);
	a->response = bytes_u8(&b);
	a->low_ms = bytes_be16(&b);
	a->upper_ms = bytes_be16(&b);
	a->trial_ms = bytes_be16(&b);
	a->test_s = bytes_be16(&b);
	bytes_skip(&b, 1);
	a->tos = bytes_u8(&b);
	a->row = bytes_be16(&b);
	a->one_way = bytes_u8(&b);
	a->high_speed_delta = bytes_u8(&b);
	a->slow_adjust = bytes_be16(&b);
	a->sequence_errors = bytes_be16(&b);
	a->ignore_reordering = bytes_u8(&b);
	a->modifiers = bytes_u8(&b);
	a->algorithm = bytes_u8(&b);
	bytes_skip(&b, 1);
	rate_read(&a->rate, &b);
	a->interval_ms = bytes_be16(&b);
	return b.ok && (a->request == UDPSTP_UP || a->request == UDPSTP_DOWN) ? 0 : -EBADMSG;
}

int udpstp_load_read(struct udpstp_load *l, const uint8_t *data, size_t length, size_t whole)
{
	struct bytes b = bytes_of(data, length);

	if (length < UDPSTP_LOAD_HEAD || bytes_be16(&b) != UDPSTP_LOAD)
		return -EBADMSG;
	if (load_be16(data + LOAD_CHECKSUM) && !checksum_fits(data, UDPSTP_LOAD_HEAD))
		return -EBADMSG;
	l->action = bytes_u8(&b);
	l->stopped = bytes_u8(&b);
	l->sequence = bytes_be32(&b);
	l->payload = bytes_be16(&b);
	l->status_errors = bytes_be16(&b);
	l->status_s = bytes_be32(&b);
	l->status_ns = bytes_be32(&b);
	l->sent_s = bytes_be32(&b);
	l->sent_ns = bytes_be32(&b);
	l->answer_delay_ms = bytes_be16(&b);
	return b.ok && l->payload == whole && l->action <= UDPSTP_STOP && l->sequence && l->sent_ns < 1000000000u &&
			       l->status_ns < 1000000000u
		       ? 0
		       : -EBADMSG;
}

static void interval_read(struct udpstp_interval *i, struct bytes *b)
{
	i->datagrams = bytes_be32(b);
	i->bytes = bytes_be64(b);
	i->lasts_us = bytes_be32(b);
	i->lost = bytes_be32(b);
	i->reordered = bytes_be32(b);
	i->duplicates = bytes_be32(b);
	i->variation_min = bytes_be32(b);
	i->variation_max = bytes_be32(b);
	i->variation_sum = bytes_be32(b);
	i->variation_count = bytes_be32(b);
	i->rtt_min = bytes_be32(b);
	i->rtt_max = bytes_be32(b);
	i->accumulated_ms = bytes_be32(b);
}

int udpstp_status_read(struct udpstp_status *s, const uint8_t *data, size_t length)
{
	struct bytes b;

	if (!begin(&b, data, length, UDPSTP_STATUS_BYTES, UDPSTP_STATUS))
		return -EBADMSG;
	s->action = bytes_u8(&b);
	s->stopped = bytes_u8(&b);
	s->sequence = bytes_be32(&b);
	rate_read(&s->rate, &b);
	s->interval_number = bytes_be32(&b);
	interval_read(&s->interval, &b);
	s->lost = bytes_be32(&b);
	s->reordered = bytes_be32(&b);
	s->duplicates = bytes_be32(&b);
	s->clock_delta_min = bytes_be32(&b);
	s->variation_min = bytes_be32(&b);
	s->variation_max = bytes_be32(&b);
	s->variation_sum = bytes_be32(&b);
	s->variation_count = bytes_be32(&b);
	s->rtt_min = bytes_be32(&b);
	s->rtt_variation = bytes_be32(&b);
	s->minimum_new = bytes_u8(&b);
	bytes_skip(&b, 3);
	s->trial_us = bytes_be32(&b);
	s->trial_datagrams = bytes_be32(&b);
	s->trial_bytes = bytes_be32(&b);
	s->sent_s = bytes_be32(&b);
	s->sent_ns = bytes_be32(&b);
	return b.ok && s->action <= UDPSTP_STOP && s->sequence && s->sent_ns < 1000000000u ? 0 : -EBADMSG;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

static void put8(uint8_t **at, uint8_t value)
{
	*(*at)++ = value;
}

static void put16(uint8_t **at, uint16_t value)
{
	store_be16(*at, value);
	*at += 2;
}

static void put32(uint8_t **at, uint32_t value)
{
	store_be32(*at, value);
	*at += 4;
}

void udpstp_setup_write(uint8_t *data, const struct udpstp_setup *s)
{
	uint8_t *at = data;

	memset(data, 0, UDPSTP_SETUP_BYTES);
	put16(&at, UDPSTP_SETUP);
	put16(&at, s->version);
	put8(&at, s->index);
	put8(&at, s->count);
	put16(&at, s->ident);
	put8(&at, s->request);
	put8(&at, s->answer);
	put16(&at, s->max_mbit_s);
	put16(&at, s->port);
	put8(&at, s->modifiers);
}

void udpstp_null_write(uint8_t *data)
{
	uint8_t *at = data;

	memset(data, 0, UDPSTP_NULL_BYTES);
	put16(&at, UDPSTP_NULL);
	put16(&at, UDPSTP_VERSION);
	put8(&at, 1); /* a request */
}

static void rate_write(uint8_t **at, const struct udpstp_rate *rate)
{
	for (int i = 0; i < 2; i++) {
		put32(at, rate->interval_us[i]);
		put32(at, rate->payload[i]);
		put32(at, rate->burst[i]);
	}
	put32(at, rate->add);
}

void udpstp_activation_write(uint8_t *data, const struct udpstp_activation *a)
{
	uint8_t *at = data;

	memset(data, 0, UDPSTP_ACTIVATION_BYTES);
	put16(&at, UDPSTP_ACTIVATION);
	put16(&at, a->version);
	put8(&at, a->request);
	put8(&at, a->response);
	put16(&at, a->low_ms);
	put16(&at, a->upper_ms);
	put16(&at, a->trial_ms);
	put16(&at, a->test_s);
	put8(&at, 0);
	put8(&at, a->tos);
	put16(&at, a->row);
	put8(&at, a->one_way);
	put8(&at, a->high_speed_delta);
	put16(&at, a->slow_adjust);
	put16(&at, a->sequence_errors);
	put8(&at, a->ignore_reordering);
	put8(&at, a->modifiers);
	put8(&at, a->algorithm);
	put8(&at, 0);
	rate_write(&at, &a->rate);
	put16(&at, a->interval_ms);
}

void udpstp_load_write(uint8_t *data, const struct udpstp_load *l)
{
	uint8_t *at = data;

	put16(&at, UDPSTP_LOAD);
	put8(&at, l->action);
	put8(&at, l->stopped);
	put32(&at, l->sequence);
	put16(&at, l->payload);
	put16(&at, l->status_errors);
	put32(&at, l->status_s);
	put32(&at, l->status_ns);
	put32(&at, l->sent_s);
	put32(&at, l->sent_ns);
	put16(&at, l->answer_delay_ms);
	put16(&at, 0);
}

static void interval_write(uint8_t **at, const struct udpstp_interval *i)
{
	put32(at, i->datagrams);
	put32(at, (uint32_t)(i->bytes >> 32));
	put32(at, (uint32_t)i->bytes);
	put32(at, i->lasts_us);
	put32(at, i->lost);
	put32(at, i->reordered);
	put32(at, i->duplicates);
	put32(at, i->variation_min);
	put32(at, i->variation_max);
	put32(at, i->variation_sum);
	put32(at, i->variation_count);
	put32(at, i->rtt_min);
	put32(at, i->rtt_max);
	put32(at, i->accumulated_ms);
}

void udpstp_status_write(uint8_t *data, const struct udpstp_status *s)
{
	uint8_t *at = data;

	memset(data, 0, UDPSTP_STATUS_BYTES);
	put16(&at, UDPSTP_STATUS);
	put8(&at, s->action);
	put8(&at, s->stopped);
	put32(&at, s->sequence);
	rate_write(&at, &s->rate);
	put32(&at, s->interval_number);
	interval_write(&at, &s->interval);
	put32(&at, s->lost);
	put32(&at, s->reordered);
	put32(&at, s->duplicates);
	put32(&at, s->clock_delta_min);
	put32(&at, s->variation_min);
	put32(&at, s->variation_max);
	put32(&at, s->variation_sum);
	put32(&at, s->variation_count);
	put32(&at, s->rtt_min);
	put32(&at, s->rtt_variation);
	put32(&at, (uint32_t)s->minimum_new << 24);
	put32(&at, s->trial_us);
	put32(&at, s->trial_datagrams);
	put32(&at, s->trial_bytes);
	put32(&at, s->sent_s);
	put32(&at, s->sent_ns);
}

/* --------------------------------------------------------------------------------------------------- authentication */

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
