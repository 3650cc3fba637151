/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_packet.h"

#include "bytes.h"

#include <errno.h>

/* All other values are read as this one (RFC 4656, 3.3). */
static uint8_t accept_of(uint8_t value)
{
	return value <= OWAMP_BUSY ? value : OWAMP_FAILURE;
}

int owamp_greeting_read(struct owamp_greeting *g, const uint8_t data[OWAMP_GREETING_BYTES])
{
	g->modes = load_be32(data + 12);
	g->count = load_be32(data + 48);
	return !g->modes || (g->count >= OWAMP_COUNT_LEAST && !(g->count & (g->count - 1))) ? 0 : -EBADMSG;
}

int owamp_setup_read(uint32_t *mode, const uint8_t data[OWAMP_SETUP_BYTES])
{
	*mode = load_be32(data) & OWAMP_MODES;
	return *mode ? 0 : -EBADMSG; /* 0: the client has no mode of the server's */
}

int owamp_start_read(struct owamp_start *s, const uint8_t data[OWAMP_START_BYTES])
{
	struct bytes b = bytes_of(data, OWAMP_START_BYTES);

	bytes_skip(&b, 15);
	s->accept = accept_of(bytes_u8(&b));
	bytes_skip(&b, 16);
	s->time = bytes_be64(&b);
	return 0;
}

int owamp_request_read(struct owamp_request *r, const uint8_t data[OWAMP_REQUEST_BYTES])
{
	struct bytes b = bytes_of(data, OWAMP_REQUEST_BYTES);
	const uint8_t command = bytes_u8(&b);

	r->version = bytes_u8(&b) & 15;
	r->conf_sender = bytes_u8(&b) != 0;
	r->conf_receiver = bytes_u8(&b) != 0;
	r->slots = bytes_be32(&b);
	r->packets = bytes_be32(&b);
	r->sender_port = bytes_be16(&b);
	r->receiver_port = bytes_be16(&b);
	memcpy(r->sender, bytes_take(&b, 16), 16);
	memcpy(r->receiver, bytes_take(&b, 16), 16);
	memcpy(r->sid, bytes_take(&b, OWAMP_SID), OWAMP_SID);
	r->padding = bytes_be32(&b);
	r->start = bytes_be64(&b);
	r->timeout = bytes_be64(&b);
	r->type_p = bytes_be32(&b);
	return command == OWAMP_REQUEST_SESSION ? 0 : -EBADMSG;
}

int owamp_slot_read(struct owamp_slot *s, const uint8_t data[OWAMP_SLOT_BYTES])
{
	s->type = data[0];
	s->time = load_be64(data + 8);
	return 0;
}

int owamp_accepted_read(struct owamp_accepted *a, const uint8_t data[OWAMP_ACCEPT_BYTES])
{
	a->accept = accept_of(data[0]);
	a->port = load_be16(data + 2);
	memcpy(a->sid, data + 4, OWAMP_SID);
	return 0;
}

int owamp_stop_read(uint8_t *accept, uint32_t *sessions, const uint8_t data[OWAMP_STOP_BYTES])
{
	*accept = accept_of(data[1]);
	*sessions = load_be32(data + 4);
	return data[0] == OWAMP_STOP_SESSIONS ? 0 : -EBADMSG;
}

int owamp_stopped_read(struct owamp_stopped *s, const uint8_t data[OWAMP_STOPPED_BYTES])
{
	memcpy(s->sid, data, OWAMP_SID);
	s->next = load_be32(data + 16);
	s->skips = load_be32(data + 20);
	return 0;
}

int owamp_skip_read(struct owamp_skip *s, const uint8_t data[OWAMP_SKIP_BYTES])
{
	s->first = load_be32(data);
	s->last = load_be32(data + 4);
	return s->first <= s->last ? 0 : -EBADMSG;
}

int owamp_fetch_read(struct owamp_fetch *f, const uint8_t data[OWAMP_FETCH_BYTES])
{
	f->begin = load_be32(data + 8);
	f->end = load_be32(data + 12);
	memcpy(f->sid, data + 16, OWAMP_SID);
	return data[0] == OWAMP_FETCH_SESSION && f->begin <= f->end ? 0 : -EBADMSG;
}

int owamp_fetched_read(struct owamp_fetched *f, const uint8_t data[OWAMP_COMMAND_BYTES])
{
	f->accept = accept_of(data[0]);
	f->finished = data[1] != 0;
	f->next = load_be32(data + 4);
	f->skips = load_be32(data + 8);
	f->records = load_be32(data + 12);
	return 0;
}

void owamp_record_read(struct owamp_record *r, const uint8_t data[OWAMP_RECORD_BYTES])
{
	r->seq = load_be32(data);
	r->send_error = load_be16(data + 4);
	r->receive_error = load_be16(data + 6);
	r->sent = load_be64(data + 8);
	r->received = load_be64(data + 16);
	r->ttl = data[24];
}

