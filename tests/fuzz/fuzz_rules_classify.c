/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * First byte: which link. Second: a seed of rules. The rest: a frame. What the rules' program and the module read in a packet (their
 * text, compiled for here) is what the parser reads, and what their tables decide is what the rules say.
 */
#include "../unit/random_packets.h"
#include "../unit/rules_twin.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct rules_table table;
	enum ktrxer_link link;
	struct ktrxer_packet_view view;
	struct krx_rule rules[16];
	struct krx_ruleset *set;
	struct krx_match match;
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
	if (krx_ruleset_new(&set, rules, 16, NULL) == 0) {
		ktrxer_packet_parse(&view, frame, length, link);
		if (rules_table_make(&table, set, NULL) == 0) {
			if (length <= 0x7fff && rules_twin_match(&table, frame, length, link) != krx_ruleset_match(set, &view))
				abort();
			rules_table_free(&table);
		}
		if (!module_twin_make(&match, set, 16))
			abort();
		if (!(length >= 14 && length < 18) && module_twin_match(&match, set, frame, length, link) != krx_ruleset_match(set, &view))
			abort();
		module_twin_free(&match);
		krx_ruleset_free(set);
	}
	free(frame);
	return 0;
}
