// SPDX-License-Identifier: GPL-2.0-only
/*
 * The budget of a processor: all files together, whatever their timers, wait and send for four
 * fifths of its time at most. Other tasks and other softirqs have the rest, in pieces that are long
 * enough to be of use. What the senders took is paid back a quarter on top; a sender that finds
 * more than KTX_BUDGET_NS still to be paid rests until half of that is left.
 */
#include <linux/percpu.h>

#include "tx.h"

struct ktx_budget {
	u64 paid_ns; /* when all that was taken is paid back */
	bool resting;
};

static DEFINE_PER_CPU(struct ktx_budget, ktx_budget);

void ktx_budget_charge(u64 began, u64 now)
{
	/*
	 * Another guest of the machine may have had the processor for long: that is no debt of
	 * ours.
	 */
	const u64 used = min_t(u64, now - began, 4 * KTX_BUDGET_NS);
	struct ktx_budget *budget;

	local_bh_disable();
	budget = this_cpu_ptr(&ktx_budget);
	budget->paid_ns = max(budget->paid_ns, began) + used + used / 4;
	local_bh_enable();
}

u64 ktx_budget_rest(u64 now)
{
	struct ktx_budget *budget;
	u64 until = 0;

	local_bh_disable();
	budget = this_cpu_ptr(&ktx_budget);
	budget->resting = budget->paid_ns > now + (budget->resting ? KTX_BUDGET_NS / 2 :
								     KTX_BUDGET_NS);
	if (budget->resting)
		until = budget->paid_ns - KTX_BUDGET_NS / 2;
	local_bh_enable();
	return until;
}
