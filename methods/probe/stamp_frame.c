/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The packets of the STAMP sender. */
#include "stamp_run.h"

#include "bytes.h"
#include "error.h"
#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint32_t put_tlv(uint8_t *payload, uint32_t at, uint8_t type, uint16_t length)
{
	return at + stamp_tlv_write(payload ? payload + at : NULL, type, length);
}

static uint16_t tlv_length(uint8_t type)
{
	switch (type) {
	case STAMP_TLV_LOCATION:
		return 4 + 2 * 20; /* with the addresses as the far end sees them */
	case STAMP_TLV_DIRECT:
		return 12;
	default:
		return 4;
	}
}

/* The TLVs, in a payload (or without one, to know how long they are). Returns the length. */
static uint32_t lay_tlvs(struct stamp *stamp, uint8_t *payload, uint32_t padding)
{
	const struct stamp_spec *spec = &stamp->spec;
	uint32_t at = (uint32_t)stamp_base_length(stamp->auth), begin = at;

	/* Two: after a far queue has drained at once, there are more stamps of answers to report than new answers. */
	for (int i = 0; i < (spec->follow_up ? 2 : 0); i++)
		at = put_tlv(payload, at, STAMP_TLV_FOLLOW_UP, 16);
	if (spec->clock)
		at = put_tlv(payload, at, STAMP_TLV_CLOCK, 16);
	if (spec->limits)
		at = put_tlv(payload, at, STAMP_TLV_LIMITS, 16);
	for (uint32_t i = 0; i < spec->tlv_count; i++) {
		const uint8_t type = spec->tlvs[i];
		const uint32_t value = at + STAMP_TLV_HEAD;

		at = put_tlv(payload, at, type, tlv_length(type));
		if (!payload)
			continue;
		if (type == STAMP_TLV_DIRECT)
			stamp->direct_at = value;
		else if (type == STAMP_TLV_COS)
			payload[value] = stamp->making & 0xfc; /* DSCP1: the answer's DSCP is that of the probe */
		else if (type == STAMP_TLV_LOCATION)
			put_tlv(payload, put_tlv(payload, value + 4, 7, 16), 4, 16);
	}
	if (padding >= STAMP_TLV_HEAD)
		at = put_tlv(payload, at, STAMP_TLV_PADDING, (uint16_t)(padding - STAMP_TLV_HEAD));
	if (stamp->tlv_mac_key && at > begin) {
		if (payload)
			stamp->mac_at = at;
		at = put_tlv(payload, at, STAMP_TLV_HMAC, STAMP_MAC_LENGTH);
	}
	return at;
}

uint32_t stamp_payload_length(const struct stamp *stamp, uint32_t padding)
{
	return lay_tlvs((struct stamp *)stamp, NULL, padding);
}

static int make_payload(struct stamp *stamp, uint8_t **payload, struct ktrxer_error *err)
{
	const uint32_t least = stamp_payload_length(stamp, 0), requested = stamp->spec.probe.payload;
	uint32_t length = requested > least ? requested : least;

	if (requested && requested < least)
		return ktrxer_fail(
			err, -EINVAL,
			"a payload of %u bytes is too short: a probe with these extensions has at least %u bytes",
			requested, least);
	/* Room that is too small for a TLV's head becomes room that is just enough. */
	if (length > least && length - least < STAMP_TLV_HEAD)
		length = least + STAMP_TLV_HEAD;
	/* Padding leaves room for an HMAC TLV as well. */
	stamp->result.payload = stamp_payload_length(stamp, length - least);
	*payload = calloc(1, stamp->result.payload);
	if (!*payload)
		return ktrxer_fail(err, -ENOMEM, "no memory for a payload of %u bytes", stamp->result.payload);
	lay_tlvs(stamp, *payload, length - least);
	return 0;
}

int stamp_make_frame(void *client, struct ktrxer_error *err)
{
	struct stamp *stamp = client;
	struct ktrxer_frame_spec frame = KTRXER_FRAME_SPEC_INIT;
	struct ktrxer_path path = stamp->p.path;
	uint8_t *payload;
	int rc = make_payload(stamp, &payload, err);

	if (rc < 0)
		return rc;
	path.device.link = stamp->p.info.link;
	frame.path = &path;
	frame.proto = KTRXER_UDP;
	frame.from_port = stamp->p.id;
	frame.to_port = stamp->spec.probe.port;
	frame.tos = stamp->making;
	frame.ttl = stamp->spec.probe.ttl;
	frame.payload = payload;
	frame.payload_length = stamp->result.payload;
	rc = template_make(&stamp->p.frame, &frame, err);
	free(payload);
	if (rc == 0)
		stamp->payload_at = stamp->p.frame.length - stamp->result.payload;
	return rc;
}

uint64_t stamp_fill(const struct stamp *stamp, uint32_t which, uint8_t *frame, uint64_t number, uint64_t at_ns)
{
	const struct template *t = &stamp->classes[which].frame;
	const struct stamp_probe probe = { .seq = (uint32_t)number,
					   .error = stamp->error,
					   .ssid = (uint16_t)(stamp->result.ssid + which),
					   .time = stamp_time_of_ns((int64_t)at_ns + stamp->real_minus_mono,
								    stamp->spec.ptp) };
	uint8_t *payload = frame + stamp->payload_at;

	memcpy(frame, t->frame, t->length);
	stamp_probe_write(payload, &probe, stamp->auth);
	if (stamp->direct_at)
		store_be32(payload + stamp->direct_at, (uint32_t)number + 1);
	if (stamp->auth)
		stamp_sign(payload, &stamp->key);
	if (stamp->mac_at)
		stamp_tlv_mac(payload, stamp->auth, stamp->mac_at, stamp->tlv_mac_key,
			      payload + stamp->mac_at + STAMP_TLV_HEAD);
	ktrxer_frame_checksum(frame, t->length, stamp->p.info.link);
	return probe.time;
}