int owamp_test_read(struct owamp_test_packet *p, const uint8_t *data, size_t length)
{
	struct bytes b = bytes_of(data, length);

	p->seq = bytes_be32(&b);
	p->time = bytes_be64(&b);
	p->error = bytes_be16(&b);
	return b.ok ? 0 : -EBADMSG;
}

void owamp_greeting_write(uint8_t data[OWAMP_GREETING_BYTES], const struct owamp_greeting *g)
{
	memset(data, 0, OWAMP_GREETING_BYTES);
	store_be32(data + 12, g->modes);
	store_be32(data + 48, g->count);
}

void owamp_setup_write(uint8_t data[OWAMP_SETUP_BYTES], uint32_t mode)
{
	memset(data, 0, OWAMP_SETUP_BYTES);
	store_be32(data, mode);
}

void owamp_start_write(uint8_t data[OWAMP_START_BYTES], const struct owamp_start *s)
{
	memset(data, 0, OWAMP_START_BYTES);
	data[15] = s->accept;
	store_be64(data + 32, s->time);
}

void owamp_request_write(uint8_t data[OWAMP_REQUEST_BYTES], const struct owamp_request *r)
{
	memset(data, 0, OWAMP_REQUEST_BYTES);
	data[0] = OWAMP_REQUEST_SESSION;
	data[1] = r->version;
	data[2] = r->conf_sender;
	data[3] = r->conf_receiver;
	store_be32(data + 4, r->slots);
	store_be32(data + 8, r->packets);
	store_be16(data + 12, r->sender_port);
	store_be16(data + 14, r->receiver_port);
	memcpy(data + 16, r->sender, 16);
	memcpy(data + 32, r->receiver, 16);
	memcpy(data + 48, r->sid, OWAMP_SID);
	store_be32(data + 64, r->padding);
	store_be64(data + 68, r->start);
	store_be64(data + 76, r->timeout);
	store_be32(data + 84, r->type_p);
}

void owamp_slot_write(uint8_t data[OWAMP_SLOT_BYTES], const struct owamp_slot *s)
{
	memset(data, 0, OWAMP_SLOT_BYTES);
	data[0] = s->type;
	store_be64(data + 8, s->time);
}

void owamp_accepted_write(uint8_t data[OWAMP_ACCEPT_BYTES], const struct owamp_accepted *a)
{
	memset(data, 0, OWAMP_ACCEPT_BYTES);
	data[0] = a->accept;
	store_be16(data + 2, a->port);
	memcpy(data + 4, a->sid, OWAMP_SID);
}

void owamp_command_write(uint8_t data[OWAMP_COMMAND_BYTES], uint8_t first)
{
	memset(data, 0, OWAMP_COMMAND_BYTES);
	data[0] = first;
}

void owamp_stop_write(uint8_t data[OWAMP_STOP_BYTES], uint8_t accept, uint32_t sessions)
{
	memset(data, 0, OWAMP_STOP_BYTES);
	data[0] = OWAMP_STOP_SESSIONS;
	data[1] = accept;
	store_be32(data + 4, sessions);
}

void owamp_stopped_write(uint8_t data[OWAMP_STOPPED_BYTES], const struct owamp_stopped *s)
{
	memcpy(data, s->sid, OWAMP_SID);
	store_be32(data + 16, s->next);
	store_be32(data + 20, s->skips);
}

void owamp_skip_write(uint8_t data[OWAMP_SKIP_BYTES], const struct owamp_skip *s)
{
	store_be32(data, s->first);
	store_be32(data + 4, s->last);
}

void owamp_fetch_write(uint8_t data[OWAMP_FETCH_BYTES], const struct owamp_fetch *f)
{
	memset(data, 0, OWAMP_FETCH_BYTES);
	data[0] = OWAMP_FETCH_SESSION;
	store_be32(data + 8, f->begin);
	store_be32(data + 12, f->end);
	memcpy(data + 16, f->sid, OWAMP_SID);
}

void owamp_fetched_write(uint8_t data[OWAMP_COMMAND_BYTES], const struct owamp_fetched *f)
{
	memset(data, 0, OWAMP_COMMAND_BYTES);
	data[0] = f->accept;
	data[1] = f->finished;
	store_be32(data + 4, f->next);
	store_be32(data + 8, f->skips);
	store_be32(data + 12, f->records);
}

void owamp_record_write(uint8_t data[OWAMP_RECORD_BYTES], const struct owamp_record *r)
{
	store_be32(data, r->seq);
	store_be16(data + 4, r->send_error);
	store_be16(data + 6, r->receive_error);
	store_be64(data + 8, r->sent);
	store_be64(data + 16, r->received);
	data[24] = r->ttl;
}

void owamp_test_write(uint8_t data[OWAMP_TEST_BYTES], const struct owamp_test_packet *p)
{
	store_be32(data, p->seq);
	store_be64(data + 4, p->time);
	store_be16(data + 12, p->error);
}
