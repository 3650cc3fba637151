/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A packet in one line for people, and in one object for programs. */
#ifndef KTRXER_CLI_PACKET_TEXT_H
#define KTRXER_CLI_PACKET_TEXT_H

#include "json.h"

#include <ktrxer.h>

#define PACKET_TEXT 240

/* By enum ktrxer_stamp_source, from 1 on. */
enum { PACKET_SOURCES = KTRXER_STAMP_USER + 1 };
extern const char *const packet_sources[PACKET_SOURCES];

/* "12:34:56.123456789 udp 192.0.2.1:1000 > 192.0.2.2:53 length 60", the time of day being local. */
const char *packet_text(const struct krx_packet *packet, char text[PACKET_TEXT]);
void packet_json(const struct krx_packet *packet, struct json *json);

struct packet_udp {
	struct ktrxer_addr from, to;
	uint16_t from_port, to_port;
};

/* False: the frame contains no UDP header (another protocol, a later fragment, cut short). */
bool packet_udp(struct packet_udp *udp, const uint8_t *frame, uint32_t length, enum ktrxer_link link);

#endif
