/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The verdict builder for cli.c and record.c; cli.h has the functions for commands. */
#ifndef KTRXER_CLI_VERDICT_H
#define KTRXER_CLI_VERDICT_H

#include "cli.h"

enum { KTRXER_REASONS_MAX = 32 /* sentences beside a verdict */ };

int verdict_open(struct cli *cli); /* 0 or -ENOMEM */
void verdict_close(struct cli *cli);
int verdict_reasons(const struct cli *cli);
const char *verdict_reason(const struct cli *cli, int i);                  /* the sentence */
void verdict_reason_json(const struct cli *cli, int i, struct json *json); /* an object of an array */
extern const char *const verdict_names[];

/*
 * Keeps the messages of cli_complain(): they are the reasons of a command that ends without a verdict of its own.
 * `code`: a negative errno, from which the reason has its identifier; or 0.
 */
void verdict_complaint(const struct cli *cli, int code, const char *text);
void verdict_say_complaints(struct cli *cli);

#endif
