/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* `ktrxer ppt measure`: its options, and its parts. */
#ifndef KTRXER_CLI_PPT_MEASURE_H
#define KTRXER_CLI_PPT_MEASURE_H

#include "ppt_checks.h"
#include "train_command.h"

struct ppt_measure_options {
	struct train_options train;
	uint64_t count, interval_ns, heading, size1, size2;
};

/* Probes of both sizes, with a trailing packet between both, and with a shorter heading packet (ppt_checks.h). */
enum { PPT_KINDS = 4, PPT_MIDDLE = 2, PPT_SHORTER = 3 };

struct ppt_way {
	bool wanted, estimated;
	struct ppt_probes sets[2]; /* the smaller trailing packets first */
	struct ppt_checks checks;
	struct pair_times *times[PPT_KINDS];
	struct ppt_result result;
};

struct ppt_measure {
	struct train_run train;
	const struct ppt_measure_options *o;
	uint32_t heading, shorter_heading, sizes[PPT_KINDS]; /* bytes on the wire */
	double probe_bit_s;                                  /* in one direction, on a wire */
	struct ppt_way ways[TRAIN_WAYS];
};

struct ppt_probes *ppt_way_set(struct ppt_way *way, uint32_t kind);
void ppt_measure_say_what(const struct ppt_measure *run);
int ppt_measure_finish(struct ppt_measure *run);

#endif
