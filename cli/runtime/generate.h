/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The build makes man pages from the option tables by this. */
#ifndef KTRXER_CLI_GENERATE_H
#define KTRXER_CLI_GENERATE_H

#include "opt.h"

/* `ktrxer --generate man DIR`; argv is what comes after --generate. Exit status. */
int generate(const struct command *const *commands, int argc, char *const argv[]);

#endif
