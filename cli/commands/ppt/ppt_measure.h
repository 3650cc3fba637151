/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt measure`: its options, and its parts. */
#ifndef KTRXER_CLI_PPT_MEASURE_H
#define KTRXER_CLI_PPT_MEASURE_H

#include "ppt_probes.h"
#include "train_command.h"

struct ppt_measure_options {
	struct train_options train;
	uint64_t count, interval_ns, heading, size1, size2;
};

struct ppt_way {
	bool wanted, estimated;
	struct ppt_probes sets[2]; /* the smaller trailing packets first */
	struct pair_times *times[2];
	struct ppt_result result;
};

struct ppt_measure {
	struct train_run train;
	const struct ppt_measure_options *o;
	uint32_t heading, sizes[2]; /* bytes on the wire */
	double probe_bit_s;         /* in one direction, on a wire */
	struct ppt_way ways[TRAIN_WAYS];
};

void ppt_measure_say_what(const struct ppt_measure *run);
int ppt_measure_finish(struct ppt_measure *run);

#endif
