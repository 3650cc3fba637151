/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Frames that differ in their number alone: one is built, each probe is a copy with its number in the payload. */
#ifndef KTRXER_METHODS_TEMPLATE_H
#define KTRXER_METHODS_TEMPLATE_H

#include <ktrxer.h>

/*
 * The payload of our probes, where it is long enough: 8 bytes of number, big-endian, then zeros. The number makes each
 * probe distinct at the far end; the checksum is kept right by adding the number's words, not by summing all again.
 */
struct template {
	uint8_t *frame;
	uint32_t length;
	uint32_t number_at;   /* offset of the number in the frame; 0: the payload is too short */
	uint32_t checksum_at; /* offset of the transport checksum */
	uint32_t seq_at;      /* ICMP: offset of the sequence, the number's low 16 bits; else 0 */
	uint32_t sum;         /* one's-complement sum that the checksum stands for, number 0 */
	bool udp;
};

int template_make(struct template *t, const struct ktrxer_frame_spec *spec, struct ktrxer_error *err);
void template_free(struct template *t);
void template_fill(const struct template *t, uint8_t *frame, uint64_t number);

#endif
