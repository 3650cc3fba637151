/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A template of any bytes: it is refused with a line, or its frames have its length, differ from the one given in the
 * fields and the checksums alone, and checksums that were right stay right.
 */
#include "bytes.h"
#include "packet.h"
#include "template_plan.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELD = 24, FIELDS = 3 };

static struct ktx_vary field_of(const uint8_t *at)
{
	/* clang-format off */
	struct ktx_vary vary = {
		.field = (enum ktx_field)(at[0] % 14), .how = (enum ktx_vary_how)(1 + at[1] % 2), .at = at[2],
		.width = 1u << (at[3] & 3),
		.step = at[4], .every = at[5], .seed = at[6], .from = load_be64(at + 8), .count = load_be64(at + 16),
	};
	/* clang-format on */

	if (at[7] & 1)
		vary.from &= 0xff;
	if (at[7] & 2)
		vary.count &= 0xff;
	return vary;
}

/*
 * A sum of 0 is right for all but UDP; for a frame that was not parsed yet the result may be as well that the sum is
 * not known.
 */
static bool checksum_right(const uint8_t *frame, uint32_t length, enum ktrxer_link link, bool known)
{
	struct ktrxer_packet_view view;
	uint32_t at;

	ktrxer_packet_parse(&view, frame, length, link);
	if (view.malformed || !view.version || view.end > length)
		return false;
	at = ktrxer_template_transport_sum_at(&view, frame);
	return at && at + 2 <= view.end && load_be16(frame + at) == ktrxer_transport_checksum(frame, &view) &&
	       (load_be16(frame + at) || (known && view.proto != KTRXER_UDP));
}

static void check_frame(const struct ktx_template *t, const uint8_t *original, uint32_t length, enum ktrxer_link link,
			uint64_t number)
{
	uint8_t *frame = malloc(length); /* of that size: a write behind it is seen */
	const struct vary_plan *plan = &t->plan;

	ktx_template_fill(t, frame, number);
	if (checksum_right(original, length, link, false) && plan->transport_sum_at &&
	    !checksum_right(frame, length, link, true))
		abort();
	for (uint32_t i = 0; i < length; i++) {
		bool may = (plan->ip_sum_at && i - plan->ip_sum_at < 2) ||
			   (plan->transport_sum_at && i - plan->transport_sum_at < 2);

		for (uint32_t p = 0; p < plan->parts; p++)
			may |= i - plan->part[p].at < plan->part[p].width;
		if (!may && frame[i] != original[i])
			abort();
	}
	free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktx_template_options o = KTX_TEMPLATE_OPTIONS_INIT;
	struct ktx_vary fields[FIELDS];
	struct ktrxer_error err = { 0 };
	struct ktx_template *t;

	if (size < FIELDS * FIELD + 2)
		return 0;
	for (int i = 0; i < FIELDS; i++)
		fields[i] = field_of(data + i * FIELD);
	data += FIELDS * FIELD;
	size -= FIELDS * FIELD;
	o.field_count = data[0] % (FIELDS + 1);
	o.every_combination = data[0] & 64;
	o.link = data[0] & 128 ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET;
	o.fields = fields;
	o.frame = data + 1;
	o.length = (uint32_t)size - 1;
	if (ktx_template_new(&t, &o, &err) < 0) {
		if (!err.text[0])
			abort();
		return 0;
	}
	check_frame(t, o.frame, o.length, o.link, 0);
	check_frame(t, o.frame, o.length, o.link, load_be64(data - 8));
	check_frame(t, o.frame, o.length, o.link, UINT64_MAX);
	ktx_template_free(t);
	return 0;
}
