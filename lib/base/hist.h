/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the floors above want of a histogram beyond the public calls. */
#ifndef KTRXER_LIB_HIST_H
#define KTRXER_LIB_HIST_H

#include <ktrxer.h>

/* Values beyond +-2^62 ns (146 years) are counted as +-2^62. */
#define KTRXER_HIST_LIMIT ((int64_t)1 << 62)

/* A copy of its own; NULL: no memory. The writer must stand still meanwhile (one thread, or the caller's lock). */
struct ktrxer_hist *ktrxer_hist_copy(const struct ktrxer_hist *hist);
void ktrxer_hist_reset(struct ktrxer_hist *hist);

/*
 * What was recorded since `earlier`, an old copy of the same histogram, was taken. Minimum and maximum of such a difference are
 * known to their bucket only (exact up to 2047 ns, within 0.1 % beyond).
 */
void ktrxer_hist_subtract(struct ktrxer_hist *hist, const struct ktrxer_hist *earlier);

/* Third quartile minus first; 0 when empty. */
int64_t ktrxer_hist_iqr(const struct ktrxer_hist *hist);

/* Walks the buckets that are not empty, from the lowest up; what a CDF is drawn from. */
typedef void ktrxer_hist_visit(void *context, int64_t low_ns, int64_t high_ns, uint64_t count);
void ktrxer_hist_each(const struct ktrxer_hist *hist, ktrxer_hist_visit *visit, void *context);

#endif
