/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The way out for results, as cli.c sees it; commands see cli.h. */
#ifndef KTRXER_CLI_OUT_H
#define KTRXER_CLI_OUT_H

#include "cli.h"

enum { KTRXER_OUT_STALL_MS = 2000 /* at the end: a reader that takes no byte for so long is given up */ };

/* Makes cli->out, writing to `fd`. Negative errno when threads or memory are lacking. */
int out_open(struct cli *cli, int fd);
/*
 * Waits until all is written, as long as the reader takes something at least each 2 s; then ends the writer. `status`
 * becomes EXIT_NO_RESULT when something was lost on the way (a reader that went away lost nothing that it wanted).
 */
int out_close(struct cli *cli, int status);
/* Closes the end object and writes it, where objects are wanted. False: it could not be made. */
bool out_put_end(struct cli *cli, struct json *object);
#ifndef KTRXER_SMALL
/* Takes over an object of json_new(). False: it could not be made. */
bool out_put_part(struct cli *part, struct json *object);
#endif
bool out_finished(const struct cli *cli);
/* Objects that found no room so far. */
uint64_t out_dropped(const struct cli *cli);
/* A message of cli_complain() becomes a reason if the command ends without a verdict. */
void out_start(struct cli *cli);

#endif
