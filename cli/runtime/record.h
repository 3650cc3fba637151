/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The head of every result: place, time and command line. Fields: docs/schema/. */
#ifndef KTRXER_CLI_RECORD_H
#define KTRXER_CLI_RECORD_H

#include "cli.h"

enum { RECORD_SCHEMA = 2 }; /* grows when a field changes its meaning; more fields do not count */

void record_start(const struct cli *cli, struct json *json);

#endif
