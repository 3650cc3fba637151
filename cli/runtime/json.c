/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	DEPTH_MAX = 32,       /* bits of the two masks below */
	FIRST_CAPACITY = 512, /* a sample fits */
	DECIMALS_MAX = 18,
};

struct json {
	char *text;
	size_t length, capacity; /* capacity counts the NUL */
	uint32_t objects;        /* bit n: level n is an object, else an array */
	uint32_t filled;         /* bit n: level n has a member already */
	unsigned int depth;      /* of open containers */
	bool pretty;
	bool done;   /* the outermost value is complete */
	bool broken; /* no memory, or badly nested: nothing more is written */
};

struct json *json_new(bool pretty)
{
	struct json *json = calloc(1, sizeof *json);

	if (!json)
		return NULL;
	json->text = malloc(FIRST_CAPACITY);
	if (!json->text) {
		free(json);
		return NULL;
	}
	json->text[0] = '\0';
	json->capacity = FIRST_CAPACITY;
	json->pretty = pretty;
	return json;
}

void json_free(struct json *json)
{
	if (!json)
		return;
	free(json->text);
	free(json);
}

void json_reset(struct json *json)
{
	json->text[0] = '\0';
	json->length = 0;
	json->objects = json->filled = 0;
	json->depth = 0;
	json->done = json->broken = false;
}

const char *json_text(const struct json *json, size_t *length)
{
	if (json->broken || !json->done)
		return NULL;
	if (length)
		*length = json->length;
	return json->text;
}

size_t json_capacity(const struct json *json)
{
	return json->capacity;
}

/* Room for `more` bytes and the NUL; NULL and broken when there is none. */
static char *room(struct json *json, size_t more)
{
	size_t wanted = json->length + more + 1, capacity = json->capacity;
	char *text;

	if (json->broken)
		return NULL;
	if (wanted <= capacity)
		return json->text + json->length;
	while (capacity < wanted) {
		if (capacity > SIZE_MAX / 2)
			goto none;
		capacity *= 2;
	}
	text = realloc(json->text, capacity);
	if (!text)
		goto none;
	json->text = text;
	json->capacity = capacity;
	return text + json->length;
none:
	json->broken = true;
	return NULL;
}

static void put(struct json *json, const char *bytes, size_t length)
{
	char *to = room(json, length);

	if (!to)
		return;
	memcpy(to, bytes, length);
	to[length] = '\0';
	json->length += length;
}

static void put_line(struct json *json)
{
	static const char blanks[] = "\n                                                                ";

	if (json->pretty)
		put(json, blanks, 1 + 2 * json->depth);
}

/*
 * The length of the UTF-8 sequence at `s` (RFC 3629: no surrogates, nothing overlong, nothing past U+10FFFF); where
 * there is none, minus the number of bytes that one U+FFFD stands for (Unicode 3.9, "maximal subparts", as Python and
 * browsers do it).
 */
static int utf8_length(const unsigned char *s)
{
	unsigned char low = 0x80, high = 0xbf;
	int length;

	if (s[0] < 0x80)
		return 1;
	if (s[0] >= 0xc2 && s[0] <= 0xdf) {
		length = 2;
	} else if (s[0] >= 0xe0 && s[0] <= 0xef) {
		length = 3;
		low = s[0] == 0xe0 ? 0xa0 : low;
		high = s[0] == 0xed ? 0x9f : high;
	} else if (s[0] >= 0xf0 && s[0] <= 0xf4) {
		length = 4;
		low = s[0] == 0xf0 ? 0x90 : low;
		high = s[0] == 0xf4 ? 0x8f : high;
	} else {
		return -1;
	}
	/* A NUL ends the string before it is read past: it is in no range. */
	if (s[1] < low || s[1] > high)
		return -1;
	for (int i = 2; i < length; i++)
		if (s[i] < 0x80 || s[i] > 0xbf)
			return -i;
	return length;
}

static void put_quoted(struct json *json, const char *value)
{
	const unsigned char *s = (const unsigned char *)value, *from = s;

	put(json, "\"", 1);
	while (*s) {
		const char *escape = NULL;
		char code[8];
		int length;

		if (*s >= 0x20 && *s < 0x7f && *s != '"' && *s != '\\') { /* nearly all there is */
			s++;
			continue;
		}
		length = utf8_length(s);
		if (length < 0)
			escape = "\xef\xbf\xbd";
		else if (*s == '"')
			escape = "\\\"";
		else if (*s == '\\')
			escape = "\\\\";
		else if (*s == '\n')
			escape = "\\n";
		else if (*s == '\t')
			escape = "\\t";
		else if (*s == '\r')
			escape = "\\r";
		else if (*s < 0x20 || *s == 0x7f) {
			snprintf(code, sizeof code, "\\u%04x", *s);
			escape = code;
		}
		if (!escape) {
			s += length;
			continue;
		}
		put(json, (const char *)from, (size_t)(s - from));
		put(json, escape, strlen(escape));
		s += length < 0 ? -length : 1;
		from = s;
	}
	put(json, (const char *)from, (size_t)(s - from));
	put(json, "\"", 1);
}

