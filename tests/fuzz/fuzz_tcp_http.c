/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Bytes as a web server's response: a head that is read ends where it says, and its texts can be printed. */
#include "tcp_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_printable(const char text[TCP_HTTP_TEXT])
{
	const size_t length = strnlen(text, TCP_HTTP_TEXT);

	if (length == TCP_HTTP_TEXT)
		abort();
	for (size_t i = 0; i < length; i++)
		if (text[i] < ' ' || text[i] > '~')
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tcp_response_head head, again;
	const int rc = tcp_response_read(&head, data, size);

	if (rc != 1) {
		if (rc != 0 && rc != -EBADMSG)
			abort();
		return 0;
	}
	if (head.length > size)
		abort();
	must_be_printable(head.reason);
	must_be_printable(head.location);
	/* The body changes nothing, and the head without its last byte is incomplete. */
	if (tcp_response_read(&again, data, head.length) != 1 || again.status != head.status ||
	    again.length != head.length || again.body_length != head.body_length || again.closes != head.closes ||
	    strcmp(again.reason, head.reason) != 0 || strcmp(again.location, head.location) != 0)
		abort();
	if (tcp_response_read(&again, data, head.length - 1) != 0)
		abort();
	return 0;
}
