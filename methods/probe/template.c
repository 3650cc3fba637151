/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "template.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>

int template_make(struct template *t, const struct ktrxer_frame_spec *spec, struct ktrxer_error *err)
{
	int head = ktrxer_frame_header_length(spec), length;
	uint32_t packet;

	*t = (struct template){ 0 };
	if (head < 0)
		return ktrxer_fail(err, head, "a probe of this kind cannot be built");
	packet = (uint32_t)head - (spec->path->device.link == KTRXER_LINK_ETHERNET ? 14 : 0);
	if (spec->path->mtu && packet + (uint64_t)spec->payload_length > spec->path->mtu)
		return ktrxer_fail(err, -EMSGSIZE,
				   "a payload of %u bytes makes a packet of %llu, more than the MTU of %u on '%s': "
				   "at most %u bytes fit",
				   spec->payload_length, packet + (unsigned long long)spec->payload_length,
				   spec->path->mtu, spec->path->device.name,
				   spec->path->mtu > packet ? spec->path->mtu - packet : 0);
	t->frame = calloc(1, (size_t)head + spec->payload_length);
	if (!t->frame)
		return ktrxer_fail(err, -ENOMEM, "no memory for a frame of %u bytes", spec->payload_length);
	length = ktrxer_frame_build(t->frame, (uint32_t)head + spec->payload_length, spec);
	if (length < 0) {
		template_free(t);
		return ktrxer_fail(err, length, "a payload of %u bytes does not fit into one packet",
				   spec->payload_length);
	}
	t->length = (uint32_t)length;
	/* Both headers have 8 bytes. */
	t->udp = spec->proto == KTRXER_UDP;
	t->checksum_at = (uint32_t)head - 8 + (t->udp ? 6u : 2u);
	t->sum = (uint16_t)~load_be16(t->frame + t->checksum_at);
	t->seq_at = t->udp ? 0 : (uint32_t)head - 8 + 6u;
	if (spec->payload_length >= 8)
		t->number_at = (uint32_t)head;
	return 0;
}

void template_free(struct template *t)
{
	free(t->frame);
	t->frame = NULL;
}

void template_fill(const struct template *t, uint8_t *frame, uint64_t number)
{
	uint32_t sum;
	uint16_t checksum;

	memcpy(frame, t->frame, t->length);
	if (!t->number_at && !t->seq_at)
		return;
	sum = t->sum;
	/* Both lie at even offsets of the packet (all our headers are even). */
	if (t->number_at) {
		store_be64(frame + t->number_at, number);
		sum += (uint32_t)(uint16_t)(number >> 48) + (uint16_t)(number >> 32) + (uint16_t)(number >> 16) +
		       (uint16_t)number;
	}
	if (t->seq_at) {
		store_be16(frame + t->seq_at, (uint16_t)number);
		sum += (uint16_t)number;
	}
	sum = (sum & 0xffff) + (sum >> 16);
	checksum = (uint16_t)~(sum + (sum >> 16));
	store_be16(frame + t->checksum_at, t->udp && !checksum ? 0xffff : checksum);
}
