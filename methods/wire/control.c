/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "control.h"

#include <errno.h>

static const char magic[6] = "ktrxer";

void control_preface_write(uint8_t out[CONTROL_PREFACE], const struct control_preface *p)
{
	memcpy(out, magic, sizeof magic);
	out[6] = p->kind;
	out[7] = p->version;
	if (p->kind == CONTROL_DATA || p->kind == CONTROL_DATAGRAM) {
		store_be32(out + 8, p->session);
		store_be32(out + 12, p->flow);
		memcpy(out + 16, p->cookie, CONTROL_COOKIE);
	} else {
		memcpy(out + 8, p->nonce, CONTROL_NONCE);
	}
}

int control_preface_read(struct control_preface *p, const void *data, size_t length)
{
	struct bytes b = bytes_of(data, length);
	const uint8_t *word = bytes_take(&b, sizeof magic);

	memset(p, 0, sizeof *p);
	p->kind = bytes_u8(&b);
	p->version = bytes_u8(&b);
	if (!b.ok || memcmp(word, magic, sizeof magic) != 0)
		return -EPROTO;
	switch (p->kind) {
	case CONTROL_CLIENT:
	case CONTROL_SERVER:
		bytes_copy(&b, p->nonce, sizeof p->nonce);
		break;
	case CONTROL_DATA:
	case CONTROL_DATAGRAM:
		p->session = bytes_be32(&b);
		p->flow = bytes_be32(&b);
		bytes_copy(&b, p->cookie, sizeof p->cookie);
		break;
	default:
		return -EPROTO;
	}
	return b.ok ? 0 : -EPROTO;
}

static void key_from(struct hmac_key *key, const struct hmac_key *base, const char *label)
{
	uint8_t secret[SHA256_LENGTH];

	hmac_sha256(base, label, strlen(label), secret);
	hmac_key_set(key, secret, sizeof secret);
	secret_forget(secret, sizeof secret);
}

void control_keys_derive(struct control_keys *keys, const struct hmac_key *token, const uint8_t client[CONTROL_PREFACE],
			 const uint8_t server[CONTROL_PREFACE], bool is_server)
{
	static const char label[] = "ktrxer control";
	uint8_t secret[SHA256_LENGTH];
	struct hmac_key base;
	struct sha256 message;

	memset(keys, 0, sizeof *keys);
	/* The prefaces hold the versions as well: an attacker on the path cannot make the ends use another one. */
	hmac_begin(&message, token);
	sha256_add(&message, label, sizeof label);
	sha256_add(&message, client, CONTROL_PREFACE);
	sha256_add(&message, server, CONTROL_PREFACE);
	hmac_end(&message, token, secret);
	hmac_key_set(&base, secret, sizeof secret);
	key_from(&keys->to_server, &base, "to server");
	key_from(&keys->to_client, &base, "to client");
	key_from(&keys->cookies, &base, "cookies");
	keys->server = is_server;
	secret_forget(secret, sizeof secret);
	secret_forget(&base, sizeof base);
}

void control_cookie(const struct control_keys *keys, uint32_t session, uint32_t flow, uint8_t cookie[CONTROL_COOKIE])
{
	uint8_t message[8], mac[SHA256_LENGTH];

	store_be32(message, session);
	store_be32(message + 4, flow);
	hmac_sha256(&keys->cookies, message, sizeof message, mac);
	memcpy(cookie, mac, CONTROL_COOKIE);
}

static void frame_mac(const struct hmac_key *key, uint64_t number, const uint8_t *frame, uint32_t length,
		      uint8_t mac[SHA256_LENGTH])
{
	struct sha256 message;
	uint8_t place[8];

	store_be64(place, number);
	hmac_begin(&message, key);
	sha256_add(&message, place, sizeof place);
	sha256_add(&message, frame, length);
	hmac_end(&message, key, mac);
}

uint32_t control_seal(struct control_keys *keys, uint8_t *out, uint8_t type, uint32_t length)
{
	uint8_t mac[SHA256_LENGTH];

	store_be32(out, (uint32_t)type << 24 | length);
	frame_mac(keys->server ? &keys->to_client : &keys->to_server, keys->sent++, out, CONTROL_HEAD + length, mac);
	memcpy(out + CONTROL_HEAD + length, mac, CONTROL_MAC);
	return CONTROL_HEAD + length + CONTROL_MAC;
}

uint32_t control_seal_none(uint8_t *out, uint8_t type, uint32_t length)
{
	store_be32(out, (uint32_t)type << 24 | length);
	memset(out + CONTROL_HEAD + length, 0, CONTROL_MAC);
	return CONTROL_HEAD + length + CONTROL_MAC;
}

int control_open(struct control_keys *keys, const uint8_t *data, size_t have, uint32_t most,
		 struct control_frame *frame, uint32_t *taken)
{
	struct bytes b = bytes_of(data, have);
	const uint32_t head = bytes_be32(&b);
	uint8_t mac[SHA256_LENGTH];

	*taken = 0;
	if (!b.ok)
		return 0;
	*frame = (struct control_frame){ .type = (uint8_t)(head >> 24), .length = head & 0xffffff };
	if (frame->length > most)
		return -EMSGSIZE;
	if (bytes_left(&b) < (size_t)frame->length + CONTROL_MAC)
		return 0;
	frame->body = bytes_take(&b, frame->length);
	frame_mac(keys->server ? &keys->to_server : &keys->to_client, keys->received, data,
		  CONTROL_HEAD + frame->length, mac);
	frame->sealed = secret_equal(mac, bytes_take(&b, CONTROL_MAC), CONTROL_MAC);
	*taken = CONTROL_HEAD + frame->length + CONTROL_MAC;
	if (frame->sealed)
		keys->received++;
	/* A server with another token cannot seal a frame for this client, but its refusal has to reach the user. */
	return frame->sealed || (frame->type == CONTROL_REFUSE && !keys->server) ? 1 : -EBADMSG;
}
