/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Subcommands of the upper floors, which the Python part knows. */
#ifndef KTRXER_CLI_HANDOVER_H
#define KTRXER_CLI_HANDOVER_H

struct handover {
	const char *name, *summary;
};
extern const struct handover handover_table[]; /* name NULL ends it */

/*
 * Becomes the Python part, with the same arguments. Comes back only when that is not possible: 0 when it is not
 * installed, else a negative errno and a line on standard error.
 */
int handover_try(char *const argv[]);

#endif
