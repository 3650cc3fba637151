/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Limits of the transmitter. A number has its reason beside it. */
#ifndef KTRXER_LIB_TX_LIMITS_H
#define KTRXER_LIB_TX_LIMITS_H

enum {
	KTX_SLOTS_DEFAULT = 1024,
	KTX_SLOTS_MAX = 1 << 20, /* 2 GiB of full frames */
	KTX_LATE_DEFAULT_NS = 100 * 1000,
	KTX_RETRY_DEFAULT_NS = 10 * 1000 * 1000,
	/* probes that can wait for their stamps at once, a power of two: a second at 64 kpps */
	KTX_SCHED_WAITING = 1 << 16,
	/* the NIC's stamp after the driver's: most come within a millisecond, and some NICs drop them when busy */
	KTX_NIC_WAIT_NS = 10 * 1000 * 1000,
	KTX_BUFFER_WAIT_NS = 1000 * 1000 * 1000, /* the same for a frame that the kernel does not give back */
	/* later wake-ups of the handing side than that are stalls; submitted requests cannot be cancelled */
	KTX_QUEUE_AHEAD_NS = 10 * 1000 * 1000,
	/* a frame that leaves this much before its launch time was not delayed by the queue */
	KTX_QUEUE_EARLY_NS = 50 * 1000,
	KTX_NETWORK_ERRORS = 64, /* a power of two */
	KTX_MARGIN_MIN_NS = 20 * 1000,
	KTX_MARGIN_MAX_NS = 1000 * 1000,  /* a longer spin is a busy core, not precision */
	KTX_MARGIN_PRIOR_NS = 200 * 1000, /* with it the median is about 1 us where nothing was calibrated */
	KTX_CALIBRATION_ROUNDS = 24,
	/* a submission that costs more is not early-started, it is a slow machine */
	KTX_COMPENSATION_MAX_NS = 50 * 1000,
	KTX_COMPENSATION_GRAIN_NS = 50,
	KTX_REALTIME_REST_NS = 300 * 1000 * 1000, /* sched_rt_runtime_us allows 950 ms; well before it */
};

#endif
