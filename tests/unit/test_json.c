/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(struct json *json, const char *text)
{
	size_t length = 0;
	const char *is = json_text(json, &length);

	assert_non_null(is);
	assert_string_equal(is, text);
	assert_int_equal(length, strlen(text));
	json_free(json);
}

TEST(compact)
{
	struct json *json = json_new(false);

	json_object(json, NULL);
	json_string(json, "type", "end");
	json_u64(json, "large", UINT64_MAX);
	json_i64(json, "small", INT64_MIN);
	json_array(json, "list");
	json_bool(json, NULL, true);
	json_bool(json, NULL, false);
	json_null(json, NULL);
	json_object(json, NULL);
	json_object_end(json);
	json_array(json, NULL);
	json_array_end(json);
	json_array_end(json);
	json_object_end(json);
	expect(json, "{\"type\":\"end\",\"large\":18446744073709551615,\"small\":-9223372036854775808,"
		     "\"list\":[true,false,null,{},[]]}");
}

TEST(pretty)
{
	struct json *json = json_new(true);

	json_object(json, NULL);
	json_object(json, "rtt_us");
	json_fixed(json, "min", 1234, 3);
	json_null(json, "max");
	json_object_end(json);
	json_array(json, "none");
	json_array_end(json);
	json_object_end(json);
	json_line_end(json);
	expect(json, "{\n  \"rtt_us\": {\n    \"min\": 1.234,\n    \"max\": null\n  },\n  \"none\": []\n}\n");
}

TEST(fixed)
{
	static const struct {
		int64_t value;
		int decimals;
		const char *text;
		/* clang-format off */
	} cases[] = {
		{ 1234, 3, "1.234" },    { -1234, 3, "-1.234" }, { 5, 3, "0.005" },
		{ -5, 3, "-0.005" },     { 0, 3, "0.000" },      { 7, 0, "7" },
		{ 7, -1, "7" },          { 7, 19, "7" },         { INT64_MIN, 3, "-9223372036854775.808" },
		{ INT64_MAX, 18, "9.223372036854775807" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct json *json = json_new(false);

		json_fixed(json, NULL, cases[i].value, cases[i].decimals);
		expect(json, cases[i].text);
	}
}

TEST(doubles)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0.1, "0.1" },        { 1.0 / 3, "0.333333333333333315" },
		{ 1e300, "1e+300" },   { 5e-324, "4.94065645841247e-324" },
		{ -0.0, "-0" },        { 0.1 + 0.2, "0.30000000000000004" },
		{ 1e15, "1e+15" },     { 123456.789, "123456.789" },
		{ NAN, "null" },       { INFINITY, "null" },
		{ -INFINITY, "null" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct json *json = json_new(false);
		const char *text;

		json_double(json, NULL, cases[i].value);
		text = json_text(json, NULL);
		assert_non_null(text);
		if (i != 1)
			assert_string_equal(text, cases[i].text);
		if (isfinite(cases[i].value))
			assert_true(strtod(text, NULL) == cases[i].value);
		json_free(json);
	}
}

TEST(rounded)
{
	static const struct {
		double value;
		const char *text;
		/* clang-format off */
	} cases[] = {
		{ 0, "0.000000" },	      { 0.1, "0.100000" },  { -12.3456789, "-12.345679" },
		{ -4e-7, "0.000000" },
		{ 9e11, "900000000000.000000" }, { 9.3e12, "null" },   { -1e300, "null" },	   { NAN, "null" },
		{ INFINITY, "null" },	      { -INFINITY, "null" },
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct json *json = json_new(false);

		json_rounded(json, NULL, cases[i].value, 6);
		assert_string_equal(json_text(json, NULL), cases[i].text);
		json_free(json);
	}
}

TEST(strings)
{
	static const struct {
		const char *value, *text;
	} cases[] = {
		{ "", "\"\"" },
		{ "a\"b\\c/d", "\"a\\\"b\\\\c/d\"" },
		{ "\n\r\t\b\x01\x1f\x7f", "\"\\n\\r\\t\\u0008\\u0001\\u001f\\u007f\"" },
		{ "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		{ "\xff", "\"\xef\xbf\xbd\"" },
		{ "a\x80z", "\"a\xef\xbf\xbdz\"" },
		{ "\xc3", "\"\xef\xbf\xbd\"" }, /* cut short by the end */
		{ "\xe2\x82", "\"\xef\xbf\xbd\"" },
		{ "\xf0\x9f\x98", "\"\xef\xbf\xbd\"" },
		{ "\xe2\x82z", "\"\xef\xbf\xbdz\"" },
		{ "\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\"" }, /* overlong '/' */
		{ "\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },
		{ "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" },                 /* a surrogate */
		{ "\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"" }, /* past U+10FFFF */
		{ "\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"" },
		{ NULL, "null" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct json *json = json_new(false);

		json_string(json, NULL, cases[i].value);
		expect(json, cases[i].text);
	}
}

TEST(grows_and_resets)
{
	struct json *json = json_new(false);
	char *large = malloc(100001);
	size_t capacity, length;

	assert_non_null(large);
	memset(large, 'x', 100000);
	large[100000] = '\0';
	json_array(json, NULL);
	for (int i = 0; i < 10; i++)
		json_string(json, NULL, large);
	assert_null(json_text(json, NULL)); /* still open */
	json_array_end(json);
	assert_non_null(json_text(json, &length));
	assert_int_equal(length, 2 + 10 * 100002 + 9);
	capacity = json_capacity(json);
	json_reset(json);
	assert_null(json_text(json, NULL));
	json_u64(json, NULL, 1);
	assert_int_equal(json_capacity(json), capacity);
	expect(json, "1");
	free(large);
}

static void refuses(void (*make)(struct json *json))
{
	struct json *json = json_new(false);

	make(json);
	assert_null(json_text(json, NULL));
	json_reset(json); /* and is good as new afterwards */
	json_null(json, NULL);
	expect(json, "null");
}

static void no_key(struct json *json)
{
	json_object(json, NULL);
	json_u64(json, NULL, 1);
	json_object_end(json);
}

static void key_in_array(struct json *json)
{
	json_array(json, NULL);
	json_u64(json, "a", 1);
	json_array_end(json);
}

static void key_outside(struct json *json)
{
	json_u64(json, "a", 1);
}

static void two_values(struct json *json)
{
	json_u64(json, NULL, 1);
	json_u64(json, NULL, 2);
}

static void crossed(struct json *json)
{
	json_object(json, NULL);
	json_array(json, "a");
	json_object_end(json);
	json_array_end(json);
}

static void too_many_ends(struct json *json)
{
	json_object(json, NULL);
	json_object_end(json);
	json_object_end(json);
}

static void left_open(struct json *json)
{
	json_object(json, NULL);
}

static void too_deep(struct json *json)
{
	for (int i = 0; i < 33; i++)
		json_array(json, NULL);
	for (int i = 0; i < 33; i++)
		json_array_end(json);
}

static void line_in_the_middle(struct json *json)
{
	json_object(json, NULL);
	json_line_end(json);
	json_object_end(json);
}

TEST(nesting)
{
	struct json *json = json_new(true);

	refuses(no_key);
	refuses(key_in_array);
	refuses(key_outside);
	refuses(two_values);
	refuses(crossed);
	refuses(too_many_ends);
	refuses(left_open);
	refuses(too_deep);
	refuses(line_in_the_middle);
	for (int i = 0; i < 32; i++)
		json_array(json, NULL);
	for (int i = 0; i < 32; i++)
		json_array_end(json);
	assert_non_null(json_text(json, NULL));
	json_free(json);
	json_free(NULL);
}
