/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reads the clock of a NIC every PHC_SAMPLE_NS, on a thread of its own, and publishes the line of the samples. One
 * reading takes up to a millisecond (PCI, firmware, a lock of the driver): the pump thread must not wait for it.
 */
#ifndef KTRXER_LIB_PHC_SAMPLER_H
#define KTRXER_LIB_PHC_SAMPLER_H

#include "phc.h"

#include <pthread.h>
#include <stdatomic.h>

enum { PHC_LINE_WORDS = sizeof(struct phc_line) / sizeof(uint32_t) };

struct phc_sampler {
	struct phc phc;               /* fd -1: stamps of the NIC are off */
	struct ktrxer_clock_map real; /* of the sampling thread */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool has_thread, quit; /* quit: under lock */

	/*
	 * The newest line: a sequence lock (the version is odd during a write) over words of 32 bits, since 32-bit
	 * machines have no larger atomics. Words are stored with release and loaded with acquire, so a reader that
	 * has loaded a new word sees the odd version after it.
	 */
	_Alignas(64) _Atomic uint32_t version;
	_Atomic uint32_t words[PHC_LINE_WORDS];
};

void ktrxer_phc_sampler_init(struct phc_sampler *sampler);
/*
 * Switches the stamps of sent packets on, reads the clock once and starts the thread. 0 or a negative errno, as
 * ktrxer_phc_open().
 */
int ktrxer_phc_sampler_open(struct phc_sampler *sampler, const char *device, uint32_t index);
/* The second half of ktrxer_phc_sampler_open(): sampler->phc is open. */
int ktrxer_phc_sampler_start(struct phc_sampler *sampler);
void ktrxer_phc_sampler_close(struct phc_sampler *sampler);

static inline bool phc_sampler_on(const struct phc_sampler *sampler)
{
	return sampler->phc.fd >= 0;
}

/*
 * One reader may call it. It never waits: while the line is being written, and when it is the one of *version, *line
 * stays as it is.
 */
void ktrxer_phc_sampler_line(const struct phc_sampler *sampler, struct phc_line *line, uint32_t *version);

#endif
