/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <string.h>

static const char *const methods[] = {
	[BENCH_OIR] = "oir", [BENCH_OFR] = "ofr", [BENCH_OSM] = "osm", [BENCH_RSM] = "rsm"
};

int bench_methods_parse(struct bench_run *run, struct ktrxer_error *err)
{
	const struct bench_options *o = run->o;

	for (const char *at = o->methods; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
		const size_t n = strcspn(at, ",");
		int m = BENCH_OIR;

		while (m < BENCH_METHODS && (strlen(methods[m]) != n || memcmp(methods[m], at, n)))
			m++;
		if (m == BENCH_METHODS)
			return ktrxer_fail(err, -EINVAL, "--methods '%.*s': there are oir, ofr, osm and rsm",
					   (int)(n < 40 ? n : 40), at);
		run->methods[m] = true;
	}
	if (run->methods[BENCH_OIR] && o->count > BENCH_OIR_MOST)
		return ktrxer_fail(err, -ERANGE,
				   "--methods oir hands all probes over at the start: --count is at most %d then",
				   BENCH_OIR_MOST);
	if (!o->predispatch)
		return 0;
	return bench_list_parse(run->predispatch_ns, &run->predispatches, o->predispatch, true, "--predispatch", err);
}

int bench_list_parse(uint64_t *values, int *count, const char *text, bool durations, const char *option,
		     struct ktrxer_error *err)
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
		rc = durations ? ktrxer_parse_duration(&values[*count], word, &why)
			       : ktrxer_parse_u64(&values[*count], word, &why);
		if (rc < 0)
			return ktrxer_fail(err, rc, "%s: %s", option, why.text);
		(*count)++;
		at += n;
		if (!*at)
			return 0;
	}
}
