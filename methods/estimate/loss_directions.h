/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The direction in which each probe was lost, by the counts that a stateful reflector puts into its answers (RFC 8762,
 * section 4.3.1), from the recorded probes of one session. How many were lost in each direction is counted by the
 * session itself (methods/probe/stamp_losses.h), which sees copies and closing probes, too. Here each loss gets its
 * place.
 */
#ifndef KTRXER_METHODS_LOSS_DIRECTIONS_H
#define KTRXER_METHODS_LOSS_DIRECTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The store has the same values: python/ktrxer/store/columns.py. */
enum loss_state {
	LOSS_ANSWERED,
	LOSS_LOST,
	LOSS_UP,
	LOSS_DOWN,
	LOSS_FAILED,
	LOSS_SKIPPED,
	LOSS_DUPLICATE,
	LOSS_TOO_LATE
};

struct loss_probe {
	int64_t number;
	int64_t count; /* the reflector's count; -1: not known */
	int64_t state; /* enum loss_state */
};

enum loss_reflector { LOSS_COUNTS_NOT, LOSS_COUNTS, LOSS_MAY_COUNT };

struct loss_evidence {
	enum loss_reflector reflector;
	bool copied_up; /* a missing count may be that of a copy, and is no evidence of a loss down */
	bool split;     /* the session reported the three numbers below */
	bool withdraw;  /* more losses of a direction than the session reported: these losses are not certain */
	uint64_t up, down, unknown;
};

/* Replaces LOSS_LOST by LOSS_UP or LOSS_DOWN. In the order of the probes' numbers, each once. -ENOMEM, or 0. */
int loss_directions(struct loss_probe *probes, size_t count, const struct loss_evidence *evidence);

#endif
