/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A configuration file of any bytes: values within the limits, or a refusal in one line. */
#include "toml.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

static int take(void *context, const struct toml_value *value, struct ktrxer_error *err)
{
	int *const line = context;

	(void)err;
	MUST(strlen(value->table) <= TOML_NAME_MAX && strlen(value->key) <= TOML_NAME_MAX);
	MUST(strlen(value->text) <= TOML_TEXT_MAX && value->line >= *line);
	MUST(value->kind == TOML_STRING || *value->text);
	*line = value->line;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_error err = { 0 };
	int line = 1, rc;
	/* A copy of this size, so that a read behind the end is found. */
	char *const copy = malloc(size ? size : 1);

	MUST(copy);
	memcpy(copy, data, size);
	rc = toml_read(copy, size, take, &line, &err);
	MUST(rc == 0 || rc == -EINVAL);
	MUST((rc < 0) == (err.text[0] != '\0') && !strchr(err.text, '\n'));
	free(copy);
	return 0;
}
