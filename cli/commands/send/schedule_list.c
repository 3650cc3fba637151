/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Offsets of a list schedule, read from a file in pieces: the file itself is never in memory as a whole. */
#include "schedule_list.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	/* bytes of its file, comments included; also the end of a pipe that never ends */
	KTRXER_LIST_FILE_MAX = 256 << 20,
};

struct reader {
	struct schedule_list *list;
	uint64_t capacity;
	const char *name;
	uint64_t line;      /* of the file, from 1 */
	uint64_t last_line; /* where the last offset stood */
	struct ktrxer_error *err;
};

static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static int parse_offset(uint64_t *ns, const char *word, struct ktrxer_error *err)
{
	const char *c = word;
	uint64_t value = 0;
	char last = word[strlen(word) - 1];

	for (; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
			return ktrxer_fail(err, -EINVAL, "'%s' does not fit 64 bits of nanoseconds", word);
	if (!*c) {
		*ns = value;
		return 0;
	}
	/*
	 * On a command line a bare "1.5" is seconds, a bare "15" would be nanoseconds here: such a number must say what
	 * it is.
	 */
	if ((last >= '0' && last <= '9') || last == '.')
		return ktrxer_fail(err, -EINVAL,
				   "'%s' is not an offset; write whole nanoseconds, or a unit (250us, 1.5s)", word);
	return ktrxer_parse_duration(ns, word, err);
}

static int append(struct reader *r, uint64_t ns)
{
	struct schedule_list *list = r->list;
	uint64_t *larger;

	if (list->count && ns < list->offsets_ns[list->count - 1])
		return ktrxer_fail(r->err, -EINVAL,
				   "%s:%" PRIu64 ": offset %" PRIu64 " ns comes before the %" PRIu64
				   " ns of line %" PRIu64
				   "; sort the file (offsets are from the start, not from one another)",
				   r->name, r->line, ns, list->offsets_ns[list->count - 1], r->last_line);
	if (list->count == r->capacity) {
		if (r->capacity == KTRXER_LIST_MAX)
			return ktrxer_fail(r->err, -E2BIG, "%s:%" PRIu64 ": more than %d offsets; split the list",
					   r->name, r->line, KTRXER_LIST_MAX);
		r->capacity = r->capacity ? 2 * r->capacity : 256;
		larger = reallocarray(list->offsets_ns, r->capacity, sizeof(*larger));
		if (!larger)
			return ktrxer_fail(r->err, -ENOMEM, "%s:%" PRIu64 ": out of memory", r->name, r->line);
		list->offsets_ns = larger;
	}
	list->offsets_ns[list->count++] = ns;
	r->last_line = r->line;
	return 0;
}

static int read_line(struct reader *r, const uint8_t *text, size_t length)
{
	const uint8_t *comment = memchr(text, '#', length);
	struct ktrxer_error why = { 0 };
	char word[64];
	uint64_t ns = 0;

	if (comment)
		length = (size_t)(comment - text);
	while (length && is_blank(text[length - 1]))
		length--;
	while (length && is_blank(*text)) {
		text++;
		length--;
	}
	if (!length)
		return 0;
	if (length >= sizeof(word) || memchr(text, '\0', length))
		return ktrxer_fail(r->err, -EINVAL,
				   "%s:%" PRIu64 ": this is not an offset (one a line; `#` begins a comment)", r->name,
				   r->line);
	memcpy(word, text, length);
	word[length] = '\0';
	if (parse_offset(&ns, word, &why))
		return ktrxer_fail(r->err, -EINVAL, "%s:%" PRIu64 ": %s", r->name, r->line, why.text);
	return append(r, ns);
}

/* *used is how far the whole lines of `text` came (at the end: all). */
static int read_lines(struct reader *r, const uint8_t *text, size_t length, bool end, size_t *used)
{
	const uint8_t *at = text, *newline;
	size_t left = length, line;
	int ret;

	*used = 0;
	while (left) {
		newline = memchr(at, '\n', left);
		line = newline ? (size_t)(newline - at) : left;
		if (line > KTRXER_LIST_LINE_MAX)
			return ktrxer_fail(r->err, -EINVAL,
					   "%s:%" PRIu64
					   ": a line of more than %d characters; this is no list of offsets",
					   r->name, r->line, KTRXER_LIST_LINE_MAX);
		if (!newline && !end)
			break;
		ret = read_line(r, at, line);
		if (ret)
			return ret;
		r->line++;
		line += newline != NULL;
		at += line;
		left -= line;
		*used += line;
	}
	return 0;
}

static int finish(struct reader *r, int ret)
{
	if (!ret && !r->list->count)
		ret = ktrxer_fail(r->err, -EINVAL,
				  "%s: no offsets in it; write one a line, in nanoseconds from the start", r->name);
	if (ret)
		schedule_list_free(r->list);
	return ret;
}

int schedule_list_parse(struct schedule_list *list, const uint8_t *text, size_t length, const char *name,
			struct ktrxer_error *err)
{
	struct reader r = { .list = list, .name = name, .line = 1, .err = err };
	size_t used;

	*list = (struct schedule_list){ 0 };
	return finish(&r, read_lines(&r, text, length, true, &used));
}

int schedule_list_load(struct schedule_list *list, const char *path, struct ktrxer_error *err)
{
	struct reader r = { .list = list, .name = path, .line = 1, .err = err };
	uint8_t buffer[2 * KTRXER_LIST_LINE_MAX];
	size_t have = 0, used;
	uint64_t total = 0;
	ssize_t got;
	int fd, ret;

	*list = (struct schedule_list){ 0 };
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		ret = -errno;
		return ktrxer_fail(err, ret, "%s: %m", path);
	}
	do {
		do
			got = read(fd, buffer + have, sizeof(buffer) - have);
		while (got < 0 && errno == EINTR);
		if (got < 0) {
			ret = -errno;
			ktrxer_fail(err, ret, "%s:%" PRIu64 ": cannot be read: %m", path, r.line);
			break;
		}
		total += (uint64_t)got;
		if (total > KTRXER_LIST_FILE_MAX) {
			ret = ktrxer_fail(err, -E2BIG, "%s:%" PRIu64 ": a file of more than %d MiB; split the list",
					  path, r.line, KTRXER_LIST_FILE_MAX >> 20);
			break;
		}
		have += (size_t)got;
		ret = read_lines(&r, buffer, have, got == 0, &used);
		have -= used;
		memmove(buffer, buffer + used, have);
	} while (!ret && got);
	close(fd);
	return finish(&r, ret);
}

void schedule_list_free(struct schedule_list *list)
{
	free(list->offsets_ns);
	*list = (struct schedule_list){ 0 };
}
