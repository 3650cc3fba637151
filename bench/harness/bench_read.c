/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "bench_read.h"

#include "bytes.h"
#include "error.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct reader {
	struct bytes in;
	const char *wrong; /* what was wrong first; NULL: nothing yet */
};

static bool fail(struct reader *r, const char *what)
{
	if (!r->wrong)
		r->wrong = what;
	r->in.ok = false;
	return false;
}

static uint8_t peek(struct reader *r)
{
	while (bytes_left(&r->in) && (*r->in.at == ' ' || *r->in.at == '\n' || *r->in.at == '\t' || *r->in.at == '\r'))
		bytes_skip(&r->in, 1);
	return bytes_left(&r->in) ? *r->in.at : 0;
}

static bool eat(struct reader *r, uint8_t c)
{
	if (peek(r) != c)
		return false;
	return bytes_skip(&r->in, 1);
}

/* A string; what does not fit `text` is cut. Characters beyond ASCII and escapes other than the simple ones become '?'. */
static bool read_string(struct reader *r, char *text, size_t size)
{
	size_t used = 0;

	if (!eat(r, '"'))
		return fail(r, "a string is missing");
	for (;;) {
		const uint8_t *c = bytes_take(&r->in, 1);
		uint8_t is = c ? *c : 0;

		if (!c || is < ' ')
			return fail(r, "a string without an end");
		if (is == '"')
			break;
		if (is == '\\') {
			c = bytes_take(&r->in, 1);
			if (!c)
				return fail(r, "a string without an end");
			is = *c == '"' || *c == '\\' || *c == '/' ? *c : '?';
			if (*c == 'u' && !bytes_skip(&r->in, 4))
				return fail(r, "a string without an end");
		}
		if (used + 1 < size)
			text[used++] = (char)(is < 127 ? is : '?');
	}
	if (size)
		text[used] = '\0';
	return true;
}

/* A number, kept with so many decimals; further ones are dropped. No exponents: the writer makes none of them. */
static bool read_number(struct reader *r, int decimals, int64_t *value)
{
	bool minus = eat(r, '-'), any = false, point = false;
	int64_t v = 0;

	for (; bytes_left(&r->in); bytes_skip(&r->in, 1)) {
		const uint8_t c = *r->in.at;

		if (c == '.' && !point) {
			point = true;
			continue;
		}
		if (c < '0' || c > '9')
			break;
		any = true;
		if (point && decimals-- <= 0)
			continue;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, c - '0', &v))
			return fail(r, "a number too large");
	}
	if (!any || (bytes_left(&r->in) && (*r->in.at == 'e' || *r->in.at == 'E')))
		return fail(r, "a number of another form");
	for (; decimals > 0; decimals--)
		if (__builtin_mul_overflow(v, 10, &v))
			return fail(r, "a number too large");
	*value = minus ? -v : v;
	return true;
}

static bool read_word(struct reader *r)
{
	static const char *const words[] = { "true", "false", "null" };

	peek(r);
	for (int i = 0; i < 3; i++) {
		size_t n = strlen(words[i]);

		if (bytes_left(&r->in) >= n && !memcmp(r->in.at, words[i], n))
			return bytes_skip(&r->in, n);
	}
	return fail(r, "what is this?");
}

/* Any value, passed over. */
static bool skip(struct reader *r, int depth)
{
	const uint8_t c = peek(r);
	const uint8_t end = c == '{' ? '}' : ']';

	if (c == '"')
		return read_string(r, NULL, 0);
	if (c == '-' || (c >= '0' && c <= '9')) {
		/* Of any form: nothing is made of it. */
		while (bytes_left(&r->in) && *r->in.at && strchr("+-.0123456789eE", *r->in.at))
			bytes_skip(&r->in, 1);
		return true;
	}
	if (c != '{' && c != '[')
		return read_word(r);
	if (depth >= BENCH_READ_DEPTH)
		return fail(r, "nested too deep");
	eat(r, c);
	if (eat(r, end))
		return true;
	do {
		if (c == '{' && (!read_string(r, NULL, 0) || !eat(r, ':')))
			return fail(r, "a member without its colon");
		if (!skip(r, depth + 1))
			return false;
	} while (eat(r, ','));
	return eat(r, end) || fail(r, "an array or object without an end");
}

static bool read_cell(struct reader *r, const struct bench_column *column, union bench_cell *cell)
{
	const uint8_t c = peek(r);

	if (column->text && c == '"')
		return read_string(r, cell->text, sizeof cell->text);
	if (!column->text && (c == '-' || (c >= '0' && c <= '9')))
		return read_number(r, column->decimals, &cell->number);
	return skip(r, 1); /* null, and what is of another kind: not known */
}

static bool read_row(struct reader *r, struct bench_table *table)
{
	struct bench_row *row;

	if (table->count >= BENCH_READ_ROWS)
		return fail(r, "too many rows");
	row = bench_table_row(table);
	if (!row)
		return fail(r, "no memory");
	if (!eat(r, '{'))
		return fail(r, "a row that is no object");
	if (eat(r, '}'))
		return true;
	do {
		char key[48];
		int i;

		if (!read_string(r, key, sizeof key) || !eat(r, ':'))
			return fail(r, "a member without its colon");
		i = bench_table_column(table, key);
		if (!(i >= 0 ? read_cell(r, &table->columns[i], &row->cells[i]) : skip(r, 1)))
			return false;
	} while (eat(r, ','));
	return eat(r, '}') || fail(r, "a row without an end");
}

