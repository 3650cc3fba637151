/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Devices and source addresses of the sent probes, as the stamps of the packet scheduler report them. */
#include "tx.h"

#include "options.h"

#ifndef KTRXER_SMALL
void ktx_departure_count(struct ktx *tx, uint32_t device, const struct ktrxer_addr *from)
{
	struct ktx_departure_row *row = tx->departures, *const last = row + KTX_DEPARTURES - 1;
	uint32_t count;

	if (!device)
		return;
	while (row < last && (count = atomic_load_explicit(&row->count, memory_order_relaxed)) != 0 &&
	       (row->device != device || !ktrxer_addr_equal(&row->from, from)))
		row++;
	count = atomic_load_explicit(&row->count, memory_order_relaxed);
	if (!count && row < last) {
		row->device = device;
		row->from = *from;
	}
	if (count < UINT32_MAX)
		atomic_store_explicit(&row->count, count + 1, memory_order_release);
}

void ktx_path_stamp(struct ktx *tx, uint32_t key, uint32_t device, const struct ktrxer_addr *from)
{
	/* The first of stacked devices counts. */
	if (!tx->pump.path_seen || (int32_t)(key - tx->pump.path_key) > 0)
		ktx_departure_count(tx, device, from);
	tx->pump.path_key = key;
	tx->pump.path_seen = true;
}
#endif

int ktx_departures_sized(const struct ktx *tx, struct ktx_departure *departures, size_t size, int max)
{
	int n = 0;

	if (!tx || max < 0 || !size || (max && !departures))
		return -EINVAL;
#ifndef KTRXER_SMALL
	for (const struct ktx_departure_row *row = tx->departures; row < tx->departures + KTX_DEPARTURES; row++) {
		struct ktx_departure one = { .count = atomic_load_explicit(&row->count, memory_order_acquire) };

		if (!one.count)
			continue;
		one.device = row->device;
		one.from = row->from;
		if (n < max)
			ktrxer_result_write((uint8_t *)departures + (size_t)n * size, size, &one, sizeof one);
		n++;
	}
#endif
	return n;
}
