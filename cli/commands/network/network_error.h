/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What routers and hosts on the way say of our probes, for people and as events. */
#ifndef KTRXER_CLI_NETWORK_ERROR_H
#define KTRXER_CLI_NETWORK_ERROR_H

#include "cli.h"

/* Takes what the transmitter was told since the last call; `count` is of all so far. A line for each of the first few, or for all. */
void network_errors_say(struct cli *cli, struct ktx *tx, bool all, uint64_t *count);
/* "port unreachable", or what the error number means. */
const char *network_error_text(const struct ktx_network_error *error, char *text, size_t size);

#endif
