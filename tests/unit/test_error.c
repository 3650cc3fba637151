/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "error.h"

#include <errno.h>
#include <string.h>

TEST(fills_text_and_returns_code)
{
	struct ktrxer_error err = { 0 };

	assert_int_equal(ktrxer_fail(&err, -ENODEV, "device '%s'", "eth9"), -ENODEV);
	assert_int_equal(err.code, -ENODEV);
	assert_string_equal(err.text, "device 'eth9'");
	assert_int_equal(ktrxer_fail(NULL, -EINVAL, "no message object"), -EINVAL);
}

TEST(cuts_the_middle_and_cleans)
{
	struct ktrxer_error err;
	char name[2 * KTRXER_ERROR_TEXT];

	memset(name, 'x', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	ktrxer_fail(&err, -EINVAL, "%s", name);
	assert_int_equal(strlen(err.text), KTRXER_ERROR_TEXT - 1);
	assert_non_null(strstr(err.text, "xxx ... xxx"));
	ktrxer_fail(&err, -EINVAL, "device '%s': no such device; `ip link` lists them", name);
	assert_int_equal(strlen(err.text), KTRXER_ERROR_TEXT - 1);
	assert_memory_equal(err.text, "device 'xxx", 11);
	assert_string_equal(err.text + KTRXER_ERROR_TEXT - 1 - 42, "xxx': no such device; `ip link` lists them");
	ktrxer_fail(&err, -EINVAL, "%.*s", KTRXER_ERROR_TEXT - 1, name);
	assert_string_equal(err.text, name + sizeof name - KTRXER_ERROR_TEXT); /* fits: whole */
	ktrxer_fail(&err, -EINVAL, "a\nb\x1b[31m");
	assert_string_equal(err.text, "a?b?[31m");
	ktrxer_fail(&err, -EINVAL, "\xc3\xa9\xc2\xb5 \xc2\x9b\x32J \xc2");
	assert_string_equal(err.text, "\xc3\xa9\xc2\xb5 ??2J \xc2"); /* U+009B begins a command, U+00B5 does not */
}
