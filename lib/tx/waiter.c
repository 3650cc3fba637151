/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "waiter.h"

#include "error.h"
#include "tx_limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

void ktrxer_waiter_init(struct ktrxer_waiter *waiter)
{
	*waiter = (struct ktrxer_waiter){ .margin_ns = KTX_MARGIN_PRIOR_NS,
					  .base_ns = KTX_MARGIN_PRIOR_NS,
					  .usual_ns = KTX_MARGIN_MIN_NS,
					  .latency_fd = -1 };
	ktrxer_waiter_show(waiter);
}

void ktrxer_waiter_close(struct ktrxer_waiter *waiter)
{
	if (waiter->latency_fd >= 0)
		close(waiter->latency_fd);
	waiter->latency_fd = -1;
}

void ktrxer_waiter_note(struct ktrxer_waiter *waiter, const char *format, ...)
{
	size_t used = strlen(waiter->notes), room = sizeof waiter->notes - used;
	va_list args;
	int n;

	if (room < 3)
		return;
	if (used) {
		waiter->notes[used++] = '\n';
		room--;
	}
	va_start(args, format);
	n = vsnprintf(waiter->notes + used, room, format, args);
	va_end(args);
	if (n < 0)
		waiter->notes[used ? used - 1 : 0] = '\0';
	atomic_store_explicit(&waiter->shown.notes_length, (uint32_t)strlen(waiter->notes), memory_order_release);
}

static void show_number(_Atomic uint32_t *shown, uint64_t value)
{
	if (value > UINT32_MAX)
		value = UINT32_MAX;
	if (atomic_load_explicit(shown, memory_order_relaxed) != value)
		atomic_store_explicit(shown, (uint32_t)value, memory_order_relaxed);
}

void ktrxer_waiter_show(struct ktrxer_waiter *waiter)
{
	show_number(&waiter->shown.margin_ns, waiter->margin_ns);
	show_number(&waiter->shown.compensation_ns, (uint64_t)waiter->compensation_ns);
	if (atomic_load_explicit(&waiter->shown.realtime, memory_order_relaxed) != waiter->realtime)
		atomic_store_explicit(&waiter->shown.realtime, waiter->realtime, memory_order_relaxed);
}

/*
 * A priority above that of the kernel's own threads, 50, would hold up the interrupts that carry our packets on
 * kernels with threaded interrupts.
 */
#define WAITER_PRIORITY 40
/* Where FIFO is refused a better nice value may still be allowed. */
#define WAITER_NICE (-15)

static void prepare_realtime(struct ktrxer_waiter *waiter)
{
	struct sched_param param = { .sched_priority = WAITER_PRIORITY };
	char word[64];
	int rc = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);

	waiter->realtime = rc == 0;
	if (rc == 0)
		return;
	ktrxer_strerror(-rc, word, sizeof word);
	if (setpriority(PRIO_PROCESS, 0, WAITER_NICE) == 0)
		ktrxer_waiter_note(
			waiter,
			"no real-time priority (%s), nice %d instead: rare probes are later when the machine is busy",
			word, WAITER_NICE);
	else
		ktrxer_waiter_note(waiter,
				   "no real-time priority (%s): probes are later when the machine is busy; "
				   "CAP_SYS_NICE or `ulimit -r 40` gives it",
				   word);
}

static void prepare_processor(struct ktrxer_waiter *waiter, int cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	if (cpu < CPU_SETSIZE)
		CPU_SET(cpu, &set);
	if (cpu >= CPU_SETSIZE || sched_setaffinity(0, sizeof set, &set) != 0)
		ktrxer_waiter_note(waiter, "processor %d is not available: the waiter runs on any", cpu);
}

void ktrxer_waiter_prepare(struct ktrxer_waiter *waiter, uint32_t flags, int cpu, bool spin)
{
	const int32_t no_sleep_states = 0;

	prctl(PR_SET_NAME, "ktx-waiter", 0, 0, 0);
	if (prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0) != 0)
		ktrxer_waiter_note(waiter, "timer slack stays at its default: sleeps end up to 50 us late");
	waiter->timer_slack_ns = (uint32_t)prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	prepare_processor(waiter, cpu);
	if (!(flags & KTX_NO_REALTIME) && spin)
		prepare_realtime(waiter);
	/*
	 * A thread that spins needs a processor without deep sleep states. Where that is refused, or cpuidle is absent,
	 * the wake-up takes some tens of us more, and the wake-up margin covers them.
	 */
	if (spin) {
		waiter->latency_fd = open("/dev/cpu_dma_latency", O_WRONLY | O_CLOEXEC);
		if (waiter->latency_fd >= 0 &&
		    write(waiter->latency_fd, &no_sleep_states, sizeof no_sleep_states) < 0) {
			close(waiter->latency_fd);
			waiter->latency_fd = -1;
		}
	}
	waiter->since_ns = waiter->rested_ns = ktrxer_now_ns();
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t margin_clamp(uint64_t margin)
{
	return margin < KTX_MARGIN_MIN_NS ? KTX_MARGIN_MIN_NS : margin > KTX_MARGIN_MAX_NS ? KTX_MARGIN_MAX_NS : margin;
}

