/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The book of reasons, as cli.c and record.c see it; commands see cli.h. */
#ifndef KTRXER_CLI_VERDICT_H
#define KTRXER_CLI_VERDICT_H

#include "cli.h"

int verdict_open(struct cli *cli); /* 0 or -ENOMEM */
void verdict_close(struct cli *cli);
int verdict_reasons(const struct cli *cli);
const char *verdict_reason(const struct cli *cli, int i);

/* What cli_complain() said is kept, and becomes the reasons of a command that ends without a verdict of its own. */
void verdict_complaint(const struct cli *cli, const char *text);
void verdict_say_complaints(struct cli *cli);

/*
 * How many of a histogram's values are above `limit`, by what its quantiles tell (in parts of a million of its count,
 * rounded up). For unit tests as well.
 */
uint32_t verdict_parts_above(const struct ktrxer_hist *hist, int64_t limit_ns);

#endif
