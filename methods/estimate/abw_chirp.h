/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * pathChirp (Ribeiro, Riedi, Baraniuk, Navratil, Cottrell, PAM 2003): a chirp is a train whose gaps shrink by a
 * constant factor, so that it passes a range of rates. Excursions of its queueing delay bound the available
 * bandwidth.
 */
#ifndef KTRXER_METHODS_ABW_CHIRP_H
#define KTRXER_METHODS_ABW_CHIRP_H

#include "abw_trend.h"

/*
 * The estimate of one chirp in bit/s, from packets of `bits`. 0: fewer than ABW_TREND_LEAST packets are known. A
 * lost packet ends no excursion: the packets around it are neighbours. The result lies between the chirp's first
 * rate and its last. `skew`: of the receiver's clock (abw_skew()); with it, the delays of the slow packets would
 * rise, as in a queue that fills.
 */
double abw_chirp(const struct abw_train *train, uint64_t bits, double skew);

#endif