void ktrxer_waiter_calibrate(struct ktrxer_waiter *waiter)
{
	uint64_t late[KTX_CALIBRATION_ROUNDS];

	for (int i = 0; i < KTX_CALIBRATION_ROUNDS; i++) {
		/* Different lengths, so that no periodic neighbour (a timer tick) is met or missed each time. */
		const struct timespec nap = { .tv_nsec = 150 * 1000 + i * 13 * 1000 };
		uint64_t start = ktrxer_now_ns();

		ppoll(NULL, 0, &nap, NULL); /* the call that the pump sleeps in */
		late[i] = ktrxer_now_ns() - start - (uint64_t)nap.tv_nsec;
		if (late[i] > KTRXER_NS_PER_S)
			late[i] = 0; /* a signal ended it early */
	}
	qsort(late, KTX_CALIBRATION_ROUNDS, sizeof late[0], compare_u64);
	/* Spinning is cheap beside a probe that is late: well past the usual case, and past all but the worst seen. */
	waiter->base_ns = margin_clamp(4 * late[KTX_CALIBRATION_ROUNDS / 2] > 2 * late[KTX_CALIBRATION_ROUNDS * 9 / 10]
					       ? 4 * late[KTX_CALIBRATION_ROUNDS / 2]
					       : 2 * late[KTX_CALIBRATION_ROUNDS * 9 / 10]);
	waiter->margin_ns = waiter->base_ns;
	waiter->usual_ns = late[KTX_CALIBRATION_ROUNDS * 3 / 4];
	waiter->rested_ns = ktrxer_now_ns();
}

#define REST_OVERHEAD_NS 6000
#define REST_WINDOW_NS KTRXER_NS_PER_S
/* one part in 8 of the time, where the kernel requires one in 20: not all of a nap reaches other tasks */
#define REST_SHARE 8

void ktrxer_waiter_slept(struct ktrxer_waiter *waiter, uint64_t from_ns, uint64_t wanted_ns, uint64_t woken_ns)
{
	uint64_t late = woken_ns > wanted_ns ? woken_ns - wanted_ns : 0;

	waiter->rested_ns = woken_ns;
	/* The time of other threads in this rest: two context switches are ours. */
	if (woken_ns - from_ns > REST_OVERHEAD_NS)
		waiter->rest_ns += woken_ns - from_ns - REST_OVERHEAD_NS;
	if (woken_ns - waiter->since_ns > REST_WINDOW_NS) {
		waiter->since_ns = woken_ns - (woken_ns - waiter->since_ns) / 2;
		waiter->rest_ns /= 2;
		if (waiter->rest_ns > REST_WINDOW_NS / 2)
			waiter->rest_ns = REST_WINDOW_NS / 2;
	}
	/* A margin as long as a stall of a shared machine (milliseconds) would burn the processor for nothing. */
	if (!wanted_ns || late > KTX_MARGIN_MAX_NS)
		return;
	if (late * 5 > waiter->margin_ns * 4)
		waiter->margin_ns = margin_clamp(late + late / 2);
	else if (waiter->margin_ns > waiter->base_ns)
		waiter->margin_ns -= (waiter->margin_ns - waiter->base_ns) / 512 + 1;
}

uint64_t ktrxer_waiter_nap(const struct ktrxer_waiter *waiter, uint64_t now_ns, uint64_t left_ns)
{
	if (!waiter->realtime || waiter->rest_ns > (now_ns - waiter->since_ns) / REST_SHARE)
		return 0;
	/*
	 * The nap ends before the deadline by the usual wake-up time of this machine. Where the gap is too short for
	 * that, a probe is a few microseconds late, and the kernel does not stop the thread for 50 ms.
	 */
	if (left_ns > waiter->usual_ns + 2 * REST_OVERHEAD_NS)
		return waiter->usual_ns + REST_OVERHEAD_NS / 2;
	return left_ns > 14000 ? 9000 : 0;
}

void ktrxer_waiter_submitted(struct ktrxer_waiter *waiter, uint64_t call_ns, uint64_t sent_ns)
{
	int64_t cost = (int64_t)(sent_ns - call_ns), step;

	if (cost < 0)
		cost = 0;
	if (cost > KTX_COMPENSATION_MAX_NS)
		cost = KTX_COMPENSATION_MAX_NS;
	if (waiter->compensation_samples == 0) {
		/* The first one is cold and slow; begin low and climb. */
		waiter->compensation_ns = cost / 2;
		waiter->compensation_samples = 1;
		return;
	}
	/*
	 * A running median: one step up or down, smaller as it settles; none within the stamps' grain, which would only
	 * move probes about.
	 */
	if (waiter->compensation_samples < 64)
		waiter->compensation_samples++;
	if (cost - waiter->compensation_ns <= KTX_COMPENSATION_GRAIN_NS &&
	    waiter->compensation_ns - cost <= KTX_COMPENSATION_GRAIN_NS)
		return;
	step = waiter->compensation_ns / (int64_t)waiter->compensation_samples / 2 + 4;
	waiter->compensation_ns += cost > waiter->compensation_ns ? step : -step;
	if (waiter->compensation_ns < 0)
		waiter->compensation_ns = 0;
}

void ktrxer_waiter_no_rest(struct ktrxer_waiter *waiter, uint64_t now_ns)
{
	struct sched_param param = { 0 };

	if (!waiter->realtime || now_ns - waiter->rested_ns < KTX_REALTIME_REST_NS ||
	    waiter->rest_ns > (now_ns - waiter->since_ns) / REST_SHARE)
		return;
	if (pthread_setschedparam(pthread_self(), SCHED_OTHER, &param) != 0)
		return;
	(void)!setpriority(PRIO_PROCESS, 0, WAITER_NICE);
	waiter->realtime = false;
	ktrxer_waiter_note(waiter, "at this rate the waiter never sleeps: real-time priority given up, "
				   "since the kernel stops such a thread for 50 ms of each second");
}
