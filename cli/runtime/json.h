/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes JSON into a buffer that it owns. Write only: the C side reads none. Why not a library:
 * docs/decisions/0001-no-libraries-for-small-algorithms.md.
 */
#ifndef KTRXER_CLI_JSON_H
#define KTRXER_CLI_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct json;

struct json *json_new(bool pretty);
void json_free(struct json *json);
/* Empty again, its memory kept: a writer that was once large enough allocates no more. */
void json_reset(struct json *json);
/*
 * The text, terminated by NUL; NULL when memory ran out on the way, or when what was written is no complete value: a
 * container still open, a key missing in an object or given outside one, two outermost values, nesting deeper than 32.
 * `length` may be NULL.
 */
const char *json_text(const struct json *json, size_t *length);
size_t json_capacity(const struct json *json);

/* `key` NULL inside arrays and for the outermost value. */
void json_object(struct json *json, const char *key);
void json_object_end(struct json *json);
void json_array(struct json *json, const char *key);
void json_array_end(struct json *json);
void json_string(struct json *json, const char *key, const char *value); /* NULL: null; invalid UTF-8 becomes U+FFFD */
void json_u64(struct json *json, const char *key, uint64_t value);
void json_i64(struct json *json, const char *key, int64_t value);
void json_fixed(struct json *json, const char *key, int64_t value,
		int decimals); /* 1234, 3 -> 1.234: exact, no floating point */
void json_rounded(struct json *json, const char *key, double value,
		  int decimals);                                    /* NaN, inf, what has no 64 bits: null */
void json_double(struct json *json, const char *key, double value); /* shortest that reads back; NaN, inf: null */
void json_bool(struct json *json, const char *key, bool value);
void json_null(struct json *json, const char *key);
/* null unless `known`. */
void json_u64_or_null(struct json *json, const char *key, bool known, uint64_t value);
void json_fixed_or_null(struct json *json, const char *key, bool known, int64_t value, int decimals);

/* A newline after the complete value: one object a line. */
void json_line_end(struct json *json);
/* No JSON at all: a line for people, which takes the same way out. Replaces what was there. */
void json_verbatim(struct json *json, const char *text, size_t length);

#endif
