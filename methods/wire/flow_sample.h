/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Samples of the far end on their way to the near one, small: at 200 ms a flow costs some 200 bytes a second of the
 * very link that is being measured. Numbers are LEB128, bytes the growth since the flow's last sample, times the
 * distance from the block's own. Both ends keep what was last said of each flow.
 */
#ifndef KTRXER_METHODS_FLOW_SAMPLE_H
#define KTRXER_METHODS_FLOW_SAMPLE_H

#include "bytes.h"
#include "flow_spec.h"

enum {
	FLOW_SAMPLES_HEAD = 8,
	FLOW_SAMPLE_MOST = 5 + 1 + 10 + 10 + FLOW_VALUES_MAX * 10, /* bytes of one */
};

/* The last that was said of each flow: bytes. */
struct flow_history {
	uint64_t *bytes;
	uint32_t flows;
};
int flow_history_new(struct flow_history *history, uint32_t flows);
void flow_history_free(struct flow_history *history);

/*
 * A block begins with a time. `out` has room for FLOW_SAMPLE_MOST more each time. Both return how many bytes they
 * wrote.
 */
uint32_t flow_samples_begin(uint8_t *out, uint64_t base_ns);
uint32_t flow_sample_write(uint8_t *out, uint64_t base_ns, uint32_t flow, const struct flow_sample *sample,
			   struct flow_history *history);

/* 0, or -EPROTO. */
int flow_samples_open(struct bytes *block, const uint8_t *data, size_t length, uint64_t *base_ns);
/* 1 and one of them; 0 after the last; -EPROTO. */
int flow_sample_read(struct bytes *block, uint64_t base_ns, uint32_t *flow, struct flow_sample *sample,
		     struct flow_history *history);

#endif
