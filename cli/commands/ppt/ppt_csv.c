/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "ppt_samples.h"

#include "error.h"
#include "units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { KTRXER_PPT_LINE_MAX = 128 /* a size, a gap and blanks */ };

#define GAP_MAX_NS (3600ull * 1000000000) /* a longer gap is not one of two packets that were sent back to back */

struct csv {
	FILE *stream;
	const char *name;
	unsigned long long line;
	char text[KTRXER_PPT_LINE_MAX];
};

void ppt_samples_free(struct ppt_samples *samples)
{
	free(samples->sizes);
	free(samples->gaps_ns);
	*samples = (struct ppt_samples){ 0 };
}

static int samples_grow(struct ppt_samples *s, const char *name, struct ktrxer_error *err)
{
	size_t room = s->room ? 2 * s->room : 1024;
	uint32_t *sizes;
	int64_t *gaps;

	if (s->count < s->room)
		return 0;
	if (s->room >= KTRXER_PPT_SAMPLES_MAX)
		return ktrxer_fail(err, -E2BIG, "%s: more than %d gaps: split the file", name, KTRXER_PPT_SAMPLES_MAX);
	sizes = realloc(s->sizes, room * sizeof *sizes);
	if (sizes)
		s->sizes = sizes;
	gaps = sizes ? realloc(s->gaps_ns, room * sizeof *gaps) : NULL;
	if (!gaps)
		return ktrxer_fail(err, -ENOMEM, "%s: no memory for %zu gaps", name, room);
	s->gaps_ns = gaps;
	s->room = room;
	return 0;
}

static char *trim(char *text)
{
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length && strchr(" \t\r\n", text[length - 1]))
		text[--length] = '\0';
	return text;
}

/* 1 and the next line with content, trimmed; 0 at the end. */
static int line_read(struct csv *csv, char **line, struct ktrxer_error *err)
{
	char word[80];

	while (fgets(csv->text, sizeof csv->text, csv->stream)) {
		size_t length = strlen(csv->text);

		csv->line++;
		if ((!length || csv->text[length - 1] != '\n') && !feof(csv->stream))
			return ktrxer_fail(err, -EBADMSG, "%s: line %llu is no text, or longer than %d bytes",
					   csv->name, csv->line, KTRXER_PPT_LINE_MAX - 2);
		*line = trim(csv->text);
		if (**line && **line != '#')
			return 1;
	}
	if (ferror(csv->stream)) {
		int code = errno ? -errno : -EIO;

		return ktrxer_fail(err, code, "%s: cannot be read after line %llu: %s", csv->name, csv->line,
				   ktrxer_strerror(code, word, sizeof word));
	}
	return 0;
}

static int gap_parse(int64_t *gap_ns, const char *text, const char *unit, struct ktrxer_error *err)
{
	bool negative = text[0] == '-';
	char number[KTRXER_PPT_LINE_MAX + 4];
	uint64_t ns;
	int rc;

	snprintf(number, sizeof number, "%s%s", text + negative, unit);
	rc = ktrxer_parse_duration(&ns, number, err);
	if (rc < 0)
		return rc;
	if (ns > GAP_MAX_NS)
		return ktrxer_fail(err, -ERANGE, "a gap of more than an hour: '%s'", number);
	*gap_ns = negative ? -(int64_t)ns : (int64_t)ns;
	return 0;
}

static int row_parse(struct ppt_samples *s, char *line, const char *unit, struct ktrxer_error *err)
{
	char *comma = strchr(line, ',');
	uint64_t size;
	int rc;

	if (!comma || strchr(comma + 1, ','))
		return ktrxer_fail(err, -EBADMSG, "'%s' is not two numbers with a comma between", line);
	*comma = '\0';
	if ((rc = ktrxer_parse_u64(&size, trim(line), err)) < 0 ||
	    (rc = gap_parse(&s->gaps_ns[s->count], trim(comma + 1), unit, err)) < 0)
		return rc;
	if (!size || size > UINT16_MAX)
		return ktrxer_fail(err, -ERANGE, "a packet of %llu bytes", (unsigned long long)size);
	s->sizes[s->count++] = (uint32_t)size;
	return 0;
}

int ppt_csv_read(struct ppt_samples *s, FILE *stream, const char *name, struct ktrxer_error *err)
{
	struct csv csv = { .stream = stream, .name = name };
	struct ktrxer_error why;
	const char *unit;
	char *line = NULL;
	int rc = line_read(&csv, &line, err);

	*s = (struct ppt_samples){ 0 };
	if (rc < 0)
		return rc;
	unit = rc && !strcmp(line, "wire_bytes,gap_ns") ? "ns" : rc && !strcmp(line, "wire_bytes,gap_us") ? "us" : NULL;
	if (!unit)
		return ktrxer_fail(err, -EBADMSG,
				   "%s: neither a capture nor a CSV file with the first line `wire_bytes,gap_ns` or "
				   "`wire_bytes,gap_us`",
				   name);
	while ((rc = line_read(&csv, &line, err)) == 1) {
		if ((rc = samples_grow(s, name, err)) < 0)
			return rc;
		if (row_parse(s, line, unit, &why) < 0)
			return ktrxer_fail(err, -EBADMSG, "%s: line %llu: %s", name, csv.line, why.text);
	}
	if (rc == 0 && !s->count)
		return ktrxer_fail(err, -ENODATA, "%s: there is no gap in it", name);
	return rc;
}
