/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All counts of a server at one time: for its end object and for its metrics. */
#ifndef KTRXER_CLI_SERVE_FIGURES_H
#define KTRXER_CLI_SERVE_FIGURES_H

#include "reflector.h"
#include "serve_control.h"
#include "serve_udp.h"

struct serve_figures {
	struct reflector_counts stamp;
	struct serve_udp_counts sockets; /* the sum of all sockets */
	struct serve_control_counts flows;
	struct loop_figures loop;
	uint64_t clients, pending; /* at present */
	uint64_t log_left_out;
};

struct json;
void figures_json(struct json *json, const struct serve_figures *figures);

#endif
