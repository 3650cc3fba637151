/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The classifier (ktrxer_classify.h) over an XDP packet: the verifier must see that nothing past the packet is read.
 *
 * Of a packet in pieces only the first piece is read, and of that the first 32 KiB (a piece is a page): a packet whose
 * headers are longer has no ports here.
 */
#ifndef KTRXER_BPF_RULES_CLASSIFY_H
#define KTRXER_BPF_RULES_CLASSIFY_H

#include "rules_source.h"

#include <linux/ktrxer_classify.h>

static KRX_INLINE void rules_classify(struct rules_view *v, const __u8 *data, const __u8 *end, _Bool raw_ip)
{
	const __u32 base = raw_ip ? 0 : 14;
	struct krx_source source = { .at = data + base, .end = end, .offset = &v->offset };
	struct krx_walk walk;

	if (source.at > end) {
		v->fields.version = 0;
		return;
	}
	source.length = (unsigned long)(end - source.at);
	krx_classify(&v->fields, &walk, &source, raw_ip ? KRX_TYPE_RAW : krx_number(data + 12), 0);
}

#endif
