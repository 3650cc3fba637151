/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The servers of protocols that have a port of their own (services.h). */
#ifndef KTRXER_CLI_SERVE_SERVICES_H
#define KTRXER_CLI_SERVE_SERVICES_H

#include "cli.h"
#include "services.h"

struct serve_services {
	const uint64_t *ports;       /* of each service; 0: it is off */
	void *servers[SERVICES + 1]; /* NULL: it is off */
};

struct serve_services_options {
	struct loop *loop;
	const struct ktrxer_addr *addrs;
	int addr_count;
	bool all_addresses; /* a kernel without IPv6 is no fault */
	const uint64_t *ports;
	struct service_limits limits; /* without `random` */
};

/* Negative errno with a text. services_close() in any case. */
int services_open(struct serve_services *s, const struct serve_services_options *options, struct ktrxer_error *err);
void services_set_token(struct serve_services *s, const uint8_t *token, size_t length);
void services_say(const struct serve_services *s, struct cli *cli);
void services_listening(const struct serve_services *s, struct json *json);
void services_end(const struct serve_services *s, struct json *json);
void services_metrics(const struct serve_services *s, struct metrics_text *text);
void services_close(struct serve_services *s);

#endif
