/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* SIGHUP: the token is read again from its file. */
#ifndef KTRXER_CLI_SERVE_RELOAD_H
#define KTRXER_CLI_SERVE_RELOAD_H

#include "loop.h"

/* The loop calls `source->ready` after each SIGHUP. 0 or a negative errno. There is one for a process. */
int reload_open(struct loop *loop, struct loop_source *source);
/* `ready` calls this to take the signal. */
void reload_taken(struct loop_source *source);
void reload_close(struct loop *loop, struct loop_source *source);

#endif
