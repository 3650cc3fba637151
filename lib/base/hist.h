/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Calls of histograms for methods and commands, beyond the public ones. */
#ifndef KTRXER_LIB_HIST_H
#define KTRXER_LIB_HIST_H

#include <ktrxer.h>

/* Values beyond +-2^62 ns (146 years) are counted as +-2^62. */
#define KTRXER_HIST_LIMIT ((int64_t)1 << 62)

/* The value with this rank in ascending order, from 1; beyond the ends: that of the end. 0 when empty. */
int64_t ktrxer_hist_at(const struct ktrxer_hist *hist, uint64_t rank);
/* Third quartile minus first; 0 when empty. */
int64_t ktrxer_hist_iqr(const struct ktrxer_hist *hist);

#endif
