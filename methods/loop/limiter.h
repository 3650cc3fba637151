/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * So many packets a second to each neighbourhood of the network (/24 of IPv4, /56 of IPv6), in a table of fixed size. What a
 * forger makes us send to a victim is bounded by it, whatever addresses he invents.
 *
 * A bucket is one number, the time at which it will be full again (GCRA, the same as a token bucket); one that is full is as
 * good as free. When every place of a newcomer's is taken by one that is not full, the newcomer waits: to make room by
 * forgetting another's debt would let a flood of forged addresses lift the limit for all.
 */
#ifndef KTRXER_METHODS_LIMITER_H
#define KTRXER_METHODS_LIMITER_H

#include <ktrxer.h>

struct limiter;

/* `rate` a second, 0: no limit at all. `burst` packets may come at once after a silence. `secret`: what an attacker does not know. */
int limiter_new(struct limiter **limiter, uint32_t rate, uint32_t burst, uint64_t secret);
void limiter_free(struct limiter *limiter);
/* May one more packet go to this address now? If so it is counted. */
bool limiter_take(struct limiter *limiter, const struct ktrxer_addr *addr, uint64_t now_ns);

/* Mixes 64 bits so that each decides on all. */
static inline uint64_t limiter_mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

#endif
