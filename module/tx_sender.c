// SPDX-License-Identifier: GPL-2.0-only
/* The sender of a file: a thread, a softirq, or none, where each KICK sends (tx_file.c). */
#include <linux/moduleparam.h>

#include "tx.h"

static unsigned int timer;
module_param(timer, uint, 0644);
MODULE_PARM_DESC(
	timer,
	"of files that leave it to the module: 0 by trying both (default), 1 softirq, 2 thread");

int ktx_sender_start(struct ktx_file *f, u32 wanted)
{
	const u32 chosen = READ_ONCE(timer);
	int ret;

	if (wanted == KTRXER_TX_TIMER_AUTO &&
	    (chosen == KTRXER_TX_TIMER_SOFTIRQ || chosen == KTRXER_TX_TIMER_THREAD))
		wanted = chosen;
	f->timer_kind = wanted;
	if (wanted == KTRXER_TX_TIMER_NONE) {
		ktx_margin_begin(f, 0);
		return 0;
	}
	if (wanted != KTRXER_TX_TIMER_SOFTIRQ) {
		ret = ktx_thread_start(f);
		if (ret)
			return ret;
	}
	/* The thread wins at the same lateness: no softirq of others delays it. */
	if (wanted == KTRXER_TX_TIMER_AUTO) {
		const bool softirq =
			f->softirq_late_ns &&
			f->softirq_late_ns + f->softirq_late_ns / 4 < f->thread_late_ns;

		if (softirq)
			ktx_thread_stop(f);
		f->timer_kind = softirq ? KTRXER_TX_TIMER_SOFTIRQ : KTRXER_TX_TIMER_THREAD;
	}
	if (f->timer_kind == KTRXER_TX_TIMER_SOFTIRQ)
		ktx_softirq_start(f);
	ktx_margin_begin(f, f->timer_kind == KTRXER_TX_TIMER_THREAD ? f->thread_late_ns
								  : f->softirq_late_ns);
	return 0;
}

void ktx_sender_stop(struct ktx_file *f)
{
	if (f->timer_kind == KTRXER_TX_TIMER_THREAD)
		ktx_thread_stop(f);
	else if (f->timer_kind == KTRXER_TX_TIMER_SOFTIRQ)
		ktx_softirq_stop(f);
}

void ktx_sender_kick(struct ktx_file *f, bool urgent)
{
	if (f->timer_kind == KTRXER_TX_TIMER_THREAD)
		ktx_thread_kick(f, urgent);
	else if (f->timer_kind == KTRXER_TX_TIMER_SOFTIRQ)
		ktx_softirq_kick(f, urgent);
}
