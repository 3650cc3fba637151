/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Schedules from files; schedules themselves are in ktrxer.h. */
#ifndef KTRXER_LIB_SCHEDULE_H
#define KTRXER_LIB_SCHEDULE_H

#include <ktrxer.h>

/*
 * Offsets of a list schedule as a text: one a line, from the start; never decreasing. A bare integer is nanoseconds,
 * else it is a duration with its unit ("250us", "1.5s"). `#` begins a comment; empty lines count for nothing.
 */
struct ktrxer_schedule_list {
	uint64_t *offsets_ns;
	uint64_t count;
};

/*
 * Errors name the file (or what `name` says) and the line. -EINVAL, -E2BIG (limits.h), -ENOMEM, or what opening or
 * reading said.
 */
int ktrxer_schedule_load(struct ktrxer_schedule_list *list, const char *path, struct ktrxer_error *err);
int ktrxer_schedule_parse(struct ktrxer_schedule_list *list, const uint8_t *text, size_t length, const char *name,
			  struct ktrxer_error *err);
void ktrxer_schedule_list_free(struct ktrxer_schedule_list *list);

#endif
