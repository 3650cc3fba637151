/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_METHODS_ESTIMATE_SORT_H
#define KTRXER_METHODS_ESTIMATE_SORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline int estimate_by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static inline void estimate_sort(int64_t *values, size_t count)
{
	if (count > 1)
		qsort(values, count, sizeof *values, estimate_by_value);
}

#endif
