/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "udpstp_rates.h"

enum {
	FAST_US = 100,   /* interval of the first transmitter */
	SLOW_US = 1000,  /* and of the second one */
	IDLE_US = 50000, /* of row 0 */
	USUAL = 1222,    /* payload of IP packets of 1250 bytes: 100 Mbit/s with one each 100 us */
	LARGE = 1472,    /* of 1500 bytes: 120 Mbit/s */
	BURST_MAX = 100,
};

void udpstp_rate_row(struct udpstp_rate *rate, uint32_t row, bool mtu_1500)
{
	const uint32_t unit = mtu_1500 ? 12 : 10, payload = mtu_1500 ? LARGE : USUAL; /* Mbit/s of one each 1 ms */
	uint32_t fast, slow, rest;

	*rate = (struct udpstp_rate){ 0 };
	if (!row) {
		rate->interval_us[1] = IDLE_US;
		rate->add = payload | UDPSTP_RANDOM_SIZE;
		return;
	}
	fast = row / (10 * unit);
	slow = row % (10 * unit) / unit;
	rest = row % unit;
	if (row > UDPSTP_ROW_1G) {
		fast = UDPSTP_ROW_1G / (10 * unit) + row - UDPSTP_ROW_1G;
		slow = rest = 0;
	}
	if (fast) {
		rate->interval_us[0] = FAST_US;
		rate->payload[0] = payload;
		rate->burst[0] = fast < BURST_MAX ? fast : BURST_MAX;
	}
	if (slow || rest)
		rate->interval_us[1] = SLOW_US;
	if (slow) {
		rate->payload[1] = payload;
		rate->burst[1] = slow;
	}
	if (rest)
		rate->add = rest * 1000 / 8 - UDPSTP_HEADERS_V4;
}

uint32_t udpstp_row_of(uint64_t mbit_s, bool mtu_1500)
{
	const uint64_t step = mtu_1500 ? 120 : 100, above = mtu_1500 ? 1080 : 1100;
	uint64_t row;

	if (mbit_s <= UDPSTP_ROW_1G || mbit_s < above)
		return (uint32_t)(mbit_s < UDPSTP_ROW_1G ? mbit_s : UDPSTP_ROW_1G);
	row = UDPSTP_ROW_1G + 1 + (mbit_s - above) / step;
	return (uint32_t)(row < UDPSTP_ROW_LAST ? row : UDPSTP_ROW_LAST);
}

static bool size_fits(uint32_t size)
{
	size &= ~UDPSTP_RANDOM_SIZE;
	return size <= UDPSTP_PAYLOAD_MAX;
}

bool udpstp_rate_fits(const struct udpstp_rate *rate)
{
	for (int i = 0; i < 2; i++)
		if (rate->burst[i] > BURST_MAX || !size_fits(rate->payload[i]) ||
		    (rate->interval_us[i] && rate->interval_us[i] < FAST_US) || rate->interval_us[i] > 1000000)
			return false;
	return size_fits(rate->add);
}
