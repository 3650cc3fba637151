/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tcp_http.h"

#include "error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char pad_begin[] = "X-Padding: ", line_end[] = "\r\n";
enum { STATUS_LINE_MIN = 12 /* "HTTP/1.1 200" */, PAD_MIN = sizeof pad_begin - 1 + 1 + 2 };

/* Longer bodies are as good as endless; sums of them stay below 2^63. */
#define LENGTH_MAX ((uint64_t)1 << 40)

/* Printable ASCII without blanks: nothing that ends a line or a field. */
static bool is_word(const char *text)
{
	for (; *text; text++)
		if (*text <= ' ' || *text >= 0x7f)
			return false;
	return true;
}

int tcp_request_make(char request[TCP_REQUEST_MAX], const struct tcp_request_spec *spec, struct ktrxer_error *err)
{
	const int host_length = (int)strcspn(spec->host, spec->is_ipv6 ? "%" : "");
	char port[8] = "";
	int length;

	if (spec->path[0] != '/' || !is_word(spec->path))
		return ktrxer_fail(err, -EINVAL,
				   "the path '%.60s' cannot stand in a request: it begins with / and has no blanks",
				   spec->path);
	if (!is_word(spec->host))
		return ktrxer_fail(err, -EINVAL, "the host '%.60s' cannot stand in a request", spec->host);
	if (spec->port != 80)
		snprintf(port, sizeof port, ":%u", spec->port);
	length = snprintf(request, TCP_REQUEST_MAX,
			  "GET %s HTTP/1.1\r\nHost: %s%.*s%s%s\r\nUser-Agent: ktrxer/%s\r\nAccept: */*\r\n"
			  "Connection: keep-alive\r\n",
			  spec->path, spec->is_ipv6 ? "[" : "", host_length, spec->host, spec->is_ipv6 ? "]" : "", port,
			  ktrxer_version());
	if (length < 0 || length + 2 > TCP_REQUEST_MAX)
		return ktrxer_fail(err, -EINVAL, "the path and the host do not fit into a request of %d bytes",
				   TCP_REQUEST_MAX);
	if (spec->length) {
		const int pad = (int)spec->length - length - 2;

		if (spec->length > TCP_REQUEST_MAX || (pad && pad < PAD_MIN))
			return ktrxer_fail(err, -EINVAL,
					   "a request for this path has %d bytes, or %d to %d with padding; %u were "
					   "asked for",
					   length + 2, length + 2 + PAD_MIN, TCP_REQUEST_MAX, spec->length);
		if (pad) {
			memcpy(request + length, pad_begin, sizeof pad_begin - 1);
			memset(request + length + sizeof pad_begin - 1, 'x', (size_t)pad - (sizeof pad_begin - 1) - 2);
			memcpy(request + length + pad - 2, line_end, 2);
			length += pad;
		}
	}
	memcpy(request + length, line_end, 2);
	return length + 2;
}

static void keep_text(char text[TCP_HTTP_TEXT], const char *from, size_t length)
{
	size_t n = 0;

	while (length && (*from == ' ' || *from == '\t')) {
		from++;
		length--;
	}
	for (; n < length && n < TCP_HTTP_TEXT - 1; n++)
		text[n] = from[n] >= ' ' && from[n] < 0x7f ? from[n] : '?';
	text[n] = '\0';
}

/* The value of a field of this name, or NULL. */
static const char *field_value(const char *line, size_t length, const char *name, size_t *value_length)
{
	const size_t n = strlen(name);

	if (length <= n || line[n] != ':' || strncasecmp(line, name, n) != 0)
		return NULL;
	*value_length = length - n - 1;
	return line + n + 1;
}

static bool read_number(uint64_t *number, const char *text, size_t length)
{
	uint64_t sum = 0;
	size_t digits = 0;

	while (length && (*text == ' ' || *text == '\t')) {
		text++;
		length--;
	}
	for (; digits < length && text[digits] >= '0' && text[digits] <= '9'; digits++) {
		if (sum > LENGTH_MAX / 10)
			return false;
		sum = 10 * sum + (uint64_t)(text[digits] - '0');
	}
	*number = sum;
	return digits > 0;
}

static bool read_status_line(struct tcp_response_head *head, const char *line, size_t length)
{
	if (length < STATUS_LINE_MIN || memcmp(line, "HTTP/1.", 7) != 0 || line[8] != ' ')
		return false;
	for (int i = 9; i < 12; i++) {
		if (line[i] < '0' || line[i] > '9')
			return false;
		head->status = (uint16_t)(10 * head->status + line[i] - '0');
	}
	head->closes = line[7] == '0';
	keep_text(head->reason, line + 12, length - 12);
	return true;
}

static void read_field(struct tcp_response_head *head, const char *line, size_t length)
{
	const char *value;
	char text[TCP_HTTP_TEXT];
	size_t n;

	if ((value = field_value(line, length, "Content-Length", &n)) != NULL) {
		if (!read_number(&head->body_length, value, n))
			head->body_length = TCP_BODY_UNKNOWN;
	} else if ((value = field_value(line, length, "Location", &n)) != NULL) {
		keep_text(head->location, value, n);
	} else if ((value = field_value(line, length, "Connection", &n)) != NULL) {
		keep_text(text, value, n);
		if (!strcasecmp(text, "close"))
			head->closes = true;
		else if (!strcasecmp(text, "keep-alive"))
			head->closes = false;
	}
}

int tcp_response_read(struct tcp_response_head *head, const uint8_t *data, size_t length)
{
	static const char begin[] = "HTTP/1.";
	const char *text = (const char *)data;
	size_t at = 0;

	*head = (struct tcp_response_head){ .body_length = TCP_BODY_UNKNOWN };
	if (!length)
		return 0;
	if (memcmp(text, begin, length < sizeof begin - 1 ? length : sizeof begin - 1) != 0)
		return -EBADMSG;
	for (int line = 0; at < length; line++) {
		const char *end = memchr(text + at, '\n', length - at);
		size_t n;

		if (!end)
			break;
		n = (size_t)(end - (text + at));
		if (n && text[at + n - 1] == '\r')
			n--;
		if (!line && !read_status_line(head, text, n))
			return -EBADMSG;
		if (line && !n) {
			head->length = (uint32_t)(end - text + 1);
			return 1;
		}
		if (line)
			read_field(head, text + at, n);
		at = (size_t)(end - text) + 1;
	}
	return length < TCP_HEAD_MAX ? 0 : -EBADMSG;
}
