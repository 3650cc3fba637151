/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The server of a protocol with a port of its own, as a part of `ktrxer serve`. The folder of its command defines
 * `const struct service service_NAME` and names it in its meson.build (cli_services); --NAME-port turns it on.
 */
#ifndef KTRXER_CLI_SERVICE_H
#define KTRXER_CLI_SERVICE_H

#include <ktrxer.h>

struct json;
struct loop;
struct metrics_text;

struct service_limits {
	const uint8_t *token;
	size_t token_length;
	uint32_t max_clients;
	uint64_t max_ns, max_bps, answer_bps; /* the last one: of all answers together */
	uint64_t dscp_granted, dscp_open;     /* of clients with the token, and of others */
	uint64_t random;
};

/* `server` is NULL in end() and metrics() of a service that is off. Functions return negative errno with a text. */
struct service {
	const char *about; /* "OWAMP, unauthenticated, on TCP port": the number follows */
	int (*open)(void **server, struct loop *loop, const struct service_limits *limits, struct ktrxer_error *err);
	int (*listen)(void *server, const struct ktrxer_addr *bind, uint16_t port, struct ktrxer_error *err);
	void (*set_token)(void *server, const uint8_t *token, size_t length); /* NULL: it has no token */
	void (*listening)(struct json *json, uint16_t port);                  /* fields of the event `listening` */
	void (*end)(struct json *json, const void *server);                   /* fields of the end object */
	void (*metrics)(struct metrics_text *text, const void *server);
	void (*close)(void *server);
};

#endif