/* Writes the text before each value: comma, line, key. False: a value may not stand here. */
static bool begin(struct json *json, const char *key)
{
	uint32_t level = json->depth ? 1u << (json->depth - 1) : 0;
	bool in_object = json->objects & level;

	if (json->broken || json->done || in_object != (key != NULL)) {
		json->broken = true;
		return false;
	}
	if (json->depth) {
		if (json->filled & level)
			put(json, ",", 1);
		json->filled |= level;
		put_line(json);
	}
	if (key) {
		put_quoted(json, key);
		put(json, ": ", json->pretty ? 2 : 1);
	}
	return !json->broken;
}

static void finish(struct json *json)
{
	if (!json->depth)
		json->done = true;
}

static void value(struct json *json, const char *key, const char *text)
{
	if (!begin(json, key))
		return;
	put(json, text, strlen(text));
	finish(json);
}

static void open_level(struct json *json, const char *key, bool object)
{
	if (json->depth == DEPTH_MAX)
		json->broken = true;
	if (!begin(json, key))
		return;
	put(json, object ? "{" : "[", 1);
	if (object)
		json->objects |= 1u << json->depth;
	else
		json->objects &= ~(1u << json->depth);
	json->filled &= ~(1u << json->depth);
	json->depth++;
}

static void close_level(struct json *json, bool object)
{
	uint32_t level;

	if (json->broken || !json->depth || object != (bool)(json->objects >> (json->depth - 1) & 1)) {
		json->broken = true;
		return;
	}
	json->depth--;
	level = 1u << json->depth;
	if (json->filled & level)
		put_line(json);
	put(json, object ? "}" : "]", 1);
	finish(json);
}

void json_object(struct json *json, const char *key)
{
	open_level(json, key, true);
}

void json_object_end(struct json *json)
{
	close_level(json, true);
}

void json_array(struct json *json, const char *key)
{
	open_level(json, key, false);
}

void json_array_end(struct json *json)
{
	close_level(json, false);
}

void json_string(struct json *json, const char *key, const char *string)
{
	if (!string) {
		json_null(json, key);
		return;
	}
	if (!begin(json, key))
		return;
	put_quoted(json, string);
	finish(json);
}

/* printf is too slow: a line of a probe has a dozen numbers, and there are a thousand such lines a second. */
static void number_put(struct json *json, const char *key, uint64_t size, bool negative)
{
	char text[24], *at = text + sizeof text;

	*--at = '\0';
	do {
		*--at = (char)('0' + size % 10);
		size /= 10;
	} while (size);
	if (negative)
		*--at = '-';
	value(json, key, at);
}

void json_u64(struct json *json, const char *key, uint64_t number)
{
	number_put(json, key, number, false);
}

void json_i64(struct json *json, const char *key, int64_t number)
{
	number_put(json, key, number < 0 ? 0 - (uint64_t)number : (uint64_t)number, number < 0);
}

void json_fixed(struct json *json, const char *key, int64_t number, int decimals)
{
	uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number, scale = 1;
	char text[48];

	if (decimals <= 0 || decimals > DECIMALS_MAX) {
		json_i64(json, key, number);
		return;
	}
	for (int i = 0; i < decimals; i++)
		scale *= 10;
	snprintf(text, sizeof text, "%s%" PRIu64 ".%0*" PRIu64, number < 0 ? "-" : "", size / scale, decimals,
		 size % scale);
	value(json, key, text);
}

/* json_double() and its strtod() are 5 KB of the static program. */
void json_rounded(struct json *json, const char *key, double number, int decimals)
{
	for (int i = 0; i < decimals; i++)
		number *= 10;
	if (!(number > -9e18 && number < 9e18)) /* NaN is neither */
		json_null(json, key);
	else
		json_fixed(json, key, (int64_t)(number < 0 ? number - 0.5 : number + 0.5), decimals);
}

void json_double(struct json *json, const char *key, double number)
{
	char text[40];

	if (!isfinite(number)) {
		json_null(json, key);
		return;
	}
	/* 17 digits always read back; most figures need fewer. The locale stays "C": no code calls setlocale(). */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof text, "%.*g", digits, number);
		if (strtod(text, NULL) == number)
			break;
	}
	value(json, key, text);
}

void json_bool(struct json *json, const char *key, bool flag)
{
	value(json, key, flag ? "true" : "false");
}

void json_null(struct json *json, const char *key)
{
	value(json, key, "null");
}

void json_u64_or_null(struct json *json, const char *key, bool known, uint64_t number)
{
	if (known)
		json_u64(json, key, number);
	else
		json_null(json, key);
}

void json_fixed_or_null(struct json *json, const char *key, bool known, int64_t number, int decimals)
{
	if (known)
		json_fixed(json, key, number, decimals);
	else
		json_null(json, key);
}

void json_line_end(struct json *json)
{
	if (!json->done)
		json->broken = true;
	put(json, "\n", 1);
}

void json_verbatim(struct json *json, const char *text, size_t length)
{
	json_reset(json);
	put(json, text, length);
	json->done = true;
}
