/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inside a template: the plan that kernel and user space both compute from (bpf/vary.h), the frame, and the words of
 * its tables.
 */
#ifndef KTRXER_LIB_TEMPLATE_PLAN_H
#define KTRXER_LIB_TEMPLATE_PLAN_H

#include "packet.h"
#include "vary.h"

struct ktx_template {
	struct vary_plan plan;
	uint8_t *frame; /* parts and the checksums to keep are zero */
	uint64_t *words;
	uint32_t word_count;
	uint64_t space;
};

/* template_field.c: where a field is, and what may vary at all. */
struct template_place {
	uint32_t at, width;
	uint64_t keep;               /* bits of the frame that stay, above the field's own (flow label) */
	uint64_t most;               /* largest value */
	uint8_t in_ip, in_transport; /* enum vary_in */
};

int ktrxer_template_place_find(struct template_place *place, const struct ktx_vary *vary,
			       const struct ktrxer_packet_view *view, const uint8_t *frame, uint32_t length,
			       struct ktrxer_error *err);
/* Offset of the transport checksum, 0: there is none to be kept. */
uint32_t ktrxer_template_transport_sum_at(const struct ktrxer_packet_view *view, const uint8_t *frame);
const char *ktrxer_template_field_name(enum ktx_field field);

#endif
