/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A command's options of every kind, for the unit test and the fuzzer. */
#ifndef KTRXER_TESTS_OPT_ALL_H
#define KTRXER_TESTS_OPT_ALL_H

#include "opt.h"

struct all {
	bool flag, verbose, color, json;
	uint64_t count, duration, bitrate, size;
	int64_t offset;
	struct opt_rate rate;
	const char *string;
	int choice;
	struct opt_list list;
	struct ktrxer_addr address;
	int precise;
	uint8_t dscp, ecn;
	struct opt_mac mac;
	struct opt_range range;
	const char *host;
	struct opt_list rest;
};

#define FIELD(name) offsetof(struct all, name)

static const char *const policies[] = { "catch-up", "skip", "shift", NULL };

#endif
