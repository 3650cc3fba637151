/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The sending rate table of UDPSTP: row n sends n Mbit/s of IP packets up to 1 Gbit/s, and in steps of 100 Mbit/s (120
 * with packets of 1500 bytes) beyond. Row 0 sends one datagram of a random size each 50 ms.
 */
#ifndef KTRXER_METHODS_UDPSTP_RATES_H
#define KTRXER_METHODS_UDPSTP_RATES_H

#include "udpstp_packet.h"

enum {
	UDPSTP_ROW_1G = 1000, /* the row of 1 Gbit/s */
	UDPSTP_ROW_LAST = UDPSTP_ROW_1G + 90,
	UDPSTP_HEADERS_V4 = 28,
	UDPSTP_HEADERS_V6 = 48,
	UDPSTP_PAYLOAD_MAX = 8972, /* the largest of tables with jumbo frames */
};

/* Sizes are those of IPv4: a sender by IPv6 sends 20 bytes of payload less. */
void udpstp_rate_row(struct udpstp_rate *rate, uint32_t row, bool mtu_1500);
/* The highest row that sends at most so many Mbit/s. */
uint32_t udpstp_row_of(uint64_t mbit_s, bool mtu_1500);
/* A rate from the network: every value is one that this sender can send. */
bool udpstp_rate_fits(const struct udpstp_rate *rate);

#endif
