/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The common parts of the commands that measure with trains of packets (`abw`, `pair`, `ppt measure`). */
#ifndef KTRXER_CLI_TRAIN_COMMAND_H
#define KTRXER_CLI_TRAIN_COMMAND_H

#include "cli.h"
#include "shared_options.h"
#include "train_pairs.h"

enum train_way { TRAIN_UP = 0, TRAIN_DOWN = 1, TRAIN_WAYS = 2 };

struct train_options {
	const char *host, *token_file, *engine, *device;
	struct ktrxer_addr from;
	uint64_t port;
	int64_t cpu;
	int direction; /* both, up, down */
	bool v4, v6, precise;
};

extern const char *const train_directions[], *const train_ways[TRAIN_WAYS];
/* The sender of each direction; of the other direction it is the receiver. */
extern const char *const train_hosts[TRAIN_WAYS];

/* The rows of an option table. FIELD(name) is the offset of a member of the train_options in the command's own. */
#define TRAIN_OPTION_DIRECTION(FIELD, ...) \
	OPTION_DIRECTION(FIELD(direction), train_directions, \
			 .help = "up: from here to HOST; down: from HOST to here; both", __VA_ARGS__)
#define TRAIN_OPTIONS_HOW(FIELD, WHAT) \
	OPTION_DEVICE_OF_ROUTE(FIELD(device), " of " WHAT " up", "How"), \
	OPTION_ENGINE_OF_STACK(FIELD(engine), " of " WHAT " up"), \
	OPTION_PRECISE(FIELD(precise), OPT_FLAG, " of " WHAT " up", "", NULL), \
	OPTION_CPU(FIELD(cpu), "waiting thread of --precise"), \
	OPTIONS_SERVER(FIELD(token_file), FIELD(port), FIELD(from), FIELD(v4), FIELD(v6))
#define TRAIN_POSITIONAL_HOST(FIELD) \
	{ .name = "HOST", .offset = FIELD(host), .help = "Address or name of a host where `ktrxer serve` runs" }

enum { TRAIN_KINDS_MAX = 4 }; /* of pairs in each direction */

struct train_run {
	struct cli *cli;
	const struct train_options *o;
	struct hmac_key token;
	struct ktrxer_path path;
	struct path_witness witness;
	struct train_session_options plan;
	struct train_session session;
	struct flow_spec specs[TRAIN_KINDS_MAX * TRAIN_WAYS]; /* in the order of plan.specs */
};

/* Negative errno with a text. train_run_free() in any case. */
int train_run_find_path(struct train_run *run, struct ktrxer_error *err);
int train_run_prepare(struct train_run *run, struct ktrxer_error *err);
bool train_run_wants(const struct train_options *o, enum train_way way);
/* IP and UDP headers on the path, and the bytes of payload that its MTU leaves. */
uint32_t train_run_head(const struct train_run *run);
uint32_t train_run_room(const struct train_run *run);
/*
 * Plans the pairs of one kind, of `kinds`, and direction, one every `period_ns`. The flows have equal parts of the
 * period: no pair meets another one on the path.
 */
void train_run_add(struct train_run *run, enum train_way way, uint32_t kind, uint32_t kinds, const uint32_t payloads[2],
		   uint64_t period_ns);
/* Waits for --start-at and sets plan.start_ns: 0, or -1 after a complaint. */
int train_run_wait(struct train_run *run);
/* Waits for --start-at and runs the session: EXIT_VALID, or EXIT_NO_RESULT after a complaint. */
int train_run_go(struct train_run *run, uint64_t pairs);
/* The pairs of one size, for --jsonl: their four times. */
struct train_samples {
	const char *bytes_name; /* of the field that has their size */
	uint32_t bytes;
	const struct pair_times *times;
	size_t count;
};
void train_run_samples(const struct train_run *run, const char *kind, const char *direction,
		       const struct train_samples *samples);
/* Prints why pairs of one size are not used: as text (WHAT: "pairs"), and as JSON with the number of those used. */
void train_run_say_left_out(const struct train_run *run, const char *direction, const char *what, uint32_t bytes,
			    const size_t outcomes[PAIR_OUTCOMES]);
void train_run_outcomes_json(struct json *json, const size_t outcomes[PAIR_OUTCOMES]);
/* Packets of one size in one direction. */
struct train_size {
	uint32_t bytes;
	size_t sent, arrived;
};
/* `which`: 0, the first packets of the pairs; 1, the second ones. */
struct train_size train_size_of(uint32_t bytes, const struct pair_times *times, size_t count, int which);
/* Gives a reason, and returns true, where packets from some size on do not arrive and smaller ones do. */
bool train_run_judge_sizes(const struct train_run *run, const char *name, const struct train_size *sizes, size_t count);
/* Returns the shaper of this host, "this host's qdisc tbf or ", or "". */
const char *train_shaper(const struct ktx_info *info, const struct ktrxer_qdiscs *qdiscs, const char *receiver,
			 char text[48]);
/* `period_ns` of the receiver's interrupts; 0: not known. */
void train_run_judge_coalesced(const struct train_run *run, const char *name, const char *receiver, double period_ns);
/* Reasons of the session for the verdict. WHAT: "pairs". */
void train_run_judge(struct train_run *run, const char *what);
void train_run_json(const struct train_run *run, struct json *end);
void train_run_free(struct train_run *run);

#endif
