/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Errors that routers and hosts on the path report for our probes, as text and as events. */
#ifndef KTRXER_CLI_NETWORK_ERROR_H
#define KTRXER_CLI_NETWORK_ERROR_H

#include "cli.h"

/* An event, and a line for each of the first few errors, or for all; `count` is of all so far. */
void network_error_say(struct cli *cli, const struct ktx_network_error *error, bool all, uint64_t *count);

#endif
