// SPDX-License-Identifier: GPL-2.0-only
/*
 * The lead: how long before its time a probe's waiting begins, so that the way to our turn (timer,
 * scheduler, softirqs of others) is over when the time has come. Measured when a file is set up,
 * raised when a wake-up came later than that, and led back slowly.
 */
#include "tx.h"

static u64 ktx_lead_for(u64 late_ns)
{
	return clamp_t(u64, late_ns + late_ns / 4 + KTX_LEAD_MARGIN_NS, KTX_LEAD_MIN_NS,
		       KTX_LEAD_MAX_NS);
}

void ktx_lead_begin(struct ktx_file *f, u64 late_ns)
{
	f->base_ns = late_ns ? ktx_lead_for(late_ns) : KTX_LEAD_FIRST_NS;
	f->lead_ns = f->base_ns;
	WRITE_ONCE(f->ring->lead_ns, (u32)f->lead_ns);
}

void ktx_lead_learn(struct ktx_file *f, u64 late_ns)
{
	const u64 wanted = ktx_lead_for(late_ns);

	if (wanted > f->lead_ns)
		f->lead_ns = wanted;
	else if (f->lead_ns > f->base_ns)
		f->lead_ns -= DIV_ROUND_UP((u32)(f->lead_ns - f->base_ns), KTX_LEAD_DECAY);
	WRITE_ONCE(f->ring->lead_ns, (u32)f->lead_ns);
}
