/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Stopping points of the Multipath Detection Algorithm (Augustin, Friedman, Teixeira, E2EMON 2007; Veitch et al.,
 * INFOCOM 2009): the number of probes with different flow identifiers that exclude a further next hop of a router,
 * after k were seen.
 */
#ifndef KTRXER_METHODS_MDA_H
#define KTRXER_METHODS_MDA_H

#include <stdint.h>

enum { MDA_HOPS_MAX = 256 };

/*
 * The smallest number n_k of probes after which all of `hops` equally probable next hops (k + 1, from 2 to
 * MDA_HOPS_MAX) have been seen, but for a probability of at most `failure` (0 < failure < 1: 0.05 is a confidence of 95
 * %). 0 where an argument is out of these limits.
 */
uint32_t mda_probes(uint32_t hops, double failure);

/*
 * The smallest number of probes after which, where `seen` next hops are known, none is missed that has at least this
 * share of the flows, but for a probability of at most `failure`; the others have any shares. The worst case are two
 * next hops (share, 1 - share) where one was seen, else seen + 1 with this share, but not more than 1/share. 0 where an
 * argument is out of its limits: seen 0, a share above a half.
 */
uint32_t mda_share_probes(uint32_t seen, double share, double failure);

#endif
