/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every result says of itself: where, when, by what command line; and how far it can be trusted. Fields:
 * docs/schema/.
 */
#ifndef KTRXER_CLI_RECORD_H
#define KTRXER_CLI_RECORD_H

#include "cli.h"

enum { RECORD_SCHEMA = 1 }; /* grows when a field changes its meaning; more fields do not count */

void record_start(const struct cli *cli, struct json *json);
/* Host, output, verdict and reasons into the open `end` object, and for people as text. The exit status. */
int record_end(struct cli *cli, struct json *end);

#endif
