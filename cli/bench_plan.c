/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <string.h>

int bench_list_parse(uint64_t *values, int *count, const char *text, bool durations, const char *option, struct ktrxer_error *err)
{
	char word[48];

	*count = 0;
	for (const char *at = text;; at++) {
		struct ktrxer_error why;
		size_t n = strcspn(at, ",");
		int rc;

		if (n >= sizeof word)
			return ktrxer_fail(err, -EINVAL, "%s '%.60s': one of its values is too long", option, text);
		if (*count == BENCH_LEVELS)
			return ktrxer_fail(err, -EINVAL, "%s: at most %d values", option, BENCH_LEVELS);
		memcpy(word, at, n);
		word[n] = '\0';
		rc = durations ? ktrxer_parse_duration(&values[*count], word, &why) : ktrxer_parse_u64(&values[*count], word, &why);
		if (rc < 0)
			return ktrxer_fail(err, rc, "%s: %s", option, why.text);
		(*count)++;
		at += n;
		if (!*at)
			return 0;
	}
}
