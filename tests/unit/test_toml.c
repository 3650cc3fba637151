/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "toml.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char got[1024];
static struct ktrxer_error error;

static int take(void *context, const struct toml_value *v, struct ktrxer_error *err)
{
	const size_t length = strlen(got);

	(void)context, (void)err;
	snprintf(got + length, sizeof got - length, "%s/%s=%c%s%s@%d ", v->table, v->key, "?snb"[v->kind],
		 v->in_array ? "," : ":", v->text, v->line);
	return 0;
}

static int read_text(const char *text)
{
	got[0] = '\0';
	error = (struct ktrxer_error){ 0 };
	return toml_read(text, strlen(text), take, NULL, &error);
}

static void good(const char *text, const char *wanted)
{
	assert_int_equal(read_text(text), 0);
	assert_string_equal(got, wanted);
	assert_int_equal(error.code, 0);
}

static void bad(const char *text, const char *wanted)
{
	assert_int_equal(read_text(text), -EINVAL);
	if (!strstr(error.text, wanted))
		assert_string_equal(error.text, wanted);
}

TEST(values)
{
	good("", "");
	good("# nothing\n\n \t\n", "");
	good("host = \"far\" # here", "/host=s:far@1 ");
	good("a=1\r\nb = -1.5e3\nc=0xFf\nd=1_000", "/a=n:1@1 /b=n:-1.5e3@2 /c=n:0xFf@3 /d=n:1000@4 ");
	good("t = true\nf = false", "/t=b:true@1 /f=b:false@2 ");
	good("[run]\nx='a\\b'\n[ \"ppt\" . direct ]\n'y z' = \"\"", "run/x=s:a\\b@2 ppt.direct/y z=s:@4 ");
	good("a = [1, # one\n\"2\",\n]\nb=[]", "/a=n,1@1 /a=s,2@2 ");
}

TEST(escapes)
{
	good("a = \"\\\"\\\\\\t\\u00e4\\U0001F600\"", "/a=s:\"\\\t\u00e4\U0001F600@1 ");
	bad("a = \"\\x\"", "line 1: a backslash");
	bad("a = \"\\ud800\"", "line 1: a backslash");
	bad("a = \"\\u00", "line 1: a backslash");
	bad("a = \"\\u0000\"", "line 1: a backslash");
}

TEST(refusals)
{
	bad("a", "line 1: = is missing");
	bad("\n= 1", "line 2: a name is missing");
	bad("a = far", "line 1: not a value");
	bad("a = \"far", "line 1: the string does not end");
	bad("a = \"far\nb\"", "line 1: the string does not end");
	bad("a = 1 b = 2", "line 1: something stands behind");
	bad("a.b = 1", "line 1: a dotted key");
	bad("[[a]]", "line 1: an array of tables");
	bad("[a", "line 1: ] is missing");
	bad("a = {b = 1}", "line 1: an inline table");
	bad("a = [[1]]", "line 1: an array in an array");
	bad("a = [1 2]", "line 1: a comma or ]");
	bad("a = 1979-05-27", "line 1: a date");
	bad("a = 07:32:00", "line 1: not a value");
	bad("a = \"\"\"b\"\"\"", "line 1: a string of several lines");
	bad("a = 01", "line 1: not a value");
	bad("a = 1__0", "line 1: something stands behind");
	bad("a = truely", "line 1: not a value");
	bad("a = \"\001\"", "line 1: a control character");
	bad("a = [", "line 1: not a value");
	bad("a = ", "line 1: not a value");
}

TEST(limits)
{
	static char text[TOML_TEXT_MAX + 16];

	assert_int_equal(toml_read("a\0b", 3, take, NULL, &error), -EINVAL);
	memset(text, 'x', TOML_NAME_MAX + 1);
	strcpy(text + TOML_NAME_MAX + 1, "=1");
	bad(text, "line 1: the name is too long");
	assert_int_equal(read_text(text + 1), 0);
	strcpy(text, "a='");
	memset(text + 3, 'x', TOML_TEXT_MAX + 1);
	strcpy(text + TOML_TEXT_MAX + 4, "'");
	bad(text, "line 1: the string is too long");
	memset(text + 2, '1', TOML_TEXT_MAX + 2);
	text[TOML_TEXT_MAX + 4] = '\0';
	bad(text, "line 1: ");
}
