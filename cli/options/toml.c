/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "toml.h"

#include "error.h"

#include <errno.h>
#include <string.h>

enum { NUMBER_MAX = 64 /* digits before and after the point, and of the exponent */ };

struct reader {
	const char *at, *end;
	int line;
	char table[TOML_NAME_MAX + 1], key[TOML_NAME_MAX + 1], text[TOML_TEXT_MAX + 1];
	int (*take)(void *context, const struct toml_value *value, struct ktrxer_error *err);
	void *context;
	struct ktrxer_error *err;
};

static int refuse(const struct reader *r, const char *why)
{
	return ktrxer_fail(r->err, -EINVAL, "line %d: %s", r->line, why);
}

/* The next byte; 0 at the end, which no text contains. */
static char peek(const struct reader *r)
{
	return r->at < r->end ? *r->at : '\0';
}

static bool at_text(const struct reader *r, const char *text)
{
	const size_t length = strlen(text);

	return (size_t)(r->end - r->at) >= length && !memcmp(r->at, text, length);
}

static void skip_blanks(struct reader *r)
{
	while (peek(r) == ' ' || peek(r) == '\t')
		r->at++;
}

/* A comment, if one begins here, up to the end of its line. */
static void skip_comment(struct reader *r)
{
	if (peek(r) == '#')
		while (r->at < r->end && *r->at != '\n')
			r->at++;
}

static bool take_newline(struct reader *r)
{
	if (at_text(r, "\r\n"))
		r->at++;
	if (peek(r) != '\n')
		return false;
	r->at++;
	r->line++;
	return true;
}

