/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * --vary: anything is either refused with a line, or a field that the library's own checks can look at. Files are not
 * opened.
 */
#include "send_vary.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct opt_rate rate = { 0 };
	struct ktrxer_error err = { 0 };
	struct vary vary = { 0 };
	char *copy;

	if (!size || !(copy = malloc(size)))
		return 0;
	memcpy(copy, data + 1, size - 1);
	copy[size - 1] = '\0';
	if (strstr(copy, ":@"))
		goto free_copy;
	if (vary_add(&vary, copy, data[0] & 1 ? AF_INET6 : AF_INET, &err) < 0) {
		if (!err.text[0] || strchr(err.text, '\n'))
			abort();
	} else {
		const struct ktx_vary *field = &vary.fields[0];

		if (vary.count != 1 || !field->how || (field->how == KTX_VARY_TABLE) != (field->table != NULL))
			abort();
		/* Each field is accepted with `flood`. */
		if (vary_guard(&vary, &rate, true, &err) != 0)
			abort();
		if (field->count < 1 << 16)
			(void)vary_guard(&vary, &rate, false, &err);
	}
	vary_free(&vary);
free_copy:
	free(copy);
	return 0;
}
