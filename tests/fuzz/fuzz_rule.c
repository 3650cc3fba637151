/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A rule as text: an accepted rule has allowed fields, and is the same when it is written and read again. */
#include "rule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_error err = { 0 };
	struct krx_rule rule, again;
	char text[KRX_RULE_TEXT], twice[KRX_RULE_TEXT];
	char *copy = malloc(size + 1);

	if (!copy)
		return 0;
	if (size)
		memcpy(copy, data, size);
	copy[size] = '\0';
	if (krx_rule_parse(&rule, copy, &err)) {
		if (!err.text[0])
			abort();
	} else {
		if (krx_rule_check(&rule, NULL))
			abort();
		krx_rule_format(&rule, text);
		if (krx_rule_parse(&again, text, NULL) || strcmp(krx_rule_format(&again, twice), text) != 0)
			abort();
	}
	free(copy);
	return 0;
}
