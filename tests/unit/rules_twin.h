/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The classifier as the module calls it, over the bytes of a frame, and its comparison with the reference: for tests
 * and fuzzers.
 */
#ifndef KTRXER_TESTS_RULES_TWIN_H
#define KTRXER_TESTS_RULES_TWIN_H

#include "packet_reference.h"

#include <arpa/inet.h>

struct krx_source {
	const uint8_t *at; /* the network header */
	unsigned long length;
};

static inline const uint8_t *krx_take(const struct krx_source *s, unsigned long at, unsigned int n, void *room)
{
	(void)room;
	return at > s->length || n > s->length - at ? NULL : s->at + at;
}

#include <linux/ktrxer_classify.h>

/* rx_hook.c calls it so. The kernel has removed the outer tag before that, `untag`. */
static inline void module_twin_classify(struct krx_view *v, const uint8_t *frame, uint32_t length,
					enum ktrxer_link link, bool untag)
{
	struct krx_source s = { frame, length };
	uint32_t type = KRX_TYPE_RAW, tags = 0;
	struct krx_walk walk;

	memset(v, 0, sizeof *v);
	if (link == KTRXER_LINK_ETHERNET) {
		if (length < 14)
			return;
		s = (struct krx_source){ frame + 14, length - 14 };
		type = krx_number(frame + 12);
		if (untag && (type == KRX_TYPE_VLAN || type == KRX_TYPE_SERVICE)) {
			if (s.length < 4)
				return; /* the kernel drops such a packet before the hook */
			type = krx_number(frame + 16);
			s = (struct krx_source){ frame + 18, length - 18 };
			tags = 1;
		}
	}
	krx_classify(v, &walk, &s, type, tags);
}

static inline const char *module_twin_differs(const uint8_t *frame, uint32_t length, enum ktrxer_link link, bool untag)
{
	struct ktrxer_packet_view want;
	struct krx_view got;

	reference_parse(&want, frame, length, link);
	module_twin_classify(&got, frame, length, link, untag);
	if (got.version != want.version)
		return "the module's IP version";
	if (!want.version)
		return NULL;
	if (got.proto != want.proto)
		return "the module's protocol";
	if (memcmp(got.from, want.from.bytes, 16) != 0 || memcmp(got.to, want.to.bytes, 16) != 0)
		return "the module's addresses";
	if (ntohs(got.from_port) != (want.ports ? want.from_port : 0) ||
	    ntohs(got.to_port) != (want.ports ? want.to_port : 0))
		return "the module's ports";
	return NULL;
}

/* The first field in which library or module differ from the reference; NULL: none. */
static inline const char *twins_differ(const uint8_t *frame, uint32_t length, enum ktrxer_link link)
{
	const char *difference = packet_differs(frame, length, link);

	if (!difference)
		difference = module_twin_differs(frame, length, link, false);
	return difference ? difference : module_twin_differs(frame, length, link, true);
}

#endif
