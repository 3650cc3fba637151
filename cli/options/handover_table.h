/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Subcommands of the upper floors, which the Python part knows. */
#ifndef KTRXER_CLI_HANDOVER_TABLE_H
#define KTRXER_CLI_HANDOVER_TABLE_H

#include <stddef.h>

struct handover {
	const char *name, *summary;
};
#ifdef KTRXER_SMALL
static const struct handover handover_table[] = { { NULL, NULL } }; /* the small program has no Python part */
#else
extern const struct handover handover_table[]; /* name NULL ends it */
#endif

#endif
