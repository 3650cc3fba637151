/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer serve`: its options, its state, and its parts. */
#ifndef KTRXER_CLI_SERVE_H
#define KTRXER_CLI_SERVE_H

#include "cli.h"
#include "client_log.h"
#include "figures.h"
#include "metrics.h"
#include "passed_sockets.h"
#include "privilege.h"
#include "secret.h"
#include "serve_control.h"
#include "serve_services.h"

struct serve_options {
	struct opt_list bind;
	uint64_t port, stamp_port, rate, burst, answer_bps, max_clients, max_flows, max_ns, max_bps;
	uint64_t service_ports[SERVICES + 1];
	const char *token_file, *auth_key_file, *tlv_key_file, *dscp_allow, *metrics;
	bool stateless, ptp, v4, v6;
};

enum { SERVE_SOCKETS = 2 * KTRXER_SERVE_ADDRESSES + 2 };

struct server {
	struct cli *cli;
	const struct serve_options *o;
	struct loop *loop;
	struct reflector *reflector;
	struct serve_control *control;
	struct serve_udp *sockets[SERVE_SOCKETS];
	struct ktrxer_addr addrs[KTRXER_SERVE_ADDRESSES];
	int addr_count, socket_count;
	struct passed_sockets passed; /* instead of sockets that the server opens */
	struct loop_timer clock_timer;
	uint8_t token[SECRET_MAX];
	int token_length;
	char token_path[256]; /* of a token that was made; "" */
	uint64_t dscp_granted;
	bool filtered; /* system calls */
	struct loop_source reload;
	struct client_log log;
	struct loop_timer review_timer;
	struct serve_metrics *metrics;
	struct serve_services services;
};

int server_open(struct server *s, struct ktrxer_error *err);

/* serve_extras.c. What the small static program leaves out (KTRXER_SERVER_EXTRAS). */
int server_extras_open(struct server *s, struct ktrxer_error *err);

void server_figures(struct server *s, struct serve_figures *f);
void server_say_listening(struct server *s, const struct privilege_left *left);
int server_say_end(struct server *s);

#endif