static bool read_rows(struct reader *r, struct bench_table *table)
{
	if (!eat(r, '['))
		return fail(r, "\"rows\" is no array");
	if (eat(r, ']'))
		return true;
	do {
		if (!read_row(r, table))
			return false;
	} while (eat(r, ','));
	return eat(r, ']') || fail(r, "\"rows\" has no end");
}

static bool read_setting(struct reader *r, const char *key, struct bench_settings *s)
{
	const struct {
		const char *key;
		char *text;
		size_t size;
		uint64_t *number;
	} all[] = {
		{ "payload", s->payload, sizeof s->payload, NULL }, { "cross", s->cross, sizeof s->cross, NULL },
		{ "gaps", s->gaps, sizeof s->gaps, NULL },          { "rounds", NULL, 0, &s->rounds },
		{ "count", NULL, 0, &s->count },                    { "interval_ns", NULL, 0, &s->interval_ns },
		{ "for_ns", NULL, 0, &s->for_ns },                  { "train", NULL, 0, &s->train },
		{ "threads", NULL, 0, &s->threads },                { "seed", NULL, 0, &s->seed },
		{ "methods", s->methods, sizeof s->methods, NULL }, { "predispatch", s->predispatch, sizeof s->predispatch, NULL },
		{ "fq", NULL, 0, &s->fq },                          { "both_ways", NULL, 0, &s->both_ways },
	};
	const uint8_t c = peek(r);
	int64_t value;

	for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
		if (strcmp(all[i].key, key) != 0)
			continue;
		if (all[i].text && c == '"')
			return read_string(r, all[i].text, all[i].size);
		if (all[i].number && c >= '0' && c <= '9') {
			if (!read_number(r, 0, &value))
				return false;
			*all[i].number = (uint64_t)value;
			return true;
		}
	}
	return skip(r, 1);
}

static bool read_settings(struct reader *r, struct bench_settings *s)
{
	if (!eat(r, '{'))
		return fail(r, "\"settings\" is no object");
	if (eat(r, '}'))
		return true;
	do {
		char key[48];

		if (!read_string(r, key, sizeof key) || !eat(r, ':'))
			return fail(r, "a member without its colon");
		if (!read_setting(r, key, s))
			return false;
	} while (eat(r, ','));
	return eat(r, '}') || fail(r, "\"settings\" has no end");
}

static bool read_all(struct reader *r, struct bench_table *table, struct bench_settings *s)
{
	bool rows = false;

	*s = (struct bench_settings){ 0 };
	if (!eat(r, '{') || eat(r, '}'))
		return fail(r, "it is no object");
	do {
		char key[48];

		if (!read_string(r, key, sizeof key) || !eat(r, ':'))
			return fail(r, "a member without its colon");
		if (!strcmp(key, "bench") && peek(r) == '"') {
			if (!read_string(r, s->kind, sizeof s->kind))
				return false;
		} else if (!strcmp(key, "rows") && !rows) {
			rows = true;
			if (!read_rows(r, table))
				return false;
		} else if (!strcmp(key, "settings")) {
			if (!read_settings(r, s))
				return false;
		} else if (!skip(r, 0)) {
			return false;
		}
	} while (eat(r, ','));
	if (!eat(r, '}') || peek(r))
		return fail(r, "something follows its end, or it has none");
	return rows && s->kind[0] ? true : fail(r, "it has no \"bench\" or no \"rows\"");
}

int bench_read(struct bench_table *table, struct bench_settings *settings, const char *text, size_t length, struct ktrxer_error *err)
{
	struct reader r = { .in = bytes_of(text, length) };

	if (read_all(&r, table, settings))
		return 0;
	return ktrxer_fail(err, -EBADMSG, "this is not what `ktrxer bench ... --json` writes: %s, near byte %zu",
			   r.wrong ? r.wrong : "it is cut short", (size_t)(r.in.at - (const uint8_t *)text));
}

int bench_read_file(struct bench_table *table, struct bench_settings *settings, const char *file, struct ktrxer_error *err)
{
	struct ktrxer_error why = { 0 };
	char word[64], *text = NULL;
	size_t length;
	FILE *f = fopen(file, "re");
	int rc;

	if (!f)
		return ktrxer_fail(err, -errno, "--compare %s: %s", file, ktrxer_strerror(-errno, word, sizeof word));
	text = malloc(BENCH_READ_BYTES);
	if (!text) {
		rc = ktrxer_fail(err, -ENOMEM, "no memory for %s", file);
		goto close_it;
	}
	length = fread(text, 1, BENCH_READ_BYTES, f);
	if (ferror(f))
		rc = ktrxer_fail(err, -EIO, "--compare %s: it cannot be read", file);
	else if (length == BENCH_READ_BYTES)
		rc = ktrxer_fail(err, -EFBIG, "--compare %s: too long to be the output of a bench", file);
	else if ((rc = bench_read(table, settings, text, length, &why)) < 0)
		ktrxer_fail(err, rc, "--compare %s: %s", file, why.text);
	free(text);
close_it:
	fclose(f);
	return rc;
}
