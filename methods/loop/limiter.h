/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A rate limit for each prefix (/24 of IPv4, /56 of IPv6), in a table of fixed size. It bounds the traffic that forged
 * source addresses can direct to a victim.
 *
 * A bucket is one number, the time at which it will be full again (GCRA, the same as a token bucket). A full bucket is
 * as good as a free place. When no place of a new prefix is free, the packet is refused: making room by forgetting the
 * debt of another prefix would let a flood of forged addresses lift the limit for all.
 */
#ifndef KTRXER_METHODS_LIMITER_H
#define KTRXER_METHODS_LIMITER_H

#include <ktrxer.h>

enum { KTRXER_LIMITER_BUCKETS = 8192 /* 128 KiB; a power of two */ };

struct limiter;

/*
 * `rate` a second, 0: no limit at all. `burst` packets may come at once after a silence. `secret`: what an attacker
 * does not know.
 */
int limiter_new(struct limiter **limiter, uint32_t rate, uint32_t burst, uint64_t secret);
void limiter_free(struct limiter *limiter);
/* Counts a packet that costs `units` if it may go to this address now. Its own cost may exceed the burst. */
bool limiter_take(struct limiter *limiter, const struct ktrxer_addr *addr, uint32_t units, uint64_t now_ns);
/* The prefix of an address as one number: never 0, and different for the two families. */
uint64_t limiter_prefix(const struct ktrxer_addr *addr);

/* One bucket, for a limit of all: `full_ns` is the time at which it will be full again. */
static inline bool limiter_bucket_take(uint64_t *full_ns, uint64_t cost_ns, uint64_t burst_ns, uint64_t now_ns)
{
	if (*full_ns < now_ns)
		*full_ns = now_ns;
	if (*full_ns - now_ns > burst_ns)
		return false;
	*full_ns += cost_ns;
	return true;
}

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
