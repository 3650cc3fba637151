/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Other programs that do a command: the Python part, and those of LIBEXECDIR. */
#ifndef KTRXER_CLI_HANDOVER_H
#define KTRXER_CLI_HANDOVER_H

#define HANDOVER_PYTHON "ktrxer-py"
#define HANDOVER_PROGRAM "KTRXER_PROGRAM"

/*
 * Becomes that program, with the same arguments. Comes back only when that is not possible: 0 when it is not
 * installed, else a negative errno and a line on standard error.
 */
int handover_try(const char *name, char *const argv[]);
/* The same, with the path of another program in $KTRXER_PROGRAM; 0 also when that other one is not installed. */
int handover_through(const char *name, const char *program, char *const argv[]);

#endif
