/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A token bucket on the path, from the arrivals of a train that was sent back to back (Kanuparthy, Dovrolis,
 * "ShaperProbe", IMC 2011): the first packets arrive at the rate of the line, until the bucket is empty, and the others
 * at the sustained rate.
 */
#ifndef KTRXER_METHODS_SHAPER_H
#define KTRXER_METHODS_SHAPER_H

#include <stdbool.h>
#include <stdint.h>

struct shaper {
	double line_bit_s, sustained_bit_s, bucket_bytes;
};

/*
 * `arrived_ns` 0: the packet is lost. False: there is no such change. A load that begins during a train looks the same:
 * see shaper_agree().
 */
bool shaper_of_train(const uint64_t *arrived_ns, uint32_t packets, uint32_t bytes, struct shaper *result);
/* True: both are of one shaper. The bucket may be less full at one train than at another. */
bool shaper_agree(const struct shaper *one, const struct shaper *other);

#endif
