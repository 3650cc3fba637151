// SPDX-License-Identifier: GPL-2.0-only
/*
 * The budget of a processor: all files together, with either timer, wait and send for three
 * quarters of its time at most. Other tasks and other softirqs have the rest, a fifth at least
 * after interrupts and switches. Work makes a debt of the time of the work and a third, and the
 * debt falls as time passes. A sender with a debt above KTX_BUDGET_NS rests for KTX_REST_MARGINS
 * of its wake-up margins. A margin covers the switch to another task and back, so other tasks can
 * use most of such a rest; a softirq needs no switch, so its rest is the shortest one. A stream of
 * probes without pauses (20 us apart) is late by one such rest, which is less than the lateness
 * that a verdict counts (100 us) on machines that wake up within 20 us.
 */
#include <linux/atomic.h>
#include <linux/percpu.h>

#include "tx.h"

struct ktx_budget {
	u64 paid_ns; /* the time at which the debt is 0 */
	u64 rest_ns; /* the end of the last rest */
	u64 since_ns; /* charged up to here */
	/*
	 * Number of senders between begin and end. After this processor went off line, they run on
	 * several others. A charge that two of them write at once may be lost; a count must not be,
	 * because idle time would be charged from then on.
	 */
	atomic_t working;
};

static DEFINE_PER_CPU(struct ktx_budget, ktx_budget);

static void ktx_budget_take(struct ktx_budget *budget, u64 now, u64 used)
{
	/*
	 * Another guest of the machine may have had the processor for a long time: that time is no
	 * debt.
	 */
	used = min_t(u64, used, 20 * KTX_BUDGET_NS);
	budget->paid_ns = max(budget->paid_ns, now - used) + used + (u32)used / 3;
}

/* The time in which several senders work counts once: some wait while another one runs. */
static void ktx_budget_count(struct ktx_budget *budget, u64 now)
{
	if (atomic_read(&budget->working) && now > budget->since_ns)
		ktx_budget_take(budget, now, now - budget->since_ns);
	budget->since_ns = now;
}

void ktx_budget_begin(struct ktx_file *f, u64 before_ns)
{
	const u64 now = ktime_get_ns();

	local_bh_disable();
	f->budget = this_cpu_ptr(&ktx_budget);
	ktx_budget_count(f->budget, now);
	ktx_budget_take(f->budget, now, before_ns);
	atomic_inc(&f->budget->working);
	local_bh_enable();
}

void ktx_budget_charge(struct ktx_file *f)
{
	local_bh_disable();
	ktx_budget_count(f->budget, ktime_get_ns());
	local_bh_enable();
}

void ktx_budget_end(struct ktx_file *f)
{
	local_bh_disable();
	ktx_budget_count(f->budget, ktime_get_ns());
	atomic_dec(&f->budget->working);
	local_bh_enable();
}

u64 ktx_budget_rest(const struct ktx_file *f, u64 now)
{
	const bool thread = f->timer_kind == KTRXER_TX_TIMER_THREAD;
	const u64 margin = thread ? f->base_ns : KTX_MARGIN_MIN_NS;
	const u64 rest = min_t(u64, KTX_REST_MARGINS * margin, KTX_BUDGET_NS);
	struct ktx_budget *budget;
	u64 until;

	local_bh_disable();
	budget = this_cpu_ptr(&ktx_budget);
	if (now >= budget->rest_ns && budget->paid_ns > now + KTX_BUDGET_NS)
		budget->rest_ns = budget->paid_ns - KTX_BUDGET_NS + rest;
	until = now < budget->rest_ns ? budget->rest_ns : 0;
	local_bh_enable();
	return until;
}
