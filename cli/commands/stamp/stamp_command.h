/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer stamp`: its options, and its parts. */
#ifndef KTRXER_CLI_STAMP_COMMAND_H
#define KTRXER_CLI_STAMP_COMMAND_H

#include "probe_command.h"
#include "secret.h"
#include "stamp.h"

struct stamp_options {
	struct probe_options p;
	const char *auth_key_file, *tlv_key_file;
	struct opt_list tlvs;
	const char *dscp;
	uint8_t ecn;
	uint64_t ssid;
	bool ptp, follow_up, clock, limits, host_delay, echo;
};

struct stamp_command {
	struct probe_report report; /* first */
	const struct stamp_options *o;
	struct stamp *stamp;
	const struct stamp_result *result;
	struct stamp_echo *echo; /* NULL: none */
};

int stamp_spec_make(struct stamp_spec *spec, struct stamp_keys *keys, const struct stamp_options *o,
		    struct ktrxer_error *err);

/*
 * stamp_echo.c. ICMP echo at the same send times, in this process: a measurement of its own, with its own verdict. Not
 * in small builds.
 */
#define STAMP_ECHO_PAYLOAD 56 /* bytes, as `ping` */
int stamp_echo_open(struct stamp_command *run, const struct probe_spec *spec, struct ktrxer_error *err);
/* Its result: out_finish() of the command prints it before that of the probes. */
void stamp_echo_finish(struct stamp_command *run);
void stamp_echo_free(struct stamp_echo *echo);

void stamp_say_what(const struct stamp_command *run);
void stamp_say_sample(void *run, uint32_t which, const struct stamp_sample *sample);
void stamp_say_answer(void *run, enum stamp_event event);
void stamp_say_step(void *run);
int stamp_finish(struct stamp_command *run);

void stamp_batch_open(struct stamp_command *run); /* the fields of a round trip under --brief */
void stamp_sample_json(struct stamp_command *run, uint32_t which, const struct stamp_sample *sample);
void stamp_end_json(const struct stamp_command *run, struct json *end);

void stamp_judge(const struct stamp_command *run);

/*
 * stamp_path_report.c. The path as the headers on arrival show it: changed DSCP or ECN, and TTLs. Not in small
 * builds.
 */
void stamp_judge_path(const struct stamp_command *run);
void stamp_marks_text(const struct stamp_command *run);
/* marks_up and marks_down of `count` classes together. */
void stamp_marks_json(struct json *json, const struct stamp_class_result *classes, uint32_t count);
/* ttl_up and ttl_down of `count` classes together. */
void stamp_ttl_json(struct json *json, const struct stamp_class_result *classes, uint32_t count);

#endif
