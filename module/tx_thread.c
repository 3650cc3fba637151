// SPDX-License-Identifier: GPL-2.0-only
/*
 * The sender as a real-time thread that is bound to a processor. A hard timer wakes the thread
 * `margin` before the send time. The thread spins for the rest of the time with bottom halves off,
 * so that softirqs of other traffic run after the probe. The margin bounds this spin, and the
 * budget of the processor bounds all work of the thread.
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
 * Sleeps until `until`, or until a kick. Returns the lateness of the wake-up by the timer; 0 if
 * the timer did not wake the thread.
 */
static u64 ktx_thread_sleep(struct ktx_file *f, u64 until)
{
	u64 now;

	WRITE_ONCE(f->alarmed, false);
	WRITE_ONCE(f->idle, until == KTX_NEVER);
	set_current_state(TASK_IDLE); /* a barrier: from here on a kick wakes the thread */
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
 * Sleeps so that other tasks can run. Returns the lateness as ktx_thread_sleep(). The switches to
 * another task and back are charged to the sender: otherwise a stream that sleeps for a few
 * microseconds before each probe would leave no time to other tasks.
 */
static u64 ktx_thread_rest(struct ktx_file *f, u64 until)
{
	const u64 before = ktime_get_ns();
	u64 late;

	ktx_budget_end(f);
	late = ktx_thread_sleep(f, until);
	ktx_budget_begin(f, min3(ktime_get_ns() - before, 2 * (u64)f->thread_late_ns,
				 (u64)KTX_SWITCHES_NS));
	return late;
}

/* The largest time from a hard timer to the wake-up of this thread, of KTX_TRIALS trials. */
static u64 ktx_thread_try(struct ktx_file *f)
{
	u64 worst = 0;
	int i;

	for (i = 0; i < KTX_TRIALS; i++)
		worst = max(worst, ktx_thread_sleep(f, ktime_get_ns() + KTX_TRIAL_NS));
	return worst;
}

/*
 * Phase one for as many probes as there is time for. If a program without priority holds the lock,
 * that program does this work.
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

	sched_set_fifo(current);
	f->thread_late_ns = min_t(u64, ktx_thread_try(f), U32_MAX);
	if (f->timer_kind == KTRXER_TX_TIMER_AUTO)
		f->softirq_late_ns = min_t(u64, ktx_softirq_try(), U32_MAX);
	complete(&f->measured);

	ktx_budget_begin(f, 0);
	while (!kthread_should_stop()) {
		u64 next = ktx_send_due(f, 1), now, margin, rest;

		ktx_thread_take(f);
		if (next == KTX_NEVER)
			next = ktx_send_next(f);
		ktx_budget_charge(f);
		now = ktime_get_ns();
		rest = ktx_budget_rest(f, now);
		margin = ktx_margin_now(f);
		if (rest) {
			ktx_ring_announce(f, rest);
			ktx_thread_rest(f, rest);
		} else if (next == KTX_NEVER && ktx_ring_has_more(f) &&
			   !mutex_is_locked(&f->take_lock)) {
			/* Probes were published a moment ago: the next turn takes them. */
		} else if (next == KTX_NEVER || next > now + margin) {
			ktx_ring_announce(f, next);
			ktx_margin_learn(f, ktx_thread_rest(f, next == KTX_NEVER ? next :
										   next - margin));
		} else if (next > now) {
			ktx_ring_announce(f, next);
			ktx_thread_wait_out(f, next);
		}
		cond_resched();
	}
	ktx_budget_end(f);
	return 0;
}

void ktx_thread_kick(struct ktx_file *f, bool urgent)
{
	smp_mb(); /* the new state is stored before `idle` is read */
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
