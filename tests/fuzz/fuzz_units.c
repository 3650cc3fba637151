/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A refusal says why and touches nothing; what is taken can be written and read again. */
static bool taken(int ret, const struct ktrxer_error *err, uint64_t value)
{
	if (!ret)
		return true;
	MUST(ret == -EINVAL || ret == -ERANGE);
	MUST(err->code == ret && err->text[0] && !strchr(err->text, '\n'));
	MUST(value == 7);
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1), back[KTRXER_UNITS_TEXT];
	uint64_t a = 7, b = 7, c = 7, again;
	struct ktrxer_error err = { 0 };
	int64_t i = 7;
	int ret;

	MUST(text);
	memcpy(text, data, size);
	text[size] = '\0';

	taken(ktrxer_parse_u64(&a, text, &err), &err, a);
	a = 7;
	ret = ktrxer_parse_i64(&i, text, &err);
	taken(ret, &err, (uint64_t)i);
	ktrxer_format_ns(back, i);
	a = 7;
	if (taken(ktrxer_parse_duration(&a, text, &err), &err, a)) {
		ktrxer_format_duration(back, a);
		MUST(!ktrxer_parse_duration(&again, back, NULL) && again == a);
	}
	a = 7;
	if (taken(ktrxer_parse_bitrate(&a, text, &err), &err, a)) {
		ktrxer_format_bitrate(back, a);
		MUST(!ktrxer_parse_bitrate(&again, back, NULL) || a > UINT64_MAX / 1001 * 1000);
	}
	a = 7;
	if (taken(ktrxer_parse_size(&a, text, &err), &err, a))
		ktrxer_format_size(back, a);
	a = 7;
	if (taken(ktrxer_parse_rate(&a, &b, text, &err), &err, a)) {
		uint64_t gap_num, gap_den;

		MUST(a && b && !ktrxer_rate_gap(a, b, &gap_num, &gap_den) && gap_num && gap_den);
		MUST(a / b <= 1000000000);
	} else {
		MUST(b == 7);
	}
	a = b = 7;
	if (taken(ktrxer_parse_range(&a, &b, &c, text, &err), &err, a))
		MUST(a <= b && c);
	else
		MUST(b == 7 && c == 7);
	free(text);
	return 0;
}
