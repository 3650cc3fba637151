/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "cm.h"
#include "tcp_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int make(char request[TCP_REQUEST_MAX], const char *host, const char *path, uint16_t port, uint32_t length)
{
	const struct tcp_request_spec spec = {
		.host = host, .is_ipv6 = strchr(host, ':') != NULL, .port = port, .path = path, .length = length
	};
	struct ktrxer_error err = { 0 };
	const int rc = tcp_request_make(request, &spec, &err);

	if (rc < 0)
		assert_true(err.code == rc && err.text[0]);
	return rc;
}

TEST(requests)
{
	char request[TCP_REQUEST_MAX];
	int least, length;

	least = make(request, "www.example.net", "/a?b=c", 80, 0);
	assert_true(least > 60);
	assert_memory_equal(request, "GET /a?b=c HTTP/1.1\r\nHost: www.example.net\r\nUser-Agent: ktrxer/", 63);
	assert_memory_equal(request + least - 4, "\r\n\r\n", 4);
	length = make(request, "fe80::1%eth0", "/", 8080, 0);
	request[length - 1] = '\0';
	assert_non_null(strstr(request, "\r\nHost: [fe80::1]:8080\r\n"));
	for (uint32_t wanted = (uint32_t)least + 14; wanted <= TCP_REQUEST_MAX; wanted += 97) {
		assert_int_equal(make(request, "www.example.net", "/a?b=c", 80, wanted), wanted);
		assert_memory_equal(request + wanted - 4, "\r\n\r\n", 4);
		request[wanted - 4] = '\0';
		assert_null(strstr(request, "\r\n\r\n"));
	}
	assert_int_equal(make(request, "www.example.net", "/a?b=c", 80, (uint32_t)least), least);
}

TEST(requests_that_cannot_be)
{
	static const char *const paths[] = { "", "a", "/a b", "/a\r\nX: y", "/\x80", "/\x7f" };
	char request[TCP_REQUEST_MAX], *long_path = malloc(TCP_REQUEST_MAX + 1);

	assert_non_null(long_path);
	for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
		assert_int_equal(make(request, "h", paths[i], 80, 0), -EINVAL);
	assert_int_equal(make(request, "h\r\nX:", "/", 80, 0), -EINVAL);
	assert_int_equal(make(request, "h", "/", 80, 20), -EINVAL);
	assert_int_equal(make(request, "h", "/", 80, TCP_REQUEST_MAX + 1), -EINVAL);
	memset(long_path, 'x', TCP_REQUEST_MAX);
	long_path[0] = '/';
	long_path[TCP_REQUEST_MAX] = '\0';
	assert_int_equal(make(request, "h", long_path, 80, 0), -EINVAL);
	free(long_path);
}

static int parse(struct tcp_response_head *head, const char *text)
{
	return tcp_response_read(head, (const uint8_t *)text, strlen(text));
}

TEST(responses)
{
	static const char whole[] = "HTTP/1.1 301 Moved Permanently\r\ncontent-length:  162\r\nLocation: /b\x01\r\n"
				    "Connection: close\r\n\r\nbody";
	struct tcp_response_head head;

	assert_int_equal(parse(&head, whole), 1);
	assert_int_equal(head.status, 301);
	assert_int_equal(head.length, sizeof whole - 1 - 4);
	assert_int_equal(head.body_length, 162);
	assert_true(head.closes);
	assert_string_equal(head.reason, "Moved Permanently");
	assert_string_equal(head.location, "/b?");
	/* Each beginning asks for more. */
	for (size_t length = 0; length < sizeof whole - 1 - 4; length++)
		assert_int_equal(tcp_response_read(&head, (const uint8_t *)whole, length), 0);

	assert_int_equal(parse(&head, "HTTP/1.0 200\n\n"), 1);
	assert_true(head.closes && head.body_length == TCP_BODY_UNKNOWN);
	assert_int_equal(parse(&head, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n"), 1);
	assert_true(head.body_length == TCP_BODY_UNKNOWN && !head.closes);
	assert_int_equal(parse(&head, "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), 1);
	assert_true(head.body_length == TCP_BODY_UNKNOWN);
}

TEST(other_protocols)
{
	static const char *const texts[] = { "SSH-2.0-OpenSSH\r\n", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2x0 OK\r\n\r\n",
					     "HTTP/1.1\r\n\r\n",    "\x15\x03\x01",          "HTTQ" };
	struct tcp_response_head head;
	uint8_t *endless = malloc(TCP_HEAD_MAX);

	assert_non_null(endless);
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
		assert_int_equal(parse(&head, texts[i]), -EBADMSG);
	memset(endless, 'x', TCP_HEAD_MAX);
	memcpy(endless, "HTTP/1.1 200 OK\r\n", 17);
	assert_int_equal(tcp_response_read(&head, endless, TCP_HEAD_MAX - 1), 0);
	assert_int_equal(tcp_response_read(&head, endless, TCP_HEAD_MAX), -EBADMSG);
	free(endless);
}
