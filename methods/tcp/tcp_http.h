/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The request that each TCP probe carries, and the head of the server's first response (RFC 9110, RFC 9112). */
#ifndef KTRXER_METHODS_TCP_HTTP_H
#define KTRXER_METHODS_TCP_HTTP_H

#include <ktrxer.h>

enum { TCP_REQUEST_MAX = 1400, TCP_HEAD_MAX = 8192, TCP_HTTP_TEXT = 128 };

struct tcp_request_spec {
	const char *host; /* as it was typed: a name or an address */
	bool is_ipv6;     /* `host` is an IPv6 address: brackets are added, a scope is left out */
	uint16_t port;
	const char *path;
	uint32_t length; /* filled up to it by a header field; 0: as short as possible */
};

/* Writes the request. Its length, or -EINVAL: the path or the host cannot be in a request, or it does not fit. */
int tcp_request_make(char request[TCP_REQUEST_MAX], const struct tcp_request_spec *spec, struct ktrxer_error *err);

#define TCP_BODY_UNKNOWN UINT64_MAX

struct tcp_response_head {
	uint16_t status;
	uint32_t length;      /* of the head */
	uint64_t body_length; /* or TCP_BODY_UNKNOWN */
	bool closes;          /* the server will close the connection after this response */
	char reason[TCP_HTTP_TEXT], location[TCP_HTTP_TEXT]; /* printable; "": none */
};

/* 1; 0: more bytes are needed; -EBADMSG: this is no response of HTTP/1. */
int tcp_response_read(struct tcp_response_head *head, const uint8_t *data, size_t length);

#endif
