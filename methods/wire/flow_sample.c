/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "flow_sample.h"

#include "leb128.h"

#include <errno.h>
#include <stdlib.h>

int flow_history_new(struct flow_history *history, uint32_t flows)
{
	history->flows = flows;
	history->bytes = calloc(flows ? flows : 1, sizeof *history->bytes);
	return history->bytes ? 0 : -ENOMEM;
}

void flow_history_free(struct flow_history *history)
{
	free(history->bytes);
	history->bytes = NULL;
	history->flows = 0;
}

static int values_of(uint8_t kind)
{
	return kind == FLOW_TCP ? FLOW_TCP_VALUES : kind == FLOW_UDP ? FLOW_UDP_VALUES : 0;
}

uint32_t flow_samples_begin(uint8_t *out, uint64_t base_ns)
{
	store_be64(out, base_ns);
	return FLOW_SAMPLES_HEAD;
}

uint32_t flow_sample_write(uint8_t *out, uint64_t base_ns, uint32_t flow, const struct flow_sample *s,
			   struct flow_history *history)
{
	uint8_t *at = leb128_write(out, flow);

	*at++ = s->kind;
	at = leb128_write(at, s->time_ns - base_ns);
	at = leb128_write(at, s->bytes - history->bytes[flow]);
	history->bytes[flow] = s->bytes;
	/* One more than it is: so the unknown, which is the largest of all, takes one byte. */
	for (int i = 0; i < values_of(s->kind); i++)
		at = leb128_write(at, s->values[i] + 1);
	return (uint32_t)(at - out);
}

int flow_samples_open(struct bytes *block, const uint8_t *data, size_t length, uint64_t *base_ns)
{
	*block = bytes_of(data, length);
	*base_ns = bytes_be64(block);
	return block->ok ? 0 : -EPROTO;
}

int flow_sample_read(struct bytes *block, uint64_t base_ns, uint32_t *flow, struct flow_sample *s,
		     struct flow_history *history)
{
	uint64_t which;

	if (block->ok && !bytes_left(block))
		return 0;
	memset(s, 0, sizeof *s);
	which = leb128_read(block);
	s->kind = bytes_u8(block);
	s->time_ns = base_ns + leb128_read(block);
	s->bytes = leb128_read(block);
	if (!block->ok || which >= history->flows || s->kind >= FLOW_SAMPLE_KINDS)
		return -EPROTO;
	*flow = (uint32_t)which;
	for (int i = 0; i < values_of(s->kind); i++)
		s->values[i] = leb128_read(block) - 1;
	if (!block->ok)
		return -EPROTO;
	s->bytes += history->bytes[which];
	history->bytes[which] = s->bytes;
	return 1;
}
