/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer abw`: its options, and its parts. */
#ifndef KTRXER_CLI_ABW_COMMAND_H
#define KTRXER_CLI_ABW_COMMAND_H

#include "train_abw.h"
#include "train_command.h"

struct abw_command_options {
	struct train_options train;
	int method; /* enum abw_method */
	uint64_t max_load_bps, payload;
};

struct abw_run;

struct abw_way {
	struct abw_run *run;
	enum train_way way;
	bool wanted, measured;
	struct train_abw trains;
};

struct abw_run {
	struct train_run train;
	const struct abw_command_options *o;
	struct abw_options estimate;
	struct abw_way ways[TRAIN_WAYS];
};

extern const char *const abw_methods[];

void abw_say_what(const struct abw_run *run);
/* Of one step, for --jsonl: `context` is the abw_way. */
void abw_say_step(void *context, const struct abw_plan *plan, const struct train_session *session);
int abw_finish(struct abw_run *run);

#endif
