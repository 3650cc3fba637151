/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#ifndef KTRXER_CLI_COMMANDS_H
#define KTRXER_CLI_COMMANDS_H

#include "opt.h"

extern const struct command *const command_table[]; /* in the order of the alphabet; NULL ends it */

#endif
