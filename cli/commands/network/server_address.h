/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The address of a server whose name has several: one of them may be dead, as IPv6 behind a router without a route. */
#ifndef KTRXER_CLI_SERVER_ADDRESS_H
#define KTRXER_CLI_SERVER_ADDRESS_H

#include "cli.h"

/*
 * Resolves HOST as cli_resolve() does. Of several addresses, the one that accepts a TCP connection to `port` first
 * counts; each gets a head start of 250 ms before the next one (RFC 8305, 5). If none does within 5 s, the first
 * address counts, and the command itself fails by it.
 */
int server_address_find(const struct cli *cli, const char *host, const struct ktrxer_addr *from, bool v4, bool v6,
			uint16_t port, struct ktrxer_addr *addr, struct ktrxer_error *err);

#endif
