/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One line for each client of the server, once it has ended: its address, what it did, how much, and how it ended.
 * A flood of clients must not fill a disk: each /24 and /56 has its own limit of lines, and all clients that have not
 * shown the token have one together. Lines that are left out are counted. Sessions of STAMP packets from one address,
 * as those of the classes of one command, have one line together, so it is printed some seconds after their end.
 */
#ifndef KTRXER_CLI_SERVE_CLIENT_LOG_H
#define KTRXER_CLI_SERVE_CLIENT_LOG_H

#include "cli.h"
#include "limiter.h"
#include "reflector_arrival.h"
#include "serve_registry.h"

enum { CLIENT_LOG_STAMPS = 32 };

struct client_log_stamp {
	struct reflector_client client; /* of the sessions together; the lowest port */
	uint64_t answers;
	uint32_t sessions; /* 0: a free place */
	uint64_t noted_ns;
};

struct client_log {
	struct cli *cli;
	struct limiter *limiter;
	uint64_t full_ns; /* when the bucket of all clients without the token will be full again */
	uint64_t left_out, reported;
	struct client_log_stamp stamps[CLIENT_LOG_STAMPS]; /* whose line waits for other sessions */
};

int client_log_open(struct client_log *log, struct cli *cli, uint64_t secret);
void client_log_close(struct client_log *log);
void client_log_flows(void *log, const struct serve_client *client);
void client_log_stamp(void *log, const struct reflector_client *client);
/* Called regularly, this prints the lines that have waited long enough; `all`: each. */
void client_log_review(struct client_log *log, bool all, uint64_t now_ns);

#endif
