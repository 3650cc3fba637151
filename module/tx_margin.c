// SPDX-License-Identifier: GPL-2.0-only
/*
 * The wake-up margin: the time from the timer to the send time of a probe, in which timer,
 * scheduler and softirqs of other traffic finish. Measured when a file is set up, raised when a
 * wake-up was later than the margin, and reduced slowly.
 */
#include "tx.h"

static u64 ktx_margin_for(u64 late_ns)
{
	return clamp_t(u64, late_ns + late_ns / 4 + KTX_MARGIN_EXTRA_NS, KTX_MARGIN_MIN_NS,
		       KTX_MARGIN_MAX_NS);
}

void ktx_margin_begin(struct ktx_file *f, u64 late_ns)
{
	f->base_ns = late_ns ? ktx_margin_for(late_ns) : KTX_MARGIN_FIRST_NS;
	f->margin_ns = f->base_ns;
	WRITE_ONCE(f->ring->margin_ns, (u32)f->margin_ns);
}

void ktx_margin_learn(struct ktx_file *f, u64 late_ns)
{
	const u64 wanted = ktx_margin_for(late_ns);

	if (wanted > f->margin_ns)
		f->margin_ns = wanted;
	else if (f->margin_ns > f->base_ns)
		f->margin_ns -= DIV_ROUND_UP((u32)(f->margin_ns - f->base_ns), KTX_MARGIN_DECAY);
	WRITE_ONCE(f->ring->margin_ns, (u32)f->margin_ns);
}
