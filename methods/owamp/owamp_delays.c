/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "owamp_delays.h"

#include "stamp_packet.h"

#include <errno.h>
#include <stdlib.h>

enum { HOPS_UNKNOWN = 255 };

bool owamp_record_times(const struct owamp_record *r, const int64_t *sched_real_ns, struct owamp_times *times)
{
	/* Within 68 years of 2006. */
	if (!stamp_time_to_ns(&times->received_ns, r->received, false, (int64_t)1 << 60) ||
	    !stamp_time_to_ns(&times->sent_ns, r->sent, stamp_error_read(r->send_error).ptp, times->received_ns))
		return false;
	times->sched = sched_real_ns && sched_real_ns[r->seq] >= times->sent_ns;
	if (times->sched)
		times->sent_ns = sched_real_ns[r->seq];
	return true;
}

static void errors_of(struct owamp_delays *d, const struct owamp_record *r)
{
	const struct stamp_error send = stamp_error_read(r->send_error), receive = stamp_error_read(r->receive_error);
	const uint64_t bound_ns = send.bound_ns == UINT64_MAX || receive.bound_ns == UINT64_MAX
					  ? UINT64_MAX
					  : send.bound_ns + receive.bound_ns;

	d->synchronised &= send.synchronised && receive.synchronised;
	d->bound_ns = bound_ns > d->bound_ns ? bound_ns : d->bound_ns;
}

int owamp_delays_of(struct owamp_delays *d, const struct owamp_record *records, uint32_t count, uint32_t next,
		    uint32_t skipped, const int64_t *sched_real_ns)
{
	uint8_t *seen = calloc(next / 8 + 1, 1);
	uint32_t highest = 0;

	*d = (struct owamp_delays){ .sent = next - skipped,
				    .least_ns = INT64_MAX,
				    .synchronised = count > 0,
				    .hops = { HOPS_UNKNOWN, 0 },
				    .delay = ktrxer_hist_new(),
				    .variation = ktrxer_hist_new() };
	if (!seen || !d->delay || !d->variation) {
		free(seen);
		return -ENOMEM;
	}
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t i = 0; i < count; i++) {
			const struct owamp_record *r = &records[i];
			const uint8_t bit = (uint8_t)(1 << r->seq % 8);
			struct owamp_times times;
			int64_t delay_ns;

			/* The first pass marks the first copy of each packet, the second one clears it. */
			if (r->seq >= next || !r->received || (pass == 0) == ((seen[r->seq / 8] & bit) != 0)) {
				d->duplicates += pass == 0 && r->seq < next && r->received;
				continue;
			}
			seen[r->seq / 8] ^= bit;
			d->arrived += pass == 0;
			if (!owamp_record_times(r, sched_real_ns, &times)) {
				d->contradicted += pass == 0;
				continue;
			}
			delay_ns = times.received_ns - times.sent_ns;
			if (pass) {
				ktrxer_hist_record(d->delay, delay_ns);
				ktrxer_hist_record(d->variation, delay_ns - d->least_ns);
				d->sched += times.sched;
				continue;
			}
			d->reordered += r->seq < highest;
			highest = r->seq > highest ? r->seq : highest;
			d->least_ns = delay_ns < d->least_ns ? delay_ns : d->least_ns;
			errors_of(d, r);
			if (r->ttl) {
				const uint8_t hops = (uint8_t)(OWAMP_TTL - r->ttl);

				d->hops[0] = hops < d->hops[0] ? hops : d->hops[0];
				d->hops[1] = hops > d->hops[1] ? hops : d->hops[1];
			}
		}
	free(seen);
	d->lost = d->sent > d->arrived ? d->sent - d->arrived : 0;
	if (!d->synchronised)
		d->bound_ns = UINT64_MAX;
	if (d->hops[0] == HOPS_UNKNOWN)
		d->hops[1] = HOPS_UNKNOWN;
	return 0;
}

void owamp_delays_free(struct owamp_delays *d)
{
	ktrxer_hist_free(d->delay);
	ktrxer_hist_free(d->variation);
	*d = (struct owamp_delays){ 0 };
}
