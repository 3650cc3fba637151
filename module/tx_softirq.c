// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender as a softirq: no thread, no switch of tasks. A hard timer raises the softirq `margin`
 * before the send time. The softirq spins for the rest of the time, and starts the timer for the
 * next probe.
 *
 * The softirq is a tasklet of high priority, not the softirq of a timer (HRTIMER_MODE_SOFT), for
 * two reasons. It runs before the other pending softirqs of its processor. And once any softirq has
 * woken ksoftirqd, Linux 5.10 and 6.1 leave all softirqs but tasklets to that ordinary task, which
 * may wait for the processor for milliseconds.
 */
#include <linux/slab.h>

#include "ktrxer_trace.h"
#include "tx.h"

/* Under arm_lock. The timer fires `gap` ns from now at the earliest. */
static void ktx_softirq_arm(struct ktx_file *f, u64 next, u64 gap)
{
	const u64 margin = ktx_margin_now(f), at = next > margin ? next - margin : 0;
	const u64 now = ktime_get_ns(), first = max(now + gap, ktx_budget_rest(f, now));

	f->armed = next != KTX_NEVER && !f->closing;
	if (!f->armed)
		return;
	f->alarm_ns = at > first ? at : 0;
	hrtimer_start(&f->timer, ns_to_ktime(max(at, first)), HRTIMER_MODE_ABS_PINNED_HARD);
}

static void ktx_softirq_again(struct ktx_file *f)
{
	u64 next;

	spin_lock(&f->arm_lock);
	next = ktx_send_next(f);
	if (next != KTX_NEVER && ktx_send_urgent(f))
		next = 0;
	/*
	 * The softirqs that run now end before the timer fires, so its interrupt runs the tasklet.
	 * If the tasklet were raised earlier, the kernel would leave it to ksoftirqd after ten
	 * turns, or at once if a task waits for the processor.
	 */
	ktx_softirq_arm(f, next, KTX_SOFTIRQ_GAP_NS);
	spin_unlock(&f->arm_lock);
	ktx_ring_announce(f, next);
	if (ktx_ring_has_more(f) && f->taken - f->sent <= f->window / 2)
		queue_work(system_highpri_wq, &f->refill);
}

static enum hrtimer_restart ktx_softirq_alarm(struct hrtimer *timer)
{
	tasklet_hi_schedule(&container_of(timer, struct ktx_file, timer)->tasklet);
	return HRTIMER_NORESTART;
}

static void ktx_softirq_run(struct tasklet_struct *tasklet)
{
	struct ktx_file *f = container_of(tasklet, struct ktx_file, tasklet);
	const u64 began = ktime_get_ns(), wanted = READ_ONCE(f->alarm_ns);
	u64 next;

	if (wanted && began > wanted) {
		trace_ktx_wake(f->id, wanted, began - wanted);
		ktx_margin_learn(f, began - wanted);
	}
	ktx_budget_begin(f, KTX_INTERRUPT_NS);
	if (ktx_budget_rest(f, began)) {
		ktx_budget_end(f);
		ktx_softirq_again(f);
		return;
	}
	/*
	 * Spin for probes that are due within the margin. Other softirqs of the processor wait for
	 * KTX_MARGIN_MAX_NS at most.
	 */
	while ((next = ktx_send_due(f, 1)) <= began + f->margin_ns && ktx_margin_now(f) &&
	       ktime_get_ns() < began + KTX_MARGIN_MAX_NS)
		ktx_wait_out(f, next);
	ktx_budget_end(f);
	ktx_softirq_again(f);
}

static void ktx_softirq_refill(struct work_struct *work)
{
	struct ktx_file *f = container_of(work, struct ktx_file, refill);

	mutex_lock(&f->take_lock);
	ktx_ring_take(f, f->window);
	mutex_unlock(&f->take_lock);
	ktx_softirq_kick(f, false);
}

void ktx_softirq_kick(struct ktx_file *f, bool urgent)
{
	spin_lock_bh(&f->arm_lock);
	if (urgent)
		ktx_softirq_arm(f, 0, 0);
	else if (!f->armed)
		ktx_softirq_arm(f, ktx_send_next(f), 0);
	spin_unlock_bh(&f->arm_lock);
}

void ktx_softirq_start(struct ktx_file *f)
{
	f->closing = false; /* a former set-up may have failed after this call */
	INIT_WORK(&f->refill, ktx_softirq_refill);
	tasklet_setup(&f->tasklet, ktx_softirq_run);
	hrtimer_setup(&f->timer, ktx_softirq_alarm, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
}

void ktx_softirq_stop(struct ktx_file *f)
{
	spin_lock_bh(&f->arm_lock);
	f->closing = true;
	spin_unlock_bh(&f->arm_lock);
	/* The timer starts the tasklet, the tasklet the work; nothing starts the timer any more. */
	hrtimer_cancel(&f->timer);
	tasklet_kill(&f->tasklet);
	cancel_work_sync(&f->refill);
}

struct ktx_trial {
	struct hrtimer timer;
	struct tasklet_struct tasklet;
	struct completion done;
	u64 worst;
	int left;
};

static enum hrtimer_restart ktx_trial_alarm(struct hrtimer *timer)
{
	tasklet_hi_schedule(&container_of(timer, struct ktx_trial, timer)->tasklet);
	return HRTIMER_NORESTART;
}

static void ktx_trial_start(struct ktx_trial *trial)
{
	hrtimer_start(&trial->timer, ns_to_ktime(ktime_get_ns() + KTX_TRIAL_NS),
		      HRTIMER_MODE_ABS_PINNED_HARD);
}

static void ktx_trial_run(struct tasklet_struct *tasklet)
{
	struct ktx_trial *trial = container_of(tasklet, struct ktx_trial, tasklet);
	const u64 late = ktime_get_ns() - ktime_to_ns(hrtimer_get_expires(&trial->timer));

	trial->worst = max(trial->worst, late);
	if (--trial->left)
		ktx_trial_start(trial);
	else
		complete(&trial->done);
}

u64 ktx_softirq_try(void)
{
	struct ktx_trial *trial = kzalloc(sizeof(*trial), GFP_KERNEL);
	u64 worst;

	if (!trial)
		return 0;
	trial->left = KTX_TRIALS;
	init_completion(&trial->done);
	tasklet_setup(&trial->tasklet, ktx_trial_run);
	hrtimer_setup(&trial->timer, ktx_trial_alarm, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_PINNED_HARD);
	ktx_trial_start(trial);
	wait_for_completion(&trial->done);
	hrtimer_cancel(&trial->timer);
	tasklet_kill(&trial->tasklet);
	worst = trial->worst;
	kfree(trial);
	return worst;
}
