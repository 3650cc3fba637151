/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Calls of the writer, in any order, with any strings and numbers. Complete output must be JSON (RFC 8259)
 * in valid UTF-8, by a small reader that knows nothing of the writer.
 */
#include "json.h"

#include "bytes.h"

#include <stdlib.h>

#define MUST(condition)                                                                                                \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			abort();                                                                                       \
	} while (0)

/* --------------------------------------------------------------------------------------------------- a small reader */

static void blanks(const char **at)
{
	while (**at == ' ' || **at == '\n')
		++*at;
}

static void read_utf8(const char **at)
{
	const unsigned char *s = (const unsigned char *)*at;
	unsigned int more = s[0] < 0x80 ? 0 : s[0] < 0xe0 ? 1 : s[0] < 0xf0 ? 2 : 3, code;

	MUST(s[0] < 0x80 || (s[0] >= 0xc2 && s[0] <= 0xf4));
	code = more ? s[0] & (0x3f >> more) : s[0];
	for (unsigned int i = 1; i <= more; i++) {
		MUST((s[i] & 0xc0) == 0x80);
		code = code << 6 | (s[i] & 0x3f);
	}
	MUST(more != 2 || code >= 0x800);
	MUST(more != 3 || code >= 0x10000);
	MUST(code <= 0x10ffff && (code < 0xd800 || code > 0xdfff));
	*at += more + 1;
}

static void read_string(const char **at)
{
	MUST(*(*at)++ == '"');
	while (**at != '"') {
		MUST((unsigned char)**at >= 0x20 && **at != 0x7f);
		if (**at != '\\') {
			read_utf8(at);
			continue;
		}
		++*at;
		if (**at == 'u')
			for (int i = 1; i <= 4; i++)
				MUST(strchr("0123456789abcdef", (*at)[i]) && (*at)[i]);
		else
			MUST(**at && strchr("\"\\nrt", **at));
		*at += **at == 'u' ? 5 : 1;
	}
	++*at;
}

static void read_digits(const char **at)
{
	MUST(**at >= '0' && **at <= '9');
	while (**at >= '0' && **at <= '9')
		++*at;
}

static void read_number(const char **at)
{
	*at += **at == '-';
	if (**at == '0')
		++*at;
	else
		read_digits(at);
	if (**at == '.') {
		++*at;
		read_digits(at);
	}
	if (**at == 'e') {
		++*at;
		*at += **at == '-' || **at == '+';
		read_digits(at);
	}
}

static void read_value(const char **at);

static void read_container(const char **at, char open, char close)
{
	MUST(*(*at)++ == open);
	blanks(at);
	if (**at == close) {
		++*at;
		return;
	}
	for (;; ++*at) {
		blanks(at);
		if (open == '{') {
			read_string(at);
			MUST(*(*at)++ == ':');
			blanks(at);
		}
		read_value(at);
		blanks(at);
		if (**at != ',')
			break;
	}
	MUST(*(*at)++ == close);
}

static void read_word(const char **at, const char *word)
{
	MUST(!strncmp(*at, word, strlen(word)));
	*at += strlen(word);
}

static void read_value(const char **at)
{
	switch (**at) {
	case '{':
		read_container(at, '{', '}');
		return;
	case '[':
		read_container(at, '[', ']');
		return;
	case '"':
		read_string(at);
		return;
	case 't':
		read_word(at, "true");
		return;
	case 'f':
		read_word(at, "false");
		return;
	case 'n':
		read_word(at, "null");
		return;
	default:
		read_number(at);
	}
}

/* ----------------------------------------------------------------------------------------------------------- calls */

/* A string of up to 63 bytes, any bytes but NUL. */
static char *take_string(struct bytes *b)
{
	size_t length = bytes_u8(b) % 64, left = bytes_left(b);
	const uint8_t *from;
	char *string;

	if (length > left)
		length = left;
	from = bytes_take(b, length);
	string = calloc(1, length + 1);
	MUST(string);
	if (from)
		memcpy(string, from, length);
	return string;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes b = bytes_of(data, size);
	struct json *json = json_new(bytes_u8(&b) & 1);
	size_t length = 0;
	const char *text;

	MUST(json);
	while (bytes_left(&b)) {
		uint8_t what = bytes_u8(&b);
		char *key = what & 0x80 ? take_string(&b) : NULL, *string;
		double number;
		uint64_t bits;

		switch (what & 0x7f) {
		case 0:
			json_object(json, key);
			break;
		case 1:
			json_object_end(json);
			break;
		case 2:
			json_array(json, key);
			break;
		case 3:
			json_array_end(json);
			break;
		case 4:
			json_u64(json, key, bytes_be64(&b));
			break;
		case 5:
			json_i64(json, key, (int64_t)bytes_be64(&b));
			break;
		case 6:
			json_fixed(json, key, (int64_t)bytes_be64(&b), (int8_t)bytes_u8(&b));
			break;
		case 7:
			bits = bytes_be64(&b);
			memcpy(&number, &bits, sizeof number);
			json_double(json, key, number);
			break;
		case 8:
			json_bool(json, key, true);
			break;
		case 9:
			json_null(json, key);
			break;
		case 10:
			json_reset(json);
			break;
		default:
			string = take_string(&b);
			json_string(json, key, string);
			free(string);
		}
		free(key);
	}
	text = json_text(json, &length);
	if (text) {
		const char *at = text;

		MUST(strlen(text) == length);
		read_value(&at);
		MUST(!*at);
	}
	json_free(json);
	return 0;
}
