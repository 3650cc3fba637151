/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * First byte: which link. Second: a seed of rules. The rest: a frame. The classifier of library and module finds in the
 * frame what the reference finds, and the tables of rules decide as the linear scan does.
 */
#include "../unit/random_packets.h"
#include "../unit/rule_reference.h"
#include "../unit/rules_twin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum ktrxer_link link;
	struct ktrxer_packet_view view, want;
	struct krx_rule rules[16];
	struct krx_ruleset *set;
	struct chance c;
	uint8_t *frame;
	uint32_t length;

	if (size < 2)
		return 0;
	link = data[0] & 1 ? KTRXER_LINK_RAW_IP : KTRXER_LINK_ETHERNET;
	c.state = data[1];
	length = (uint32_t)size - 2;
	frame = malloc(length ? length : 1); /* a block of its own, so that a read past its end is seen */
	if (!frame)
		return 0;
	memcpy(frame, data + 2, length);
	if (twins_differ(frame, length, link))
		abort();
	for (int i = 0; i < 16; i++)
		rules[i] = chance_rule(&c, 5);
	if (krx_ruleset_new(&set, rules, sizeof(struct krx_rule), 16, NULL) == 0) {
		ktrxer_packet_parse(&view, frame, length, link);
		reference_parse(&want, frame, length, link);
		if (krx_ruleset_match(set, &view) != reference_scan(rules, 16, &want))
			abort();
		krx_ruleset_free(set);
	}
	free(frame);
	return 0;
}
