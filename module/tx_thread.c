// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender as a real-time thread of its own processor. A hard timer wakes it `margin` before the
 * time; it waits out the rest with bottom halves off, so that what other traffic wants done comes
 * after the probe and not before it. That wait is bounded by the margin, and all that the thread
 * does by the budget of its processor.
 */
#include <linux/kthread.h>
#include <linux/sched.h>

#include "ktrxer_trace.h"
#include "tx.h"

static enum hrtimer_restart ktx_thread_alarm(struct hrtimer *timer)
{
	struct ktx_file *f = container_of(timer, struct ktx_file, timer);

	WRITE_ONCE(f->alarmed, true);
	wake_up_process(f->thread);
	return HRTIMER_NORESTART;
}

/*
 * Until then, or until there is something new. Returns how late it woke, 0 when something else did
 * it.
 */
static u64 ktx_thread_sleep(struct ktx_file *f, u64 until)
{
	u64 now;

	WRITE_ONCE(f->alarmed, false);
	WRITE_ONCE(f->idle, until == KTX_NEVER);
	set_current_state(TASK_IDLE); /* a barrier: from here on a kick wakes us */
	if (kthread_should_stop() || ktx_send_urgent(f) ||
	    (until == KTX_NEVER && f->sent != READ_ONCE(f->taken))) {
		__set_current_state(TASK_RUNNING);
		WRITE_ONCE(f->idle, false);
		return 0;
	}
	if (until != KTX_NEVER)
		hrtimer_start(&f->timer, ns_to_ktime(until), HRTIMER_MODE_ABS_PINNED_HARD);
	schedule();
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(f->idle, false);
	now = ktime_get_ns();
	if (until == KTX_NEVER)
		return 0;
	hrtimer_cancel(&f->timer);
	if (!READ_ONCE(f->alarmed) || now <= until)
		return 0;
	trace_ktx_wake(f->id, until, now - until);
	return now - until;
}

/*
 * Sleeps for others. Returns how late it woke, as ktx_thread_sleep(). The switches to another task
 * and back belong to the sender's own time, which `began` is the beginning of: without them a
 * stream that sleeps for a few microseconds before each probe leaves nothing to others.
 */
static u64 ktx_thread_rest(struct ktx_file *f, u64 until, u64 *began)
{
	const u64 before = ktime_get_ns(), late = ktx_thread_sleep(f, until), now = ktime_get_ns();

	*began = now - min3(now - before, 2 * (u64)f->thread_late_ns, (u64)KTX_SWITCHES_NS);
	return late;
}

u64 ktx_thread_try(struct ktx_file *f)
{
	u64 worst = 0;
	int i;

	for (i = 0; i < KTX_TRIALS; i++)
		worst = max(worst, ktx_thread_sleep(f, ktime_get_ns() + KTX_TRIAL_NS));
	return worst;
}

/*
 * As much of phase one as there is time for. The lock may be held by a program of no priority,
 * whose work this is then.
 */
static void ktx_thread_take(struct ktx_file *f)
{
	while (ktx_ring_has_more(f)) {
		const u64 next = ktx_send_next(f);
		u32 n;

		if (next != KTX_NEVER && next < ktime_get_ns() + f->margin_ns)
			return;
		if (!mutex_trylock(&f->take_lock))
			return;
		n = ktx_ring_take(f, KTX_TAKE_STEP);
		mutex_unlock(&f->take_lock);
		if (!n)
			return;
	}
}

static void ktx_thread_wait_out(struct ktx_file *f, u64 until)
{
	local_bh_disable();
	ktx_wait_out(f, until);
	ktx_send_due(f, 1);
	local_bh_enable();
}

static int ktx_thread_run(void *context)
{
	struct ktx_file *f = context;
	u64 began;

	sched_set_fifo(current);
	f->thread_late_ns = min_t(u64, ktx_thread_try(f), U32_MAX);
	if (f->timer_kind == KTRXER_TX_TIMER_AUTO)
		f->softirq_late_ns = min_t(u64, ktx_softirq_try(), U32_MAX);
	complete(&f->measured);

	began = ktime_get_ns();
	while (!kthread_should_stop()) {
		u64 next = ktx_send_due(f, 1), now, margin, rest;

		ktx_thread_take(f);
		if (next == KTX_NEVER)
			next = ktx_send_next(f);
		now = ktime_get_ns();
		ktx_budget_charge(began, now);
		began = now;
		rest = ktx_budget_rest(f, now);
		margin = ktx_margin_now(f);
		if (rest) {
			ktx_ring_announce(f, rest);
			ktx_thread_rest(f, rest, &began);
		} else if (next == KTX_NEVER && ktx_ring_has_more(f) &&
			   !mutex_is_locked(&f->take_lock)) {
			/* Published a moment ago. */
		} else if (next == KTX_NEVER || next > now + margin) {
			ktx_ring_announce(f, next);
			ktx_margin_learn(f, ktx_thread_rest(f,
							  next == KTX_NEVER ? next : next - margin,
							  &began));
		} else if (next > now) {
			ktx_ring_announce(f, next);
			ktx_thread_wait_out(f, next);
		}
		cond_resched();
	}
	return 0;
}

void ktx_thread_kick(struct ktx_file *f, bool urgent)
{
	smp_mb(); /* what is new, before the look at whether it sleeps */
	if (urgent || READ_ONCE(f->idle))
		wake_up_process(f->thread);
}

int ktx_thread_start(struct ktx_file *f)
{
	struct task_struct *thread;

	hrtimer_setup(&f->timer, ktx_thread_alarm, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	thread = kthread_create(ktx_thread_run, f, "ktx/%u", f->cpu);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	kthread_bind(thread, f->cpu);
	f->thread = thread;
	wake_up_process(thread);
	wait_for_completion(&f->measured);
	return 0;
}

void ktx_thread_stop(struct ktx_file *f)
{
	if (f->thread)
		kthread_stop(f->thread);
	f->thread = NULL;
}
