/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Any bytes as a list of offsets: what is accepted must make a schedule that gives back exactly what was read. */
#include "schedule_list.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ktrxer_schedule_options options = KTRXER_SCHEDULE_OPTIONS_INIT;
	struct schedule_list list;
	struct ktrxer_schedule *schedule;
	struct ktrxer_deadline deadline;
	struct ktrxer_error err;

	if (schedule_list_parse(&list, data, size, "list", &err)) {
		if (list.offsets_ns || list.count)
			abort();
		return 0;
	}
	options.kind = KTRXER_SCHEDULE_LIST;
	options.offsets_ns = list.offsets_ns;
	options.offsets = list.count;
	if (ktrxer_schedule_new(&schedule, &options, &err))
		abort();
	for (uint64_t i = 0; i < list.count; i++) {
		if (list.offsets_ns[i] == KTRXER_NEVER)
			break;
		if (ktrxer_schedule_next(schedule, &deadline) || deadline.at_ns != list.offsets_ns[i] ||
		    deadline.index != i)
			abort();
	}
	if (ktrxer_schedule_next(schedule, &deadline) == 0)
		abort();
	ktrxer_schedule_free(schedule);
	schedule_list_free(&list);
	return 0;
}