static void skip_lines(struct reader *r)
{
	do {
		skip_blanks(r);
		skip_comment(r);
	} while (take_newline(r));
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The UTF-8 of a code point: how many bytes, or 0 for a number that is none. */
static size_t utf8_of(uint32_t point, char out[4])
{
	if (!point || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	if (point < 0x80) {
		out[0] = (char)point;
		return 1;
	}
	if (point < 0x800) {
		out[0] = (char)(0xc0 | point >> 6);
		out[1] = (char)(0x80 | (point & 0x3f));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (char)(0xe0 | point >> 12);
		out[1] = (char)(0x80 | (point >> 6 & 0x3f));
		out[2] = (char)(0x80 | (point & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | point >> 18);
	out[1] = (char)(0x80 | (point >> 12 & 0x3f));
	out[2] = (char)(0x80 | (point >> 6 & 0x3f));
	out[3] = (char)(0x80 | (point & 0x3f));
	return 4;
}

/* Reads an escape sequence after its backslash. Returns its number of bytes in the string, or 0. */
static size_t take_escape(struct reader *r, char out[4])
{
	static const char letters[] = "btnfr\"\\", bytes_of_letters[] = "\b\t\n\f\r\"\\";
	const char letter = peek(r), *found = letter ? strchr(letters, letter) : NULL;
	uint32_t point = 0;

	if (found) {
		out[0] = bytes_of_letters[found - letters];
		r->at++;
		return 1;
	}
	if (letter != 'u' && letter != 'U')
		return 0;
	r->at++;
	for (int i = 0; i < (letter == 'u' ? 4 : 8); i++, r->at++) {
		const int digit = hex_digit(peek(r));

		if (digit < 0)
			return 0;
		point = point << 4 | (uint32_t)digit;
	}
	return utf8_of(point, out);
}

/* "basic" or 'literal', into a buffer of `max` bytes and a NUL. */
static int take_string(struct reader *r, char *out, size_t max)
{
	const char quote = *r->at++;
	size_t length = 0;

	if (peek(r) == quote && r->at + 1 < r->end && r->at[1] == quote)
		return refuse(r, "a string of several lines; write it on one line");
	while (peek(r) != quote) {
		char bytes[4] = { peek(r) };
		size_t count = 1;

		if (r->at == r->end || *r->at == '\n' || *r->at == '\r')
			return refuse(r, "the string does not end on its line");
		r->at++;
		if (bytes[0] == '\\' && quote == '"')
			count = take_escape(r, bytes);
		else if ((unsigned char)bytes[0] < 0x20 && bytes[0] != '\t')
			return refuse(r, "a control character in a string");
		if (!count)
			return refuse(r, "a backslash before another character than one of b t n f r \" \\ u U");
		if (length + count > max)
			return refuse(r, "the string is too long");
		memcpy(out + length, bytes, count);
		length += count;
	}
	r->at++;
	out[length] = '\0';
	return 0;
}

static bool in_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static int take_name(struct reader *r, char *out, size_t max)
{
	size_t length = 0;

	if (peek(r) == '"' || peek(r) == '\'')
		return take_string(r, out, max);
	while (in_name(peek(r))) {
		if (length == max)
			return refuse(r, "the name is too long");
		out[length++] = *r->at++;
	}
	out[length] = '\0';
	return length ? 0 : refuse(r, "a name is missing; a line is NAME = VALUE or [TABLE]");
}

/* Digits with single underscores between them, without these. How many. */
static size_t take_digits(struct reader *r, const char *digits, size_t at)
{
	size_t count = 0;

	while (peek(r) && count < NUMBER_MAX) {
		const bool between = count && r->at + 1 < r->end && strchr(digits, r->at[1]);

		if (*r->at == '_' && between) {
			r->at++;
			continue;
		}
		if (!strchr(digits, *r->at))
			break;
		r->text[at + count++] = *r->at++;
	}
	return count;
}

static int take_number(struct reader *r)
{
	static const char decimal[] = "0123456789", not_one[] =
							    "not a value: a string stands in quotation marks, and a "
							    "number is as 10, -1.5 or 0xff";
	size_t length = 0, digits;
	bool zero;

	if (peek(r) == '+' || peek(r) == '-')
		r->text[length++] = *r->at++;
	if (at_text(r, "0x")) {
		memcpy(r->text + length, "0x", 2);
		r->at += 2;
		length += 2;
		digits = take_digits(r, "0123456789abcdefABCDEF", length);
		r->text[length + digits] = '\0';
		return digits ? 0 : refuse(r, not_one);
	}
	zero = peek(r) == '0';
	digits = take_digits(r, decimal, length);
	if (!digits || (zero && digits > 1))
		return refuse(r, not_one);
	length += digits;
	if (peek(r) == '.') {
		r->text[length++] = *r->at++;
		digits = take_digits(r, decimal, length);
		if (!digits)
			return refuse(r, not_one);
		length += digits;
	}
	if (peek(r) == 'e' || peek(r) == 'E') {
		r->text[length++] = *r->at++;
		if (peek(r) == '+' || peek(r) == '-')
			r->text[length++] = *r->at++;
		digits = take_digits(r, decimal, length);
		if (!digits)
			return refuse(r, not_one);
		length += digits;
	}
	r->text[length] = '\0';
	return peek(r) == '-' || peek(r) == ':' ? refuse(r, "a date or a time; no value is one") : 0;
}

static int give(struct reader *r, enum toml_kind kind, bool in_array, int line)
{
	const struct toml_value value = { r->table, r->key, r->text, kind, in_array, line };

	return r->take(r->context, &value, r->err);
}

static int take_scalar(struct reader *r, bool in_array)
{
	const int line = r->line;
	const char c = peek(r);
	int rc;

	if (c == '"' || c == '\'') {
		rc = take_string(r, r->text, TOML_TEXT_MAX);
		return rc ? rc : give(r, TOML_STRING, in_array, line);
	}
	for (int i = 0; i < 2; i++) {
		const char *const word = i ? "true" : "false";

		if (!at_text(r, word) || in_name(r->at + strlen(word) < r->end ? r->at[strlen(word)] : '\0'))
			continue;
		r->at += strlen(word);
		strcpy(r->text, word);
		return give(r, TOML_BOOLEAN, in_array, line);
	}
	if (c == '{')
		return refuse(r, "an inline table; write [TABLE] on a line of its own");
	if (c == '[')
		return refuse(r, "an array in an array");
	rc = take_number(r);
	return rc ? rc : give(r, TOML_NUMBER, in_array, line);
}

static int take_array(struct reader *r)
{
	r->at++;
	for (;;) {
		int rc;

		skip_lines(r);
		if (peek(r) == ']')
			break;
		rc = take_scalar(r, true);
		if (rc)
			return rc;
		skip_lines(r);
		if (peek(r) == ',')
			r->at++;
		else if (peek(r) != ']')
			return refuse(r, "a comma or ] is missing in the array");
	}
	r->at++;
	return 0;
}

static int take_pair(struct reader *r)
{
	int rc = take_name(r, r->key, TOML_NAME_MAX);

	if (rc)
		return rc;
	skip_blanks(r);
	if (peek(r) == '.')
		return refuse(r, "a dotted key; write [TABLE] on a line of its own");
	if (peek(r) != '=')
		return refuse(r, "= is missing behind the name");
	r->at++;
	skip_blanks(r);
	return peek(r) == '[' ? take_array(r) : take_scalar(r, false);
}

static int take_table(struct reader *r)
{
	size_t length = 0;

	r->at++;
	if (peek(r) == '[')
		return refuse(r, "an array of tables");
	for (;;) {
		int rc;

		skip_blanks(r);
		rc = take_name(r, r->table + length, TOML_NAME_MAX - length);
		if (rc)
			return rc;
		length += strlen(r->table + length);
		skip_blanks(r);
		if (peek(r) != '.')
			break;
		if (length == TOML_NAME_MAX)
			return refuse(r, "the name is too long");
		r->table[length++] = *r->at++;
	}
	if (peek(r) != ']')
		return refuse(r, "] is missing behind the name of the table");
	r->at++;
	return 0;
}

int toml_read(const char *text, size_t length,
	      int (*take)(void *context, const struct toml_value *value, struct ktrxer_error *err), void *context,
	      struct ktrxer_error *err)
{
	struct reader r = { .at = text, .end = text + length, .line = 1, .take = take, .context = context, .err = err };

	if (length && memchr(text, '\0', length))
		return refuse(&r, "the file contains a zero byte");
	for (;;) {
		int rc;

		skip_lines(&r);
		if (r.at == r.end)
			return 0;
		rc = peek(&r) == '[' ? take_table(&r) : take_pair(&r);
		if (rc)
			return rc;
		skip_blanks(&r);
		skip_comment(&r);
		if (r.at != r.end && !take_newline(&r))
			return refuse(&r, "something stands behind the value");
	}
}
