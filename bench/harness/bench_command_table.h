/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_BENCH_COMMAND_TABLE_H
#define KTRXER_BENCH_COMMAND_TABLE_H

#include "opt.h"

extern const struct command *const bench_command_table[]; /* in the order of the alphabet; NULL ends it */

#endif
