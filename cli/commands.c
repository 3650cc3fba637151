/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A folder of cli/commands names the commands that it defines in its meson.build, from which meson makes the list. */
#include "commands.h"

#include "command_list.h"

#include <stddef.h>

#define DECLARED(name) extern const struct command cmd_##name;
#define ROW(name) &cmd_##name,

COMMAND_LIST(DECLARED)

const struct command *const command_table[] = { COMMAND_LIST(ROW) NULL };
