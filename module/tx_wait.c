// SPDX-License-Identifier: GPL-2.0-only
/*
 * The spin from the wake-up to the send time. Bottom halves are off, so softirqs of other traffic
 * run after the probe; but an interrupt at the send time would delay the probe by its own length.
 * For drivers that allow it, interrupts are off in the last microseconds, for as long as the
 * longest recent interrupt took: an interrupt that begins before them is over at the send time, and
 * a later one waits until the driver has the frame.
 */
#include <linux/moduleparam.h>

#include "tx.h"

static unsigned int guard_us = KTX_GUARD_MAX_NS / NSEC_PER_USEC;
module_param(guard_us, uint, 0644);
MODULE_PARM_DESC(
	guard_us,
	"microseconds before a probe that interrupts may be off for guard_drivers, 20 at most");

/* Spins for some nanoseconds without reading the clock. */
static noinline void ktx_burn(u32 turns)
{
	while (turns--)
		barrier();
}

/*
 * Measures the cost of reading the clock, and the turns of ktx_burn() in a microsecond: the best
 * of KTX_WAIT_TRIALS tries, because another guest or an NMI may disturb one.
 */
static void ktx_wait_measure(struct ktx_file *f)
{
	u64 look_ns = KTX_GUARD_MAX_NS, burn_ns = KTX_GUARD_MAX_NS;
	int i, n;

	for (i = 0; i < KTX_WAIT_TRIALS; i++) {
		u64 began, looked, burnt;
		unsigned long flags;

		local_irq_save(flags);
		began = ktime_get_ns();
		for (n = 1; n < KTX_WAIT_LOOKS; n++)
			ktime_get_ns();
		looked = ktime_get_ns();
		ktx_burn(KTX_WAIT_TURNS);
		burnt = ktime_get_ns();
		local_irq_restore(flags);
		look_ns = min(look_ns, div_u64(looked - began, KTX_WAIT_LOOKS));
		burn_ns = min(burn_ns, max_t(u64, burnt - looked, look_ns + 1) - look_ns);
	}
	f->look_ns = look_ns;
	f->turns_us = div_u64((u64)KTX_WAIT_TURNS * NSEC_PER_USEC, (u32)burn_ns);
}

void ktx_wait_begin(struct ktx_file *f)
{
	ktx_wait_measure(f);
	f->guard_most_ns = min_t(u64, READ_ONCE(guard_us) * (u64)NSEC_PER_USEC, KTX_GUARD_MAX_NS);
	if (!f->shape.quiet)
		f->guard_most_ns = 0;
	f->guard_ns = min_t(u64, KTX_GUARD_MIN_NS, f->guard_most_ns);
	WRITE_ONCE(f->ring->guard_ns, (u32)f->guard_ns);
}

/* Returns the longest time between two readings of the clock: that of the longest interrupt. */
static u64 ktx_spin(u64 until)
{
	u64 before = ktime_get_ns(), longest = 0;

	while (before < until) {
		u64 now;

		cpu_relax();
		now = ktime_get_ns();
		longest = max(longest, now - before);
		before = now;
	}
	return longest;
}

/*
 * A gap that is longer than the largest guard (another guest of this machine ran) is ignored.
 */
static void ktx_guard_learn(struct ktx_file *f, u64 longest)
{
	const u64 wanted = longest + longest / 4 + KTX_GUARD_MARGIN_NS;

	if (longest > f->guard_most_ns)
		return;
	if (wanted > f->guard_ns)
		f->guard_ns = min(wanted, f->guard_most_ns);
	else if (f->guard_ns > KTX_GUARD_MIN_NS)
		f->guard_ns -= DIV_ROUND_UP((u32)(f->guard_ns - KTX_GUARD_MIN_NS), KTX_GUARD_DECAY);
	WRITE_ONCE(f->ring->guard_ns, (u32)f->guard_ns);
}

void ktx_wait_out(struct ktx_file *f, u64 until)
{
	const u64 guard = f->guard_ns;
	unsigned long flags;
	s64 left;

	if (!guard || until <= guard) { /* 0: at once */
		ktx_spin(until);
		return;
	}
	ktx_guard_learn(f, ktx_spin(until - guard));
	local_irq_save(flags);
	/*
	 * Reading the clock once more would end the wait up to one reading too late, so the rest is
	 * spent in ktx_burn(). The compensation covers the constant part.
	 */
	while ((left = until - ktime_get_ns()) > (s64)f->look_ns)
		;
	if (left > 0)
		ktx_burn((u32)left * f->turns_us / NSEC_PER_USEC);
	ktx_send_quietly(f);
	local_irq_restore(flags);
}
