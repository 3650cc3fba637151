/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How a thread waits for a deadline: it sleeps until the wake-up margin before the deadline and spins the rest. The
 * margin is how late this machine wakes the thread, from trials and from each later sleep; the transmit latency
 * compensation is the median cost of a submission, from the stamps.
 */
#ifndef KTRXER_LIB_WAITER_H
#define KTRXER_LIB_WAITER_H

#include <ktrxer.h>

#include <stdatomic.h>

struct ktrxer_waiter {
	uint64_t margin_ns;      /* wake-up margin now */
	uint64_t base_ns;        /* as calibrated: the margin decays to this */
	uint64_t usual_ns;       /* how late a wake-up is in three of four cases */
	int64_t compensation_ns; /* median of (stamp - call) */
	uint32_t compensation_samples;
	uint64_t rested_ns;         /* when we last slept */
	uint64_t since_ns, rest_ns; /* time slept in the current window */
	bool realtime, locked;
	uint32_t timer_slack_ns;
	int latency_fd;  /* /dev/cpu_dma_latency held open, or -1 */
	char notes[512]; /* only grows: the text before shown.notes_length never changes again */

	/*
	 * Copies for other threads (ktx_info), made by ktrxer_waiter_show(). Each has at most 32 bits, so that no
	 * machine needs a lock.
	 */
	struct {
		_Alignas(64) _Atomic uint32_t margin_ns;
		_Atomic uint32_t compensation_ns, notes_length;
		_Atomic bool realtime;
	} shown;
};

void ktrxer_waiter_init(struct ktrxer_waiter *waiter);
void ktrxer_waiter_close(struct ktrxer_waiter *waiter);
/*
 * Requests settings for this thread: timer slack, processor, SCHED_FIFO, no deep sleep of the processor. Refused
 * settings go into notes.
 */
void ktrxer_waiter_prepare(struct ktrxer_waiter *waiter, uint32_t flags, int cpu, bool spin);
/* Sleeps a few dozen short times and sets the wake-up margin. About 10 ms. */
void ktrxer_waiter_calibrate(struct ktrxer_waiter *waiter);
/* After a sleep that was to end at `wanted_ns` (0: by an event) and did at `woken_ns`. */
void ktrxer_waiter_slept(struct ktrxer_waiter *waiter, uint64_t from_ns, uint64_t wanted_ns, uint64_t woken_ns);
/*
 * Must the thread take a nap although only `left_ns` remain, less than the wake-up margin? The kernel stops for 50 ms a
 * real-time thread that takes more than 95 % of a processor; a nap costs a few microseconds. Returns the time from
 * the end of the nap to the deadline, 0: no nap.
 */
uint64_t ktrxer_waiter_nap(const struct ktrxer_waiter *waiter, uint64_t now_ns, uint64_t left_ns);
/* After a submission that began at call_ns and was stamped at sent_ns. */
void ktrxer_waiter_submitted(struct ktrxer_waiter *waiter, uint64_t call_ns, uint64_t sent_ns);
/*
 * A real-time thread that never sleeps is stopped by the kernel for 50 ms of each second: give real time up instead,
 * and say so.
 */
void ktrxer_waiter_no_rest(struct ktrxer_waiter *waiter, uint64_t now_ns);
/* Called by the waiting thread. */
void ktrxer_waiter_show(struct ktrxer_waiter *waiter);
void ktrxer_waiter_note(struct ktrxer_waiter *waiter, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
