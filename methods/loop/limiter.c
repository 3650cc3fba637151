/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "limiter.h"

#include "bytes.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { WAYS = 4 };

struct bucket {
	uint64_t prefix;
	uint64_t full_ns; /* when it will be full again */
};

struct limiter {
	uint64_t gap_ns, burst_ns, secret;
	struct bucket buckets[KTRXER_LIMITER_BUCKETS];
};

int limiter_new(struct limiter **out, uint32_t rate, uint32_t burst, uint64_t secret)
{
	struct limiter *limiter = calloc(1, sizeof *limiter);

	*out = limiter;
	if (!limiter)
		return -ENOMEM;
	limiter->gap_ns = rate ? (uint64_t)KTRXER_NS_PER_S / rate : 0;
	if (rate && !limiter->gap_ns)
		limiter->gap_ns = 1;
	limiter->burst_ns = limiter->gap_ns * (burst ? burst - 1 : 0);
	limiter->secret = secret;
	return 0;
}

void limiter_free(struct limiter *limiter)
{
	free(limiter);
}

uint64_t limiter_prefix(const struct ktrxer_addr *addr)
{
	if (addr->family == AF_INET6)
		return load_be64(addr->bytes) | 0xff;
	return (uint64_t)(load_be32(addr->bytes) & 0xffffff00u) << 32 | 1;
}

bool limiter_take(struct limiter *limiter, const struct ktrxer_addr *addr, uint32_t units, uint64_t now_ns)
{
	const uint64_t prefix = limiter_prefix(addr);
	struct bucket *set, *mine = NULL;

	if (!limiter->gap_ns)
		return true;
	set = &limiter->buckets[limiter_mix(prefix ^ limiter->secret) % (KTRXER_LIMITER_BUCKETS / WAYS) * WAYS];
	for (int i = 0; i < WAYS; i++) {
		if (set[i].prefix == prefix) {
			mine = &set[i];
			break;
		}
		if (!mine && set[i].full_ns <= now_ns)
			mine = &set[i];
	}
	if (!mine)
		return false;
	if (mine->prefix != prefix || mine->full_ns < now_ns) {
		mine->prefix = prefix;
		mine->full_ns = now_ns;
	}
	if (mine->full_ns - now_ns > limiter->burst_ns)
		return false;
	mine->full_ns += units * limiter->gap_ns;
	return true;
}
