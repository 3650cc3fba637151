/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ping`: its options, and its parts. */
#ifndef KTRXER_CLI_PING_COMMAND_H
#define KTRXER_CLI_PING_COMMAND_H

#include "answer_limit.h"
#include "ping.h"
#include "probe_command.h"

struct ping_options {
	struct probe_options p;
	uint8_t dscp, ecn;
	bool udp;
};

struct ping_run {
	struct probe_report report; /* first */
	const struct ping_options *o;
	struct ping *ping;
#ifndef KTRXER_SMALL
	struct answer_log log;
#endif
};

void ping_batch_open(struct probe_report *report); /* the fields of a round trip under --brief */
void ping_say_what(const struct ping_run *run);
void ping_say_answer(void *run, enum echo_event event, const struct echo_result *result);
/* Judges, and prints: into the open end object, and as text. */
void ping_report(struct ping_run *run, struct json *end);
void ping_run_free(struct ping_run *run);

#endif
