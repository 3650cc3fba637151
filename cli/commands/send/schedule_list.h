/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Send times from a file, for a schedule of ktrxer.h. */
#ifndef KTRXER_CLI_SCHEDULE_LIST_H
#define KTRXER_CLI_SCHEDULE_LIST_H

#include <ktrxer.h>

enum {
	KTRXER_LIST_MAX = 1 << 24,   /* offsets of a list: 128 MiB, 16 million probes */
	KTRXER_LIST_LINE_MAX = 4096, /* a longer line is not text */
};

/*
 * Offsets of a list schedule as a text: one a line, from the start; never decreasing. A bare integer is nanoseconds,
 * else it is a duration with its unit ("250us", "1.5s"). `#` begins a comment; empty lines count for nothing.
 */
struct schedule_list {
	uint64_t *offsets_ns;
	uint64_t count;
};

/*
 * Errors name the file (or what `name` says) and the line. -EINVAL, -E2BIG, -ENOMEM, or what opening or
 * reading said.
 */
int schedule_list_load(struct schedule_list *list, const char *path, struct ktrxer_error *err);
int schedule_list_parse(struct schedule_list *list, const uint8_t *text, size_t length, const char *name,
			struct ktrxer_error *err);
void schedule_list_free(struct schedule_list *list);

#endif
